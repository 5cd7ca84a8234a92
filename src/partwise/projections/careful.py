"""A numerically robust solver of the column problem, for any scale, ties and gaps.

The problem: max bᵀy over S_k = {y ≥ 0, ‖y‖₁ = k, ‖y‖₂ = 1}. Its solution is y = (b − a)₊ / ‖(b − a)₊‖ for one
threshold a, so it depends only on the differences between the entries of b, up to scale. The functions here therefore
work on depths, (b − max b) / (max b − min b), and handle ties, for which no such threshold exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel, piece

NEAR_TIE = -1e-100  # depths above this are too small for their squares to be resolved beside the range
DEEPEST = -1e100  # low enough to be outside every support, with a finite square
ROUNDING = 4e-16


def sparse_opt_select(b: Vector, k: float, near: Vector | None, out: Vector) -> None:
    """Write to ``out`` the y in S_k that maximises bᵀy, for any finite input, in expected linear time."""
    write_by_support(b, k, near, out, lambda depths: float(smallest_in_support(depths.copy(), k)))


@np.errstate(all="ignore")
def write_by_support(
    b: Vector, k: float, near: Vector | None, out: Vector, smallest: Callable[[Vector], float]
) -> None:
    """Write the solution, given a function that finds the smallest depth in its support.

    If q ≥ k² entries equal max b, every point of S_k supported on these ties is optimal. Then the one nearest to
    ``near`` is chosen. If ``near`` is tied too, the first entries are chosen.
    """
    x = resolved_depths(b.astype(float), k)
    ties = x == 0
    if near is not None and ties.sum() > k * k * (1 + ROUNDING):
        inner = resolved_depths(near[ties].astype(float), k)
        x[:] = DEEPEST
        x[ties] = inner
        ties = x == 0
    if ties.sum() >= k * k * (1 - ROUNDING):
        write_on_ties(np.flatnonzero(ties), k, out)
    else:
        write_support(x, x >= smallest(x), k, out)


def resolved_depths(b: Vector, k: float) -> Vector:
    """The depths of b, scaled so that those of the support can be told apart.

    If more than k² entries are so close to the maximum that the range of b hides their differences, the support lies
    among them, and depths are measured in units of their range instead.
    """
    top = b.max()
    x, crowd = depths(b, top, b.min()), b.size + 1
    while k * k < (near_top := int(np.count_nonzero(x > NEAR_TIE))) < crowd:
        crowd, bottom = near_top, b[x > NEAR_TIE].min()
        if bottom == top:
            break
        x = depths(b, top, bottom)
    return x


def depths(b: Vector, top: float, bottom: float) -> Vector:
    """(b − top) / (top − bottom), without underflow or overflow; zeros if b is constant."""
    unit = 1.0
    if max(abs(top), abs(bottom)) > 1e300:
        unit = 2.0**-10
    elif top - bottom < 1e-290:
        unit = 2.0**500
    span = top * unit - bottom * unit
    return np.maximum((b * unit - top * unit) / span, DEEPEST) if span > 0 else np.zeros(b.size)


def write_on_ties(ties: Vector, k: float, out: Vector) -> None:
    """Write the point of S_k on the first d ties, with one larger and d − 1 equal entries, for the least possible d."""
    d = min(math.ceil(k * k * (1 - ROUNDING)), ties.size)
    extra = math.sqrt(max(0.0, (1 - k * k / d) * (d - 1) / d))
    out[:] = 0
    out[ties[1:d]] = k / d - extra / max(d - 1, 1)
    out[ties[0]] = k / d + extra


def write_support(x: Vector, chosen: Vector, k: float, out: Vector) -> None:
    """Write the solution on a given support. Mean and variance of its depths take two passes, for accuracy."""
    v = x[chosen]
    d, mean = v.size, v.sum() / v.size
    rest = (v - mean).sum()
    deviation = np.square(v - mean).sum() - rest * rest / d
    mean += rest / d  # correct the rounding error of the first pass
    slope = math.sqrt((d - k * k) / (d * deviation)) if d > k * k and deviation > 0 else 0.0
    out[:] = 0
    out[chosen] = np.maximum(k / d + slope * (v - mean), 0)


@kernel
def smallest_in_support(x: Vector, k: float) -> float:
    """The smallest depth in the support, by a quickselect that overwrites ``x``.

    v is in the support iff v exceeds the threshold of {x ≥ v}. All entries larger than such a v are in the support too.
    """
    d, s1, s2 = 0, 0.0, 0.0  # count and sums of the entries known to be in the support
    smallest = 0.0
    size, random = x.size, np.uint64(88172645463325252)
    while size > 0:
        random = xorshift(random)
        pivot = x[int(random % np.uint64(size))]
        more, t1, t2 = d, s1, s2
        for i in range(size):
            t = x[i] if x[i] >= pivot else 0.0
            t1 += t
            t2 += t * t
            more += x[i] >= pivot
        root = math.sqrt(max(0.0, more * t2 - t1 * t1) / max(more - k * k, 1e-300))
        if more <= k * k or pivot > (t1 - k * root) / more:
            d, s1, s2, smallest = more, t1, t2, pivot
            size = keep_below(x, size, pivot)
        else:
            size = keep_above(x, size, pivot)
    return smallest


@piece
def xorshift(state: np.uint64) -> np.uint64:
    """The next state of Marsaglia's 64-bit xorshift generator."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@piece
def keep_below(x: Vector, size: int, pivot: float) -> int:
    """Move the entries below the pivot, among the first ``size``, to the front; return their number. Branch-free."""
    n = 0
    for i in range(size):
        x[n] = x[i]
        n += x[i] < pivot
    return n


@piece
def keep_above(x: Vector, size: int, pivot: float) -> int:
    """As `keep_below`, for the entries above the pivot."""
    n = 0
    for i in range(size):
        x[n] = x[i]
        n += x[i] > pivot
    return n

"""The parts of the column problem where floating point needs care: scale, ties, and writing the answer.

The problem: max bᵀy over S_k = {y ≥ 0, ‖y‖₁ = k, ‖y‖₂ = 1}. Its solution is y = (b − a)₊ / ‖(b − a)₊‖ for one
threshold a, so it depends only on the differences of b's entries, and not on their unit. `settle` therefore measures
depths below the maximum, in units of the range, and deals with the inputs that have no such threshold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import kernel, reduction

NEAR_TIE = -1e-100  # a depth whose square is lost beside that of the range
DEEPEST = -1e100  # deep enough to stay out of every support; its square is still finite
ROUNDING = 4e-16


@kernel
def depths(b: Any, bottom: float) -> Any:
    """(b − max b) / (max b − bottom), without under- or overflow; zeros where b is constant."""
    top = b.max()
    unit = 1.0
    if max(abs(top), abs(bottom)) > 1e300:
        unit = 2.0**-10
    elif top - bottom < 1e-290:
        unit = 2.0**500
    span = top * unit - bottom * unit
    x = np.zeros(b.size)
    if span > 0:
        for i in range(b.size):
            x[i] = max((b[i] * unit - top * unit) / span, DEEPEST)
    return x


@reduction
def how_many(x: Any, above: float) -> int:
    """|{x > above}|"""
    d = 0
    for i in range(x.size):
        d += x[i] > above
    return d


@kernel
def resolved_depths(b: Any, k: float) -> Any:
    """The depths of b, in a unit that resolves those of the support.

    Where more than k² entries lie so near the top that the range of b hides their differences, the support lies among
    these: their own range becomes the unit.
    """
    x = depths(b, b.min())
    while how_many(x, NEAR_TIE) > k * k:
        bottom = b[x > NEAR_TIE].min()
        if how_many(x, DEEPEST / 2) == how_many(x, NEAR_TIE) or bottom == b.max():
            break
        x = depths(b, bottom)
    return x


@kernel
def settle(b: Any, k: float, near: Any, out: Any) -> tuple[bool, Any]:
    """Write the solution if ties decide it; else the depths among which its support is found. (done, depths)

    With q entries equal to max b and k² ≤ q, every point of S_k supported on the ties is optimal. Then ``near``
    (empty: none) decides: the solution is the one nearest to it. Where ``near`` is tied too, the first entries win.
    """
    x = resolved_depths(b, k)
    ties = x == 0
    q = ties.sum()
    if q < k * k * (1 - ROUNDING):
        return False, x
    if near.size and q > k * k * (1 + ROUNDING):
        inner = resolved_depths(near[ties], k)
        x[:] = DEEPEST
        x[ties] = inner
        ties = x == 0
        if ties.sum() < k * k * (1 - ROUNDING):
            return False, x
    out[:] = 0
    write_on_ties(np.flatnonzero(ties), k, out)
    return True, x


@kernel
def write_on_ties(ties: Any, k: float, out: Any) -> None:
    """The point of S_k on the first d ties that has one larger entry and d − 1 equal ones, d the least possible."""
    d = min(int(math.ceil(k * k * (1 - ROUNDING))), ties.size)
    extra = math.sqrt(max(0.0, (1 - k * k / d) * (d - 1) / d))
    out[ties[0]] = k / d + extra
    for n in range(1, d):
        out[ties[n]] = k / d - extra / (d - 1)


@kernel
def write_support(x: Any, smallest: float, k: float, out: Any) -> None:
    """The solution whose support is {x ≥ smallest}, its mean and variance taken in two passes."""
    d = 0
    mean = 0.0
    for v in x:
        if v >= smallest:
            d += 1
            mean += v
    mean /= d
    deviation = 0.0
    for v in x:
        if v >= smallest:
            deviation += (v - mean) ** 2
    norm = math.sqrt(d * deviation / (d - k * k))
    for i in range(x.size):
        out[i] = max(0.0, k / d + (x[i] - mean) / norm) if x[i] >= smallest else 0.0

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
def extremes(b: Any, x: Any, above: float) -> tuple[float, float]:
    """The largest and the least of b where x > above (of all of b if x is empty)."""
    top, bottom = -math.inf, math.inf
    for i in range(b.size):
        if x.size == 0 or x[i] > above:
            top = max(top, float(b[i]))
            bottom = min(bottom, float(b[i]))
    return top, bottom


@kernel
def write_depths(b: Any, top: float, bottom: float, x: Any) -> None:
    """x = (b − top) / (top − bottom), without under- or overflow; zeros where b is constant."""
    unit = 1.0
    if max(abs(top), abs(bottom)) > 1e300:
        unit = 2.0**-10
    elif top - bottom < 1e-290:
        unit = 2.0**500
    span = top * unit - bottom * unit
    for i in range(b.size):
        x[i] = max((b[i] * unit - top * unit) / span, DEEPEST) if span > 0 else 0.0


@reduction
def how_many(x: Any, above: float) -> int:
    """|{x > above}|"""
    d = 0
    for i in range(x.size):
        d += x[i] > above
    return d


@reduction
def how_many_zero(x: Any) -> int:
    """|{x = 0}|"""
    d = 0
    for i in range(x.size):
        d += x[i] == 0
    return d


@kernel
def resolved_depths(b: Any, k: float, x: Any) -> None:
    """Write to x the depths of b, in a unit that resolves those of the support.

    Where more than k² entries lie so near the top that the range of b hides their differences, the support lies among
    these: their own range becomes the unit.
    """
    top, bottom = extremes(b, b[:0], 0.0)
    write_depths(b, top, bottom, x)
    crowd = how_many(x, NEAR_TIE)
    while crowd > k * k:
        _, bottom = extremes(b, x, NEAR_TIE)
        if bottom == top:
            break
        write_depths(b, top, bottom, x)
        fewer = how_many(x, NEAR_TIE)
        if fewer == crowd:
            break
        crowd = fewer


@kernel
def settle(b: Any, k: float, near: Any, out: Any) -> tuple[bool, Any]:
    """Write the solution if ties decide it; else the depths among which its support is found. (done, depths)

    With q entries equal to max b and k² ≤ q, every point of S_k supported on the ties is optimal. Then ``near``
    (empty: none) decides: the solution is the one nearest to it. Where ``near`` is tied too, the first entries win.
    """
    x = np.empty(b.size)
    resolved_depths(b, k, x)
    q = how_many_zero(x)
    if q < k * k * (1 - ROUNDING):
        return False, x
    if near.size and q > k * k * (1 + ROUNDING):
        values, inner = np.empty(q), np.empty(q)
        n = 0
        for i in range(x.size):
            if x[i] == 0:
                values[n] = near[i]
                n += 1
        resolved_depths(values, k, inner)
        n = 0
        for i in range(x.size):
            if x[i] == 0:
                x[i] = inner[n]
                n += 1
            else:
                x[i] = DEEPEST
        if how_many_zero(x) < k * k * (1 - ROUNDING):
            return False, x
    write_on_ties(x, k, out)
    return True, x


@kernel
def write_on_ties(x: Any, k: float, out: Any) -> None:
    """The point of S_k on the first d ties x = 0 with one larger and d − 1 equal entries, d the least possible."""
    d = min(math.ceil(k * k * (1 - ROUNDING)), how_many_zero(x))
    extra = math.sqrt(max(0.0, (1 - k * k / d) * (d - 1) / d))
    n = 0
    for i in range(x.size):
        out[i] = 0.0
        if x[i] == 0 and n < d:
            out[i] = k / d + extra if n == 0 else k / d - extra / (d - 1)
            n += 1


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
    rest, deviation = 0.0, 0.0
    for v in x:
        if v >= smallest:
            rest += v - mean
            deviation += (v - mean) ** 2
    mean += rest / d  # what rounding left of it
    deviation -= rest * rest / d
    slope = math.sqrt((d - k * k) / (d * deviation)) if d > k * k and deviation > 0 else 0.0
    for i in range(x.size):
        out[i] = max(0.0, k / d + slope * (x[i] - mean)) if x[i] >= smallest else 0.0

"""One compiled entrance to every set: `project_column`, which the sequential pass calls for each column.

A set tells a kernel what it is in three numbers (``code, low, high``): see `Projection.encoded` in `sets`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .alternating import sparse_opt_alternating
from ..compiled import kernel
from .fast import sparse_opt_fast, sums_above, write_above
from .sorted import sparse_opt_sorted

NONNEGATIVE, AT_MOST, FAST, SORTED, ALTERNATING = range(5)


@kernel
def project_column(code: int, low: float, high: float, b: Any, near: Any, out: Any, guess: float) -> None:
    """Write to ``out`` the point of the set nearest to ``b``.

    ``near`` (empty: none) decides among equally near points; ``guess`` is a first threshold for FAST, or nan.
    """
    if code == NONNEGATIVE:
        write_above(b, 0.0, 0.0, 1.0, out, 0.0)
    elif code == AT_MOST:
        keep_largest(b, int(high), near, out)
    else:
        k = low if low == high else norm_ratio(b, low, high)
        if code == FAST:
            sparse_opt_fast(b, k, near, out, guess)
        elif code == SORTED:
            sparse_opt_sorted(b, k, near, out)
        else:
            sparse_opt_alternating(b, k, near, out)


@kernel
def norm_ratio(b: Any, low: float, high: float) -> float:
    """‖b₊‖₁ / ‖b₊‖₂ (1 if no entry is positive), moved into [low, high].

    Over low ≤ ‖y‖₁ ≤ high the best unit vector is the best one at this k (Heiler & Schnörr's intervals).
    """
    d, s1, s2 = sums_above(b, 0.0)
    if d > 0 and not 1e-270 < s2 < 1e290:
        top = float(b.max())
        s1, s2 = 0.0, 0.0
        for v in b:
            t = max(v / top, 0.0)
            s1 += t
            s2 += t * t
    ratio = s1 / math.sqrt(s2) if d > 0 else 1.0
    return min(max(ratio, low), high)


@kernel
def keep_largest(b: Any, count: int, near: Any, out: Any) -> None:
    """Keep the ``count`` largest positive entries; of equal ones those where ``near`` is larger, then the first."""
    out[:] = np.maximum(b, 0)
    if count >= b.size:
        return
    edge = np.partition(b, b.size - count)[b.size - count]  # the count-th largest
    if edge <= 0:
        return
    ties = np.flatnonzero(b == edge)
    room = count - (b > edge).sum()
    if near.size:
        ties = ties[np.argsort(-near[ties], kind="mergesort")]
    for i in range(b.size):
        if b[i] < edge:
            out[i] = 0
    for i in ties[room:]:
        out[i] = 0

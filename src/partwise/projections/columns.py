"""One compiled entrance to every set: `project_column`, which the sequential pass calls for each column.

A set tells a kernel what it is in three numbers (``code, low, high``): see `Projection.encoded` in `sets`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import kernel
from .alternating import sparse_opt_alternating
from .careful import extremes, how_many
from .fast import keep_above, keep_below, sparse_opt_fast, sums_above, write_above, xorshift
from .sorted import sparse_opt_sorted

NONNEGATIVE, AT_MOST, FAST, SORTED, ALTERNATING = range(5)
NEAREST_NORM, OWN_NORM = 8, 16  # added to the code of a unit-norm set: its points at the nearest norm, or at that of b


@kernel
def project_columns(table: Any, columns: Any, near: Any) -> None:
    """Move every column to the nearest point of its set; ``near`` (empty: none) decides among equals."""
    for j in range(columns.shape[0]):
        b = columns[j].copy()
        other = near[j] if near.shape[0] else near.ravel()
        project_column(int(table[j, 0]), table[j, 1], table[j, 2], b, other, columns[j], math.nan)


@kernel
def project_column(code: int, low: float, high: float, b: Any, near: Any, out: Any, guess: float) -> None:
    """Write to ``out`` the point of the set nearest to ``b``, or, for OWN_NORM, that in its direction with b's norm.

    ``near`` (empty: none) decides among equally near points; ``guess`` is a first threshold for FAST, or nan.
    """
    if code < NEAREST_NORM:
        project_unscaled(code, low, high, b, near, out, guess)
        return
    size = norm(near)
    unit = np.empty(near.size if size > 0 else 0)
    for i in range(unit.size):
        unit[i] = near[i] / size
    project_unscaled(code % NEAREST_NORM, low, high, b, unit, out, guess)
    if code >= OWN_NORM:
        scale = norm(b)
    else:
        scale = 0.0
        for i in range(b.size):
            scale += np.float64(out[i]) * np.float64(b[i])
    for i in range(b.size):
        out[i] *= max(scale, 0.0)


@kernel
def norm(x: Any) -> float:
    """‖x‖₂, whatever its scale."""
    top, total = 0.0, 0.0
    for i in range(x.size):
        top = max(top, abs(x[i]))
    if top > 0:
        for i in range(x.size):
            total += (x[i] / top) ** 2
    return top * math.sqrt(total)


@kernel
def project_unscaled(code: int, low: float, high: float, b: Any, near: Any, out: Any, guess: float) -> None:
    """The same for sets as they are."""
    if code == NONNEGATIVE:
        write_above(b, 0.0, 0.0, 1.0, out)
    elif code == AT_MOST:
        keep_largest(b, int(high), near, out)
    else:
        if low == high:
            k = low
        elif near.size and extremes(b, b[:0], 0.0)[0] == 0:  # on b's zeros every k is as good: near decides
            k = norm_ratio(np.where(b == 0, near, 0.0), low, high)
        else:
            k = norm_ratio(b, low, high)
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
        top, _ = extremes(b, b[:0], 0.0)
        s1, s2 = 0.0, 0.0
        for i in range(b.size):
            t = max(b[i] / top, 0.0)
            s1 += t
            s2 += t * t
    ratio = s1 / math.sqrt(s2) if d > 0 else 1.0
    return min(max(ratio, low), high)


@kernel
def keep_largest(b: Any, count: int, near: Any, out: Any) -> None:
    """Keep the ``count`` largest positive entries; of equal ones those where ``near`` is larger, then the first."""
    x = np.empty(b.size)
    for i in range(b.size):
        x[i] = b[i]
    edge = nth_largest(x, count) if count < b.size else -math.inf
    room = count - how_many(b, edge)
    n = 0
    for i in range(b.size):
        if b[i] == edge:
            x[n] = near[i] if near.size else 0.0
            n += 1
    inner_edge = nth_largest(x[:n], room) if n else 0.0
    for i in range(b.size):
        room -= b[i] == edge and near.size > 0 and near[i] > inner_edge
    for i in range(b.size):
        keep = b[i] > edge
        if b[i] == edge:
            preference = near[i] if near.size else 0.0
            keep = preference > inner_edge or (preference == inner_edge and room > 0)
            room -= preference == inner_edge
        out[i] = max(b[i], 0.0) if keep else 0.0


@kernel
def nth_largest(x: Any, n: int) -> float:
    """The n-th largest entry of ``x`` (overwritten), in expected linear time."""
    random = np.uint64(88172645463325252)
    while True:
        random = xorshift(random)
        pivot = x[int(random % np.uint64(x.size))]
        larger = how_many(x, pivot)
        if larger >= n:
            x = x[: keep_above(x, pivot)]
        else:
            smaller = keep_below(x, pivot)
            n -= x.size - smaller
            if n <= 0:
                return float(pivot)
            x = x[:smaller]

"""Keep the largest entries of each row, to project onto vectors with a limited number of nonzeros."""

from __future__ import annotations

import math

import numpy as np

from ..runtime.arrays import Array, Vector
from ..runtime.compiled import kernel, piece
from .careful import keep_above, keep_below, xorshift


@kernel
def keep_largest(rows: Array, count: int, near: Array) -> None:
    """Keep the ``count`` largest positive entries of each row and set the others to zero, in place.

    Ties are broken by the larger value of ``near`` (same shape, or empty), then by position.
    """
    m = rows.shape[1]
    x, preference = np.empty(m), np.zeros(m)
    for i in range(rows.shape[0]):
        for f in range(m):
            x[f] = rows[i, f]
            if near.size:
                preference[f] = near[i, f]
        edge = nth_largest(x, m, count) if count < m else -math.inf
        room, n = count, 0
        for f in range(m):
            room -= rows[i, f] > edge
            if rows[i, f] == edge:
                x[n] = preference[f]
                n += 1
        inner_edge = nth_largest(x, n, room) if n else 0.0
        for f in range(m):
            room -= rows[i, f] == edge and preference[f] > inner_edge
        for f in range(m):
            keep = rows[i, f] > edge
            if rows[i, f] == edge:
                first = preference[f] == inner_edge and room > 0
                room -= first
                keep = first or preference[f] > inner_edge
            rows[i, f] = max(rows[i, f], 0.0) if keep else 0.0


@piece
def nth_largest(x: Vector, size: int, n: int) -> float:
    """The n-th largest of the first ``size`` entries of ``x``, which is overwritten, in expected linear time."""
    random = np.uint64(88172645463325252)
    pivot = math.nan
    while n > 0:
        random = xorshift(random)
        pivot = x[int(random % np.uint64(size))]
        larger = 0
        for i in range(size):
            larger += x[i] > pivot
        if larger >= n:
            size = keep_above(x, size, pivot)
        else:
            smaller = keep_below(x, size, pivot)
            n -= size - smaller
            size = smaller
    return pivot

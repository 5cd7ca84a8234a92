"""Greedy coordinate descent: in each row, always change the entry that lowers the loss most.

References
----------
C.-J. Hsieh and I. S. Dhillon, "Fast coordinate descent methods with variable selection for non-negative matrix
factorization", KDD 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..runtime.compiled import kernel
from ..statistics import Array, Stats
from .interface import Sets, State, Update, require_nonnegative


@dataclass(frozen=True)
class Greedy(Update):
    """Minimise over one entry of a row at a time (y ≥ 0 only).

    Parameters
    ----------
    tol : float
        A row is finished when the best gain is below tol times its first gain (Hsieh & Dhillon: 0.001).
    """

    tol: float = 1e-3

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        require_nonnegative(sets, "Greedy")
        descend_rows(factor.T, stats.cross.T, stats.gram, self.tol)
        return factor, state


@kernel
def descend_rows(columns: Array, cross: Array, gram: Array, tol: float) -> None:
    """min ½·hᵀGh − cᵀh over h ≥ 0 for every row, with at most r² changes."""
    r, rows = columns.shape
    h = np.empty(r)
    slope = np.empty(r)
    for i in range(rows):
        for a in range(r):
            h[a] = columns[a, i]
        for a in range(r):
            total = -cross[a, i]
            for l in range(r):
                total += gram[a, l] * h[l]
            slope[a] = total
        first = -1.0
        for _ in range(r * r):
            best, where, change = 0.0, -1, 0.0
            for a in range(r):
                if gram[a, a] > 0:
                    s = max(h[a] - slope[a] / gram[a, a], 0.0) - h[a]  # the exact minimiser
                    gain = -s * (slope[a] + 0.5 * gram[a, a] * s)
                    if gain > best:
                        best, where, change = gain, a, s
            if first < 0:
                first = best
            if where < 0 or best < tol * first:
                break
            h[where] += change
            for a in range(r):
                slope[a] += change * gram[where, a]
        for a in range(r):
            columns[a, i] = h[a]

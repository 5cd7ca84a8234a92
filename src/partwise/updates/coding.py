"""Sparse coding: nonnegative least squares with a limited number of nonzeros in each row.

References
----------
R. Peharz and F. Pernkopf, "Sparse nonnegative matrix factorization with ℓ0-constraints", Neurocomputing 80 (2012):
sparse NNLS and reverse sparse NNLS, for NMFL0-H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..projections import Nonnegative
from ..runtime.compiled import kernel
from ..statistics import Array, Stats
from .interface import Columns, Sets, State, Support, Update
from .pivot import Pivot, cholesky, grow_support, solve_support, work_arrays
from .sequential import Sequential


@dataclass(frozen=True)
class Coding(Update):
    """For every row min ½·hᵀGh − cᵀh over h ≥ 0 with at most ``nonzeros`` positive entries, by greedy selection.

    Forward selection is Lawson and Hanson's method, stopped when the support is full. Reverse selection starts from the
    nonnegative least squares solution, then repeatedly drops the smallest entry and solves again on the remaining
    support. Both are heuristics: the solution is exact on the support found, which need not be the best one.

    Parameters
    ----------
    nonzeros : int
    reverse : bool
        Reverse or forward selection.
    every : int
        Choose supports in the first call and in every ``every``-th call after it. The calls in between improve the
        factor on its support.
    """

    nonzeros: int
    reverse: bool = True
    every: int = 1

    @property
    def separable(self) -> bool:
        """Whether rows are updated independently of each other and of the state."""
        return self.every == 1

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor``, or improve it on its support."""
        calls = state.get("calls", 0)
        if calls % self.every:
            factor, _ = Sequential()(factor, stats, Columns.same(Support(), len(sets)), {})
            return factor, {"calls": calls + 1}
        cross, gram, scale = stats.normalised()  # so that the scale of the components does not matter
        if self.reverse:
            full, _ = Pivot()(factor, stats, Columns.same(Nonnegative(), len(sets)), {})
            solution = np.divide(full, scale, out=np.zeros(full.shape), where=scale > 0)
            shrink_rows(solution, cross, gram, self.nonzeros, *work_arrays(len(gram)))
        else:
            solution = np.zeros(cross.shape)
            grow_support(solution, cross, gram, np.arange(len(cross)), self.nonzeros, *work_arrays(len(gram)))
        factor[...] = solution * scale
        return factor, {"calls": calls + 1}


@kernel
def shrink_rows(h: Array, cross: Array, gram: Array, most: int, factor: Array, vectors: Array, places: Array) -> None:
    """Drop the smallest entry of a row and solve again, until ``most`` remain. Entries that turn negative go, too."""
    r = gram.shape[0]
    x, y, passive, members = vectors[0], vectors[1], places[0], places[1]
    for i in range(h.shape[0]):
        top, size = 0.0, 0
        for a in range(r):
            top = max(top, h[i, a])
        for a in range(r):
            passive[a] = h[i, a] > 1e-12 * top  # smaller entries are rounding errors
            h[i, a] = h[i, a] if passive[a] else 0.0
            size += passive[a]
        while size > most:
            smallest = -1
            for a in range(r):
                if passive[a] and (smallest < 0 or h[i, a] < h[i, smallest]):
                    smallest = a
            passive[smallest] = 0
            size -= 1
            h[i, smallest] = 0.0
            negative = True
            while negative and size > 0 and cholesky(gram, passive, members, factor) > 0:
                solve_support(gram, cross[i], passive, members, size, factor, y, x)
                negative = False
                for a in range(r):
                    if passive[a] and x[a] <= 0:
                        passive[a] = 0
                        negative = True
                        size -= 1
                for a in range(r):
                    h[i, a] = x[a] if passive[a] else 0.0

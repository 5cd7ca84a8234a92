"""Sparse coding: nonnegative least squares with at most so many nonzeros in each row.

References
----------
R. Peharz and F. Pernkopf, "Sparse nonnegative matrix factorization with ℓ0-constraints", Neurocomputing 80 (2012):
sparse NNLS and reverse sparse NNLS, for NMFL0-H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiled import kernel
from ..projections import Nonnegative
from ..statistics import Array, Stats
from .pivot import Pivot, cholesky, grow_support, solve_support
from .protocol import State
from .sets import Columns, Sets


@dataclass(frozen=True)
class Coding:
    """For every row min ½·hᵀGh − cᵀh over h ≥ 0 with at most ``nonzeros`` of them positive, by a greedy choice.

    Forward, Lawson and Hanson's method is stopped when the support is full. In reverse, the nonnegative least squares
    solution loses its smallest entry and is solved again on what is left, until few enough remain. Both are heuristics:
    exact on the support that they find, which need not be the best one.

    Parameters
    ----------
    nonzeros : int
    reverse : bool
    """

    nonzeros: int
    reverse: bool = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor``."""
        norms = np.sqrt(stats.gram.diagonal())
        unit = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)  # parts of all sizes count alike
        gram = stats.gram * unit * unit[:, None]
        cross = np.ascontiguousarray(stats.cross * unit, dtype=float)
        if self.reverse:
            free = Columns.same(Nonnegative(), len(sets))
            full, _ = Pivot()(factor, stats, free, {})
            solution = np.ascontiguousarray(full * norms, dtype=float)
            shrink_rows(solution, cross, gram, self.nonzeros)
        else:
            solution = np.zeros_like(cross)
            for_rows = np.arange(len(cross))
            grow_support(solution, cross, gram, for_rows, self.nonzeros)
        factor[...] = solution * unit
        return factor, state


@kernel
def shrink_rows(h: Any, cross: Any, gram: Any, most: int) -> None:
    """Drop the smallest entry of each row and solve again on the rest (entries that turn negative go too)."""
    r = gram.shape[0]
    passive = np.empty(r, dtype=np.bool_)
    factor, x, dual = np.empty((r, r)), np.empty(r), np.empty(r)
    for i in range(h.shape[0]):
        size = 0
        for a in range(r):
            passive[a] = h[i, a] > 0
            size += passive[a]
        while size > most:
            least = -1
            for a in range(r):
                if passive[a] and (least < 0 or h[i, a] < h[i, least]):
                    least = a
            passive[least] = False
            size -= 1
            h[i, least] = 0.0
            negative = True
            while negative and size > 0 and cholesky(gram, passive, factor) > 0:
                solve_support(gram, cross[i], passive, factor, x, dual)
                negative = False
                for a in range(r):
                    if passive[a] and x[a] <= 0:
                        passive[a] = False
                        negative = True
                        size -= 1
                for a in range(r):
                    h[i, a] = x[a] if passive[a] else 0.0

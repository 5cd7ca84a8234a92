"""Pruning: solve without the constraint, keep the largest entries, and improve them.

References
----------
R. Peharz and F. Pernkopf, "Sparse nonnegative matrix factorization with ℓ0-constraints", Neurocomputing 80 (2012):
NMFL0-W.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..projections import Nonnegative
from ..statistics import Array, Stats
from .interface import Columns, Sets, State, Support, Update
from .pivot import Pivot
from .sequential import Sequential


@dataclass(frozen=True)
class Pruned(Update):
    """Nonnegative least squares, projected to the sets, then ``sweeps`` over the columns with fixed supports.

    Supports are chosen in the first call and in every ``every``-th call after it. The calls in between only sweep. This
    is a heuristic: the loss may rise if the largest entries are not the best ones.
    """

    sweeps: int = 3
    every: int = 1

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor``, or improve it on its support."""
        calls = state.get("calls", 0)
        if calls % self.every == 0:
            factor, _ = Pivot()(factor, stats, Columns.same(Nonnegative(), len(sets)), {})
            factor = sets.project(factor)
        factor, _ = Sequential(self.sweeps)(factor, stats, Columns.same(Support(), len(sets)), {})
        return factor, {"calls": calls + 1}

"""Solve without the constraint, keep the largest entries, and improve those.

References
----------
R. Peharz and F. Pernkopf, "Sparse nonnegative matrix factorization with ℓ0-constraints", Neurocomputing 80 (2012):
NMFL0-W.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..projections import Nonnegative
from ..statistics import Array, Stats
from .multiplicative import Multiplicative
from .pivot import Pivot
from .protocol import State
from .sets import Columns, Sets


@dataclass(frozen=True)
class Pruned:
    """Nonnegative least squares, projected to the sets, then ``repeats`` multiplicative updates, which keep zeros.

    A heuristic: the loss may rise where the largest entries are not the best ones.
    """

    repeats: int = 10

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor``."""
        free = Columns.same(Nonnegative(), len(sets))
        factor, _ = Pivot()(factor, stats, free, {})
        factor = sets.project(factor)
        factor, _ = Multiplicative(self.repeats)(factor, stats, free, {})
        return factor, state

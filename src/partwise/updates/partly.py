"""Updates next to known columns: the known columns are fixed, and any update improves the others.

With F = [known, free], the loss of the free columns has the statistics cross_free − known·gram_known,free and
gram_free,free. An update for the free columns therefore does not need the known ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..projections import FreeNorm, Hoyer, HoyerBetween
from ..statistics import Array, Stats
from .interface import Columns, Kept, Sets, State, Update


@dataclass(frozen=True)
class Partly(Update):
    """Apply ``update`` to the free columns. The columns that the sets keep do not change, bit for bit.

    Parameters
    ----------
    update : Update
        It gets only the free columns, their statistics and their sets.
    """

    update: Update

    @property
    def separable(self) -> bool:
        return self.update.separable

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve the free columns of ``factor``."""
        known, free = list(sets.kept), [j for j in range(len(sets)) if j not in sets.kept]
        if not free:
            return factor, state
        columns = Columns(tuple(sets[j] for j in free))
        rest = stats.beside(factor, known, free)
        moved, state = self.update(np.asfortranarray(factor[:, free]), rest, columns, state)
        factor[:, free] = moved
        return factor, state


@dataclass(frozen=True, eq=False)
class Known:
    """Columns of a factor that the user has fixed: their indices and their values (rows × columns)."""

    which: tuple[int, ...]
    columns: Array

    def put(self, factor: Array, first: int = 0) -> Array:
        """Write the columns to ``factor``, which may be the rows of a factor from ``first`` on."""
        factor[:, list(self.which)] = self.columns[first : first + len(factor)]
        return factor

    def are_in(self, factor: Array) -> bool:
        """Whether the known columns of a factor have their values."""
        return bool(np.array_equal(factor[:, list(self.which)], self.columns))

    def kept(self, sets: Columns) -> Columns:
        """The sets of the factor, with the known columns kept fixed."""
        return Columns(tuple(Kept() if j in self.which else s for j, s in enumerate(sets)))

    def scaling(self, sets: Columns) -> Columns:
        """The sets of the other factor, which carries the scale of the known columns and has no unit norms there."""
        units = (Hoyer, HoyerBetween)
        return Columns(
            tuple(FreeNorm(s) if j in self.which and isinstance(s, units) else s for j, s in enumerate(sets))
        )

"""A block: one factor's update, its sets, and its penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..projections import Nonnegative
from ..statistics import Array, Stats
from ..updates import Columns, Kept, Known, Partly, Pivot, Sets, State, Update
from .metrics import column_moves, largest_move


@dataclass(frozen=True)
class Block:
    """One factor's update, its sets, and its penalty l1·ΣF + ½·l2·‖F‖² + ½·rows·Σ_i(Σ_j F_ij)².

    ``normalised``: after each update its columns get norm 1, and the other factor the scale; not for the last in order.
    """

    update: Update
    sets: Sets
    l1: float = 0.0
    l2: float = 0.0
    rows: float = 0.0
    normalised: bool = False

    @property
    def penalised(self) -> bool:
        """Whether there is a penalty."""
        return bool(self.l1 or self.l2 or self.rows)

    def __call__(self, factor: Array, stats: Stats, state: State) -> tuple[Array, State]:
        """The improved factor, and the update's state."""
        return self.update(factor, stats.penalised(self.l1, self.l2, self.rows), self.sets, state)

    def penalty(self, factor: Array, own_gram: Array) -> float:
        """What the block adds to the loss."""
        return self.penalty_of(float(factor.sum(dtype=float)) if self.l1 else 0.0, own_gram)

    def penalty_of(self, total: float, own_gram: Array) -> float:
        """The same from Σ F, which matters under an l1 penalty only, and FᵀF."""
        penalty = self.l1 * total if self.l1 else 0.0
        if self.l2:
            penalty += 0.5 * self.l2 * float(np.trace(own_gram))
        return penalty + 0.5 * self.rows * float(own_gram.sum()) if self.rows else penalty

    def moves(self, factor: Array, stats: Stats) -> Array:
        """How far the columns of the factor are from the best ones; see `metrics.column_moves`."""
        return column_moves(factor, stats.penalised(self.l1, self.l2, self.rows), self.sets)

    def residual(self, factor: Array, stats: Stats) -> float:
        """How far the factor is from one that no change of a single column improves."""
        return largest_move(self.moves(factor, stats))

    def keeping(self, known: Known) -> Block:
        """The same block, which leaves what is known as it is."""
        if not isinstance(self.sets, Columns):
            raise ValueError("columns can be kept only where each has a set of its own: take ssnmf")
        return replace(self, update=Partly(self.update), sets=known.kept(self.sets))

    @property
    def separable(self) -> bool:
        """Whether each row of the factor is updated without a look at the others, or at what was before."""
        return self.sets.by_rows and self.update.separable


def nonnegative_encoder(r: int, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Block:
    """Activations by nonnegative least squares, exactly."""
    return Block(Pivot(), Columns.same(Nonnegative(), r), l1, l2, rows)


def unchanged(r: int) -> Block:
    """Activations that stay as they are."""
    return Block(Partly(Pivot()), Columns.same(Kept(), r))

"""Blocks: the update, the sets and the penalty of one factor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..projections import Bounded, Nonnegative
from ..statistics import Array, Stats
from ..updates import Columns, Kept, Known, Newton, Partly, Pivot, Sets, State, Update, WithinBounds
from .metrics import column_moves, largest_move


@dataclass(frozen=True)
class Block:
    """The update and the sets of one factor, and its penalty l1·ΣF + ½·l2·‖F‖² + ½·rows·Σ_i(Σ_j F_ij)².

    If ``normalised``, columns are scaled to norm 1 after each update, and the other factor gets their scale. The factor
    that is updated last cannot be normalised.
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

    @property
    def scalable(self) -> bool:
        """Whether rows of the factor can be multiplied by numbers: only y ≥ 0 is asked of them, without a penalty."""
        return self.sets.nonnegative and not self.penalised

    def __call__(self, factor: Array, stats: Stats, state: State) -> tuple[Array, State]:
        """Return the improved factor and the new state of the update."""
        return self.update(factor, stats.penalised(self.l1, self.l2, self.rows), self.sets, state)

    def from_ahead(
        self, ahead: Array, stats: Stats, state: State, current: Array, others: Array
    ) -> tuple[Array, State]:
        """The same from a shifted factor, which need not be in the sets.

        ``others`` is the Gram matrix of the other factor before its shift. Columns that the model does not depend on,
        because those of the other factor are zero, are taken from the ``current`` factor: the update skips them or,
        where only the shifted column is not zero, divides by next to nothing.
        """
        new, state = self(ahead, stats, state)
        skipped = stats.penalised(l2=self.l2, rows=self.rows).divisors(new.dtype).diagonal() == 0
        if not (self.l2 or self.rows):
            skipped |= others.diagonal() == 0
        if skipped.any():
            new[:, skipped] = current[:, skipped]
        return new, state

    def penalty(self, factor: Array, own_gram: Array) -> float:
        """The penalty at ``factor``, whose Gram matrix is ``own_gram``."""
        return self.penalty_of(float(factor.sum(dtype=float)) if self.l1 else 0.0, own_gram)

    def penalty_of(self, total: float, own_gram: Array) -> float:
        """The penalty, given Σ F (used only by l1) and FᵀF."""
        penalty = self.l1 * total if self.l1 else 0.0
        if self.l2:
            penalty += 0.5 * self.l2 * float(np.trace(own_gram))
        return penalty + 0.5 * self.rows * float(own_gram.sum()) if self.rows else penalty

    def moves(self, factor: Array, stats: Stats) -> Array:
        """The distances of the columns from their optima, see `metrics.column_moves`."""
        return column_moves(factor, stats.penalised(self.l1, self.l2, self.rows), self.sets)

    def residual(self, factor: Array, stats: Stats) -> float:
        """The fixed-point residual: 0 if no change of a single column lowers the loss."""
        return largest_move(self.moves(factor, stats))

    def keeping(self, known: Known) -> Block:
        """Return the block with the ``known`` columns kept fixed."""
        if not isinstance(self.sets, Columns):
            raise ValueError("columns can be kept fixed only if each column has its own set: use ssnmf")
        return replace(self, update=Partly(self.update), sets=known.kept(self.sets))

    @property
    def separable(self) -> bool:
        """Whether each row is updated independently of the other rows and of the state."""
        return self.sets.by_rows and self.update.separable


def nonnegative_encoder(r: int, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Block:
    """A block that solves for the activations exactly, by nonnegative least squares."""
    return Block(Pivot(), Columns.same(Nonnegative(), r), l1, l2, rows)


def bounded_encoder(r: int, upper: float) -> Block:
    """A block that solves for activations of at most ``upper`` exactly."""
    return Block(WithinBounds(), Columns.same(Bounded(upper), r))


def divergence_encoder(r: int) -> Block:
    """A block that solves for the activations with the Kullback–Leibler divergence, until no step is above 1e-10."""
    return Block(Newton(10_000, 1e-10), Columns.same(Nonnegative(), r))


def fixed_encoder(r: int) -> Block:
    """A block that leaves the activations unchanged."""
    return Block(Partly(Pivot()), Columns.same(Kept(), r))

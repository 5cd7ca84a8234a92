"""A running fit: factors, and what is known about them. The loop drives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..data import Data, Sliced
from ..statistics import Array, Stats, dead_components, gram
from ..updates import Sets, State
from .blocks import Block
from .revival import revive
from .starts import Factors

Snapshot = Mapping[str, Any]  # the state of a fit, as numbers and arrays
REVIVALS = 3  # of each component, on average: one that dies again and again has nothing to fit


class RunningFit(Protocol):
    """What the loop drives: an iteration updates one mode after the other, and then asks for the loss."""

    @property
    def data(self) -> Data:
        """X."""
        ...

    @property
    def factors(self) -> Factors:
        """The present factors; what is out of reach is None, or `Held`."""
        ...

    def first_loss(self, mode: int) -> float:
        """The loss at the start; ``mode`` is updated first."""
        ...

    def update(self, mode: int, measure: bool = False) -> float:
        """Update one factor; its fixed-point residual before that, if it is to be measured."""
        ...

    def loss(self, mode: int) -> float:
        """The loss, just after ``mode`` was updated."""
        ...

    def penalties(self) -> float:
        """What penalties add to the loss."""
        ...


class Fit(ABC):
    """The factors of a running fit with what is known about them: Gram matrices, states, last statistics.

    ``reviving`` is the mode whose update is preceded by a look for dead components, if there is to be one.
    """

    data: Data

    def __init__(
        self,
        data: Data,
        factors: Factors,
        blocks: Sequence[Block],
        reviving: int | None = None,
    ) -> None:
        self.data, self.factors, self.blocks, self.reviving = data, factors, blocks, reviving
        self.grams = [gram(f) for f in factors]
        self.states: list[State] = [{} for _ in factors]
        self.kept = sorted({j for block in blocks for j in block.sets.kept})  # their scale is not ours to move
        self.revivals = REVIVALS * factors[0].shape[1]
        self.last: Stats | None = None

    def snapshot(self) -> Snapshot:
        """All that the next iteration depends on, in numbers and arrays (the fit's own, which it overwrites)."""
        return {"factors": self.factors, "grams": self.grams, "states": self.states, "revivals": self.revivals}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot, whose factors the fit has been made of."""
        self.grams, self.states = [*snapshot["grams"]], [*snapshot["states"]]
        self.revivals = snapshot["revivals"]

    @abstractmethod
    def first_loss(self, mode: int) -> float:
        """The loss at the start, where ``mode`` is updated first."""

    @abstractmethod
    def statistics(self, mode: int) -> Stats:
        """The statistics of one factor at the present others, to update it with."""

    @abstractmethod
    def loss(self, mode: int) -> float:
        """The loss, just after ``mode`` was updated."""

    def update(self, mode: int, measure: bool = False) -> float:
        """Update one factor; its fixed-point residual before that, if it is to be measured."""
        stats, block = self.statistics(mode), self.blocks[mode]
        residual = block.residual(self.factors[mode], stats) if measure else np.inf
        self.factors[mode], self.states[mode] = block(self.factors[mode], stats, self.states[mode])
        self.grams[mode] = gram(self.factors[mode])
        self.last = stats
        if block.normalised:
            self.normalise(mode)
        return residual

    def normalise(self, mode: int) -> None:
        """Give the columns of one factor norm 1, and the other factor their scale."""
        give_unit_norm(self.factors, self.grams, mode, kept=self.kept)

    def dead(self) -> Array:
        """Dead components, as many as may still start again."""
        dead = np.setdiff1d(dead_components(self.grams), self.kept)[: self.revivals]
        self.revivals -= len(dead)
        return dead

    def penalties(self) -> float:
        """What the blocks add to the loss."""
        return sum(b.penalty(f, g) for b, f, g in zip(self.blocks, self.factors, self.grams, strict=True))


class WholeFit(Fit):
    """A fit to X that lies in one place."""

    data: Sliced
    fresh: tuple[int, Stats] | None = None  # a mode, and statistics of it that are still true

    def first_loss(self, mode: int) -> float:
        """The loss at the start, from the statistics of the factor that is updated first."""
        self.last = self.data.statistics(self.factors, self.grams, mode)
        self.fresh = mode, self.last
        return self.loss(mode)

    def statistics(self, mode: int) -> Stats:
        """The statistics of one factor at the present others, of which dead ones have started again."""
        fresh, self.fresh = self.fresh, None
        stats = fresh[1] if fresh and fresh[0] == mode else self.data.statistics(self.factors, self.grams, mode)
        return self.revived(stats, mode) if mode == self.reviving else stats

    def revived(self, stats: Stats, mode: int) -> Stats:
        """Statistics after dead components, if there are any, have started again."""
        dead = self.dead()
        if not dead.size:
            return stats
        if not revive(self.data, self.factors, stats, mode, [b.sets for b in self.blocks], dead):
            return stats
        self.grams = [gram(f) for f in self.factors]
        return self.data.statistics(self.factors, self.grams, mode)

    def loss(self, mode: int) -> float:
        """The loss, from the statistics that ``mode`` was last updated with."""
        assert self.last is not None
        return self.data.loss(self.last, self.factors, self.grams, mode) + self.penalties()


def column_norms(own_gram: Array, kept: Sequence[int] = ()) -> Array:
    """What to divide columns by, so that they have norm 1; columns of zeros and those that are kept stay."""
    norms = np.sqrt(own_gram.diagonal())
    norms[norms == 0] = 1
    norms[list(kept)] = 1
    return norms


def give_unit_norm(
    factors: Factors, grams: list[Array], mode: int = 1, to: int | None = None, kept: Sequence[int] = ()
) -> None:
    """Move the scale of every column of one factor to another: by default to the activations, or from them to parts."""
    to = (0 if mode else 1) if to is None else to
    norms = column_norms(grams[mode], kept)
    factors[mode] /= norms.astype(factors[mode].dtype)
    factors[to] *= norms.astype(factors[to].dtype)
    grams[mode] = grams[mode] / np.outer(norms, norms)
    grams[to] = grams[to] * np.outer(norms, norms)


def split_weights(factors: Factors, sets: Sequence[Sets]) -> Array:
    """Give all columns unit norm, in place, and return the components' scales; columns of zeros stay, at scale 0."""
    weights = np.ones(factors[0].shape[1])
    for factor, s in zip(factors, sets, strict=True):
        if not s.unit_norm:
            norms = np.sqrt(gram(factor).diagonal())
            weights *= norms
            factor /= np.where(norms > 0, norms, 1).astype(factor.dtype)
    return weights

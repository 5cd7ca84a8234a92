"""The state of a running fit: factors, Gram matrices, and the states of the updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..data import Data, Sliced, Statistics
from ..statistics import NOTHING, Array, Stats, dead_components, gram
from ..updates import Sets, State
from .blocks import Block
from .revival import revive
from .starts import Factors

Snapshot = Mapping[str, Any]  # the state of a fit, as numbers and arrays
REVIVALS = 3  # restarts per component, on average: one that keeps dying has nothing to fit


class RunningFit(Protocol):
    """The interface between the loop and a fit. An iteration updates the modes in turn and then reads the loss."""

    @property
    def data(self) -> Data:
        """X."""
        ...

    @property
    def factors(self) -> Factors:
        """The current factors. Activations may be `Held`, or None if they are not stored."""
        ...

    @property
    def advice(self) -> str:
        """What to do if the fit runs out of iterations."""
        ...

    async def first_loss(self, mode: int) -> float:
        """The loss at the start. ``mode`` is the first to be updated."""
        ...

    async def step(self, order: Sequence[int], measure: bool = False) -> float:
        """Update the factors in this order. Returns the largest fixed-point residual; inf unless ``measure`` is set."""
        ...

    def loss(self, mode: int) -> float:
        """The loss after an update of ``mode``."""
        ...

    def penalties(self) -> float:
        """The sum of the penalties."""
        ...

    def moving(self) -> list[Array]:
        """The arrays whose columns must settle before the fit has converged."""
        ...


class Fit(ABC):
    """The base class of running fits: factors, Gram matrices, states of the updates, and the last statistics.

    Dead components are restarted before each update of the mode ``reviving``; None: never.
    """

    data: Data
    advice = "raise max_iter or tol"

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
        self.kept = sorted({j for block in blocks for j in block.sets.kept})  # fixed columns, which are not rescaled
        self.revivals = REVIVALS * factors[0].shape[1]
        self.last: Stats | None = None

    def snapshot(self) -> Snapshot:
        """The state that the next iteration depends on. Its arrays belong to the fit, which overwrites them."""
        return {"factors": self.factors, "grams": self.grams, "states": self.states, "revivals": self.revivals}

    async def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot. The fit must have been created with its factors."""
        self.grams, self.states = [*snapshot["grams"]], [*snapshot["states"]]
        self.revivals = snapshot["revivals"]

    @abstractmethod
    async def first_loss(self, mode: int) -> float:
        """The loss at the start. ``mode`` is the first to be updated."""

    @abstractmethod
    async def statistics(self, mode: int) -> Stats:
        """The statistics of one factor at the current values of the others."""

    @abstractmethod
    def loss(self, mode: int) -> float:
        """The loss after an update of ``mode``."""

    async def update(self, mode: int, measure: bool = False) -> float:
        """Update one factor. Returns its fixed-point residual before the update; inf unless ``measure`` is set."""
        stats, block = await self.statistics(mode), self.blocks[mode]
        residual = block.residual(self.factors[mode], stats) if measure else np.inf
        self.factors[mode], self.states[mode] = block(self.factors[mode], stats, self.states[mode])
        self.grams[mode] = gram(self.factors[mode])
        self.last = stats
        if block.normalised:
            self.normalise(mode)
        return residual

    def moving(self) -> list[Array]:
        """The components: all factors but the first or, if all components are known, the activations."""
        if len(self.blocks[1].sets.kept) == self.factors[1].shape[1]:
            return self.factors[:1]
        return self.factors[1 : len(self.data.shape)]

    async def step(self, order: Sequence[int], measure: bool = False) -> float:
        """Update the factors in this order. Returns the largest fixed-point residual; inf unless ``measure`` is set."""
        return max([await self.update(mode, measure) for mode in order])

    def normalise(self, mode: int) -> None:
        """Give the columns of one factor norm 1, and the other factor their scale."""
        give_unit_norm(self.factors, self.grams, mode, kept=self.kept)

    def dead(self) -> Array:
        """Dead components, limited to the number of restarts that are left."""
        dead = self.unused()[: self.revivals]
        self.revivals -= len(dead)
        return dead

    def unused(self) -> Array:
        """Dead components that are not known. With the divergence, only zeros: small entries can matter to it."""
        share = NOTHING if self.data.squared else 0.0
        return dead_components(self.grams, share, self.kept)

    def finish(self) -> None:  # noqa: B027
        """Drop what only a next iteration would need."""

    def penalties(self) -> float:
        """The sum of the penalties."""
        return sum(b.penalty(f, g) for b, f, g in zip(self.blocks, self.factors, self.grams, strict=True))


class WholeFit(Fit):
    """A fit to X in memory."""

    data: Sliced
    fresh: tuple[int, Stats] | None = None  # a mode, and its statistics if they are still valid

    async def first_loss(self, mode: int) -> float:
        """The loss at the start, from the statistics of the factor that is updated first."""
        self.last = await Statistics(self.data, self.factors, self.grams, mode)
        self.fresh = mode, self.last
        return self.loss(mode)

    async def statistics(self, mode: int) -> Stats:
        """The statistics of one factor. Dead components are restarted first."""
        stats = await self.current(mode)
        return await self.revived(stats, mode) if mode == self.reviving else stats

    async def current(self, mode: int) -> Stats:
        """The statistics of one factor at the current factors, by a pass over X unless they are known."""
        fresh, self.fresh = self.fresh, None
        return fresh[1] if fresh and fresh[0] == mode else await Statistics(self.data, self.factors, self.grams, mode)

    async def revived(self, stats: Stats, mode: int) -> Stats:
        """Restart dead components, if any, and return the statistics after that."""
        dead = self.dead()
        if not dead.size:
            return stats
        if not revive(self.data, self.factors, stats, mode, [b.sets for b in self.blocks], dead):
            return stats
        self.grams = [gram(f) for f in self.factors]
        revived: Stats = await Statistics(self.data, self.factors, self.grams, mode)
        return revived

    def loss(self, mode: int) -> float:
        """The loss, from the statistics that ``mode`` was last updated with."""
        assert self.last is not None
        return self.data.loss(self.last, self.factors, self.grams, mode) + self.penalties()


def column_norms(own_gram: Array, kept: Sequence[int] = ()) -> Array:
    """The norms of the columns; 1 for zero columns and for ``kept`` ones."""
    norms = np.sqrt(own_gram.diagonal())
    norms[norms == 0] = 1
    norms[list(kept)] = 1
    return norms


def give_unit_norm(
    factors: Factors, grams: list[Array], mode: int = 1, to: int | None = None, kept: Sequence[int] = ()
) -> None:
    """Scale the columns of factor ``mode`` to norm 1, and multiply those of factor ``to`` by their norms.

    By default ``to`` are the activations or, if these are scaled, the components.
    """
    to = (0 if mode else 1) if to is None else to
    norms = column_norms(grams[mode], kept)
    factors[mode] /= norms.astype(factors[mode].dtype)
    factors[to] *= norms.astype(factors[to].dtype)
    grams[mode] = grams[mode] / np.outer(norms, norms)
    grams[to] = grams[to] * np.outer(norms, norms)


def split_weights(factors: Factors, sets: Sequence[Sets]) -> Array:
    """Scale all columns to norm 1, in place, and return the weights of the components; 0 if a column is zero."""
    weights = np.ones(factors[0].shape[1])
    for factor, s in zip(factors, sets, strict=True):
        if not s.unit_norm:
            norms = np.sqrt(gram(factor).diagonal())
            weights *= norms
            factor /= np.where(norms > 0, norms, 1).astype(factor.dtype)
    return weights

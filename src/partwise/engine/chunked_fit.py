"""A fit to X in chunks of samples: each iteration makes one pass over X.

For each chunk, `ChunkStep` solves the activations and returns the chunk's share of the statistics of the components.
The activations stay with the chunk. A step is a pure function of the chunk and its last activations, so it can be
repeated anywhere with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import cast

import numpy as np

from ..data import Chunked, ChunkSums, Held, Matrix, Pass, SharingStep
from ..statistics import Additive, Array, Stats, gram
from ..updates import bolder, shier
from .blocks import Block
from .metrics import largest_move
from .revival import LEAST, fitted_amounts, revive
from .running import Fit, Snapshot, column_norms

TRIALS = 30  # of an iteration, each with half the step of the last


@dataclass(frozen=True)
class Sums(Additive):
    """Sums over chunks: the statistics of the components, the sums of the activations, and their `column_moves`."""

    stats: Stats
    totals: Array
    moves: Array


@dataclass(frozen=True)
class ChunkStep(SharingStep):
    """Update the activations of a chunk by ``block`` (None: leave them unchanged), and return its `Sums`.

    Parameters
    ----------
    parts, gram : arrays
        The components, and their Gram matrix.
    measure : bool
        Whether to compute the `column_moves`.
    dead, alive : sequences of components
        Components whose activations are set to zero, and those among them that are then fitted to the residual.
    """

    parts: Array
    gram: Array
    block: Block | None
    measure: bool = False
    dead: Sequence[int] = ()
    alive: Sequence[int] = ()

    async def take(self, chunk: Matrix, activations: Array) -> tuple[Array, Sums]:
        """Return the new activations of the chunk, and its sums."""
        r = self.parts.shape[1]
        moves = np.zeros((3, r))
        activations[:, list(self.dead)] = 0
        if self.block is not None and chunk.unseen.size:  # samples without any observed entry
            free = np.setdiff1d(np.arange(r), self.block.sets.kept)
            activations[np.ix_(chunk.unseen, free)] = 0
        for j in self.alive:
            share = [self.parts[:, j]]
            activations[:, j] = fitted_amounts(chunk.residual_times(share, [activations, self.parts], 0), share)
        if self.block is not None:
            stats = await ChunkSums(chunk, [activations, self.parts], [None, self.gram], 0)
            if self.measure:
                moves = self.block.moves(activations, stats)
            activations, _ = self.block(activations, stats, {})
        stats = await ChunkSums(chunk, [activations, self.parts], [None, self.gram], 1)
        return activations, Sums(stats, activations.sum(axis=0, dtype=float), moves)


@dataclass(frozen=True)
class Worst:
    """The worst-fitted samples, at most ``count``: their indices, errors, values (NaN if missing) and activations."""

    count: int
    rows: Array
    errors: Array
    samples: Array
    activations: Array

    def __add__(self, other: Worst) -> Worst:
        rows, errors = np.append(self.rows, other.rows), np.append(self.errors, other.errors)
        best = np.lexsort((rows, -errors))[: self.count]
        return Worst(
            self.count,
            rows[best],
            errors[best],
            np.vstack([self.samples, other.samples])[best],
            np.vstack([self.activations, other.activations])[best],
        )


@dataclass(frozen=True)
class FindWorst:
    """Find the samples of a chunk that are fitted worst without the ``dead`` components."""

    parts: Array
    gram: Array
    dead: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Worst]:
        """Return the activations, with those of dead components set to zero, and the worst samples."""
        activations[:, self.dead] = 0
        stats = chunk.sums([activations, self.parts], [None, self.gram], 0)
        errors = chunk.row_errors([activations, self.parts], stats, 0)
        best = np.argsort(-errors, kind="stable")[: len(self.dead)]
        samples = chunk.raw(best)
        return activations, Worst(len(self.dead), chunk.first + best, errors[best], samples, activations[best])


@dataclass(frozen=True)
class TrialStep(ChunkStep):
    """The same, with the activations before the step next to the new ones. With ``undo``, it starts from those."""

    undo: bool = False

    async def take(self, chunk: Matrix, activations: Array) -> tuple[Array, Sums]:
        """Return new and current activations next to each other, and the sums of the chunk."""
        r = self.parts.shape[1]
        current = np.array(activations[:, -r:] if self.undo else activations[:, :r], order="F")
        new, sums = await super().take(chunk, current.copy(order="F"))
        return np.hstack([new, current]), sums


class ChunkedFit(Fit):
    """A fit whose activations stay with the chunks of X: ``factors[0]`` is `Held`.

    ``last`` are always the statistics of the components at the current activations, summed in the last pass.
    """

    data: Chunked
    totals: Array  # Σ of each column of the activations

    async def sweep(self, step: ChunkStep) -> Sums:
        """Make one pass over X."""
        sums: Sums = await Pass(self.held, self.data.adapted(step))
        self.last = self.data.with_sqnorm(sums.stats)
        self.grams[0], self.totals = sums.stats.gram, sums.totals
        return sums

    def snapshot(self) -> Snapshot:
        """The state that the next iteration depends on, including the sums of the last pass."""
        stats = self.summed
        factors = [self.held.collected(), self.factors[1]]
        sums = {"last": [stats.cross, stats.gram], "totals": self.totals}
        return {**super().snapshot(), "factors": factors, **sums}

    async def restore(self, snapshot: Snapshot) -> None:
        await super().restore(snapshot)
        if "last" not in snapshot:  # of a fit in memory, which keeps no sums
            await self.sum_up()
            return
        cross, own = snapshot["last"]
        self.last, self.totals = Stats(cross, own, self.data.sqnorm), snapshot["totals"]

    @property
    def held(self) -> Held:
        """The activations, which stay with their chunks."""
        return cast(Held, self.factors[0])

    async def first_loss(self, mode: int) -> float:
        await self.sum_up()
        return self.loss(mode)

    async def sum_up(self) -> None:
        """Make a pass over X that changes nothing."""
        await self.sweep(ChunkStep(self.factors[1], self.grams[1], None))

    async def statistics(self, mode: int) -> Stats:
        """The statistics of the components."""
        assert mode == 1
        return self.summed

    @property
    def summed(self) -> Stats:
        """The statistics of the components, from the last pass."""
        assert self.last is not None
        return self.last

    async def update(self, mode: int, measure: bool = False) -> float:
        """Update the components from the last sums, or the activations by a pass over X."""
        if mode == 1:
            return await super().update(mode, measure)
        dead, alive = await self.restarted() if self.reviving == 0 else ([], [])
        sums = await self.sweep(ChunkStep(self.factors[1], self.grams[1], self.blocks[0], measure, dead, alive))
        if self.blocks[0].normalised:
            self.normalise(0)
        return largest_move(sums.moves) if measure else np.inf

    def normalise(self, mode: int) -> None:
        """Give the columns of one factor norm 1, and adjust the sums of the activations."""
        norms = column_norms(self.grams[mode], self.kept)
        super().normalise(mode)
        scale = norms if mode == 1 else 1 / norms
        self.last, self.totals = self.summed.mixed(scale), self.totals * scale

    def moving(self) -> list[Array]:
        """The components or, if all are known, Xᵀ·activations, because the activations stay with their chunks."""
        return [self.summed.cross if isinstance(f, Held) else f for f in super().moving()]

    async def restarted(self) -> tuple[list[int], list[int]]:
        """Restart dead components from the worst-fitted samples. Returns all dead components, and the restarted ones.

        Their activations for all samples are computed in the next pass.
        """
        dead = self.dead()
        if not dead.size:
            return [], []
        worst: Worst = await Pass(self.held, FindWorst(self.factors[1], self.grams[1], dead))
        few = self.data.kind()(worst.samples, check=False)
        factors = [np.asfortranarray(worst.activations), self.factors[1]]
        stats = few.statistics(factors, [gram(f) for f in factors], 0)
        least = LEAST * self.data.sqnorm / self.data.shape[0]
        alive = revive(few, factors, stats, 0, [b.sets for b in self.blocks], dead, least)
        self.grams[1] = gram(self.factors[1])
        return dead.tolist(), alive

    def penalties(self) -> float:
        return self.penalties_at(self.totals, self.factors[1], self.grams)

    def penalties_at(self, totals: Array, parts: Array, grams: Sequence[Array]) -> float:
        """The sum of the penalties, given the sums of the activations, the components, and the Gram matrices."""
        first, second = self.blocks
        return first.penalty_of(float(totals.sum()), grams[0]) + second.penalty(parts, grams[1])

    def loss(self, mode: int) -> float:
        """The loss at the current factors."""
        return self.summed.loss(self.factors[1], self.grams[1]) + self.penalties()


class TrialChunkedFit(ChunkedFit):
    """A fit with the divergence, whose components are updated from slopes that hold at one point only.

    An iteration is a trial: if it has raised the loss, the next pass starts from the activations before it, and the
    components move less. Dead components are not restarted.
    """

    undo = False

    def snapshot(self) -> Snapshot:
        """The state that the next iteration depends on. The sums are those of another pass."""
        parts = self.factors[1]
        factors = [self.held.collected()[:, : parts.shape[1]], parts]
        return {**Fit.snapshot(self), "factors": factors}

    def moving(self) -> list[Array]:
        """The components or, if all are known, their numerators."""
        return [self.last.numerator if isinstance(f, Held) else f for f in Fit.moving(self)]

    async def restarted(self) -> tuple[list[int], list[int]]:
        """Restart no component."""
        return [], []

    async def sweep(self, step: ChunkStep) -> Sums:
        trial = TrialStep(**{f.name: getattr(step, f.name) for f in fields(step)}, undo=self.undo)
        self.undo = False
        return await super().sweep(trial)

    async def step(self, order: Sequence[int], measure: bool = False) -> float:
        """Update the factors in this order, as far as that does not raise the loss."""
        assert not measure
        parts, stats, totals, grams = self.factors[1].copy(order="F"), self.last, self.totals, [*self.grams]
        before = self.loss(0)
        for trial in range(TRIALS):
            await super().step(order)
            if self.loss(0) <= before or 1 not in order:
                self.states[1] = bolder(self.states[1]) if not trial else self.states[1]
                return np.inf
            self.factors[1], self.last, self.totals, self.grams = parts.copy(order="F"), stats, totals, [*grams]
            self.states[1], self.undo = shier(self.states[1]), True
        await self.sum_up()  # no step is short enough, up to rounding: keep the factors before it
        return np.inf

    def finish(self) -> None:
        """Drop the activations before the last step."""
        self.held.cut = True

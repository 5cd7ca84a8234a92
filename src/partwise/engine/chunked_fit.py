"""The same fit where X comes in chunks of samples: one pass does both halves of an iteration.

For each chunk, `ChunkStep` solves its activations and returns what it adds to the statistics of the parts; the
activations stay with the chunk. A step is a pure function of (chunk, its last activations), so that a chunk may be done
again anywhere without changing the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from ..data import Chunked, Held, Matrix
from ..statistics import Array, Stats, gram
from .blocks import Block
from .metrics import largest_move
from .revival import LEAST, fitted_amounts, revive
from .running import Fit, Snapshot, column_norms


@dataclass(frozen=True)
class Sums:
    """What chunks add up to: the statistics of the parts, and of the activations Σ and how far columns moved."""

    stats: Stats
    totals: Array
    moves: Array

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.stats + other.stats, self.totals + other.totals, self.moves + other.moves)


@dataclass(frozen=True)
class ChunkStep:
    """Update a chunk's activations by ``block`` (None: leave them), and sum up.

    Parameters
    ----------
    parts, gram : arrays
        The parts, and their Gram matrix.
    measure : bool
        Whether to say how far the best columns are from the present ones.
    dead, alive : sequences of components
        Those whose activations start at zero, and those of them whose activations then start at the best fit.
    """

    parts: Array
    gram: Array
    block: Block | None
    measure: bool = False
    dead: Sequence[int] = ()
    alive: Sequence[int] = ()

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Sums]:
        """The new activations of the chunk, and its sums."""
        r = self.parts.shape[1]
        moves = np.zeros((3, r))
        activations[:, list(self.dead)] = 0
        if self.block is not None and chunk.unseen.size:  # nothing is known of them
            free = np.setdiff1d(np.arange(r), self.block.sets.kept)
            activations[np.ix_(chunk.unseen, free)] = 0
        for j in self.alive:
            share = [self.parts[:, j]]
            activations[:, j] = fitted_amounts(chunk.residual_times(share, [activations, self.parts], 0), share)
        if self.block is not None:
            stats = chunk.sums([activations, self.parts], [None, self.gram], 0)
            if self.measure:
                moves = self.block.moves(activations, stats)
            activations, _ = self.block(activations, stats, {})
        stats = chunk.sums([activations, self.parts], [None, self.gram], 1)
        return activations, Sums(stats, activations.sum(axis=0, dtype=float), moves)


@dataclass(frozen=True)
class Worst:
    """The samples that are fitted worst: their numbers, errors, values and activations (``count`` at most).

    Values are NaN where they are missing.
    """

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
    """Look for the samples of a chunk that are fitted worst without the ``dead`` components."""

    parts: Array
    gram: Array
    dead: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Worst]:
        """The activations, unchanged but for the dead, and the worst samples."""
        activations[:, self.dead] = 0
        stats = chunk.sums([activations, self.parts], [None, self.gram], 0)
        errors = chunk.row_errors([activations, self.parts], stats, 0)
        best = np.argsort(-errors, kind="stable")[: len(self.dead)]
        samples = chunk.raw(best)
        return activations, Worst(len(self.dead), chunk.first + best, errors[best], samples, activations[best])


class Streamed(Fit):
    """A fit whose activations lie with the chunks of X: ``factors[0]`` is `Held`.

    ``last`` are always the statistics of the parts at the present activations: the last pass has summed them up.
    """

    data: Chunked
    totals: Array  # Σ of each column of the activations

    def sweep(self, step: ChunkStep) -> Sums:
        """Pass over X once."""
        sums: Sums = self.held.sweep(step)
        self.last = self.data.settled(sums.stats)
        self.grams[0], self.totals = sums.stats.gram, sums.totals
        return sums

    def snapshot(self) -> Snapshot:
        """All that the next iteration depends on, the sums of the last pass included."""
        stats = self.statistics(1)
        factors = [self.held.collected(), self.factors[1]]
        sums = {"last": [stats.cross, stats.gram], "totals": self.totals}
        return {**super().snapshot(), "factors": factors, **sums}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot, whose factors the fit has been made of."""
        super().restore(snapshot)
        cross, own = snapshot["last"]
        self.last, self.totals = Stats(cross, own, self.data.sqnorm), snapshot["totals"]

    @property
    def held(self) -> Held:
        """The activations, out of reach."""
        return cast(Held, self.factors[0])

    def first_loss(self, mode: int) -> float:
        """The loss at the start, from a pass that only sums up."""
        self.sweep(ChunkStep(self.factors[1], self.grams[1], None))
        return self.loss(mode)

    def statistics(self, mode: int) -> Stats:
        """The statistics of the parts."""
        assert mode == 1
        assert self.last is not None
        return self.last

    def update(self, mode: int, measure: bool = False) -> float:
        """Update the parts from what is known, or the activations by a pass over X."""
        if mode == 1:
            return super().update(mode, measure)
        dead, alive = self.restarted() if self.reviving == 0 else ([], [])
        sums = self.sweep(ChunkStep(self.factors[1], self.grams[1], self.blocks[0], measure, dead, alive))
        if self.blocks[0].normalised:
            self.normalise(0)
        return largest_move(sums.moves) if measure else np.inf

    def normalise(self, mode: int) -> None:
        """Move the scale of one factor's columns to the other, in what is known of the activations too."""
        norms = column_norms(self.grams[mode], self.kept)
        super().normalise(mode)
        scale = norms if mode == 1 else 1 / norms
        self.last, self.totals = self.statistics(1).mixed(scale), self.totals * scale

    def restarted(self) -> tuple[list[int], list[int]]:
        """Dead components, and those of them whose parts have started again where the fit is worst.

        For that the worst samples are enough; the activations of all samples follow in the next pass.
        """
        dead = self.dead()
        if not dead.size:
            return [], []
        worst: Worst = self.held.sweep(FindWorst(self.factors[1], self.grams[1], dead))
        few = self.data.kind()(worst.samples, check=False)
        factors = [np.asfortranarray(worst.activations), self.factors[1]]
        stats = few.statistics(factors, [gram(f) for f in factors], 0)
        least = LEAST * self.data.sqnorm / self.data.shape[0]
        alive = revive(few, factors, stats, 0, [b.sets for b in self.blocks], dead, least)
        self.grams[1] = gram(self.factors[1])
        return dead.tolist(), alive

    def penalties(self) -> float:
        """What the blocks add to the loss."""
        first, second = self.blocks
        own = first.penalty_of(float(self.totals.sum()), self.grams[0])
        return own + second.penalty(self.factors[1], self.grams[1])

    def loss(self, mode: int) -> float:
        """The loss at the present factors."""
        assert self.last is not None
        return self.last.loss(self.factors[1], self.grams[1]) + self.penalties()

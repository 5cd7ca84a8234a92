"""Acceleration of fits to X in chunks. Shifted and previous activations stay with their chunks.

The same iteration as in `accelerated`. One pass updates the activations of each chunk, shifts them, and adds up the
statistics that the next update of the components needs. A step that has raised the loss is undone by the next pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import ChunkSums, Matrix, Pass, SharingStep
from ..statistics import Additive, Array, Stats, gram
from .accelerated import Extrapolating, extrapolate
from .blocks import Block
from .chunked_fit import ChunkedFit
from .running import Snapshot


@dataclass(frozen=True)
class AheadSums(Additive):
    """Sums over chunks: the statistics of the components at the shifted activations, and the new activations' own."""

    stats: Stats
    gram: Array
    totals: Array


@dataclass(frozen=True)
class AheadStep(SharingStep):
    """Update the activations of a chunk, which are followed by shifted and by previous activations, if they are known.

    ``parts`` are the shifted components and ``gram`` is their Gram matrix; ``own_gram`` is that before the shift. With
    ``undo``, the last step is undone first.
    """

    parts: Array
    gram: Array
    own_gram: Array
    block: Block
    beta: float
    undo: bool

    async def take(self, chunk: Matrix, activations: Array) -> tuple[Array, AheadSums]:
        """Return new, shifted and current activations next to each other, and the sums of the chunk."""
        r = self.parts.shape[1]
        current = np.asfortranarray(activations[:, -r:] if self.undo else activations[:, :r])
        known = activations.shape[1] > r and not self.undo
        ahead = np.array(activations[:, r : 2 * r] if known else current, order="F")
        stats = await ChunkSums(chunk, [ahead, self.parts], [None, self.gram], 0)
        new, _ = self.block.from_ahead(ahead, stats, {}, current, self.own_gram)
        shifted = extrapolate(new, current, self.beta, np.empty_like(new))
        stats = await ChunkSums(chunk, [shifted, self.parts], [None, self.gram], 1)
        return np.hstack([new, shifted, current]), AheadSums(stats, gram(new), new.sum(axis=0, dtype=float))


class AcceleratedChunkedFit(Extrapolating, ChunkedFit):
    """The same for X in chunks. Shifted and previous activations stay with the chunks, next to the activations.

    ``ahead`` are the shifted components, and ``ahead_stats`` their statistics at the shifted activations.
    """

    ahead: Array | None = None

    def snapshot(self) -> Snapshot:
        if self.ahead is None:
            return super().snapshot()
        r, wide, stats = self.factors[1].shape[1], self.held.collected(), self.ahead_stats
        factors, ahead = [wide[:, :r], self.factors[1]], [wide[:, r : 2 * r], self.ahead]
        shifted = {"factors": factors, "ahead": ahead, "ahead_sums": [stats.cross, stats.gram]}
        return {**super().snapshot(), **shifted}

    async def restore(self, snapshot: Snapshot) -> None:
        await super().restore(snapshot)
        if "ahead" not in snapshot:
            return
        activations, parts = snapshot["ahead"]
        await Pass(self.held, Beside(activations))
        self.shift_to(parts)
        if "ahead_sums" in snapshot:
            cross, own = snapshot["ahead_sums"]
            self.ahead_stats = Stats(cross, own, self.data.sqnorm)
        else:  # of a fit in memory
            self.ahead_stats = self.data.with_sqnorm(await Pass(self.held, SumAhead(parts)))

    def begin(self) -> None:
        self.shift_to(self.factors[1].copy(order="F"))

    def shift_to(self, ahead: Array) -> None:
        """Continue from these shifted components."""
        self.ahead, self.spare, self.ahead_stats = ahead, np.empty_like(ahead), self.summed

    def forget(self) -> None:
        """Keep only the activations themselves."""
        self.held.cut, self.ahead = self.ahead is not None, None

    async def advance(self, order: Sequence[int], undo: bool = False) -> bool:
        """Make an iteration, with one pass over X, which undoes the last one first if it was too far."""
        assert self.ahead is not None
        beta, before = self.momentum.beta, self.summed
        parts, self.states[1] = self.blocks[1].from_ahead(
            self.ahead, self.ahead_stats, self.states[1], self.factors[1], self.grams[0]
        )
        self.ahead = extrapolate(parts, self.factors[1], beta, self.spare)
        own = gram(parts)
        step = AheadStep(self.ahead, gram(self.ahead), own, self.blocks[0], beta, undo)
        sums: AheadSums = await Pass(self.held, step)
        self.ahead_stats, grams = self.data.with_sqnorm(sums.stats), [sums.gram, own]
        cross = extrapolate(self.ahead_stats.cross, before.cross, -beta / (1 + beta), np.empty_like(before.cross))
        stats = replace(self.ahead_stats, cross=cross, gram=sums.gram)
        loss = stats.loss(parts, grams[1]) + self.penalties_at(sums.totals, parts, grams)
        if beta > 0 and loss > self.value:
            self.spare = parts
            np.copyto(self.ahead, self.factors[1])
            self.ahead_stats, self.momentum = before, self.momentum.after_rise()
            return False
        self.spare, self.factors[1] = self.factors[1], parts
        self.grams, self.last, self.totals, self.value = grams, stats, sums.totals, loss
        self.momentum = self.momentum.after_fall()
        return True

    def finish(self) -> None:
        self.forget()


@dataclass(frozen=True)
class Beside:
    """A step that puts shifted activations next to the current ones."""

    shifted: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, int]:
        """Return both, and the current activations in place of the previous ones, which are not needed."""
        rows = slice(chunk.first, chunk.first + chunk.shape[0])
        return np.hstack([activations, self.shifted[rows], activations]), 0


@dataclass(frozen=True)
class SumAhead:
    """A step that returns the statistics of the components at the shifted activations."""

    parts: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Stats]:
        """Return the activations unchanged, and the statistics."""
        r = self.parts.shape[1]
        ahead = np.asfortranarray(activations[:, r : 2 * r])
        return activations, chunk.sums([ahead, self.parts], [None, None], 1)

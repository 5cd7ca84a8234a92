"""Acceleration: both factors are extrapolated in the direction of their last change.

With the factors F₁ (updated first) and F₀ of the last iteration, and shifted factors Y₁ and Y₀, an iteration is

    N₁ = update(Y₁, statistics of Y₀),      Y₁ = N₁ + β(N₁ − F₁),
    N₀ = update(Y₀, statistics of Y₁),      Y₀ = N₀ + β(N₀ − F₀).

Only N₁ and N₀ are in their sets: they are the factors that are recorded and returned. Shifted factors enter products
only. The loss at (N₁, N₀) costs no product, because X·N₁ follows from X·Y₁ = (1 + β)X·N₁ − βX·F₁. An iteration that
raises the loss is undone and repeated with β = 0.

Reference: A. M. S. Ang and N. Gillis, "Accelerating nonnegative matrix factorization algorithms using extrapolation",
Neural Computation 31 (2019).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data import ChunkSums, Matrix, Pass, SharingStep, Statistics
from ..runtime.compiled import kernel
from ..runtime.threads import in_parts
from ..statistics import Array, Stats, as_factor, gram, inner, sum_over_rows
from .blocks import Block
from .chunked_fit import ChunkedFit
from .running import Fit, Snapshot, WholeFit
from .starts import Factors

CAP, GROWTH, SHRINK, TOP = 0.6, 1.01, 0.8, 0.9  # of the largest β; benchmarks/acceleration.py
LEAST = 2**12  # rows per thread, at least


@dataclass(frozen=True)
class Momentum:
    """β after ``count`` iterations without a rise of the loss: 0, 1/4, 2/5, …, up to ``cap``."""

    count: int = 1
    cap: float = CAP

    @property
    def beta(self) -> float:
        """How far factors are extrapolated, relative to their last change."""
        return min(self.cap, (self.count - 1) / (self.count + 2))

    def after_fall(self) -> Momentum:
        """The momentum after an iteration that has lowered the loss."""
        return Momentum(self.count + 1, min(self.cap * GROWTH, TOP))

    def after_rise(self) -> Momentum:
        """The momentum after an iteration that is undone."""
        return Momentum(1, self.cap * SHRINK)


class Extrapolating(Fit):
    """The base class of accelerated fits. ``value`` is the loss; ``ahead`` is what is shifted, None if nothing is."""

    momentum = Momentum()
    ahead: Any = None
    value = np.inf

    def snapshot(self) -> Snapshot:
        """The state that the next iteration depends on."""
        own = {"count": self.momentum.count, "cap": self.momentum.cap, "value": self.value}
        return {**super().snapshot(), **own}

    async def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot. The fit must have been created with its factors."""
        await super().restore(snapshot)
        self.momentum, self.value = Momentum(snapshot["count"], snapshot["cap"]), snapshot["value"]

    async def step(self, order: Sequence[int], measure: bool = False) -> float:
        """Make one iteration. The residual is not measured, because the updates start from shifted factors."""
        assert not measure
        if len(order) < 2 or (self.reviving is not None and self.revivals and self.unused().size):
            self.forget()
            self.momentum = replace(self.momentum, count=1)
            await super().step(order)
            self.value = super().loss(order[-1])  # type: ignore[safe-super]
            return np.inf
        if self.ahead is None:
            self.begin()
        if not await self.advance(order):
            await self.advance(order, undo=True)
        return np.inf

    @abstractmethod
    def begin(self) -> None:
        """Start from the current factors."""

    @abstractmethod
    async def advance(self, order: Sequence[int], undo: bool = False) -> bool:
        """Make an iteration. Returns False if it would raise the loss: the next call must then ``undo`` it."""

    def forget(self) -> None:
        """Forget what is shifted."""
        self.ahead = None

    async def first_loss(self, mode: int) -> float:
        """The loss at the start."""
        await super().first_loss(mode)  # type: ignore[safe-super]
        self.value = super().loss(mode)  # type: ignore[safe-super]
        return self.value

    def loss(self, mode: int) -> float:
        """The loss at the current factors."""
        return self.value


class AcceleratedFit(Extrapolating, WholeFit):
    """A fit of a matrix in memory. ``ahead`` are the shifted factors, and ``product`` is X·F₁ at the current F₁."""

    ahead: Factors | None = None
    product: Array | None = None

    def snapshot(self) -> Snapshot:
        """The state that the next iteration depends on."""
        shifted = {} if self.ahead is None else {"ahead": self.ahead, "product": self.product}
        return {**super().snapshot(), **shifted}

    async def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot. The fit must have been created with its factors."""
        await super().restore(snapshot)
        if "ahead" in snapshot:
            product = snapshot.get("product")
            if product is None:  # of a fit in chunks, which updates the activations last
                product = (await Statistics(self.data, self.factors, self.grams, 0)).cross.copy(order="F")
            self.shift_to([*map(as_factor, snapshot["ahead"])], product)

    def begin(self) -> None:
        """Start from the current factors."""
        self.shift_to([f.copy(order="F") for f in self.factors])

    def shift_to(self, ahead: Factors, product: Array | None = None) -> None:
        """Continue from these shifted factors."""
        self.ahead, self.product = ahead, product
        self.ahead_grams = [gram(f) for f in ahead]
        self.spare = [np.empty_like(f) for f in ahead]

    async def advance(self, order: Sequence[int], undo: bool = False) -> bool:
        """Make an iteration. Returns False if it would raise the loss; it is then undone at once."""
        assert self.ahead is not None
        (first, last), beta, ahead, grams = order, self.momentum.beta, self.ahead, self.ahead_grams
        new, own = [*ahead], [*grams]
        for mode in (first, last):
            stats = await Statistics(self.data, ahead, grams, mode)
            new[mode], self.states[mode] = self.blocks[mode].from_ahead(
                ahead[mode],
                stats,
                self.states[mode],
                self.factors[mode],
                self.grams[last] if mode == first else own[first],
            )
            ahead[mode] = self.spare[mode]
            own[mode], grams[mode] = shift(new[mode], self.factors[mode], beta, ahead[mode])
        loss = self.loss_at(new, own, stats, beta, last)
        if beta > 0 and loss > self.value:
            self.spare = new
            for mode, factor in enumerate(self.factors):
                np.copyto(ahead[mode], factor)
                grams[mode] = self.grams[mode]
            self.momentum = self.momentum.after_rise()
            return False
        if self.product is None:
            self.product = stats.cross.copy(order="F")
        else:
            extrapolate(stats.cross, self.product, -beta / (1 + beta), self.product)
        self.spare = [*self.factors]
        self.factors[:], self.grams, self.last, self.value = new, own, stats, loss
        self.momentum = self.momentum.after_fall()
        return True

    def loss_at(self, factors: Factors, grams: Sequence[Array], stats: Stats, beta: float, last: int) -> float:
        """The loss at new factors, given the statistics of the last one for the shifted other."""
        fitted = inner(factors[last], stats.cross)
        if beta > 0:
            assert self.product is not None
            fitted = (fitted + beta * inner(factors[last], self.product)) / (1 + beta)
        penalties = sum(b.penalty(f, g) for b, f, g in zip(self.blocks, factors, grams, strict=True))
        return float(0.5 * stats.sqnorm - fitted + 0.5 * np.vdot(*grams)) + penalties


def extrapolate(now: Array, before: Array, beta: float, out: Array) -> Array:
    """out ← now + β(now − before), which may be the same array as ``out``. Columns of all three are contiguous."""
    in_parts(lambda first, end: _extrapolate(now.T, before.T, out.T, out.dtype.type(beta), first, end), len(out), LEAST)
    return out


def shift(now: Array, before: Array, beta: float, out: Array) -> tuple[Array, Array]:
    """The same, and the Gram matrices of ``now`` and ``out``, computed while their rows are in cache."""

    def both(first: int, end: int) -> Array:
        _extrapolate(now.T, before.T, out.T, out.dtype.type(beta), first, end)
        return np.array([rows.T @ rows for rows in (now[first:end], out[first:end])], dtype=float)

    own, ahead = sum_over_rows(both, len(now))
    return own, ahead


@kernel
def _extrapolate(now: Array, before: Array, out: Array, beta: float, first: int, end: int) -> None:
    for j in range(len(out)):
        x, y, z = now[j], before[j], out[j]
        for i in range(first, end):
            z[i] = x[i] + beta * (x[i] - y[i])


@dataclass(frozen=True)
class AheadSums:
    """Sums over chunks: the statistics of the components at the shifted activations, and the new activations' own."""

    stats: Stats
    gram: Array
    totals: Array

    def __add__(self, other: AheadSums) -> AheadSums:
        return AheadSums(self.stats + other.stats, self.gram + other.gram, self.totals + other.totals)


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
        """The state that the next iteration depends on."""
        if self.ahead is None:
            return super().snapshot()
        r, wide, stats = self.factors[1].shape[1], self.held.collected(), self.ahead_stats
        factors, ahead = [wide[:, :r], self.factors[1]], [wide[:, r : 2 * r], self.ahead]
        shifted = {"factors": factors, "ahead": ahead, "ahead_sums": [stats.cross, stats.gram]}
        return {**super().snapshot(), **shifted}

    async def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot. The fit must have been created with its factors."""
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
        """Start from the current factors."""
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
        """Drop what only a next iteration would need."""
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

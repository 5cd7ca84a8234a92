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

from ..data import Statistics
from ..runtime.compiled import kernel, loop
from ..runtime.threads import in_parts
from ..statistics import Array, Stats, as_factor, gram, inner, sum_over_rows
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
        own = {"count": self.momentum.count, "cap": self.momentum.cap, "value": self.value}
        return {**super().snapshot(), **own}

    async def restore(self, snapshot: Snapshot) -> None:
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
        shifted = {} if self.ahead is None else {"ahead": self.ahead, "product": self.product}
        return {**super().snapshot(), **shifted}

    async def restore(self, snapshot: Snapshot) -> None:
        await super().restore(snapshot)
        if "ahead" in snapshot:
            product = snapshot.get("product")
            if product is None:  # of a fit in chunks, which updates the activations last
                product = (await Statistics(self.data, self.factors, self.grams, 0)).cross.copy(order="F")
            self.shift_to([*map(as_factor, snapshot["ahead"])], product)

    def begin(self) -> None:
        self.shift_to([f.copy(order="F") for f in self.factors])

    def shift_to(self, ahead: Factors, product: Array | None = None) -> None:
        """Continue from these shifted factors. Statistics of the start are of no use any more."""
        self.ahead, self.product, self.fresh = ahead, product, None
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
        go_on(now[j, first:end], before[j, first:end], beta, out[j, first:end])


@loop
def go_on(x: Array, y: Array, beta: float, z: Array) -> None:
    """z ← x + β(x − y). Vectors of their own: over parts of longer ones, LLVM often takes the loop without SIMD."""
    for i in range(z.size):
        z[i] = x[i] + beta * (x[i] - y[i])

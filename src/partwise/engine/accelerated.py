"""Acceleration: both factors are extrapolated in the direction of their last change.

With the factors F₁ (updated first) and F₀ of the last iteration, and shifted factors Y₁ and Y₀, an iteration is

    N₁ = update(Y₁, statistics of Y₀),      Y₁ = N₁ + β(N₁ − F₁),
    N₀ = update(Y₀, statistics of Y₁),      Y₀ = N₀ + β(N₀ − F₀).

Only N₁ and N₀ are in their sets: they are the factors that are recorded and returned. Shifted factors enter products
only. The loss at (N₁, N₀) costs no product, because X·N₁ follows from X·Y₁ = (1 + β)X·N₁ − βX·F₁.

If the loss rises, that is mostly because N₀ fits Y₁ and not N₁. N₀ is then updated once more, with the statistics of
N₁, which are known, and the next iteration starts from (N₁, N₀). If that does not help, the iteration is undone and
repeated with β = 0. Slow directions grow by themselves if β > ½ and both updates are exact: the largest β that lasts is
found by trial.

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
from ..runtime.compiled import kernel
from ..runtime.threads import in_parts
from ..statistics import Array, Stats, as_factor, gram, sum_over_rows
from .running import Fit, Snapshot, WholeFit
from .starts import Factors

CAP, GROWTH, SHRINK, TOP = 0.6, 1.01, 0.8, 0.9  # of the largest β; benchmarks/acceleration.py
LEAST = 2**12  # rows per thread, at least


@dataclass(frozen=True)
class Momentum:
    """β in iteration ``count``: 0, 1/4, 2/5, …, up to ``cap``, which grows until the loss rises."""

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
        """The momentum after a step that has raised the loss."""
        return replace(self, cap=self.cap * SHRINK)


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
            self.momentum = self.momentum.after_rise()
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
        (first, last), ahead, grams = order, self.ahead, self.ahead_grams
        beta = 0.0 if undo else self.momentum.beta
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
        stats = self.unshifted(stats, own[first], beta)
        loss = self.loss_at(new, own, stats, last)
        if beta > 0 and loss > self.value:
            loss = self.refit(new, own, stats, last)
            if loss > self.value:
                self.spare = new
                self.unshift(self.factors, self.grams)
                return False
            self.unshift(new, own)
        else:
            self.momentum = self.momentum.after_fall()
        if self.product is None:
            self.product = np.empty_like(stats.cross, order="F")
        np.copyto(self.product, stats.cross)
        self.spare = [*self.factors]
        self.factors[:], self.grams, self.last, self.value = new, own, stats, loss
        return True

    def unshifted(self, stats: Stats, own_gram: Array, beta: float) -> Stats:
        """The statistics of the last factor for the other one before its shift. Overwrites those after its shift."""
        if beta > 0:
            assert self.product is not None
            extrapolate(stats.cross, self.product, -beta / (1 + beta), stats.cross)
        return replace(stats, gram=own_gram)

    def refit(self, new: Factors, own: list[Array], stats: Stats, last: int) -> float:
        """Update the last factor once more, and return the loss."""
        new[last], self.states[last] = self.blocks[last].from_ahead(
            new[last], stats, self.states[last], self.factors[last], stats.gram
        )
        own[last] = gram(new[last])
        return self.loss_at(new, own, stats, last)

    def unshift(self, factors: Factors, grams: Sequence[Array]) -> None:
        """Continue from these factors, after a rise of the loss."""
        assert self.ahead is not None
        for mode, factor in enumerate(factors):
            np.copyto(self.ahead[mode], factor)
            self.ahead_grams[mode] = grams[mode]
        self.momentum = self.momentum.after_rise()

    def loss_at(self, factors: Factors, grams: Sequence[Array], stats: Stats, last: int) -> float:
        """The loss at new factors, given the statistics of the last one."""
        penalties = sum(b.penalty(f, g) for b, f, g in zip(self.blocks, factors, grams, strict=True))
        return stats.loss(factors[last], grams[last]) + penalties


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

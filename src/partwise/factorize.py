"""Blocks, the one loop, and its result. Knows no algorithm's name.

repeat: for each mode: stats = data.statistics(factors, mode)      one pass over X
                       factor = block(factor, stats)               X out of reach
until:  the loss hardly falls | no column can improve | time | max_iter | a callback says stop | Ctrl-C
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from .data import Data
from .metrics import fixed_point_residual
from .projections import Nonnegative, hoyer_sparsity
from .start import Factors, dead_components, revive
from .statistics import Array, Stats, gram
from .threads import fitting_threads
from .updates import Columns, Pivot, Sets, State, Update

Reviver = Callable[[Any, Factors, Stats, int, Sequence[Sets], Array], list[int]]

REVIVALS = 3  # of each component, on average: one that dies again and again has nothing to fit


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
        penalty = self.l1 * float(factor.sum(dtype=float)) if self.l1 else 0.0
        if self.l2:
            penalty += 0.5 * self.l2 * float(np.trace(own_gram))
        return penalty + 0.5 * self.rows * float(own_gram.sum()) if self.rows else penalty

    def residual(self, factor: Array, stats: Stats) -> float:
        """How far the factor is from one that no change of a single column improves."""
        return fixed_point_residual(factor, stats.penalised(self.l1, self.l2, self.rows), self.sets)


@dataclass(frozen=True)
class Iteration:
    """What a callback is told after each iteration (0 is the start). Returning True stops the fit.

    ``factors`` are the fit's own arrays, which the next iteration overwrites: copy what you keep.
    """

    n_iter: int
    max_iter: int
    loss: float
    relative_error: float
    seconds: float
    factors: Factors


Callback = Callable[[Iteration], Any]


@dataclass(frozen=True)
class Result:
    """Factors, how they were reached, and why the fit stopped.

    Attributes
    ----------
    factors : list
        [activations (samples × r), parts (features × r)]: X ≈ factors[0] factors[1]ᵀ.
    losses, times : arrays
        ½‖X − model‖² plus penalties, and seconds since the call, at the start and after each iteration.
    n_iter : int
    converged : bool
        Whether a tolerance was met.
    stop_reason : str
        Why the fit stopped, in a sentence.
    relative_error : float
        ‖X − model‖ / ‖X‖.
    exhausted : bool
        Whether a tolerance was asked for, and max_iter iterations were too few to meet it.
    middle : array or None
        D (r × r), where the model is activations·D·components.
    encoder : Block or None
        How the activations of new samples are found, where samples can be solved one by one.
    """

    factors: Factors
    losses: Array
    times: Array
    n_iter: int
    converged: bool
    stop_reason: str
    relative_error: float
    exhausted: bool = False
    middle: Array | None = None
    encoder: Block | None = None
    states: list[State] = field(default_factory=list, repr=False)

    @property
    def activations(self) -> Array:
        """How much of each part is in each sample (samples × r)."""
        return self.factors[0]

    @property
    def components(self) -> Array:
        """The parts, one a row (r × features)."""
        return self.factors[1].T

    @property
    def sparsity(self) -> Array:
        """The achieved Hoyer sparsity of each part."""
        return np.asarray(hoyer_sparsity(self.components, axis=1))

    @property
    def activation_sparsity(self) -> Array:
        """The achieved Hoyer sparsity of each column of the activations."""
        return np.asarray(hoyer_sparsity(self.activations, axis=0))

    def __repr__(self) -> str:
        shape = " × ".join(str(len(f)) for f in self.factors)
        return (
            f"Result({shape}, {self.factors[0].shape[1]} components, relative error {self.relative_error:.4g}, "
            f"{self.n_iter} iterations: {self.stop_reason})"
        )


def factorize(
    data: Data,
    factors: Factors,
    blocks: Sequence[Block],
    *,
    order: Sequence[int] = (1, 0),
    before: Sequence[int] = (),
    max_iter: int = 200,
    tol: float = 1e-4,
    kkt_tol: float = 0.0,
    max_time: float | None = None,
    callback: Callback | None = None,
    revive: Reviver | None = revive,
    balance: bool = True,
    started: float | None = None,
) -> Result:
    """Improve ``factors`` (overwritten), one block after the other, until something says stop.

    Parameters
    ----------
    order : sequence of modes
        Which factor is updated when, in each iteration. The loss comes from the statistics of the last.
    before : sequence of modes
        Factors to update once before the first iteration.
    max_iter, max_time
        Iterations and seconds at most.
    tol : float
        Stop when an iteration lowers the loss by no more than this share of it; 0: never.
    kkt_tol : float
        Stop when no factor's fixed-point residual exceeds this; 0: never (and it is not computed).
    callback : callable
        Called with an `Iteration` at the start and after each iteration; True stops the fit.
    revive : callable or None
        What starts components again that add nothing (never under a penalty); by default where the fit is worst.
    balance : bool
        Give the parts unit norm at the end, if no set and no penalty minds.
    started : float
        When the clock of ``times`` began (`time.perf_counter`); by default now.
    """
    started = perf_counter() if started is None else started
    penalised = any(b.penalised for b in blocks)  # a component that a penalty kills is better dead
    fit = Fit(data, factors, blocks, None if penalised else revive)
    losses, times = [fit.first_loss((*before, *order)[0])], [perf_counter() - started]
    residuals = np.full(len(blocks), np.inf)
    n_iter, converged, reason = 0, False, f"max_iter={max_iter} iterations are done"

    def told_to_stop() -> bool:
        error = relative_error(data.sqnorm, losses[-1] - fit.penalties()) if data.squared else np.nan
        here = Iteration(n_iter, max_iter, losses[-1], error, times[-1], factors)
        return callback is not None and bool(callback(here))

    with interrupts() as interrupted, fitting_threads(float(np.prod(data.shape)) * factors[0].shape[1]):
        stopped = told_to_stop()
        if not stopped:
            for mode in before:
                fit.update(mode)
        while n_iter < max_iter and not stopped:
            for mode in order:
                residuals[mode] = fit.update(mode, measure=kkt_tol > 0)
            n_iter += 1
            losses.append(fit.loss(order[-1]))
            times.append(perf_counter() - started)
            stopped = told_to_stop()
            if stopped:
                reason = f"the callback said stop after iteration {n_iter}"
            elif interrupted:
                stopped, reason = True, f"interrupted after iteration {n_iter}; the result so far is kept"
            elif (
                tol > 0 and data.squared and losses[-1] - fit.penalties() <= 4 * np.finfo(data.dtype).eps * data.sqnorm
            ):
                stopped, converged, reason = True, True, f"the fit is exact as far as {data.dtype} statistics can tell"
            elif tol > 0 and abs(losses[-2] - losses[-1]) <= tol * losses[-2]:
                stopped, converged, reason = True, True, f"the loss fell by no more than tol={tol:g} of itself"
            elif kkt_tol > 0 and residuals.max() <= kkt_tol:
                stopped, converged, reason = True, True, f"the fixed-point residual is at most kkt_tol={kkt_tol:g}"
            elif max_time is not None and times[-1] >= max_time:
                stopped, reason = True, f"max_time={max_time:g} seconds are over"
        if stopped and not n_iter:
            reason = "the callback said stop at the start"
    if balance and not penalised and all(b.sets.scale_free for b in blocks):
        give_unit_norm(factors, fit.grams)
    error = exact_relative_error(data, factors, losses[-1] - fit.penalties())
    exhausted = tol > 0 and n_iter == max_iter and not stopped
    return Result(
        factors, np.array(losses), np.array(times), n_iter, converged, reason, error, exhausted, states=[*fit.states]
    )


def relative_error(sqnorm: float, loss: float) -> float:
    """‖X − model‖ / ‖X‖ from ½‖X − model‖²; 0 for an all-zero X."""
    return float(np.sqrt(max(2 * loss, 0.0) / sqnorm)) if sqnorm > 0 else 0.0


def give_unit_norm(factors: Factors, grams: Sequence[Array], mode: int = 1) -> None:
    """Move the scale of every column of one factor to the other: of every part to its activations."""
    norms = np.sqrt(grams[mode].diagonal())
    norms[norms == 0] = 1
    factors[mode] /= norms.astype(factors[mode].dtype)
    factors[1 - mode] *= norms.astype(factors[1 - mode].dtype)


def exact_relative_error(data: Data, factors: Factors, loss: float) -> float:
    """The relative error from the loss, or from the residual itself where the statistics cancel."""
    error = relative_error(data.sqnorm, loss)
    if not data.squared or error < np.finfo(data.dtype).eps ** 0.25:
        error = relative_error(data.sqnorm, 0.5 * data.squared_error(factors))
    return error


class Fit:
    """The factors of a running fit with what is known about them: Gram matrices, states, last statistics."""

    def __init__(self, data: Data, factors: Factors, blocks: Sequence[Block], revive: Reviver | None) -> None:
        self.data, self.factors, self.blocks, self.revive = data, factors, blocks, revive
        self.grams = [gram(f) for f in factors]
        self.states: list[State] = [{} for _ in factors]
        self.revivals = REVIVALS * factors[0].shape[1] if revive else 0
        self.last: Stats | None = None
        self.fresh: int | None = None  # the mode whose last statistics are still true

    def first_loss(self, mode: int) -> float:
        """The loss at the start, from the statistics of the factor that is updated first."""
        self.last = self.data.statistics(self.factors, self.grams, mode)
        self.fresh = mode
        return self.loss(mode)

    def update(self, mode: int, measure: bool = False) -> float:
        """Update one factor; its fixed-point residual before that, if it is to be measured."""
        stats = self.last if self.fresh == mode else None
        stats, self.fresh = stats or self.data.statistics(self.factors, self.grams, mode), None
        if self.revivals and self.blocks[mode].sets.nonnegative:
            stats = self.revived(stats, mode)
        block = self.blocks[mode]
        residual = block.residual(self.factors[mode], stats) if measure else np.inf
        self.factors[mode], self.states[mode] = block(self.factors[mode], stats, self.states[mode])
        self.grams[mode] = gram(self.factors[mode])
        self.last = stats
        if block.normalised:
            give_unit_norm(self.factors, self.grams, mode)
            self.grams = [gram(f) for f in self.factors]
        return residual

    def revived(self, stats: Stats, mode: int) -> Stats:
        """Statistics after dead components, if there are any, have started again."""
        dead = dead_components(self.grams)[: self.revivals]
        if not dead.size:
            return stats
        self.revivals -= len(dead)
        assert self.revive is not None
        if not self.revive(self.data, self.factors, stats, mode, [b.sets for b in self.blocks], dead):
            return stats
        self.grams = [gram(f) for f in self.factors]
        return self.data.statistics(self.factors, self.grams, mode)

    def penalties(self) -> float:
        return sum(b.penalty(f, g) for b, f, g in zip(self.blocks, self.factors, self.grams, strict=True))

    def loss(self, mode: int) -> float:
        """The loss, from the statistics that ``mode`` was last updated with."""
        assert self.last is not None
        return self.data.loss(self.last, self.factors, self.grams, mode) + self.penalties()


_watching: list[list[int]] = []


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collect the first Ctrl-C in a list instead of raising it; the second one raises as usual.

    Inside of another such context the same list is given, so that a fit made of several fits stops as a whole.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    if _watching:
        yield _watching[-1]
        return

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    if before is None:  # a handler that Python did not install and cannot put back
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.pop()
        signal.signal(signal.SIGINT, before)


def nonnegative_encoder(r: int, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Block:
    """Activations by nonnegative least squares, exactly."""
    return Block(Pivot(), Columns.same(Nonnegative(), r), l1, l2, rows)


def solve_activations(data: Data, parts: Array, encoder: Block | None = None) -> tuple[Array, Stats]:
    """The activations that fit X best to fixed ``parts`` (features × r), and their statistics."""
    parts = np.asfortranarray(parts, dtype=data.dtype)
    r = parts.shape[1]
    factors = [np.zeros((data.shape[0], r), dtype=data.dtype, order="F"), parts]
    stats = data.statistics(factors, [np.zeros((r, r)), gram(parts)], 0)
    activations, _ = (encoder or nonnegative_encoder(r))(factors[0], stats, {})
    return activations, stats

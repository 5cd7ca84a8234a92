"""The loop of all fits, its stopping rules, and its result.

repeat: for each mode: stats = data.statistics(factors, grams, mode)   one pass over X
                       factor = block(factor, stats)                   without access to X
until:  components settled | fixed-point residual | time | max_iter | callback | Ctrl-C
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data import Chunked, Held, Sliced
from ..projections import hoyer_sparsity
from ..runtime.compiled import clock
from ..runtime.interrupts import interrupts
from ..runtime.threads import fitting_threads
from ..runtime.together import single
from ..statistics import Array, relative_error
from ..updates import State
from .accelerated import AcceleratedChunkedFit, AcceleratedFit
from .blocks import Block
from .checkpoint import Checkpoint, Resumed
from .chunked_fit import ChunkedFit, TrialChunkedFit
from .metrics import largest_turn
from .projected import ProjectedFit
from .running import RunningFit, WholeFit, give_unit_norm
from .solving import exact_relative_error
from .starts import Factors
from .summary import summary

WINDOW = 10  # the pace of a fit is measured over the last tenth of its iterations
SOON = 10  # and extrapolated over at least so many
OWN = 10  # iterations on X itself after compressed ones, at least
NEGLIGIBLE = 0.5e-10  # of ‖X‖²: a loss below this need not settle further


@dataclass(frozen=True)
class Iteration:
    """The argument of a callback, which is called after each iteration; iteration 0 is the start.

    A callback that returns True stops the fit. ``factors`` are overwritten by the next iteration: copy what you keep.
    If X is processed in chunks, the activations ``factors[0]`` are not available, and ``passes`` is the number of
    passes over X so far. A compressed fit calls it from its first iteration on X itself.
    """

    n_iter: int
    max_iter: int
    loss: float
    relative_error: float
    seconds: float
    factors: Factors
    passes: int | None = None


Callback = Callable[[Iteration], Any]


@dataclass(frozen=True)
class Result:
    """The result of a fit: factors, history, and why the fit stopped.

    Attributes
    ----------
    factors : list
        [activations (samples × r), components (features × r)]: X ≈ factors[0] factors[1]ᵀ. For a tensor, one per mode.
    losses, times : arrays
        The loss ½‖X − model‖² plus penalties, or the divergence, and the seconds since the call, at the start and after
        each iteration. Time spent on compiling is not counted. A compressed fit records them from its first iteration
        on X itself.
    n_iter : int
        The number of iterations, compressed ones included.
    converged : bool
        Whether a tolerance was met.
    stop_reason : str
        Why the fit stopped.
    relative_error : float
        ‖X − model‖ / ‖X‖ or, with the Kullback–Leibler divergence, √(divergence / divergence of the features' means).
    exhausted : bool
        Whether the fit reached max_iter before it met its tolerance.
    middle : array or None
        D (r × r), if the model is activations · D · components.
    weights : array of shape (r,), or None
        The weights of the components of a tensor. The model is Σ_j weights_j · factors[0][:, j] ∘ factors[1][:, j] ∘ …
    encoder : Block or None
        How activations of new samples are computed, if samples are independent of each other.
    seed : int or None
        The ``random_state`` that repeats the fit, drawn if none was given; None if a generator was given.
    loss : str
        The name of the loss: "squared" or "kullback-leibler".
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
    weights: Array | None = None
    encoder: Block | None = None
    seed: int | None = None
    loss: str = "squared"
    states: list[State] = field(default_factory=list, repr=False)

    @property
    def activations(self) -> Array:
        """The activations (samples × r). For matrices only."""
        return self._of_matrix("activations")[0]

    @property
    def components(self) -> Array:
        """The components as rows (r × features). For matrices only."""
        return self._of_matrix("components")[1].T

    @property
    def sparsity(self) -> Array:
        """The Hoyer sparsity of each component."""
        return np.asarray(hoyer_sparsity(self.components, axis=1))

    @property
    def activation_sparsity(self) -> Array:
        """The Hoyer sparsity of each column of the activations."""
        return np.asarray(hoyer_sparsity(self.activations, axis=0))

    @property
    def sparsities(self) -> list[Array]:
        """The Hoyer sparsity of each column, as one array per factor."""
        return [np.asarray(hoyer_sparsity(f, axis=0)) for f in self.factors]

    def _of_matrix(self, name: str) -> Factors:
        if len(self.factors) != 2:
            raise AttributeError(
                f"{name}: a tensor of {len(self.factors)} modes has no {name}; use factors[mode], sparsities[mode] and "
                "weights"
            )
        return self.factors

    def _repr_html_(self) -> str | None:
        return summary(self).to_html() if len(self.factors) == 2 else None  # a notebook then shows the text

    def __repr__(self) -> str:
        shape = " × ".join(str(len(f)) for f in self.factors)
        return (
            f"Result({shape}, {self.factors[0].shape[1]} components, relative error {self.relative_error:.4g}, "
            f"{self.n_iter} iterations: {self.stop_reason})"
        )


@single
async def factorize(
    data: Sliced | Chunked,
    factors: Factors,
    blocks: Sequence[Block],
    *,
    order: Sequence[int] = (1, 0),
    before: Sequence[int] = (),
    max_iter: int,
    tol: float,
    kkt_tol: float = 0.0,
    max_time: float | None = None,
    callback: Callback | None = None,
    revive: bool = True,
    balance: bool = True,
    accelerate: bool = False,
    started: float | None = None,
    n_threads: int | None = None,
    checkpoint: Checkpoint | None = None,
    resumed: Resumed | None = None,
    compressed: int = 0,
) -> Result:
    """Improve ``factors`` (overwritten), one block after the other, until a stopping rule applies.

    Parameters
    ----------
    order : sequence of modes
        The order of the updates in each iteration. The loss comes from the statistics of the last one.
    before : sequence of modes
        Factors to update once before the first iteration.
    max_iter, max_time
        The largest number of iterations and of seconds.
    tol : float
        Stop when the `pace` of the fit is at most this; 0: never, and it is not computed.
    kkt_tol : float
        Stop when the fixed-point residual of every factor is at most this; 0: never, and it is not computed.
    callback : callable
        Called with an `Iteration` at the start and after each iteration; True stops the fit.
    revive : bool
        Whether dead components are restarted where the fit is worst (never under a penalty).
    balance : bool
        Give all factors but the first unit norm at the end, if sets and penalties allow it.
    accelerate : bool
        Extrapolate the factors (not for weights of all entries, the divergence, or missing entries of X in chunks).
    started : float
        The start of ``times`` (`compiled.clock`); by default now.
    n_threads : int
        The number of threads; by default that of BLAS.
    checkpoint : Checkpoint
        Where the state of the fit is saved at intervals and at the end.
    resumed : Resumed
        The state to resume from; ``factors`` are its factors.
    compressed : int
        The number of iterations before, on a low-rank X. They count in ``max_iter``, and a tolerance is then applied
        after `OWN` further iterations only.
    """
    started = clock() if started is None else started
    penalised = any(b.penalised for b in blocks)  # components that a penalty removes are not restarted
    free = [mode for mode in sorted(order) if blocks[mode].sets.nonnegative]
    chunked = ChunkedFit if data.squared else TrialChunkedFit
    whole = AcceleratedFit if data.complete and len(factors) == 2 else ProjectedFit
    plain, faster = (chunked, AcceleratedChunkedFit) if isinstance(data, Chunked) else (WholeFit, whole)
    kind = faster if accelerate else plain
    fit = kind(data, factors, blocks, free[0] if revive and free and not penalised else None)
    watch = Watch(fit, max_iter, tol, kkt_tol, max_time, callback, started, compressed)

    def save() -> None:
        if checkpoint is not None and (checkpoint.due(watch.n_iter) or watch.stop_reason):
            checkpoint.write(fit, watch.history())

    with fitting_threads(data.size * factors[1].shape[1], n_threads):
        if resumed is not None:
            await fit.restore(resumed.fit)
            watch.resume(**resumed.history)
        try:
            await iterate(fit, watch, order, before, save)
            fit.finish()
        except BaseException:
            if isinstance(factors[0], Held):  # a traceback would keep activations on the workers alive
                factors[0].release()
            raise
    if balance and not penalised and all(b.sets.scale_free for b in blocks):
        for mode in range(1, len(factors)):
            give_unit_norm(factors, fit.grams, mode, kept=fit.kept)
    error = exact_relative_error(data, factors, watch.losses[-1], fit.penalties())
    return Result(
        [f.collected() if isinstance(f, Held) else f for f in factors],
        np.array(watch.losses),
        np.array(watch.times),
        watch.n_iter,
        watch.converged,
        watch.stop_reason,
        error,
        exhausted=watch.exhausted,
        states=[*fit.states],
    )


async def iterate(
    fit: RunningFit,
    watch: Watch,
    order: Sequence[int],
    before: Sequence[int] = (),
    after: Callable[[], None] | None = None,
) -> None:
    """Update the modes in ``order`` until the watch has a reason to stop. Calls ``after`` after each iteration.

    At the start, that is if the watch has no history, the modes in ``before`` are updated once.
    """
    with interrupts() as interrupted:
        if not watch.losses:
            watch.note(await fit.first_loss((*before, *order)[0]))
            if before and not watch.stop_reason:
                await fit.step(before)
        while not watch.stop_reason:
            residual = await fit.step(order, measure=watch.kkt_tol > 0)
            watch.note(fit.loss(order[-1]), residual, bool(interrupted))
            if after is not None:
                after()


@dataclass(frozen=True)
class Past:
    """An earlier iteration: its number, its loss, and copies of the arrays that were still moving."""

    n_iter: int
    loss: float
    arrays: list[Array]


@dataclass
class Watch:
    """The history of a fit. It calls the callback and applies the stopping rules.

    ``pace`` is how far components and loss would still change, relative to their size, if the fit went on at its
    present speed for as many iterations again.
    """

    fit: RunningFit
    max_iter: int
    tol: float
    kkt_tol: float
    max_time: float | None
    callback: Callback | None
    started: float
    compressed: int = 0
    losses: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    residual: float = np.inf
    pace: float = np.inf
    past: Past | None = None
    stop_reason: str = ""
    converged: bool = False
    exhausted: bool = False

    @property
    def n_iter(self) -> int:
        """The number of iterations. The first entry of the history is the start, or the end of compressed ones."""
        return self.compressed + len(self.losses) - 1

    def history(self) -> dict[str, Any]:
        """The history as numbers and arrays, for a checkpoint."""
        history = {"losses": np.array(self.losses), "times": np.array(self.times), "residual": self.residual}
        past = {} if self.past is None else {"pace": self.pace, "since": self.past.n_iter, "past": self.past.arrays}
        return history | past | {"compressed": self.compressed}

    def resume(
        self,
        losses: Array,
        times: Array,
        residual: float,
        pace: float = np.inf,
        since: int = 0,
        past: list[Array] | None = None,
        compressed: int = 0,
    ) -> None:
        """Continue from a history and its elapsed time. Sets ``stop_reason`` if a stopping rule already applies."""
        self.losses, self.times, self.residual, self.pace = losses.tolist(), times.tolist(), residual, pace
        self.compressed = compressed
        if past is not None and [a.shape for a in past] == [a.shape for a in self.fit.moving()]:  # else of another kind
            self.past = Past(since, self.losses[since - compressed], past)
        self.started = clock() - self.times[-1]
        self.apply_rules()

    def note(self, loss: float, residual: float = np.inf, interrupted: bool = False) -> None:
        """Record the loss after an iteration, and set ``stop_reason`` if a stopping rule applies."""
        if np.isnan(loss):
            when = f"after iteration {len(self.losses)}" if self.losses else "at the start"
            raise ValueError(
                f"the loss is not a number {when}: the values of X were changed while it was being fitted; fit again"
            )
        self.losses.append(loss)
        self.times.append(clock() - self.started)
        self.residual = residual
        if self.tol > 0:
            self.measure_pace()
        if self.stopped_by_callback():
            self.stop_reason = (
                f"stopped by the callback {f'after iteration {self.n_iter}' if self.n_iter else 'at the start'}"
            )
        elif interrupted:
            self.stop_reason = f"interrupted after iteration {self.n_iter}; the result so far is kept"
        else:
            self.apply_rules()

    def measure_pace(self) -> None:
        """Compare components and loss with those of the last measurement, a tenth of all iterations ago."""
        n_iter, loss, past = self.n_iter, self.losses[-1], self.past
        steps = 0 if past is None else n_iter - past.n_iter
        if past is not None and steps < max(n_iter // WINDOW, 1):
            return
        arrays = self.fit.moving()
        if past is not None:
            turns = [largest_turn(before, now) for before, now in zip(past.arrays, arrays, strict=True)]
            least = NEGLIGIBLE * self.fit.data.sqnorm if self.fit.data.squared else 0.0
            size = max(past.loss, least)
            fall = abs(past.loss - loss) / size if size else 0.0
            self.pace = max(*turns, fall) * max(n_iter, SOON) / steps
        self.past = Past(n_iter, loss, [a.copy(order="F") for a in arrays])

    def apply_rules(self) -> None:
        """Set ``stop_reason`` if a tolerance, the time limit or max_iter is reached."""
        own = len(self.losses) - 1  # iterations on X itself
        met = self.tolerance_met() if own >= (OWN if self.compressed else 1) else ""
        if met:
            self.converged, self.stop_reason = True, met
        elif own and self.max_time is not None and self.times[-1] >= self.max_time:
            self.stop_reason = f"time limit of {self.max_time:g} s reached"
        elif self.n_iter >= self.max_iter:
            self.exhausted = self.tol > 0 or self.kkt_tol > 0
            advice = f" before converging; {self.fit.advice}" if self.exhausted else ""
            self.stop_reason = f"reached max_iter={self.max_iter}{advice}"

    def stopped_by_callback(self) -> bool:
        """Call the callback. Returns whether it stops the fit."""
        if self.callback is None:
            return False
        data, fit = self.fit.data, self.fit
        error = relative_error(data.sqnorm, self.losses[-1] - fit.penalties())
        passes = data.passes if isinstance(data, Chunked) else None
        here = Iteration(self.n_iter, self.max_iter, self.losses[-1], error, self.times[-1], fit.factors, passes)
        return bool(self.callback(here))

    def tolerance_met(self) -> str:
        """The reason to stop if the last iteration met a tolerance, else an empty string."""
        data = self.fit.data
        if self.tol > 0:
            exact = 4 * np.finfo(data.dtype).eps * data.sqnorm
            if data.squared and self.losses[-1] - self.fit.penalties() <= exact:
                return f"converged: the fit is exact to the precision of {data.dtype} statistics"
            if self.pace <= self.tol:
                return f"converged: components have settled to tol={self.tol:g}"
        if self.kkt_tol > 0 and self.residual <= self.kkt_tol:
            return f"converged: fixed-point residual ≤ kkt_tol={self.kkt_tol:g}"
        return ""

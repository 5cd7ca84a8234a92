"""When a fit stops: its history, its stopping rules, and the callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data import Chunked
from ..runtime.compiled import clock
from ..statistics import Array, relative_error
from .metrics import largest_turn
from .running import RunningFit
from .starts import Factors

WINDOW = 10  # the pace of a fit is measured over the last tenth of its iterations
SOON = 30  # and extrapolated over at least so many
OWN = 10  # iterations on X itself after compressed ones, at least
NEGLIGIBLE = 0.5e-10  # of ‖X‖²: a loss below this need not settle further


@dataclass(frozen=True)
class Iteration:
    """The argument of a callback, which is called after each iteration; iteration 0 is the start.

    A callback that returns True stops the fit. ``factors`` are overwritten by the next iteration: copy what you keep.
    If X is processed in chunks, the activations ``factors[0]`` are not available, and ``passes`` is the number of
    passes over X so far. In a compressed fit, the calls begin with the first iteration on X itself.
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
class Past:
    """An earlier iteration: its number, its loss, and copies of the arrays that were still moving."""

    n_iter: int
    loss: float
    arrays: list[Array]


@dataclass
class Watch:
    """The history of a fit. It calls the callback and applies the stopping rules.

    ``pace`` is how far components and loss would still change if the fit went on at its present speed for as many
    iterations again: components relative to how different they are, the loss relative to its size.
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
            least = NEGLIGIBLE * self.fit.data.sqnorm if self.fit.data.squared else 0.0
            size = max(past.loss, least)
            fall = abs(past.loss - loss) / size if size else 0.0
            self.pace = max(largest_turn(past.arrays, arrays), fall) * max(n_iter, SOON) / steps
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

"""Fits from several starts, of which the best is kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..engine.loop import Callback, Result, Watch
from ..engine.options import TABLE
from ..engine.validation import as_count, as_generator, as_verbosity, warn_user
from ..runtime.interrupts import interrupts
from .hooks import Hooks


def best_fit(estimator: Any, fit: Callable[..., Result], hooks: Hooks | None = None) -> Result:
    """The best of ``estimator.n_init`` fits; the hooks, and Ctrl-C, can end them after any."""
    options = {name: value for name, value in estimator.get_params(deep=False).items() if name in TABLE}
    del options["random_state"]  # each start draws from the same generator
    n_init = as_count(estimator.n_init, "n_init")
    rng = estimator.random_state if n_init == 1 else as_generator(estimator.random_state)
    results: list[Result] = []
    with interrupts() as interrupted:
        while len(results) < n_init and not interrupted and not (hooks and hooks.stopped):
            with ExitStack() as stack:
                told: list[Callback] = [hooks] if hooks else []
                if as_verbosity(estimator.verbose):
                    from ..engine.progress import progress_line  # imports rich

                    count = f", start {len(results) + 1} of {n_init}" if n_init > 1 else ""
                    label = f"{type(estimator).__name__}{count}"
                    told.append(stack.enter_context(progress_line(label, modes=estimator._sparse_modes())))
                results.append(fit(**options, random_state=rng, callback=all_told(told)))
    return min(results, key=lambda result: float(result.losses[-1]))


def all_told(callbacks: list[Callback]) -> Callback | None:
    """One callback for all: each is told, and any can say stop."""
    return (lambda iteration: sum(bool(tell(iteration)) for tell in callbacks) > 0) if callbacks else None


def warn_if_exhausted(fit: Result | Watch) -> None:
    """Say that the loss was still falling when the iterations were used up."""
    if fit.exhausted:
        fall = 1 - fit.losses[-1] / fit.losses[-2]
        warn_user(
            f"the loss still falls by {fall:.1e} of itself per iteration after max_iter={fit.n_iter}: raise max_iter, "
            "or give a larger tol to accept this",
            ConvergenceWarning,
        )

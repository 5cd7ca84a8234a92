"""Several starts, of which the best fit is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..engine.loop import Callback, Result, Watch
from ..engine.options import TABLE
from ..engine.validation import as_count, as_generator, as_verbosity, warn_user
from ..runtime.interrupts import interrupts
from .hooks import Hooks


def best_fit(estimator: Any, fit: Callable[..., Result], hooks: Hooks | None = None) -> Result:
    """The fit with the lowest loss among ``estimator.n_init`` starts; Ctrl-C and callbacks can stop early."""
    options = {name: value for name, value in estimator.get_params(deep=False).items() if name in TABLE}
    del options["random_state"]  # all starts share one generator
    n_init = as_count(estimator.n_init, "n_init")
    rng = estimator.random_state if n_init == 1 else as_generator(estimator.random_state)
    results: list[Result] = []
    with interrupts() as interrupted:
        while not results or (len(results) < n_init and not interrupted and not (hooks and hooks.stopped)):
            start = f", start {len(results) + 1} of {n_init}" if n_init > 1 else ""
            with progress(estimator, start, modes=estimator._sparse_modes()) as line:
                callbacks = [callback for callback in (hooks, line) if callback]
                results.append(fit(**options, random_state=rng, callback=combined(callbacks)))
    return min(results, key=lambda result: float(result.losses[-1]))


@contextmanager
def progress(estimator: Any, start: str = "", **options: Any) -> Iterator[Callback | None]:
    """The callback of a progress line, or None if the estimator is not verbose."""
    if not as_verbosity(estimator.verbose):
        yield None
        return
    from ..engine.progress import progress_line  # imports rich

    with progress_line(f"{type(estimator).__name__}{start}", **options) as callback:
        yield callback


def combined(callbacks: list[Callback]) -> Callback | None:
    """One callback that calls all of them; the fit stops if any returns True."""
    # max, unlike any, calls every callback
    return (lambda iteration: max(bool(callback(iteration)) for callback in callbacks)) if callbacks else None


def warn_if_exhausted(fit: Result | Watch) -> None:
    """Warn if ``max_iter`` ended the fit before it converged."""
    if fit.exhausted:
        fall = 1 - fit.losses[-1] / fit.losses[-2]
        warn_user(
            f"reached max_iter={fit.n_iter} before converging (relative decrease of the loss in the last iteration: "
            f"{fall:.1e}); raise max_iter or tol",
            ConvergenceWarning,
        )

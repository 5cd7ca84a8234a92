"""Running the fits of an estimator: several starts, scikit-learn's callbacks, and a progress line.

scikit-learn's callbacks (1.9 and later) are imported only for a fit that uses them, because rich comes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, Protocol, Self, TypeVar

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ..engine.options import TABLE
from ..engine.result import Result
from ..engine.stopping import Callback, Iteration, Watch
from ..engine.validation import Seed, as_count, as_generator, as_verbosity, seed_of, warn_user
from ..runtime.arrays import ArrayLike
from ..runtime.together import Job, side_by_side

P = ParamSpec("P")
T = TypeVar("T")
AddLine = Callable[[int], Callback]  # the number of a start → the callback of its line


class Verbose(Protocol):
    """An estimator that can show a progress line."""

    verbose: int


class FromStarts(Verbose, Protocol):
    """An estimator that fits from several starts."""

    n_init: int
    max_iter: int
    random_state: Seed

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def _sparse_modes(self) -> Sequence[int]: ...


def best_of_starts(
    estimator: FromStarts, fit: Callable[..., Job[Result]], most: int, hooks: Hooks | None = None
) -> Result:
    """The fit with the lowest loss among ``estimator.n_init`` starts; Ctrl-C and callbacks can stop early.

    At most ``most`` fits run side by side.
    """
    options = {name: value for name, value in estimator.get_params(deep=False).items() if name in TABLE}
    del options["random_state"]  # all starts share one generator
    n_init = as_count(estimator.n_init, "n_init")
    rng, seed = estimator.random_state, None
    if n_init > 1:
        rng = as_generator(estimator.random_state)
        seed = seed_of(rng, estimator.random_state)

    def starts(lines: AddLine | None) -> Iterator[Callable[[], Job[Result]]]:
        for k in range(n_init):
            if hooks and hooks.stopped:
                return
            callbacks = [callback for callback in (hooks, lines and lines(k)) if callback]
            yield partial(fit, **options, random_state=rng, callback=combined(callbacks))

    with progress(estimator, n_init, estimator._sparse_modes()) as lines:
        results = side_by_side(starts(lines), most)
    best = min(results, key=lambda result: float(result.losses[-1]))
    return best if n_init == 1 else replace(best, seed=seed)


@contextmanager
def progress(estimator: Verbose, starts: int = 1, modes: Sequence[int] = (1,)) -> Iterator[AddLine | None]:
    """A function that adds the progress line of a start and returns its callback, or None: not verbose."""
    if not as_verbosity(estimator.verbose):
        yield None
        return
    from ..engine.progress import progress_lines  # imports rich

    with progress_lines(type(estimator).__name__, starts, modes=modes) as lines:
        yield lines


def combined(callbacks: list[Callback]) -> Callback | None:
    """One callback that calls all of them; the fit stops if any returns True."""
    # max, unlike any, calls every callback
    return (lambda iteration: max(bool(callback(iteration)) for callback in callbacks)) if callbacks else None


def warn_if_exhausted(fit: Result | Watch) -> None:
    """Warn if ``max_iter`` ended the fit before it converged."""
    if fit.exhausted:
        warn_user(fit.stop_reason, ConvergenceWarning)


class CallbackSupport:
    """Stands in for scikit-learn's `CallbackSupportMixin`."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)
    def set_callbacks(self, *callbacks: object) -> Self:
        """Set scikit-learn callbacks, which are called after each iteration and can stop the fit."""
        from sklearn.callback import CallbackSupportMixin

        return CallbackSupportMixin.set_callbacks(self, *callbacks)


def has_callbacks(estimator: object) -> bool:
    """Whether callbacks are set, by the user or by an enclosing meta-estimator."""
    return bool(getattr(estimator, "_skl_callbacks", None)) or hasattr(estimator, "_parent_callback_ctx")


def with_callbacks(method: Callable[P, T]) -> Callable[P, T]:
    """Like scikit-learn's decorator of this name: tear down the callbacks after ``method``, even after an error."""

    @wraps(method)
    def managed(*args: P.args, **options: P.kwargs) -> T:
        if not has_callbacks(args[0]):  # the estimator
            return method(*args, **options)
        from sklearn.callback import with_callbacks

        return with_callbacks(method)(*args, **options)

    return managed


class Hooks:
    """Calls the scikit-learn callbacks of an estimator, if any, after each iteration."""

    def __init__(self, estimator: FromStarts, X: ArrayLike, n_init: int) -> None:
        self.estimator, self.X = estimator, X
        self.root: Any = None
        self.stopped = False
        if has_callbacks(estimator):
            from sklearn.callback import CallbackSupportMixin

            most = n_init * estimator.max_iter
            self.root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=most)
            self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def __call__(self, iteration: Iteration) -> bool:
        if self.root is None or not iteration.n_iter or self.stopped:
            return self.stopped
        parts = iteration.factors[1].T
        task = self.root.subcontext(task_name=f"iteration {iteration.n_iter}")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        self.stopped |= task.call_on_fit_task_end(
            estimator=self.estimator,
            X=self.X,
            reconstruction_attributes=lambda: {"components_": parts.copy(), "n_components_": len(parts)},
        )
        return self.stopped

    def end(self) -> None:
        if self.root is not None:
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X)

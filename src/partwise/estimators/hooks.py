"""scikit-learn's callbacks, where scikit-learn has them (1.9 and later).

They are imported when a fit has some: scikit-learn imports rich with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from ..engine.loop import Iteration

__all__ = ["CallbackSupport", "Hooks", "with_callbacks"]


class CallbackSupport:
    """The same as scikit-learn's `CallbackSupportMixin`."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's callbacks, which are told of each iteration and can stop the fit."""
        from sklearn.callback import CallbackSupportMixin

        return CallbackSupportMixin.set_callbacks(self, *callbacks)


def has_callbacks(estimator: Any) -> bool:
    """Whether callbacks are set, by the user or by the meta-estimator whose fit this is part of."""
    return bool(getattr(estimator, "_skl_callbacks", None)) or hasattr(estimator, "_parent_callback_ctx")


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same as scikit-learn's decorator: callbacks are torn down after ``method``, whatever happens in it."""

    @wraps(method)
    def managed(estimator: Any, *args: Any, **options: Any) -> Any:
        if not has_callbacks(estimator):
            return method(estimator, *args, **options)
        from sklearn.callback import with_callbacks

        return with_callbacks(method)(estimator, *args, **options)

    return managed


class Hooks:
    """scikit-learn's callbacks, told of each iteration when it is done; silent where none is set."""

    def __init__(self, estimator: Any, X: Any, n_init: int) -> None:
        self.estimator, self.X = estimator, X
        self.root: Any = None
        self.stopped = False
        if has_callbacks(estimator):
            from sklearn.callback import CallbackSupportMixin

            most = n_init * estimator.max_iter
            self.root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=most)
            self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def __call__(self, iteration: Iteration) -> bool:
        if self.root is None or not iteration.n_iter:
            return False
        parts = iteration.factors[1].T
        task = self.root.subcontext(task_name=f"iteration {iteration.n_iter}")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        self.stopped = task.call_on_fit_task_end(
            estimator=self.estimator,
            X=self.X,
            reconstruction_attributes=lambda: {"components_": parts.copy(), "n_components_": len(parts)},
        )
        return self.stopped

    def end(self) -> None:
        if self.root is not None:
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X)

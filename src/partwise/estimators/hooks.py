"""Callbacks of scikit-learn 1.9 and later.

They are imported only for a fit that uses them, because scikit-learn imports rich with them.
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
    """Stands in for scikit-learn's `CallbackSupportMixin`."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn callbacks, which are called after each iteration and can stop the fit."""
        from sklearn.callback import CallbackSupportMixin

        return CallbackSupportMixin.set_callbacks(self, *callbacks)


def has_callbacks(estimator: Any) -> bool:
    """Whether callbacks are set, by the user or by an enclosing meta-estimator."""
    return bool(getattr(estimator, "_skl_callbacks", None)) or hasattr(estimator, "_parent_callback_ctx")


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Like scikit-learn's decorator of this name: tear down the callbacks after ``method``, even after an error."""

    @wraps(method)
    def managed(estimator: Any, *args: Any, **options: Any) -> Any:
        if not has_callbacks(estimator):
            return method(estimator, *args, **options)
        from sklearn.callback import with_callbacks

        return with_callbacks(method)(estimator, *args, **options)

    return managed


class Hooks:
    """Calls the scikit-learn callbacks of an estimator, if any, after each iteration."""

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

"""scikit-learn's callbacks, where scikit-learn has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.loop import Iteration

__all__ = ["CallbackSupportMixin", "Hooks", "with_callbacks"]

try:  # scikit-learn ≥ 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Older scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Older scikit-learn has no callbacks."""
        return method


class Hooks:
    """scikit-learn's callbacks, told of each iteration when it is done; silent where none is set."""

    def __init__(self, estimator: Any, X: Any, n_init: int) -> None:
        self.estimator, self.X = estimator, X
        self.root: Any = None
        self.stopped = False
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.root = estimator._init_callback_context(max_subtasks=n_init * estimator.max_iter)
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

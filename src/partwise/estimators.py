"""scikit-learn's face: validates, calls, stores. No numerics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .ask import as_count, as_generator, warn_user
from .data import Data, as_data
from .factorize import Block, Callback, Iteration, Result, exact_relative_error, interrupts, solve_activations
from .metrics import explained
from .progress import progress_line
from .projections import hoyer_sparsity
from .recipes import DEFAULTS, RECIPES
from .statistics import Array, Stats, gram

try:  # scikit-learn ≥ 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Older scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Older scikit-learn has no callbacks."""
        return method


class SparseNMF(  # type: ignore[misc]
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Nonnegative matrix factorization whose parts have exactly the sparsity that you name.

    X ≈ activations · components_, all nonnegative, each component of unit norm and of the Hoyer sparsity asked for.
    (With ``activation_sparsity`` the activations have unit norm instead; with penalties and no sparsity, neither.)

    Parameters
    ----------
    n_components : int, default=10
        The number of parts.
    sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each part: 0 is flat, 1 is a single nonzero feature. A *tuple* is an interval, a
        *list* has one entry for each part. A part of sparsity s touches at least (√m − s(√m − 1))² of m features.
        None: no constraint.
    activation_sparsity : like ``sparsity``
        For each part's activations over the training samples. `transform` solves for each sample by itself, and
        therefore without this constraint, which binds all training samples together. With both sides sparse the recipe
        is "bisparse", and ``scaling_`` stands between them.
    recipe : str, default="ssnmf"
        The method: a function of `partwise.recipes`. A parameter that it does not take is refused.
    recipe_params : dict, optional
        Further parameters of the recipe, for example ``{"solver": "pivot"}`` or ``{"nonzeros": 5}``.
    l1, l2 : float, or a pair (on activations, on components), default=0
        Penalties l1·ΣF + ½·l2·‖F‖². One number is meant for the activations.
    init : {"samples", "random", "nndsvd", "gradual"} or (activations, components), optional
        Where the fit starts; by default what the recipe starts from.
    n_init : int, default=1
        Fits from as many starts; the best one is kept.
    max_iter : int, default=200
    tol : float, optional
        Stop when an iteration lowers the loss by no more than this share of it; by default the recipe's own (1e-4).
    max_time : float, optional
        Stop after as many seconds, for each start.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1: a progress line.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    sparsity_ : array of shape (n_components,)
        The achieved sparsity of each part (nan for a part that is zero: without ``sparsity``, or for X = 0).
    explained_ : array of shape (n_components,)
        Each part's share of ‖X‖²; they add up to what the model explains, 1 − (relative error)².
    reconstruction_err_ : float
        ‖X − activations · components_‖ (Frobenius).
    n_iter_ : int
    loss_curve_ : array
        ½‖X − model‖² plus penalties, at the start and after each iteration.
    stop_reason_ : str
        Why the fit stopped, in a sentence.
    scaling_ : array of shape (n_components, n_components)
        D, where the model is activations · D · components_ (only for recipes that have one).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    partwise.ssnmf : the same as a function, with the whole history.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> model = SparseNMF(16, sparsity=0.7, random_state=0)
    >>> activations = model.fit_transform(X)
    >>> activations.shape, float(abs(model.sparsity_ - 0.7).max()) < 1e-10
    ((1797, 16), True)
    """

    _encoder: Block | None = None  # nonnegative least squares, as long as no fit has said otherwise

    def __init__(
        self,
        n_components: int = 10,
        *,
        sparsity: Any = None,
        activation_sparsity: Any = None,
        recipe: str = "ssnmf",
        recipe_params: dict[str, Any] | None = None,
        l1: Any = 0.0,
        l2: Any = 0.0,
        init: Any = None,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float | None = None,
        max_time: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.activation_sparsity = activation_sparsity
        self.recipe = recipe
        self.recipe_params = recipe_params
        self.l1 = l1
        self.l2 = l2
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> SparseNMF:
        """Find the parts of X (samples × features, nonnegative)."""
        self.fit_transform(X)
        return self

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Find the parts of X, and return the activations of its samples."""
        X = self._validated(X, reset=True)
        data = as_data(X)
        best = min(self._fits(data, X), key=lambda result: float(result.losses[-1]))
        activations = self._store(best, data)
        if best.exhausted:
            fall = 1 - best.losses[-1] / best.losses[-2]
            warn_user(
                f"the loss still falls by {fall:.1e} of itself per iteration after max_iter={self.max_iter}: raise "
                "max_iter, or give a larger tol to accept this",
                ConvergenceWarning,
            )
        return activations

    def _fits(self, data: Data, X: Any) -> list[Result]:
        """One result for each start."""
        recipe, asked = self._recipe()
        rng = as_generator(self.random_state)
        n_init = as_count(self.n_init, "n_init")
        hooks = _Hooks(self, X, n_init)
        results: list[Result] = []
        with interrupts() as interrupted:
            while len(results) < n_init and not interrupted and not hooks.stopped:
                with ExitStack() as stack:
                    told: list[Callback] = [hooks]
                    if self.verbose:
                        count = f", start {len(results) + 1} of {n_init}" if n_init > 1 else ""
                        told.append(stack.enter_context(progress_line(f"SparseNMF{count}")))
                    results.append(
                        recipe(
                            data,
                            self.n_components,
                            **asked,
                            init=self.init,
                            max_iter=self.max_iter,
                            tol=self.tol,
                            max_time=self.max_time,
                            random_state=rng,
                            callback=lambda iteration, told=told: sum(bool(tell(iteration)) for tell in told) > 0,
                        )
                    )
        hooks.end()
        return results

    def _recipe(self) -> tuple[Callable[..., Result], dict[str, Any]]:
        """The recipe, and what it is asked for."""
        if not isinstance(self.recipe, str) or self.recipe not in RECIPES:
            raise ValueError(f"recipe={self.recipe!r} is not one of {', '.join(map(repr, RECIPES))}")
        if not isinstance(self.recipe_params, dict | None):
            raise ValueError(f"recipe_params={self.recipe_params!r}: give a dict of the recipe's parameters")
        both = self.sparsity is not None and self.activation_sparsity is not None
        recipe = RECIPES["bisparse" if both and self.recipe == "ssnmf" else self.recipe]
        own = set(inspect.signature(recipe).parameters) - set(DEFAULTS) - {"X", "n_components"}
        extra = self.recipe_params or {}
        allowed = own - set(self.get_params()) | {"kkt_tol"}
        unknown = set(extra) - allowed
        if unknown:
            raise ValueError(
                f"recipe_params has {', '.join(sorted(map(repr, unknown)))}, and {recipe.__name__} takes only "
                f"{', '.join(sorted(map(repr, allowed)))} there"
            )
        given = {name: getattr(self, name) for name in ("sparsity", "activation_sparsity")}
        given = {name: value for name, value in given.items() if value is not None}
        needed = {n for n, p in inspect.signature(recipe).parameters.items() if p.default is p.empty} - {
            "X",
            "n_components",
        }
        given |= {n: getattr(self, n) for n in ("l1", "l2") if n in needed or np.any(getattr(self, n))}
        if set(given) - own:
            why = " (taken because both sides are to be sparse)" if recipe.__name__ != self.recipe else ""
            raise ValueError(
                f"{', '.join(sorted(set(given) - own))} is not a parameter of {recipe.__name__}{why}, which takes "
                f"{', '.join(sorted(own))}"
            )
        missing = sorted(needed - set(given) - set(extra))
        if missing:
            where = "give it" if missing[0] in self.get_params() else "put it into recipe_params"
            raise ValueError(f"{recipe.__name__} needs {', '.join(missing)}: {where}")
        return recipe, given | extra

    def _store(self, result: Result, data: Data) -> Array:
        self.components_ = np.ascontiguousarray(result.components)
        self.n_components_ = len(self.components_)
        self.sparsity_ = np.asarray(hoyer_sparsity(self.components_, axis=1))
        self.n_iter_ = result.n_iter
        self.loss_curve_ = result.losses
        self.stop_reason_ = result.stop_reason
        self._encoder = result.encoder
        if result.middle is not None:
            self.scaling_ = result.middle
        elif hasattr(self, "scaling_"):
            del self.scaling_
        if result.encoder is not None:
            activations, stats = self._solve(data)
        else:
            activations = result.activations
            factors = [activations, np.asfortranarray(self._parts(), dtype=data.dtype)]
            stats = data.statistics(factors, [gram(f) for f in factors], 0)
        self.reconstruction_err_ = self._error(data, activations, stats) * float(np.sqrt(data.sqnorm))
        self.explained_ = explained(activations, stats)
        return np.ascontiguousarray(activations)

    def _parts(self) -> Array:
        """What activations are multiplied with (features × n_components)."""
        parts = self.components_.T
        if not hasattr(self, "scaling_"):
            return parts
        return parts @ self.scaling_.T.astype(parts.dtype)

    def _solve(self, data: Data) -> tuple[Array, Stats]:
        """The best activations for the parts, and their statistics."""
        return solve_activations(data, self._parts(), self._encoder)

    def _error(self, data: Data, activations: Array, stats: Stats) -> float:
        return exact_relative_error(data, [activations, self._parts()], stats.loss(activations))

    def transform(self, X: Any) -> Array:
        """The activations of the samples of X: nonnegative least squares for the parts, solved exactly."""
        check_is_fitted(self)
        return np.ascontiguousarray(self._solve(as_data(self._validated(X, reset=False)))[0])

    def inverse_transform(self, X: Any) -> Array:
        """The samples that activations stand for: activations · components_ (``scaling_`` between them, if any)."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, and there are {self.n_components_} components")
        return np.asarray(X @ self._parts().T)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of ‖X‖² that the parts explain, at best 1."""
        check_is_fitted(self)
        data = as_data(self._validated(X, reset=False))
        return 1 - self._error(data, *self._solve(data)) ** 2

    def sparse_components(self) -> sp.csr_array:
        """``components_`` as a sparse array, which for sparse parts is much smaller."""
        check_is_fitted(self)
        return sp.csr_array(self.components_)

    def _validated(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32], ensure_all_finite=False
        )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Hooks:
    """scikit-learn's callbacks, told of each iteration when it is done; silent where none is set."""

    def __init__(self, estimator: SparseNMF, X: Any, n_init: int) -> None:
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

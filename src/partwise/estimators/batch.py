"""SparseNMF: uses all samples in each iteration."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

from ..data import Chunked, Matrix, at_once
from ..engine.options import MAX_ITER, TABLE, with_options
from ..engine.result import Result
from ..engine.solving import Solved, SolvedInChunks, evaluated
from ..engine.starts import Init
from ..engine.validation import Penalty, Seed, Sparsity, as_count, as_known, as_penalty
from ..recipes import RECIPES
from ..recipes.ssnmf import Accelerate, Activations, Compress
from ..runtime.arrays import ArrayLike
from ..runtime.together import job_of
from ..statistics import Array
from .base import Parts, as_output
from .fits import CallbackSupport, Hooks, best_of_starts, warn_if_exhausted, with_callbacks

INNER = "recipe_params__"  # prefix of the recipe's own parameters in searches


@with_options
class SparseNMF(CallbackSupport, Parts):
    """Nonnegative matrix factorization whose components have exactly the sparsity you specify.

    X ≈ activations · components, both nonnegative. Each component has unit norm and the given Hoyer sparsity. With
    ``activation_sparsity`` the activations have unit norm instead. With penalties and no sparsity neither does.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    sparsity : None, float, (lo, hi), or a list of n_components of these
        Hoyer sparsity in [0, 1] of each component: 0 is flat, 1 is a single nonzero feature. A *tuple* is an interval,
        a *list* has one entry per component, None means no constraint. Different entries of a list are assigned to the
        components that they suit best, and the output keeps the order of the list. A component of sparsity s has at
        least (√m − s(√m − 1))² nonzeros among m features.
    activation_sparsity : like ``sparsity``
        Sparsity of each component's activations over the training samples. It does not apply in `transform`, which
        solves for each sample separately. If ``sparsity`` is given too, the recipe is "bisparse", and the model is
        activations · ``scaling_`` · components.
    recipe : str, default="ssnmf"
        The method: the name of its function, for example "nmfsc" for `partwise.nmfsc`.
    recipe_params : dict, optional
        Parameters that only this recipe has, for example ``{"solver": "pivot"}`` or ``{"nonzeros": 5}``. `set_params`
        and parameter searches can set them one by one, for example as ``recipe_params__nonzeros``.
    l1, l2 : float, or a pair (activations, components), default=0
        Penalties l1·ΣF + ½·l2·‖F‖². A single number applies to the activations.
    accelerate : {"auto", False}, default="auto"
        As in `ssnmf`: whether both factors are extrapolated, for fewer iterations. Other recipes do not use it.
    compress : {"auto", False}, default="auto"
        As in `ssnmf`: whether the first iterations are made on a low-rank X. Other recipes do not use it.
    activations : {"nonnegative", "simplex"}, default="nonnegative"
        With "simplex", the activations of each sample sum to 1, as the shares of a mixture do, also in `transform`. The
        components then carry the scale. For the recipe "ssnmf".
    max_activation : float, optional
        An upper bound of all activations, also in `transform`. Each component is scaled such that its largest
        activation in the last iteration is ``max_activation``. For ``fixed_components``, the bound is a constraint of
        the fit instead. For the recipe "ssnmf".
    n_init : int, default=1
        Number of starts, each limited to ``max_time`` seconds. They share passes over X, and the fit with the lowest
        loss is kept. Checkpoints need ``n_init=1``.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
    sparsity_ : array of shape (n_components,)
        Achieved sparsity of each component (nan for a zero component).
    explained_ : array of shape (n_components,)
        Share of ‖X‖² that each component explains. The shares add up to 1 − (relative error)². With the
        Kullback–Leibler divergence, they add up to `score`, in proportion to the sums of the components' entries.
    reconstruction_err_ : float
        ‖X − activations · components‖ (Frobenius) or, as in scikit-learn, √(2·divergence).
    seed_ : int or None
        The ``random_state`` that repeats the fit, drawn if none was given; None if a generator was given.
    n_iter_ : int
    loss_curve_ : array
        ½‖X − model‖² plus penalties, or the divergence, at the start and after each iteration; of a compressed fit,
        from its first iteration on X itself.
    time_curve_ : array
        Seconds since the start of the fit, for each entry of ``loss_curve_``.
    converged_ : bool
        Whether the components have settled; False if a limit ended the fit before.
    stop_reason_ : str
        Why the fit stopped.
    data_shape_ : tuple
        Shape of X, (samples, features).
    scaling_ : array of shape (n_components, n_components)
        D in activations · D · components, for recipes with such a factor.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    partwise.ssnmf : the same method as a function that returns the full history.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> model = SparseNMF(16, sparsity=0.7, random_state=0)
    >>> activations = model.fit_transform(X)
    >>> activations.shape, float(abs(model.sparsity_ - 0.7).max()) < 1e-10
    ((1797, 16), True)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        sparsity: Sparsity = None,
        activation_sparsity: Sparsity = None,
        recipe: str = "ssnmf",
        recipe_params: dict[str, object] | None = None,
        loss: str = "squared",
        l1: Penalty = 0.0,
        l2: Penalty = 0.0,
        fixed_components: ArrayLike | None = None,
        fixed_activations: ArrayLike | None = None,
        missing: str = "error",
        negative: str = "error",
        init: Init = "auto",
        n_init: int = 1,
        accelerate: Accelerate = "auto",
        compress: Compress = "auto",
        activations: Activations = "nonnegative",
        max_activation: float | None = None,
        max_iter: int = MAX_ITER,
        tol: float | None = None,
        max_time: float | None = None,
        n_threads: int | None = None,
        memory_limit: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        resume_from: str | os.PathLike[str] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.activation_sparsity = activation_sparsity
        self.recipe = recipe
        self.recipe_params = recipe_params
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.fixed_components = fixed_components
        self.fixed_activations = fixed_activations
        self.missing = missing
        self.negative = negative
        self.init = init
        self.n_init = n_init
        self.accelerate = accelerate
        self.compress = compress
        self.activations = activations
        self.max_activation = max_activation
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.n_threads = n_threads
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume_from = resume_from
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters as in scikit-learn, including those of the recipe, for example ``recipe_params__theta``."""
        params: dict[str, Any] = super().get_params(deep)
        inner = self.recipe_params if deep and isinstance(self.recipe_params, dict) else {}
        return params | {f"{INNER}{name}": value for name, value in inner.items()}

    def set_params(self, **params: object) -> Self:
        """Set parameters as in scikit-learn, including those of the recipe, for example ``recipe_params__theta``."""
        inner = {name.removeprefix(INNER): value for name, value in params.items() if name.startswith(INNER)}
        super().set_params(**{name: value for name, value in params.items() if not name.startswith(INNER)})
        if inner:  # a new dict, because the old one may be shared
            self.recipe_params = (self.recipe_params or {}) | inner
        return self

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        observed: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        feature_weight: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> SparseNMF:
        """Factorize X (samples × features, nonnegative). Entries where ``observed`` is False are missing.

        ``sample_weight``, ``feature_weight`` and ``weights`` (of all entries) are as in `ssnmf`.
        """
        self.fit_transform(
            X, observed=observed, sample_weight=sample_weight, feature_weight=feature_weight, weights=weights
        )
        return self

    @with_callbacks
    def fit_transform(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        observed: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        feature_weight: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Array:
        """Factorize X and return the activations of its samples."""
        data = self._validated(X, True, observed, (weights, sample_weight, feature_weight))
        recipe, options = self._recipe()
        n_init = as_count(self.n_init, "n_init")
        if n_init > 1 and (self.checkpoint is not None or self.resume_from is not None):
            raise ValueError(f"n_init={n_init} cannot be used with a checkpoint, which holds one fit: set n_init=1")
        hooks = Hooks(self, X, n_init)
        start = partial(job_of(recipe), data, self.n_components, **options)
        best = best_of_starts(self, start, at_once(data, as_count(self.n_components, "n_components")), hooks)
        hooks.end()
        activations = self._store(best, data)
        warn_if_exhausted(best)
        return activations

    def _recipe(self) -> tuple[Callable[..., Result], dict[str, Any]]:
        """The recipe and its parameters."""
        if not isinstance(self.recipe, str) or self.recipe not in RECIPES:
            raise ValueError(f"recipe={self.recipe!r} is not one of {', '.join(map(repr, RECIPES))}")
        if not isinstance(self.recipe_params, dict | None):
            raise ValueError(f"recipe_params={self.recipe_params!r} is not a dict of parameters")
        both = self.sparsity is not None and self.activation_sparsity is not None
        recipe = RECIPES["bisparse" if both and self.recipe == "ssnmf" else self.recipe]
        parameters = inspect.signature(recipe).parameters
        own = set(parameters) - set(TABLE) - {"X", "n_components"}
        extra = self.recipe_params or {}
        allowed = own - set(self.get_params()) | {"kkt_tol"}
        unknown = set(extra) - allowed
        if unknown:
            raise ValueError(
                f"recipe {recipe.__name__} does not accept {quoted(unknown)} in recipe_params, only {quoted(allowed)}"
            )
        given = {name: getattr(self, name) for name in ("sparsity", "activation_sparsity", "max_activation")}
        given = {name: value for name, value in given.items() if value is not None}
        needed = {n for n in own if parameters[n].default is inspect.Parameter.empty}
        given |= {n: getattr(self, n) for n in ("l1", "l2") if n in needed or any(as_penalty(getattr(self, n), n))}
        given |= {name: getattr(self, name) for name in ("accelerate", "compress") if name in own}
        usual = isinstance(self.activations, str) and self.activations == "nonnegative"
        given |= {} if usual else {"activations": self.activations}
        if set(given) - own:
            why = " (chosen because both factors are sparse)" if recipe.__name__ != self.recipe else ""
            raise ValueError(
                f"recipe {recipe.__name__}{why} does not accept {quoted(set(given) - own)}, only {quoted(own)}"
            )
        missing = needed - set(given) - set(extra)
        if missing:
            where = "" if missing <= set(self.get_params()) else ": pass it in recipe_params"
            raise ValueError(f"recipe {recipe.__name__} needs {quoted(missing)}{where}")
        return recipe, given | extra

    def _sparse_modes(self) -> list[int]:
        """The factors whose sparsity is shown during the fit: 0 for activations, 1 for components."""
        if (self.recipe_params or {}).get("side") == "activations":
            return [0]
        levels = (self.activation_sparsity, self.sparsity)
        return [mode for mode, level in enumerate(levels) if level is not None] or [1]

    def _store(self, result: Result, data: Matrix | Chunked) -> Array:
        self._store_parts(result.components)
        self.n_iter_ = result.n_iter
        self.loss_curve_, self.time_curve_ = result.losses, result.times
        self.data_shape_ = (int(data.shape[0]), int(data.shape[1]))
        self.converged_, self.stop_reason_, self.seed_ = result.converged, result.stop_reason, result.seed
        self._encoder = result.encoder
        if result.middle is not None:
            self.scaling_ = result.middle
        elif hasattr(self, "scaling_"):
            del self.scaling_
        if data.scales.hindered(result.encoder is not None and result.encoder.scalable):
            data = data.entrywise()
        if result.encoder is not None:
            size, kind = self.n_components_, data.dtype
            known = as_known(self.fixed_activations, size, data.shape[0], "fixed_activations", kind)
            guess = data.scales.times(result.factors[:2])[0]
            solved: Solved | SolvedInChunks = self._solve(data, known, guess)
        else:
            assert isinstance(data, Matrix)  # a method that couples the samples needs all of them in memory
            solved = evaluated(self._with_loss(data), self._parts(), result.activations)
        self.reconstruction_err_ = solved.error
        self.explained_ = solved.explained
        return as_output(data.scales.activations(solved.activations))


def quoted(names: Iterable[str]) -> str:
    """Names as an error message lists them."""
    return ", ".join(map(repr, sorted(names)))

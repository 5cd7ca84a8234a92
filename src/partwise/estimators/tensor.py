"""SparseCP: factorization of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from ..data import Tensor, as_tensor
from ..data.tensor import khatri_rao
from ..engine.blocks import Block
from ..engine.options import MAX_ITER, with_options
from ..engine.result import Result
from ..engine.validation import Seed, Sparsity
from ..projections import hoyer_sparsity
from ..recipes import cp, encode
from ..runtime.together import job_of
from ..statistics import Array
from .base import Saved, as_output
from .fits import best_of_starts, warn_if_exhausted


@with_options
class SparseCP(Saved, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nonnegative CP (PARAFAC) decomposition of a tensor, with exactly the sparsity you specify in any mode.

    X ≈ Σ_j weights_[j] · factors_[0][:, j] ∘ factors_[1][:, j] ∘ …, all nonnegative, all columns of unit norm. Mode 0
    is the samples.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    sparsity : dict {mode: float, (lo, hi), or a list of n_components of these}, optional
        Hoyer sparsity in [0, 1] of the columns of ``factors_[mode]``. In mode 0 it applies to the training samples
        only: `transform` solves for each sample separately.
    init : {"samples", "gradual", "random"}, a list with a factor for each mode, (weights, factors) or CPTensor
        Starting point; by default "gradual" with a sparsity, else "samples". See `partwise.cp`.
    n_init : int, default=1
        Number of starts, each limited to ``max_time`` seconds. The fit with the lowest loss is kept.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    factors_ : list of arrays of shape (length of the mode, n_components)
    weights_ : array of shape (n_components,)
    sparsity_ : dict {mode: array of shape (n_components,)}
        Achieved sparsity in each mode (nan for a zero column).
    reconstruction_err_, n_iter_, loss_curve_, converged_, stop_reason_
        As in `SparseNMF`.

    See Also
    --------
    partwise.cp : the same method as a function that returns the full history.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((20, 9, 10))
    >>> model = SparseCP(3, sparsity={1: 0.4}, random_state=0)
    >>> activations = model.fit_transform(X)
    >>> activations.shape, bool(abs(model.sparsity_[1] - 0.4).max() < 1e-10)
    ((20, 3), True)
    """

    _encoder: Block | None

    def __init__(
        self,
        n_components: int = 10,
        *,
        sparsity: Mapping[int, Sparsity] | None = None,
        init: Any = None,
        n_init: int = 1,
        max_iter: int = MAX_ITER,
        tol: float | None = None,
        max_time: float | None = None,
        n_threads: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: object = None) -> Self:
        """Factorize X (samples × … × …, nonnegative)."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Array:
        """Factorize X and return the activations of its samples."""
        data = as_tensor(X)
        start = partial(job_of(cp), data, self.n_components, sparsity=self.sparsity)
        best = best_of_starts(self, start, most=1)
        self._store(best, data)
        warn_if_exhausted(best)
        return as_output(self.factors_[0] * self.weights_.astype(data.dtype))

    def _sparse_modes(self) -> list[int]:
        """The modes whose sparsity is shown during the fit."""
        return list(self.sparsity) if isinstance(self.sparsity, dict) and self.sparsity else [1]

    def _store(self, result: Result, data: Tensor) -> None:
        assert result.weights is not None
        self.factors_, self.weights_ = list(result.factors), result.weights
        self.n_components_ = len(self.weights_)
        self.n_iter_ = result.n_iter
        self.loss_curve_ = result.losses
        self.converged_, self.stop_reason_, self.seed_ = result.converged, result.stop_reason, result.seed
        self._encoder = result.encoder
        error = result.relative_error
        if result.encoder is not None:  # the optimal activations, as in `transform`
            activations, error = encode(data, self.factors_[1:], result.encoder)
            self.weights_ = np.linalg.norm(activations.astype(float), axis=0)
            scale = np.where(self.weights_ > 0, self.weights_, 1)
            self.factors_[0] = activations / scale.astype(data.dtype)
        self.sparsity_ = sparsities(self.factors_)
        self.reconstruction_err_ = error * float(np.sqrt(data.sqnorm))

    def transform(self, X: Any) -> Array:
        """Activations of the samples of X: the exact solution of nonnegative least squares."""
        return as_output(self._solve(X)[0])

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Reconstruct samples from activations: a tensor with one slice per row of X."""
        check_is_fitted(self)
        activations = check_array(X, dtype=[np.float64, np.float32])
        n, r = activations.shape
        if r != self.n_components_:
            raise ValueError(f"X has {r} columns, but the model has {self.n_components_} components")
        rest = self.factors_[1:]
        return np.asarray(activations @ khatri_rao(rest).T).reshape(n, *map(len, rest))

    def score(self, X: Any, y: object = None) -> float:
        """Share of ‖X‖² that the model explains; at most 1."""
        return 1 - self._solve(X)[1] ** 2

    def _solve(self, X: Any) -> tuple[Array, float]:
        """The optimal activations of the samples of X, and the relative error."""
        check_is_fitted(self)
        data, wanted = as_tensor(X), tuple(map(len, self.factors_[1:]))
        if data.shape[1:] != wanted:
            raise ValueError(f"X has samples of shape {data.shape[1:]}, but the model expects shape {wanted}")
        return encode(data, self.factors_[1:], self._encoder)

    def plot(self, mode: int = 1, shape: Sequence[int] | None = None, **options: Any) -> Any:
        """Draw the columns of ``factors_[mode]`` with `partwise.plotting.gallery`, which takes the same options."""
        from ..plotting import gallery

        check_is_fitted(self)
        return gallery(self.factors_[mode].T, shape, **options)

    def to_tensorly(self) -> Any:
        """Copy the model to a tensorly `CPTensor` (NumPy backend)."""
        check_is_fitted(self)
        try:
            from tensorly.cp_tensor import CPTensor
        except ImportError:
            raise ImportError("to_tensorly needs tensorly: pip install 'partwise[tensors]'") from None
        return CPTensor((self.weights_.copy(), [f.copy() for f in self.factors_]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def sparsities(factors: Sequence[Array]) -> dict[int, Array]:
    """Sparsity of the columns of each factor."""
    return {mode: np.asarray(hoyer_sparsity(factor, axis=0)) for mode, factor in enumerate(factors)}

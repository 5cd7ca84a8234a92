"""What the estimators share: how X comes in, and all that only needs the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..ask import as_bytes, as_choice
from ..blocks import Block
from ..data import Data, as_data, is_lazy
from ..projections import hoyer_sparsity
from ..statistics import Array
from ..stream import Solved, SolvedInChunks, solve_activations
from ..updates import Known


class Parts(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that has found parts, ``components_``."""

    components_: Array
    n_components_: int
    _encoder: Block | None = None  # nonnegative least squares, as long as no fit has said otherwise

    def _store_parts(self, components: Array) -> None:
        self.components_ = np.array(components, order="C")
        self.n_components_ = len(self.components_)
        self.sparsity_ = np.asarray(hoyer_sparsity(self.components_, axis=1))

    def _parts(self) -> Array:
        """What activations are multiplied with (features × n_components)."""
        parts = self.components_.T
        if not hasattr(self, "scaling_"):
            return parts
        return parts @ self.scaling_.T.astype(parts.dtype)

    def _solve(self, data: Data, known: Known | None = None) -> Solved | SolvedInChunks:
        """The best activations for the parts, but for those that are known."""
        return solve_activations(data, self._parts(), self._encoder, known)

    def transform(self, X: Any, *, mask: Any = None) -> Array:
        """The activations of the samples of X: nonnegative least squares for the parts, solved exactly.

        With missing entries (``missing="em"``, or where ``mask`` is false) for what is observed of each sample; those
        of a sample that is missing altogether are zero.
        """
        check_is_fitted(self)
        return as_output(self._solve(self._validated(X, reset=False, mask=mask)).activations)

    def inverse_transform(self, X: Any) -> Array:
        """The samples that activations stand for: activations · components_ (``scaling_`` between them, if any)."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, and there are {self.n_components_} components")
        return np.asarray(X @ self._parts().T)

    def score(self, X: Any, y: Any = None, *, mask: Any = None) -> float:
        """The share of ‖X‖² (of what is observed) that the parts explain, at best 1."""
        check_is_fitted(self)
        return 1 - self._solve(self._validated(X, reset=False, mask=mask)).relative_error ** 2

    def sparse_components(self) -> sp.csr_array:
        """``components_`` as a sparse array, which for sparse parts is much smaller."""
        check_is_fitted(self)
        return sp.csr_array(self.components_)

    def _validated(self, X: Any, reset: bool, mask: Any = None) -> Data:
        """X as data; what is not in memory is left where it is."""
        limit = as_bytes(self.memory_limit, "memory_limit")
        missing = as_choice(self.missing, "missing", ("error", "em")) == "em"
        if not is_lazy(X):
            return as_data(
                validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse=("csr", "csc"),
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                ),
                missing=missing,
                mask=mask,
            )
        data = as_data(X, limit, missing, mask)
        if reset:
            self.n_features_in_ = data.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return data

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = self.missing == "em"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def as_output(activations: Any) -> Any:
    """Activations as users get them: rows contiguous, if they are an array."""
    return np.ascontiguousarray(activations) if isinstance(activations, np.ndarray) else activations

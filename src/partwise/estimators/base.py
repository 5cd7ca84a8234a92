"""What the estimators share: how X comes in, and all that only needs the parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..data import Chunked, Matrix, as_data, check_unmasked, is_lazy
from ..engine.blocks import Block
from ..engine.chunked_fit import Solved, SolvedInChunks, solve_activations
from ..engine.validation import as_bytes, as_choice
from ..projections import hoyer_sparsity
from ..statistics import Array, as_factor
from ..updates import Known
from .notebook import Shown

KEPT = ("activations_", "sample_names_", "part_shape_", "part_mask_")


class Saved:
    """An estimator that files can hold."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `partwise.load` reads: arrays and JSON, no pickle.

        What no file can hold, a generator as ``random_state`` for example, is left out; the file says so. The file is
        written whole or not at all.

        Examples
        --------
        >>> import tempfile, partwise
        >>> model = partwise.SparseNMF(2, sparsity=0.5).fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/parts.pw")
        ...     again = partwise.load(f"{folder}/parts.pw")
        >>> bool((again.components_ == model.components_).all())
        True
        """
        from .saved import save  # it knows all estimators

        check_is_fitted(self)
        save(self, path)


class Parts(Saved, Shown, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that has found parts, ``components_``."""

    components_: Array
    n_components_: int
    _encoder: Block | None = None  # nonnegative least squares, as long as no fit has said otherwise

    def _store_parts(self, components: Array) -> None:
        self.components_ = np.array(components, order="C")
        self.n_components_ = len(self.components_)
        self.sparsity_ = np.asarray(hoyer_sparsity(self.components_, axis=1))
        for name in KEPT:  # it belonged to other parts
            if hasattr(self, name):
                delattr(self, name)

    def _parts(self) -> Array:
        """What activations are multiplied with (features × n_components)."""
        parts = as_factor(self.components_.T)
        if not hasattr(self, "scaling_"):
            return parts
        return parts @ self.scaling_.T.astype(parts.dtype, order="F")

    def _solve(self, data: Matrix | Chunked, known: Known | None = None) -> Solved | SolvedInChunks:
        """The best activations for the parts, but for those that are known."""
        return solve_activations(data, self._parts(), self._encoder, known)

    def transform(self, X: Any, *, observed: Any = None) -> Array:
        """The activations of the samples of X: nonnegative least squares for the parts, solved exactly.

        With missing entries (``missing="em"``, or where ``observed`` is false) for what is known of each sample; those
        of a sample that is missing altogether are zero.
        """
        check_is_fitted(self)
        return as_output(self._solve(self._validated(X, reset=False, observed=observed)).activations)

    def inverse_transform(self, X: Any) -> Array:
        """The samples that activations stand for: activations · components_ (``scaling_`` between them, if any)."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, and there are {self.n_components_} components")
        return np.asarray(X @ self._parts().T)

    def score(self, X: Any, y: Any = None, *, observed: Any = None) -> float:
        """The share of ‖X‖² (of what is observed) that the parts explain, at best 1."""
        check_is_fitted(self)
        return 1 - self._solve(self._validated(X, reset=False, observed=observed)).relative_error ** 2

    def sparse_components(self) -> sp.csr_array:
        """``components_`` as a sparse array, which for sparse parts is much smaller."""
        check_is_fitted(self)
        return sp.csr_array(self.components_)

    def keep(
        self,
        activations: Any = None,
        sample_names: Sequence[str] | None = None,
        part_shape: Sequence[int] | None = None,
        part_mask: Any = None,
    ) -> Self:
        """Keep with the parts what pictures and reports can use, until the next fit; `save` stores it too.

        Parameters
        ----------
        activations : array of shape (samples, n_components), optional
            What ``fit_transform`` gave; kept as ``activations_``.
        sample_names : sequence of str, optional
            One for each sample; ``sample_names_``.
        part_shape : sequence of int, optional
            What a part looks like, (height, width) of an image for example; ``part_shape_``.
        part_mask : array of bool, optional
            Where in an image or a volume the features are, if they do not fill it; ``part_mask_``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from partwise import SparseNMF
        >>> model = SparseNMF(4, max_iter=5, tol=0).fit(load_digits().data)
        >>> model.keep(part_shape=(8, 8)).part_shape_
        (8, 8)
        """
        check_is_fitted(self)
        kept = {
            "activations_": None if activations is None else kept_activations(activations, self.n_components_),
            "sample_names_": None if sample_names is None else kept_names(sample_names),
            "part_shape_": None if part_shape is None else kept_shape(part_shape, self.components_.shape[1]),
            "part_mask_": None if part_mask is None else kept_mask(part_mask, self.components_.shape[1]),
        }
        new = {name: value for name, value in kept.items() if value is not None}
        rows, names = (new.get(name, getattr(self, name, None)) for name in ("activations_", "sample_names_"))
        if rows is not None and names is not None and len(rows) != len(names):
            raise ValueError(f"there are {len(names)} sample names and {len(rows)} samples with activations")
        for name, value in new.items():
            setattr(self, name, value)
        return self

    def plot(self, shape: Sequence[int] | None = None, **options: Any) -> Any:
        """A picture of the parts: `partwise.plotting.gallery` of this model, with its options.

        Examples
        --------
        >>> from partwise import SparseNMF
        >>> figure = SparseNMF(2, max_iter=5, tol=0).fit(np.eye(6)).plot((2, 3), title="two parts")
        >>> len(figure.axes)
        2
        """
        from ..plotting import gallery

        check_is_fitted(self)
        return gallery(self, shape, **options)

    def report(self, path: str | os.PathLike[str] | None = None, **options: Any) -> str:
        """Everything about the fit on one web page, written to ``path``: `partwise.report` of this model."""
        from ..pages import report

        check_is_fitted(self)
        return report(self, path, **options)

    def _validated(self, X: Any, reset: bool, observed: Any = None) -> Matrix | Chunked:
        """X as data; what is not in memory is left where it is."""
        check_unmasked(X)
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
                observed=observed,
            )
        data = as_data(X, limit, missing, observed)
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


def kept_activations(activations: Any, r: int) -> Array:
    """Activations to be kept, checked."""
    array = check_array(activations, dtype=[np.float64, np.float32], copy=True)
    if array.shape[1] != r:
        raise ValueError(f"activations have {array.shape[1]} columns, and there are {r} components")
    if array.min() < 0:
        raise ValueError(f"activations hold {array.min():g}: they cannot be negative")
    return np.ascontiguousarray(array)


def kept_names(names: Any) -> Array:
    """Names to be kept, as scikit-learn keeps those of features."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("names must be texts: give a list of them")
    array = np.empty(len(names), dtype=object)
    array[:] = list(names)
    return array


def kept_shape(shape: Any, m: int) -> tuple[int, ...]:
    """The shape of a part of ``m`` features, checked."""
    if not all(isinstance(n, int | np.integer) and n > 0 for n in shape) or np.prod(shape) != m:
        raise ValueError(f"part_shape={tuple(shape)} does not have as many entries as a part has features, {m}")
    return tuple(int(n) for n in shape)


def kept_mask(mask: Any, m: int) -> Array:
    """Where a part's ``m`` features are, checked."""
    array = np.asarray(mask)
    if array.dtype != bool or np.count_nonzero(array) != m:
        raise ValueError(f"part_mask must be true in as many places as a part has features, {m}")
    return array.copy()

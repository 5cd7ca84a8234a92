"""What the estimators share: validation of X, and methods that need only the components."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..data import Chunked, Matrix, as_data, check_kind, is_lazy, naming_columns, with_divergence
from ..engine.blocks import Block
from ..engine.names import check_unique, named, shared_places
from ..engine.origins import Brain
from ..engine.solving import Solved, SolvedInChunks, solve_activations
from ..engine.validation import as_bytes, as_choice, as_loss, as_missing, as_signed, warn_user
from ..projections import hoyer_sparsity
from ..runtime.arrays import ArrayLike, Sparse
from ..statistics import Array, as_factor
from ..updates import Known
from .attached import Attached
from .notebook import Shown

if TYPE_CHECKING:  # Dask is optional
    import dask.array as da


class Saved:
    """Adds `save` to an estimator."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a file for `partwise.load`: arrays and JSON, no pickle.

        Parameters that cannot be stored, such as a generator as ``random_state``, are left out and listed in the file.
        An existing file is replaced only when the new one is complete.

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
        from .saved import save  # imports all estimators

        check_is_fitted(self)
        save(self, path)


class Parts(Saved, Shown, Attached, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator with ``components_``."""

    components_: Array
    n_components_: int
    _encoder: Block | None = None  # None: nonnegative least squares

    def _store_parts(self, components: Array) -> None:
        self.components_ = np.array(components, order="C")
        self.n_components_ = len(self.components_)
        self.sparsity_ = np.asarray(hoyer_sparsity(self.components_, axis=1))
        self._forget()

    def _parts(self) -> Array:
        """The factor that activations are multiplied by (features × n_components)."""
        parts = as_factor(self.components_.T)
        if not hasattr(self, "scaling_"):
            return parts
        return parts @ self.scaling_.T.astype(parts.dtype, order="F")

    def _solve(
        self, data: Matrix | Chunked, known: Known | None = None, guess: Array | None = None
    ) -> Solved | SolvedInChunks:
        """The optimal activations, except those that are fixed; of X as it is scaled."""
        parts = data.scales.parts(self._parts())
        return solve_activations(self._with_loss(data), parts, self._encoder, known, guess)

    def _with_loss(self, data: Matrix | Chunked) -> Any:
        """X with the loss of the model."""
        return with_divergence(data) if as_loss(self.loss) else data

    def transform(self, X: ArrayLike, *, observed: ArrayLike | None = None, align: str | None = None) -> Array:
        """Activations of the samples of X: the exact solution of nonnegative least squares.

        With the Kullback–Leibler divergence, they minimise the divergence (no entry would change by more than 1e-10).

        If entries are missing (``missing="em"``, or ``observed`` is False), only the observed ones are used. A sample
        without any observed entry has zero activations; with ``activations="simplex"``, where they sum to 1, it has
        equal ones.

        ``align="names"`` is for another data set (a DataFrame, AnnData or table with names): its features are matched
        by name, in any order, and only those that the model also has are used. A warning says how many features of the
        model X lacks.
        """
        check_is_fitted(self)
        if align is not None:
            as_choice(align, "align", ("names",))
            if observed is not None:
                raise ValueError("observed= cannot be used with align: mark missing entries by NaN and missing='em'")
            return as_output(self._solve_aligned(X).activations)
        return as_output(self._solve(self._validated(X, reset=False, observed=observed)).activations)

    def _solve_aligned(self, X: Any) -> Solved | SolvedInChunks:
        """Activations from the features that X and the model both have."""
        matrix, _, names = named(X)
        own = getattr(self, "feature_names_in_", None)
        for whose, known in (("the model", own), ("X", names)):
            if known is None:
                raise ValueError(
                    f"align='names' needs feature names, but {whose} has none: fit and transform DataFrames or AnnData"
                )
        assert own is not None
        assert names is not None
        here, there = shared_places(own, names)
        if len(here) < len(own):
            warn_user(f"X has {len(here)} of the {len(own)} features of the model: only these are used", UserWarning)
        if is_lazy(matrix):
            raise ValueError("align='names' needs X in memory: load it, or select the features of the model")
        sparse = sp.issparse(matrix)
        some = (matrix.tocsc() if sparse else np.asarray(matrix))[:, there]
        missing = as_missing(self.missing)
        data = as_data(some, missing=missing, signed=self.negative == "allow")
        return solve_activations(self._with_loss(data), self._parts()[here], self._encoder)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Reconstruct samples from activations: activations · components (with ``scaling_`` between them, if any)."""
        check_is_fitted(self)
        activations: Array | Sparse = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
        if activations.shape[1] != self.n_components_:
            raise ValueError(f"X has {activations.shape[1]} columns, but the model has {self.n_components_} components")
        return np.asarray(activations @ self._parts().T)

    def score(self, X: ArrayLike, y: object = None, *, observed: ArrayLike | None = None) -> float:
        """Share of ‖X‖² (observed entries only) that the model explains; at most 1.

        With the Kullback–Leibler divergence: 1 − divergence / divergence of the features' means, which is the explained
        share of the deviance.
        """
        check_is_fitted(self)
        return 1 - self._solve(self._validated(X, reset=False, observed=observed)).relative_error ** 2

    def sparse_components(self) -> sp.csr_array:
        """``components_`` as a scipy sparse array."""
        check_is_fitted(self)
        return sp.csr_array(self.components_)

    @property
    def components_img_(self) -> Any:
        """The components as one 4-D image, if the samples were NIfTI images (see ``origin`` in `keep`)."""
        origin = getattr(self, "origin_", None)
        if not isinstance(origin, Brain):
            raise AttributeError(f"{type(self).__name__} has no components_img_: its samples were not NIfTI images")
        return origin.image(self.components_)

    def plot(self, shape: Sequence[int] | None = None, **options: Any) -> Any:
        """Draw the components with `partwise.plotting.gallery`, which takes the same options.

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
        """Write an HTML report about the fit to ``path``, see `partwise.report`."""
        from ..pages import report

        check_is_fitted(self)
        return report(self, path, **options)

    def _validated(
        self,
        X: ArrayLike,
        reset: bool,
        observed: ArrayLike | None = None,
        weights: Sequence[ArrayLike | None] = (None, None, None),
    ) -> Matrix | Chunked:
        """Validate X. Data on disk are not loaded."""
        check_kind(X)
        if hasattr(X, "columns"):  # a data frame
            check_unique([str(name) for name in X.columns], "X")
        limit = as_bytes(self.memory_limit, "memory_limit")
        missing = as_missing(self.missing)
        signed = as_signed(self.negative)
        if not is_lazy(X):
            features = None if reset else getattr(self, "n_features_in_", None)
            with hinting_transposed(X, features), naming_columns(X):
                array = validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse=("csr", "csc"),
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                )
            return as_data(array, missing=missing, observed=observed, signed=signed, weights=weights)
        data = as_data(X, limit, missing, observed, signed, weights)
        if reset:
            self.n_features_in_ = data.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif data.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                f"features as input{transposed_hint(data.shape, self.n_features_in_)}"
            )
        return data

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.negative != "allow"
        tags.input_tags.allow_nan = self.missing == "em"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@contextmanager
def hinting_transposed(X: Any, features: int | None) -> Iterator[None]:
    """Add to scikit-learn's errors about the number of features that X seems to be transposed."""
    try:
        yield
    except ValueError as error:
        hint = transposed_hint(np.shape(X), features)
        if hint and "features" in str(error):
            raise ValueError(f"{error}{hint}") from error
        raise


def transposed_hint(shape: tuple[int, ...], features: int | None) -> str:
    """A hint for X with as many rows as the model has features."""
    fits = len(shape) == 2 and shape[0] == features != shape[1]
    return "; it has as many rows: X seems to be transposed, pass X.T (samples × features)" if fits else ""


def as_output(activations: Array | da.Array) -> Array | da.Array:
    """Activations to return to the user: in C order, if they are an array."""
    return np.ascontiguousarray(activations) if isinstance(activations, np.ndarray) else activations

"""Sparse matrices that store the observed entries. The others are missing, not zero.

The cost is proportional to the number of observed entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import ArrayLike, Sparse
from ..runtime.compiled import kernel
from ..runtime.threads import in_parts
from ..statistics import Array, Stats, inner
from .dense import DenseData
from .matrix import Matrix
from .missing import Missing, MissingDense
from .products import LEAST, add, add_in_parts, dot, padded_rows
from .protocols import Which
from .sparse import SparseData


class MissingSparse(Missing, SparseData):
    """A sparse matrix that stores the observed entries, including zeros. Entries that are not stored are missing."""

    def subset(self, which: Which, features: Which = slice(None)) -> MissingSparse:
        return MissingSparse(self.matrix[which][:, features], check=False, signed=self.signed)

    def _residuals(self, factors: Sequence[Array]) -> Array:
        """x − model at every stored entry x."""
        left, right = self._rows(factors)
        residuals = np.empty_like(self.matrix.data)
        in_parts(partial(stored_residuals, *self.stored, left, right, residuals), self.shape[0], LEAST)
        return residuals

    def _rows(self, factors: Sequence[Array]) -> tuple[Array, Array]:
        left, right = factors
        return padded_rows(left.astype(self.dtype, copy=False)), padded_rows(right.astype(self.dtype, copy=False))

    def residual(self, factors: Sequence[Array]) -> sp.csr_array:
        """Return R, with the sparsity pattern of X."""
        return sp.csr_array((self._residuals(factors), self.matrix.indices, self.matrix.indptr), shape=self.shape)

    def visit(self, factors: Sequence[Array], mode: int, out: Array) -> float:
        """Write R·rest to ``out`` and return ‖R‖²."""
        left, right = self._rows(factors)
        add_rows = partial(residual_products, *self.stored, left, right, mode == 0)
        return float(sum(add_in_parts(add_rows, self.shape[0], mode == 1, out)))

    def completed(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> tuple[Stats, float]:
        own, other = factors[mode], grams[1 - mode]
        cross = self.product_array(mode, own.shape[1])
        squares = self.visit(factors, mode, cross)
        sqnorm = squares + 2 * inner(own, cross) + float(np.vdot(grams[mode], other))
        cross += (other.astype(self.dtype) @ own.T).T
        return Stats(cross, other, sqnorm), 0.5 * squares

    def observed(self, which: Array) -> Array:
        seen = np.zeros((len(which), self.shape[1]), dtype=bool)
        for row, i in zip(seen, which, strict=True):
            row[self.matrix.indices[self.matrix.indptr[i] : self.matrix.indptr[i + 1]]] = True
        return seen

    def digests(self) -> list[bytes]:
        indices, starts = self.matrix.indices, self.matrix.indptr
        rows = (indices[a:b].tobytes() for a, b in pairwise(starts))
        return [blake2b(row, digest_size=16).digest() for row in rows]

    def counts(self, mode: int) -> Array:
        if mode == 0:
            return np.diff(self.matrix.indptr)
        return np.bincount(self.matrix.indices, minlength=self.shape[1])

    def observed_values(self, which: Array, features: Array) -> Array:
        starts = self.matrix.indptr[which]
        return self.matrix.data[starts[:, None] + np.arange(len(features))]

    def squared_error(self, factors: Sequence[Array]) -> float:
        return float(np.square(self._residuals(factors), dtype=float).sum())

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        return SparseData(self.residual(factors), check=False).summed_squares(mode)

    def residuals(self, factors: Sequence[Array], mode: int, which: Array) -> Array:
        return SparseData(self.residual(factors), check=False).vectors(mode, which)

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        return SparseData(self.residual(factors), check=False).times(vectors[0], mode)

    def vectors(self, mode: int, which: Array) -> Array:
        """Return samples or features as columns, with missing entries replaced by the feature's mean."""
        if mode == 0:
            return np.asfortranarray(np.where(self.observed(which), self.matrix[which].toarray(), self.means).T)
        seen = sp.csr_array((np.ones_like(self.matrix.data), self.matrix.indices, self.matrix.indptr), self.shape)
        values = self.matrix[:, which].toarray()
        return np.asfortranarray(np.where(seen[:, which].toarray() > 0, values, self.means[which]))


def as_observed(X: Array | Sparse, observed: ArrayLike, missing: bool, signed: bool = False) -> Matrix:
    """Return X as data whose entries are missing where ``observed`` is false and, with ``missing``, where X is NaN.

    Values of missing entries are ignored. The data is dense if both X and ``observed`` are, and sparse otherwise.
    """
    observed = observed if sp.issparse(observed) else np.asarray(observed)
    check_observed(observed, X.shape)
    if not sp.issparse(X) and not sp.issparse(observed):
        seen = observed.astype(bool, order="F" if np.isfortran(X) else "C")  # the layout of X: a pass reads both
        if missing and X.dtype.kind == "f":
            seen &= ~np.isnan(X)
        return DenseData(X, signed=signed) if seen.all() else MissingDense(X, seen, signed=signed)
    pattern = sp.csr_array(observed, dtype=bool, copy=True)
    pattern.sum_duplicates()
    pattern.eliminate_zeros()
    if pattern.nnz == X.shape[0] * X.shape[1]:
        if sp.issparse(X):
            return SparseData(X, signed=signed)
        return as_observed(X, np.ones(X.shape, dtype=bool), missing, signed)
    rows, columns = np.repeat(np.arange(X.shape[0]), np.diff(pattern.indptr)), pattern.indices
    found = stored_at(X, rows, columns) if sp.issparse(X) else X[rows, columns]
    if missing and found.dtype.kind == "f":
        seen = ~np.isnan(found)
        found, rows, columns = found[seen], rows[seen], columns[seen]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    return MissingSparse(sp.csr_array((found, columns, starts), shape=X.shape), signed=signed)


def check_observed(observed: Array | Sparse, shape: tuple[int, ...]) -> None:
    """Raise ValueError if ``observed`` is not a boolean mask of X's shape."""
    if observed.shape != shape:
        raise ValueError(f"observed has shape {observed.shape} and X has {shape}: give a mask of the shape of X")
    values = observed.tocsr().data if hasattr(observed, "tocsr") else observed
    if values.dtype != bool and (values.dtype.kind not in "uif" or not np.isin(values, (0, 1)).all()):
        raise ValueError("observed has values other than 0 and 1: give True where X is observed, False elsewhere")


def stored_at(X: Sparse, rows: Array, columns: Array) -> Array:
    """The entries of a sparse matrix at the given rows and columns. Entries that are not stored are zero."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if not X.nnz:
        return np.zeros(len(rows), dtype=X.dtype)
    width = np.int64(X.shape[1])
    keys = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)) * width + X.indices
    wanted = rows * width + columns
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, X.data[places], X.dtype.type(0))


@kernel
def stored_residuals(
    values: Array, indices: Array, starts: Array, left: Array, right: Array, residuals: Array, first: int, end: int
) -> None:
    """residuals ← x − model at every stored entry x, for rows from ``first`` to ``end``."""
    for i in range(first, end):
        for e in range(starts[i], starts[i + 1]):
            residuals[e] = values[e] - dot(left[i], right[indices[e]])


@kernel
def residual_products(
    values: Array,
    indices: Array,
    starts: Array,
    left: Array,
    right: Array,
    by_rows: bool,
    out: Array,
    first: int,
    end: int,
) -> float:
    """Add R·right or Rᵀ·left to ``out`` and return ‖R‖², for rows of X from ``first`` to ``end``.

    R, the residual at the stored entries, is never formed.
    """
    total = 0.0
    for i in range(first, end):
        for e in range(starts[i], starts[i + 1]):
            j = indices[e]
            residual = values.dtype.type(values[e] - dot(left[i], right[j]))
            total += np.float64(residual) * np.float64(residual)
            if by_rows:
                add(out[i], residual, right[j])
            else:
                add(out[j], residual, left[i])
    return total

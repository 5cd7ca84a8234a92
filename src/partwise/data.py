"""Whatever holds X, and the only code that touches it.

Each kind of data answers the same few questions; `as_data` finds the kind. X is samples × features, everywhere:
``factors[0]`` are the activations (samples × r), ``factors[1]`` the parts (features × r): X ≈ factors[0] factors[1]ᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .compiled import kernel, reduction
from .statistics import Array, Stats

CHUNK_ENTRIES = 2**18  # of the largest temporary that a pass over X may make


class Data(Protocol):
    """What the loop and the starts may ask of X."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def sqnorm(self) -> float:
        """‖X‖²."""
        ...

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        """The statistics of ``factors[mode]``, given the Gram matrix of every factor.

        The arrays belong to the data: the next call for the same mode overwrites them.
        """
        ...

    def squared_error(self, factors: Sequence[Array]) -> float:
        """‖X − model‖², from the residual itself: exact where the statistics cancel."""
        ...

    def times(self, vector: Array, mode: int) -> Array:
        """X·vector (mode 0: one number a sample) or Xᵀ·vector (mode 1: one a feature), in double precision."""
        ...

    def vectors(self, mode: int, which: Array) -> Array:
        """Samples (mode 0) or features (mode 1) of X, as the columns of a dense array."""
        ...

    def sqnorms(self, mode: int) -> Array:
        """‖·‖² of each sample (mode 0) or feature (mode 1)."""
        ...

    matrix: Any  # X, for linear algebra that takes arrays and scipy's sparse matrices (a start's truncated SVD)


def as_data(X: Any) -> Data:
    """X as data: arrays (float32 and float64 kept, other numbers as float64) or scipy sparse, checked.

    Raises ValueError for what no factorization can use: not two-dimensional, empty, NaN, infinite or negative.
    """
    if isinstance(X, DenseData | SparseData):
        return X
    return SparseData(X) if sp.issparse(X) else DenseData(X)


class _Matrix:
    """What dense and sparse matrices share."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    matrix: Any

    def __init__(self) -> None:
        if len(self.shape) != 2 or not all(self.shape):
            raise ValueError(f"X has shape {self.shape}: give samples × features, at least one of each")
        self._cross: dict[int, Array] = {}

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        rest = factors[1 - mode]
        shape = (self.shape[mode], rest.shape[1])
        if mode not in self._cross or self._cross[mode].shape != shape:
            self._cross[mode] = np.empty(shape, dtype=self.dtype, order="F")
        self.multiply(rest, mode, self._cross[mode])
        return Stats(self._cross[mode], grams[1 - mode], self.sqnorm)

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        raise NotImplementedError

    def times(self, vector: Array, mode: int) -> Array:
        return np.asarray((self.matrix.T if mode else self.matrix) @ vector.astype(self.dtype), dtype=float)

    @cached_property
    def sqnorm(self) -> float:
        return float(self.sqnorms(0).sum())

    def sqnorms(self, mode: int) -> Array:
        return self._sqnorms_of_features if mode else self._sqnorms_of_samples

    @cached_property
    def _sqnorms_of_samples(self) -> Array:
        raise NotImplementedError

    @cached_property
    def _sqnorms_of_features(self) -> Array:
        raise NotImplementedError


class DenseData(_Matrix):
    """A dense array, in C or Fortran order; other strides are copied once."""

    def __init__(self, X: Any) -> None:
        if np.ma.isMaskedArray(X):
            raise ValueError("X is a masked array, whose mask would be lost: fill or remove what is masked")
        array = np.asarray(X)
        if array.dtype.kind not in "buifO":
            raise ValueError(f"X has dtype {array.dtype}: give real numbers. Complex data not supported")
        array = array.astype(array.dtype if array.dtype in (np.float32, np.float64) else np.float64, copy=False)
        if array.ndim == 2 and not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        self.matrix, self.shape, self.dtype = array, array.shape, array.dtype
        super().__init__()
        check_values(array.min(), array.max(), self.dtype, self._offenders)

    def _offenders(self) -> tuple[int, int, float]:
        for rows in self._chunks():
            bad = np.argwhere(~(np.isfinite(self.matrix[rows]) & (self.matrix[rows] >= 0)))
            if len(bad):
                i, j = int(bad[0, 0]) + rows.start, int(bad[0, 1])
                return i, j, float(self.matrix[i, j])
        raise AssertionError("unreachable: the least or the largest value is bad")

    def _chunks(self) -> list[slice]:
        step = max(1, CHUNK_ENTRIES // self.shape[1])
        return [slice(i, min(i + step, self.shape[0])) for i in range(0, self.shape[0], step)]

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        np.matmul(rest.T, self.matrix if mode else self.matrix.T, out=out.T)

    def squared_error(self, factors: Sequence[Array]) -> float:
        activations, parts = (np.asarray(f, dtype=self.dtype) for f in factors)
        total = 0.0
        for rows in self._chunks():
            residual = activations[rows] @ parts.T
            np.subtract(self.matrix[rows], residual, out=residual)
            total += float(square_sums(residual).sum())
        return total

    def vectors(self, mode: int, which: Array) -> Array:
        return np.array((self.matrix if mode else self.matrix.T)[:, which], order="F")

    @cached_property
    def _sqnorms_of_samples(self) -> Array:
        return np.concatenate([square_sums(np.ascontiguousarray(self.matrix[rows])) for rows in self._chunks()])

    @cached_property
    def _sqnorms_of_features(self) -> Array:
        total = np.zeros(self.shape[1])
        for rows in self._chunks():
            total += np.square(self.matrix[rows], dtype=float).sum(axis=0)
        return total


class SparseData(_Matrix):
    """A scipy sparse matrix or array, CSR or CSC (others are converted to CSR), never made dense."""

    def __init__(self, X: Any) -> None:
        if X.dtype.kind not in "buif":
            raise ValueError(f"X has dtype {X.dtype}: give real numbers. Complex data not supported")
        self.shape = X.shape
        super().__init__()
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        X = X.astype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64, copy=False)
        if not X.has_canonical_format:  # entries stored twice mean their sum
            X = X.copy()
            X.sum_duplicates()
        self.matrix, self.dtype = X, X.dtype
        if X.data.size:
            check_values(X.data.min(), X.data.max(), self.dtype, self._offenders)

    def _offenders(self) -> tuple[int, int, float]:
        where = int(np.flatnonzero(~(np.isfinite(self.matrix.data) & (self.matrix.data >= 0)))[0])
        outer = int(np.searchsorted(self.matrix.indptr, where, side="right")) - 1
        inner = int(self.matrix.indices[where])
        i, j = (outer, inner) if self.matrix.format == "csr" else (inner, outer)
        return i, j, float(self.matrix.data[where])

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        out[...] = (self.matrix.T if mode else self.matrix) @ np.ascontiguousarray(rest)

    def squared_error(self, factors: Sequence[Array]) -> float:
        by_rows = self.matrix if self.matrix.format == "csr" else self.matrix.T
        outer, inner = factors if self.matrix.format == "csr" else reversed(factors)
        step = max(1, CHUNK_ENTRIES // by_rows.shape[1])
        total = 0.0
        for i in range(0, by_rows.shape[0], step):
            residual = by_rows[i : i + step].toarray() - outer[i : i + step] @ inner.T
            total += float(square_sums(residual).sum())
        return total

    def vectors(self, mode: int, which: Array) -> Array:
        chosen = self.matrix[:, which] if mode else self.matrix[which].T
        return np.asfortranarray(chosen.toarray())

    @cached_property
    def _sqnorms_of_samples(self) -> Array:
        return self._sqnorms_along("csr")

    @cached_property
    def _sqnorms_of_features(self) -> Array:
        return self._sqnorms_along("csc")

    def _sqnorms_along(self, kind: str) -> Array:
        X = self.matrix
        if X.format == kind:
            return stored_square_sums(X.data, X.indptr)
        return scattered_square_sums(X.data, X.indices, self.shape[0 if kind == "csr" else 1])


def check_values(least: float, largest: float, dtype: np.dtype[Any], find: Any) -> None:
    """Refuse NaN, infinite and negative values, naming the first (``find`` gives its row, column and value).

    And a scale at which products of four entries leave the range of ``dtype``.
    """
    if np.isfinite(least) and np.isfinite(largest) and least >= 0:
        limit = float(np.finfo(dtype).max) ** 0.4
        if largest > limit or 0 < largest < 1 / limit:
            raise ValueError(
                f"the largest value of X is {largest:g}, and {dtype} can work with {1 / limit:.0e} to {limit:.0e}: "
                "rescale X"
            )
        return
    i, j, value = find()
    if np.isnan(value):
        raise ValueError(f"Input X contains NaN, first at row {i}, column {j}: remove or impute missing values")
    if np.isinf(value):
        raise ValueError(f"Input X contains infinity, first at row {i}, column {j}: replace or remove it")
    raise ValueError(
        f"Negative values in data passed to partwise: X[{i}, {j}] is {value:g}, and a sum of nonnegative parts "
        "cannot be negative; shift or clip the data"
    )


@reduction
def square_sums(rows: Any) -> Any:
    """The sum of squares of each row, in double precision."""
    sums = np.zeros(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += np.float64(rows[i, j]) * np.float64(rows[i, j])
        sums[i] = total
    return sums


@reduction
def stored_square_sums(values: Any, starts: Any) -> Any:
    """The sum of squares of each compressed row or column."""
    sums = np.zeros(starts.size - 1)
    for i in range(sums.size):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += np.float64(values[e]) * np.float64(values[e])
        sums[i] = total
    return sums


@kernel
def scattered_square_sums(values: Any, indices: Any, size: int) -> Any:
    """The same across the compressed direction."""
    sums = np.zeros(size)
    for e in range(values.size):
        sums[indices[e]] += np.float64(values[e]) * np.float64(values[e])
    return sums

"""scipy's sparse matrices and arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiled import kernel, reduction
from ..statistics import Array
from .matrix import CHUNK_ENTRIES, Matrix, check_values, square_sums


class SparseData(Matrix):
    """A scipy sparse matrix or array, CSR or CSC (others are converted to CSR), never made dense."""

    def __init__(self, X: Any, check: bool = True) -> None:
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
        if check:
            self.check()

    def check(self) -> None:
        if self.matrix.data.size:
            check_values(self.matrix.data.min(), self.matrix.data.max(), self.dtype, self._offenders)

    def subset(self, which: Array) -> SparseData:
        return SparseData(self.matrix[which], check=False)

    def _offenders(self) -> tuple[int, int, float]:
        where = int(np.flatnonzero(~(np.isfinite(self.matrix.data) & (self.matrix.data >= 0)))[0])
        outer = int(np.searchsorted(self.matrix.indptr, where, side="right")) - 1
        inner = int(self.matrix.indices[where])
        i, j = (outer, inner) if self.matrix.format == "csr" else (inner, outer)
        return i + self.first, j, float(self.matrix.data[where])

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

    def ratios(self, left: Array, right: Array, mode: int) -> Array:
        X, by_rows = self.matrix, self.matrix.format == "csr"
        outer, inner = (left, right) if by_rows else (right, left)
        out = np.zeros((self.shape[mode], right.shape[1]), dtype=self.dtype)
        rows = (np.ascontiguousarray(outer), np.ascontiguousarray(inner))
        stored_ratios(X.data, X.indices, X.indptr, *rows, self.floor, out, by_rows == (mode == 0))
        return np.asfortranarray(out)

    def divergence(self, left: Array, right: Array) -> float:
        X = self.matrix
        outer, inner = (left, right) if X.format == "csr" else (right, left)
        rows = (np.ascontiguousarray(outer), np.ascontiguousarray(inner))
        stored = stored_divergence(X.data, X.indices, X.indptr, *rows, self.floor)
        return float(stored + left.sum(axis=0, dtype=float) @ right.sum(axis=0, dtype=float))

    def vectors(self, mode: int, which: Array) -> Array:
        chosen = self.matrix[:, which] if mode else self.matrix[which].T
        return np.asfortranarray(chosen.toarray())

    def summed_squares(self, mode: int) -> Array:
        X = self.matrix
        if X.format == ("csr", "csc")[mode]:
            return stored_square_sums(X.data, X.indptr)
        return scattered_square_sums(X.data, X.indices, self.shape[mode])


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


@kernel
def stored_ratios(
    values: Any, indices: Any, starts: Any, outer: Any, inner: Any, floor: float, out: Any, outward: bool
) -> None:
    """Add (x / model)·inner_j to out_i for every stored entry x at (i, j), or (x / model)·outer_i to out_j."""
    r = outer.shape[1]
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            j = indices[e]
            ratio = values[e] / max(dot(outer[i], inner[j]), floor)
            if outward:
                for a in range(r):
                    out[i, a] += ratio * inner[j, a]
            else:
                for a in range(r):
                    out[j, a] += ratio * outer[i, a]


@kernel
def stored_divergence(values: Any, indices: Any, starts: Any, outer: Any, inner: Any, floor: float) -> float:
    """Σ x·log(x / model) − x over the stored entries."""
    total = 0.0
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            x = np.float64(values[e])
            if x > 0:
                model = max(np.float64(dot(outer[i], inner[indices[e]])), floor)
                total += x * math.log(x / model) - x
    return total


@reduction
def dot(a: Any, b: Any) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total

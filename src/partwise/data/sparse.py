"""SciPy sparse matrices and arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial, reduce

import numpy as np

from ..runtime.arrays import Sparse
from ..runtime.compiled import kernel, loop
from ..runtime.threads import in_parts
from ..statistics import Array
from .matrix import CHUNK_ENTRIES, Matrix, check_scale, check_values, precision, square_sums
from .protocols import Which

LEAST = 256  # compressed rows per thread, at least


class SparseData(Matrix):
    """A SciPy sparse matrix or array in CSR or CSC format (others are converted to CSR). It is never made dense."""

    def __init__(self, X: Sparse, check: bool = True) -> None:
        self.shape, self.dtype = X.shape, precision(X.dtype)
        super().__init__()
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        X = X.astype(self.dtype, copy=False)
        aligned = all(array.flags.aligned for array in (X.data, X.indices, X.indptr))  # as in `as_floats`
        if not (aligned and X.has_canonical_format):  # duplicate entries are summed
            X = X.copy()
            X.sum_duplicates()
        self.matrix = X
        if check:
            self.check()
            check_scale(self.peak, self.dtype)

    def check(self) -> None:
        if self.matrix.data.size:
            check_values(self.matrix.data.min(), self.peak, self._offenders)

    def subset(self, which: Which, features: Which = slice(None)) -> SparseData:
        return SparseData(self.matrix[which][:, features], check=False)

    def _offenders(self) -> tuple[int, int, float]:
        where = int(np.flatnonzero(~(np.isfinite(self.matrix.data) & (self.matrix.data >= 0)))[0])
        outer = int(np.searchsorted(self.matrix.indptr, where, side="right")) - 1
        inner = int(self.matrix.indices[where])
        i, j = (outer, inner) if self.matrix.format == "csr" else (inner, outer)
        return i + self.first, j, float(self.matrix.data[where])

    def pieces(self) -> Iterator[Array]:
        by_rows = self.matrix.tocsr()
        yield by_rows.indptr.astype(np.int64)
        for e in range(0, by_rows.nnz, CHUNK_ENTRIES):
            yield by_rows.indices[e : e + CHUNK_ENTRIES].astype(np.int64)
            yield by_rows.data[e : e + CHUNK_ENTRIES]

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        X, rest = self.matrix, np.ascontiguousarray(rest)
        stored = (X.data, X.indices, X.indptr, rest)
        if X.format == ("csr", "csc")[mode]:
            rows = np.empty(out.shape, dtype=out.dtype)
            in_parts(partial(gather_rows, *stored, rows), len(out), LEAST)
        else:
            rows = reduce(np.add, in_parts(partial(scatter_rows, *stored, len(out)), len(X.indptr) - 1, LEAST))
        out[...] = rows

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


@kernel
def gather_rows(values: Array, indices: Array, starts: Array, rest: Array, out: Array, first: int, end: int) -> None:
    """out_i ← Σ x·rest_j over the stored entries x at (i, j), for compressed rows i from ``first`` to ``end``."""
    r = rest.shape[1]
    for i in range(first, end):
        row = out[i]
        row[:] = 0
        e = starts[i]
        while e + 4 <= starts[i + 1]:  # four entries for each read and write of the row
            x0, x1, x2, x3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            y0, y1, y2, y3 = rest[indices[e]], rest[indices[e + 1]], rest[indices[e + 2]], rest[indices[e + 3]]
            for a in range(r):
                row[a] += (x0 * y0[a] + x1 * y1[a]) + (x2 * y2[a] + x3 * y3[a])
            e += 4
        while e < starts[i + 1]:
            y = rest[indices[e]]
            for a in range(r):
                row[a] += values[e] * y[a]
            e += 1


@kernel
def scatter_rows(values: Array, indices: Array, starts: Array, rest: Array, size: int, first: int, end: int) -> Array:
    """Σ x·rest_i for each j over the stored entries x at (i, j), compressed rows i from ``first`` to ``end``."""
    out = np.zeros((size, rest.shape[1]), dtype=rest.dtype)
    for i in range(first, end):
        y = rest[i]
        for e in range(starts[i], starts[i + 1]):
            x, row = values[e], out[indices[e]]
            for a in range(y.size):
                row[a] += x * y[a]
    return out


@kernel
def stored_square_sums(values: Array, starts: Array) -> Array:
    """The sum of squares of each compressed row or column."""
    sums = np.zeros(starts.size - 1)
    for i in range(sums.size):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += np.float64(values[e]) * np.float64(values[e])
        sums[i] = total
    return sums


@kernel
def scattered_square_sums(values: Array, indices: Array, size: int) -> Array:
    """The sum of squares along the other direction."""
    sums = np.zeros(size)
    for e in range(values.size):
        sums[indices[e]] += np.float64(values[e]) * np.float64(values[e])
    return sums


@kernel
def stored_ratios(
    values: Array, indices: Array, starts: Array, outer: Array, inner: Array, floor: float, out: Array, outward: bool
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
def stored_divergence(values: Array, indices: Array, starts: Array, outer: Array, inner: Array, floor: float) -> float:
    """Σ x·log(x / model) − x over the stored entries."""
    total = 0.0
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            x = np.float64(values[e])
            if x > 0:
                model = max(np.float64(dot(outer[i], inner[indices[e]])), floor)
                total += x * math.log(x / model) - x
    return total


@loop
def dot(a: Array, b: Array) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total

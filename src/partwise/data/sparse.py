"""SciPy sparse matrices and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..runtime.arrays import Sparse
from ..runtime.compiled import kernel
from ..statistics import Array
from .matrix import CHUNK_ENTRIES, Matrix, square_sums
from .products import add_in_parts, gather_rows, padded_rows, scatter_rows
from .protocols import LineGroup, Which
from .scales import Scales
from .values import check_scale, check_values, precision

Panel: TypeAlias = tuple[Array, Array, Array]  # values, indices and starts of compressed rows

WIDTH, PANEL = 80, 2**18  # columns of a wide product at a time; bytes of their rows that stay in cache
ENTRIES = 16  # of a compressed row in each panel, at least on average


class SparseData(Matrix):
    """A SciPy sparse matrix or array in CSR or CSC format (others are converted to CSR). It is never made dense."""

    def __init__(self, X: Sparse, check: bool = True, signed: bool = False) -> None:
        self.signed = signed
        self.shape, self.dtype = X.shape, precision(X.dtype)
        super().__init__()
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if check:
            check_indices(X)
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
            check_values(self.matrix.data.min(), self.peak, self._offenders, self.signed)

    def scaled(self, scales: Scales) -> SparseData:
        """Return X multiplied by these scales. Its values are a copy; its indices are shared."""
        data = SparseData(scales.stored(self.matrix), signed=self.signed)
        data.scales = scales
        return data

    def subset(self, which: Which, features: Which = slice(None)) -> SparseData:
        return SparseData(self.matrix[which][:, features], check=False, signed=self.signed)

    def _offenders(self) -> tuple[int, int, float]:
        where = int(np.flatnonzero(~(np.isfinite(self.matrix.data) & (self.signed | (self.matrix.data >= 0))))[0])
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
        """Write the product to ``out``. Factors have contiguous columns; each entry of X is met with a whole row."""
        self._multiply(padded_rows(rest), mode, out, [self.stored])

    def multiply_wide(self, rests: Sequence[Array], mode: int, out: Array) -> None:
        """The same for several matrices, some columns at a time, so that their rows of one panel of X stay in cache."""
        for first, rows in zip(range(0, out.shape[1], WIDTH), self.arranged(rests, mode, wide_rows), strict=True):
            self._multiply(rows, mode, out[:, first : first + WIDTH], self.panels)

    def _multiply(self, rows: Array, mode: int, out: Array, panels: Sequence[Panel]) -> None:
        gathers = self.matrix.format == ("csr", "csc")[mode]
        add = gather_rows if gathers else scatter_rows

        def add_panels(sums: Array, first: int, end: int) -> None:
            for panel in panels:
                add(*panel, rows, sums, first, end)

        add_in_parts(add_panels, self.shape[mode if gathers else 1 - mode], not gathers, out)

    @cached_property
    def panels(self) -> list[Panel]:
        """X in panels of columns (of rows, if it is compressed by columns), a copy of `stored` panel by panel."""
        values, indices, starts = self.stored
        n, m = self.shape if self.matrix.format == "csr" else self.shape[::-1]
        wanted = m * WIDTH * self.dtype.itemsize // PANEL
        count = int(max(1, min(wanted, values.size // (n * ENTRIES))))
        if count == 1:
            return [self.stored]
        ends = np.array([m * k // count for k in range(1, count + 1)], dtype=indices.dtype)
        values, indices, starts = in_panels(values, indices, starts, ends)
        return [(values, indices, starts[n * k : n * (k + 1) + 1]) for k in range(count)]

    @cached_property
    def stored(self) -> tuple[Array, Array, Array]:
        """Values, indices and starts of the compressed rows, for kernels.

        Indices are unsigned, which spares a check for negative ones, and of 32 bits, so that less memory is read. These
        are X's own, unless X has indices of 64 bits, as it often has without need.
        """
        return unsigned(self.matrix)

    @cached_property
    def stored_across(self) -> tuple[Array, Array, Array]:
        """The same of the compressed columns. This copy of X is made at the first use and kept."""
        return unsigned(self.matrix.tocsc() if self.matrix.format == "csr" else self.matrix.tocsr())

    def squared_error(self, factors: Sequence[Array]) -> float:
        by_rows = self.matrix if self.matrix.format == "csr" else self.matrix.T
        outer, inner = factors if self.matrix.format == "csr" else reversed(factors)
        step = max(1, CHUNK_ENTRIES // by_rows.shape[1])
        total = 0.0
        for i in range(0, by_rows.shape[0], step):
            residual = by_rows[i : i + step].toarray() - outer[i : i + step] @ inner.T
            total += float(square_sums(residual).sum())
        return total

    def lines(self, mode: int) -> Iterator[LineGroup]:
        stored = self.stored if self.matrix.format == ("csr", "csc")[mode] else self.stored_across
        yield LineGroup(0, *stored, self.complete)

    def vectors(self, mode: int, which: Array) -> Array:
        chosen = self.matrix[:, which] if mode else self.matrix[which].T
        return np.asfortranarray(chosen.toarray())

    def summed_squares(self, mode: int) -> Array:
        X = self.matrix
        if X.format == ("csr", "csc")[mode]:
            return stored_square_sums(X.data, X.indptr)
        return scattered_square_sums(X.data, X.indices, self.shape[mode])


def check_indices(X: Sparse) -> None:
    """Raise ValueError for indices outside of X, which SciPy accepts and which kernels would follow."""
    inner = X.shape[1 if X.format == "csr" else 0]
    starts = X.indptr
    if starts[0] != 0 or starts[-1] > min(X.indices.size, X.data.size) or (starts[1:] < starts[:-1]).any():
        raise ValueError("X is a damaged sparse matrix: indptr does not rise from 0 to the number of stored values")
    stored = X.indices[: starts[-1]]
    if stored.size and not 0 <= stored.min() <= stored.max() < inner:
        raise ValueError(
            f"X is a damaged sparse matrix: its indices go from {stored.min()} to {stored.max()}, outside of 0 to "
            f"{inner - 1}"
        )


def unsigned(X: Sparse) -> tuple[Array, Array, Array]:
    """Values, unsigned indices of at most 32 bits if possible, and starts of a compressed matrix."""
    narrow = X.indices.itemsize == 4 or max(X.shape) > 2**32
    indices = X.indices.view(f"u{X.indices.itemsize}") if narrow else X.indices.astype(np.uint32)
    return X.data, indices, X.indptr.astype(np.int64, copy=False)


def groups(factors: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield the columns of several factors, in order, at most WIDTH at a time."""
    some, room = list[Array](), WIDTH
    for factor in factors:
        first = 0
        while first < factor.shape[1]:
            some.append(factor[:, first : first + room])
            first, room = first + some[-1].shape[1], room - some[-1].shape[1]
            if not room:
                yield some
                some, room = [], WIDTH
    if some:
        yield some


def wide_rows(factors: Sequence[Array]) -> Iterator[Array]:
    """Yield the columns of several factors as padded rows, at most WIDTH columns at a time."""
    return (padded_rows(*some) for some in groups(factors))


@kernel
def in_panels(values: Array, indices: Array, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Compressed rows in panels of columns, which end at the indices ``ends``: all rows of each panel in turn."""
    n = starts.size - 1
    begin = np.zeros(ends.size * n + 1, dtype=np.int64)
    for i in range(n):
        p = 0
        for e in range(starts[i], starts[i + 1]):
            while indices[e] >= ends[p]:
                p += 1
            begin[p * n + i + 1] += 1
    for k in range(begin.size - 1):
        begin[k + 1] += begin[k]
    x, j = np.empty_like(values), np.empty_like(indices)
    for i in range(n):
        p, k = 0, begin[i]
        for e in range(starts[i], starts[i + 1]):
            while indices[e] >= ends[p]:
                p += 1
                k = begin[p * n + i]
            x[k], j[k] = values[e], indices[e]
            k += 1
    return x, j, begin


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

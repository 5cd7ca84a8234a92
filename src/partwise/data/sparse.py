"""SciPy sparse matrices and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TypeAlias, TypeVar

import numpy as np

from ..runtime.arrays import DType, Sparse
from ..runtime.compiled import apart, kernel, loop
from ..runtime.threads import in_parts
from ..statistics import Array
from .matrix import CHUNK_ENTRIES, Matrix, square_sums
from .protocols import LineGroup, Which
from .scales import Scales
from .values import check_scale, check_values, precision

T = TypeVar("T")
Panel: TypeAlias = tuple[Array, Array, Array]  # values, indices and starts of compressed rows

LEAST = 256  # compressed rows per thread, at least
LANES = 8  # rows of products are padded to a multiple of this, so that loops over them need no scalar remainder
LINE = 64  # bytes of a cache line: padded arrays begin at one, so that a vector register never straddles two lines
WIDTH, PANEL = 80, 3 * 2**17  # columns of a wide product at a time; bytes of their rows that stay in cache
ENTRIES = 16  # of a compressed row in each panel, at least on average
TILE = 256  # rows whose layout is changed at a time: they stay in cache


class SparseData(Matrix):
    """A SciPy sparse matrix or array in CSR or CSC format (others are converted to CSR). It is never made dense."""

    def __init__(self, X: Sparse, check: bool = True, signed: bool = False) -> None:
        self.signed = signed
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
        self._multiply([rest], mode, out, [self.stored])

    def multiply_wide(self, rests: Sequence[Array], mode: int, out: Array) -> None:
        """The same for several matrices, some columns at a time, so that their rows of one panel of X stay in cache."""
        first = 0
        for some in groups(rests):
            end = first + sum(rest.shape[1] for rest in some)
            self._multiply(some, mode, out[:, first:end], self.panels)
            first = end

    def _multiply(self, rests: Sequence[Array], mode: int, out: Array, panels: Sequence[Panel]) -> None:
        gathers = self.matrix.format == ("csr", "csc")[mode]
        add, rows = gather_rows if gathers else scatter_rows, padded_rows(*rests)

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


def unsigned(X: Sparse) -> tuple[Array, Array, Array]:
    """Values, unsigned indices of at most 32 bits if possible, and starts of a compressed matrix."""
    narrow = X.indices.itemsize == 4 or max(X.shape) > 2**32
    indices = X.indices.view(f"u{X.indices.itemsize}") if narrow else X.indices.astype(np.uint32)
    return X.data, indices, X.indptr.astype(np.int64, copy=False)


def padded(shape: tuple[int, ...], dtype: DType) -> Array:
    """Zeros of this shape, with rows padded to a multiple of LANES, the first of which begins at a cache line."""
    n, r = shape
    width, line = -(-r // LANES) * LANES, LINE // dtype.itemsize
    flat = np.zeros(n * width + line, dtype=dtype)
    start = -(flat.__array_interface__["data"][0] // dtype.itemsize) % line
    return flat[start : start + n * width].reshape(n, width)


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


def padded_rows(*factors: Array) -> Array:
    """Return factors side by side, with contiguous, padded rows."""
    ends = np.cumsum([factor.shape[1] for factor in factors])
    rows = padded((len(factors[0]), ends[-1]), factors[0].dtype)
    for factor, end in zip(factors, ends, strict=True):
        in_parts(partial(copy_rows, factor, rows[:, end - factor.shape[1] : end]), len(rows), LEAST)
    return rows


def add_in_parts(add_rows: Callable[[Array, int, int], T], size: int, scattered: bool, out: Array) -> list[T]:
    """Write to ``out`` what ``add_rows(sums, first, end)`` adds to padded rows of zeros, and return its results.

    Each thread has its own sums if it may add to any row, or else to the rows from ``first`` to ``end``.
    """
    sums = {0: padded(out.shape, out.dtype)}

    def add_part(first: int, end: int) -> T:
        here = sums.setdefault(first, padded(out.shape, out.dtype)) if scattered and first else sums[0]
        return add_rows(here, first, end)

    results = in_parts(add_part, size, LEAST)
    for first in sorted(sums)[1:]:
        sums[0] += sums[first]
    in_parts(partial(copy_rows, sums[0], out), len(out), LEAST)
    return results


@kernel
def gather_rows(values: Array, indices: Array, starts: Array, rest: Array, out: Array, first: int, end: int) -> None:
    """Add x·rest_j to out_i for the stored entries x at (i, j), compressed rows i from ``first`` to ``end``."""
    for i in range(first, end):
        row, x, j = out[i], values[starts[i] : starts[i + 1]], indices[starts[i] : starts[i + 1]]
        fours = x.size // 4 * 4
        for e in range(0, fours, 4):  # four entries for each read and write of the row
            others = (rest[j[e]], rest[j[e + 1]], rest[j[e + 2]], rest[j[e + 3]])
            add_four(row, x[e], x[e + 1], x[e + 2], x[e + 3], *others)
        for e in range(fours, x.size):
            add(row, x[e], rest[j[e]])


@kernel
def scatter_rows(values: Array, indices: Array, starts: Array, rest: Array, out: Array, first: int, end: int) -> None:
    """Add x·rest_i to out_j for the stored entries x at (i, j), compressed rows i from ``first`` to ``end``."""
    for i in range(first, end):
        y, x, j = rest[i], values[starts[i] : starts[i + 1]], indices[starts[i] : starts[i + 1]]
        fours = x.size // 4 * 4
        for e in range(0, fours, 4):  # four entries for each read of y; no index occurs twice in a compressed row
            rows = (out[j[e]], out[j[e + 1]], out[j[e + 2]], out[j[e + 3]])
            add_to_four(*rows, x[e], x[e + 1], x[e + 2], x[e + 3], y)
        for e in range(fours, x.size):
            add(out[j[e]], x[e], y)


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
def copy_rows(source: Array, target: Array, first: int, end: int) -> None:
    """Copy rows to an array of the other layout, without padding."""
    for top in range(first, end, TILE):  # a tile stays in the cache while its columns are copied
        stop = min(top + TILE, end)
        here, there = source[top:stop], target[top:stop]
        for a in range(min(source.shape[1], target.shape[1])):
            for i in range(stop - top):
                there[i, a] = here[i, a]


@apart
def add(row: Array, x: float, y: Array) -> None:
    """row ← row + x·y, for padded rows."""
    for a in range(y.size // LANES * LANES):
        row[a] += x * y[a]


@apart
def add_four(
    row: Array, x0: float, x1: float, x2: float, x3: float, y0: Array, y1: Array, y2: Array, y3: Array
) -> None:
    """row ← row + Σ x_k·y_k"""
    for a in range(row.size // LANES * LANES):
        row[a] += (x0 * y0[a] + x1 * y1[a]) + (x2 * y2[a] + x3 * y3[a])


@apart
def add_to_four(
    row0: Array, row1: Array, row2: Array, row3: Array, x0: float, x1: float, x2: float, x3: float, y: Array
) -> None:
    """row_k ← row_k + x_k·y"""
    for a in range(y.size // LANES * LANES):
        row0[a] += x0 * y[a]
        row1[a] += x1 * y[a]
        row2[a] += x2 * y[a]
        row3[a] += x3 * y[a]


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


@loop
def dot(a: Array, b: Array) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total

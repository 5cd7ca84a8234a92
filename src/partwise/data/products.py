"""Products of compressed rows with padded rows of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from ..runtime.arrays import DType
from ..runtime.compiled import apart, kernel, loop
from ..runtime.threads import in_parts
from ..statistics import Array

T = TypeVar("T")

LEAST = 256  # compressed rows per thread, at least
LANES = 8  # rows of products are padded to a multiple of this, so that loops over them need no scalar remainder
LINE = 64  # bytes of a cache line: padded arrays begin at one, so that a vector register never straddles two lines
TILE = 256  # rows whose layout is changed at a time: they stay in cache


def padded(shape: tuple[int, ...], dtype: DType) -> Array:
    """Zeros of this shape, with rows padded to a multiple of LANES, the first of which begins at a cache line."""
    n, r = shape
    width, line = -(-r // LANES) * LANES, LINE // dtype.itemsize
    flat = np.zeros(n * width + line, dtype=dtype)
    start = -(flat.__array_interface__["data"][0] // dtype.itemsize) % line
    return flat[start : start + n * width].reshape(n, width)


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
def copy_rows(source: Array, target: Array, first: int, end: int) -> None:
    """Copy rows to an array of the other layout, without padding."""
    r = min(source.shape[1], target.shape[1])
    fours = r // 4 * 4
    for top in range(first, end, TILE):  # a tile stays in the cache while its columns are copied
        stop = min(top + TILE, end)
        here, there = source[top:stop], target[top:stop]
        for a in range(0, fours, 4):  # four columns for each visit of a row
            for i in range(stop - top):
                x0, x1, x2, x3 = here[i, a], here[i, a + 1], here[i, a + 2], here[i, a + 3]
                there[i, a], there[i, a + 1], there[i, a + 2], there[i, a + 3] = x0, x1, x2, x3
        for a in range(fours, r):
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


@loop
def dot(a: Array, b: Array) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total

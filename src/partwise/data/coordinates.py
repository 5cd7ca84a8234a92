"""Sparse tensors in coordinate format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..runtime.compiled import kernel
from ..runtime.threads import in_parts
from ..statistics import Array
from .tensor import Tensor
from .values import check_values, precision

LEAST = 2**14  # entries per thread, at least
EXACT = 2**26  # up to this many entries, stored or not, the error is computed at each of them


@dataclass(frozen=True, eq=False)
class COO:
    """A sparse tensor: ``values[e]`` at ``coords[:, e]``, zero elsewhere. Duplicate entries are summed.

    Parameters
    ----------
    coords : integer array of shape (order, entries)
    values : array of shape (entries,)
    shape : tuple of ints

    Examples
    --------
    >>> COO([[0, 1, 1], [0, 2, 2], [0, 3, 3]], [1.0, 2.0, 3.0], (2, 3, 4)).dense()[1, 2, 3]
    np.float64(5.0)
    """

    coords: Array
    values: Array
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        coords, values = np.asarray(self.coords), np.asarray(self.values)
        shape = tuple(int(n) for n in self.shape)
        dtype = precision(values.dtype, "values")
        if coords.shape != (len(shape), values.size) or values.ndim != 1:
            raise ValueError(
                f"COO got coords of shape {coords.shape} and values of shape {values.shape}: a tensor with "
                f"{len(shape)} modes needs coords of shape ({len(shape)}, entries) and values of shape (entries,)"
            )
        if coords.size and coords.dtype.kind not in "ui":
            raise ValueError(f"COO got coords of dtype {coords.dtype}: coords must be integers")
        for mode, (row, n) in enumerate(zip(coords, shape, strict=True)):
            if row.size and (row.min() < 0 or row.max() >= n):
                raise ValueError(
                    f"COO got coords from {row.min()} to {row.max()} for mode {mode}: they must be in 0 … {n - 1}"
                )
        object.__setattr__(self, "coords", coords.astype(np.int64, copy=False))
        object.__setattr__(self, "values", values.astype(dtype, copy=False))
        object.__setattr__(self, "shape", shape)

    @property
    def size(self) -> int:
        """The number of stored entries."""
        return int(self.values.size)

    def summed(self) -> COO:
        """Sum duplicate entries, and sort the entries in the order of a dense array."""
        order = np.lexsort(self.coords[::-1])
        coords, values = self.coords[:, order], self.values[order]
        new = np.ones(values.size, dtype=bool)
        new[1:] = (coords[:, 1:] != coords[:, :-1]).any(axis=0)
        if not new.all():
            values = np.add.reduceat(values, np.flatnonzero(new))
        return COO(coords[:, new], values, self.shape)

    def dense(self) -> Array:
        """Return the tensor as a dense array."""
        array = np.zeros(self.shape, dtype=self.values.dtype)
        np.add.at(array, tuple(self.coords), self.values)
        return array


class SparseTensor(Tensor):
    """A `COO` tensor, never made dense."""

    def __init__(self, X: COO, check: bool = True) -> None:
        self.matrix = X.summed() if check else X
        self.shape, self.dtype = X.shape, X.values.dtype
        super().__init__(check)

    @cached_property
    def peak(self) -> float:
        return float(self.matrix.values.max(initial=0))

    def check(self) -> None:
        if self.matrix.size:
            check_values(self.matrix.values.min(), self.peak, self._offenders)

    def _offenders(self) -> tuple[float, ...]:
        values = self.matrix.values
        where = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
        return *self.matrix.coords[:, where].tolist(), float(values[where])

    def cross(self, factors: Sequence[Array], grams: Sequence[Array] | None, mode: int) -> Array:
        X, r = self.matrix, factors[0].shape[1]
        others = [m for m in range(len(self.shape)) if m != mode]
        table = np.concatenate([factors[m] for m in others] or [np.empty((0, r), dtype=self.dtype)])
        starts = np.cumsum([0, *(self.shape[m] for m in others)])[:-1]
        stored = (X.values, X.coords[mode], X.coords[others], starts, np.ascontiguousarray(table), self.shape[mode])
        return np.asfortranarray(sum(in_parts(partial(scatter_products, *stored), X.size, LEAST)))

    def pieces(self) -> Iterator[Array]:
        yield from (self.matrix.coords, self.matrix.values)

    def summed_squares(self, mode: int) -> Array:
        squares = np.square(self.matrix.values, dtype=float)
        return np.bincount(self.matrix.coords[mode], squares, minlength=self.shape[mode])

    def slice(self, mode: int, i: int) -> SparseTensor:
        X = self.matrix
        here = X.coords[mode] == i
        shape = self.shape[:mode] + self.shape[mode + 1 :]
        return SparseTensor(COO(np.delete(X.coords[:, here], mode, axis=0), X.values[here], shape), check=False)

    def slice_products(self, mode: int, i: int) -> Array:
        X = self.matrix
        others = np.delete(X.coords, mode, axis=0)
        order = np.lexsort((X.coords[mode], *others[::-1]))
        return matching_products(X.values[order], X.coords[mode][order], others[:, order], i, self.shape[mode])

    def squared_error(self, factors: Sequence[Array]) -> float:
        if math.prod(self.shape) <= EXACT:
            return super().squared_error(factors)
        # Σ model² over the other entries is a difference: its rounding error is relative to ‖model‖²
        table = np.concatenate(factors).astype(self.dtype, copy=False)
        starts = np.cumsum([0, *self.shape])[:-1]
        X = self.matrix
        error, model = stored_errors(X.values, X.coords, starts, np.ascontiguousarray(table))
        size = float(np.prod([np.asarray(f.T @ f, dtype=float) for f in factors], axis=0).sum())
        return float(error + max(size - model, 0.0))

    @cached_property
    def _rows(self) -> Array:
        """The row of each entry if all modes but the last are flattened. For tensors of at most `EXACT` entries."""
        return np.asarray(np.ravel_multi_index(tuple(self.matrix.coords[:-1]), self.shape[:-1]))

    def subtract_from(self, model: Array, start: int) -> None:
        np.negative(model, out=model)
        a, b = np.searchsorted(self._rows, [start, start + len(model)])
        model[self._rows[a:b] - start, self.matrix.coords[-1, a:b]] += self.matrix.values[a:b]


@kernel
def scatter_products(
    values: Array, rows: Array, others: Array, starts: Array, table: Array, size: int, first: int, end: int
) -> Array:
    """Σ x·(product of the other modes' rows) for each row of one mode, over the entries from ``first`` to ``end``."""
    r = table.shape[1]
    out = np.zeros((size, r), dtype=table.dtype)
    product = np.empty(r, dtype=table.dtype)
    for e in range(first, end):
        product[:] = values[e]
        for m in range(starts.size):
            f = table[starts[m] + others[m, e]]
            for a in range(r):
                product[a] *= f[a]
        row = out[rows[e]]
        for a in range(r):
            row[a] += product[a]
    return out


@kernel
def stored_errors(values: Array, coords: Array, starts: Array, table: Array) -> tuple[float, float]:
    """Σ (x − model)² and Σ model² over the stored entries."""
    error, size = 0.0, 0.0
    for e in range(values.size):
        model = 0.0
        for a in range(table.shape[1]):
            product = 1.0
            for m in range(starts.size):
                product *= np.float64(table[starts[m] + coords[m, e], a])
            model += product
        error += (np.float64(values[e]) - model) ** 2
        size += model * model
    return error, size


@kernel
def matching_products(values: Array, rows: Array, others: Array, i: int, size: int) -> Array:
    """The inner product of slice i with each slice. Entries with equal coordinates in all other modes are adjacent."""
    sums = np.zeros(size)
    start = 0
    while start < values.size:
        end, own = start, 0.0
        while end < values.size and (others[:, end] == others[:, start]).all():
            if rows[end] == i:
                own = np.float64(values[end])
            end += 1
        for e in range(start, end):
            sums[rows[e]] += own * np.float64(values[e])
        start = end
    return sums

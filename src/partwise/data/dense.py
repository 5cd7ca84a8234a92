"""Dense arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..runtime.threads import product, summed_product
from ..statistics import Array
from .matrix import CHUNK_ENTRIES, Matrix, square_sums
from .protocols import LineGroup, Which
from .values import as_floats, check_scale, check_values

TOGETHER = 16  # samples or features that are copied together, at least, so that whole cache lines are used


class DenseData(Matrix):
    """A dense array in C or Fortran order. Other layouts are copied once."""

    def __init__(self, X: npt.ArrayLike, check: bool = True, signed: bool = False) -> None:
        self.signed = signed
        array = as_floats(X)
        if array.ndim == 2 and not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        self.matrix, self.shape, self.dtype = array, array.shape, array.dtype
        super().__init__()
        if check:
            self.check()
            check_scale(self.peak, self.dtype)

    def check(self) -> None:
        check_values(self.matrix.min(), self.peak, self._offenders, self.signed)

    def subset(self, which: Which, features: Which = slice(None)) -> DenseData:
        return DenseData(self.matrix[which][:, features], check=False, signed=self.signed)

    def _filled(self, rows: Which) -> Array:
        """Return some samples."""
        return np.asarray(self.matrix[rows])

    def _offenders(self) -> tuple[int, int, float]:
        for rows in self._chunks():
            filled = self._filled(rows)
            bad = np.argwhere(~(np.isfinite(filled) & (self.signed | (filled >= 0))))
            if len(bad):
                i, j = int(bad[0, 0]), int(bad[0, 1])
                return i + rows.start + self.first, j, float(filled[i, j])
        raise AssertionError("unreachable: the minimum or the maximum is invalid")

    def _chunks(self) -> list[slice]:
        step = max(1, CHUNK_ENTRIES // self.shape[1])
        return [slice(i, min(i + step, self.shape[0])) for i in range(0, self.shape[0], step)]

    def pieces(self) -> Iterator[Array]:
        return (self.matrix[rows] for rows in self._chunks())

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        X = self.matrix if mode else self.matrix.T
        if X.shape[0] > X.shape[1]:  # split the longer side among the threads
            out.T[...] = summed_product(rest, X)
        else:
            product(rest.T, X, out.T)

    def squared_error(self, factors: Sequence[Array]) -> float:
        activations, parts = (np.asarray(f, dtype=self.dtype) for f in factors)
        total = 0.0
        for rows in self._chunks():
            residual = activations[rows] @ parts.T
            np.subtract(self.matrix[rows], residual, out=residual)
            total += float(square_sums(residual).sum())
        return total

    def lines(self, mode: int) -> Iterator[LineGroup]:
        size, width = self.shape[mode], self.shape[1 - mode]
        step = max(TOGETHER, CHUNK_ENTRIES // width)
        for first in range(0, size, step):
            tile = self.tile(mode, slice(first, min(first + step, size)))
            starts = np.arange(0, tile.size + 1, width)
            yield LineGroup(first, tile.ravel(), np.empty(0, dtype=np.uint32), starts, self.complete)

    def tile(self, mode: int, which: slice) -> Array:
        """Return some samples (mode 0) or features (mode 1) as contiguous rows, with NaN for missing entries."""
        return np.ascontiguousarray(self.matrix[:, which].T if mode else self.matrix[which])

    def vectors(self, mode: int, which: Array) -> Array:
        return np.array((self.matrix if mode else self.matrix.T)[:, which], order="F")

    def summed_squares(self, mode: int) -> Array:
        if mode == 0:
            return np.concatenate([square_sums(np.ascontiguousarray(self.matrix[rows])) for rows in self._chunks()])
        total = np.zeros(self.shape[1])
        for rows in self._chunks():
            total += np.square(self.matrix[rows], dtype=float).sum(axis=0)
        return total

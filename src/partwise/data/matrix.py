"""What the loop and the starts may ask of X, and what dense and sparse matrices share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..compiled import reduction
from ..statistics import Array, Stats

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

    squared: bool  # whether the loss is ½‖X − model‖² (plus penalties), which three sums tell

    def loss(self, stats: Any, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """The loss at ``factors``, given the statistics that ``factors[mode]`` was just updated with."""
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


class Matrix:
    """What dense and sparse matrices share."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    matrix: Any
    squared = True

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

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        return stats.loss(factors[mode], grams[mode])

    def ratios(self, left: Array, right: Array, mode: int) -> Array:
        """(X / left·rightᵀ)·right (mode 0), or its transpose times left (mode 1)."""
        raise NotImplementedError

    def divergence(self, left: Array, right: Array) -> float:
        """Σ x·log(x / model) − x + model, with model = left·rightᵀ."""
        raise NotImplementedError

    @cached_property
    def peak(self) -> float:
        """The largest entry."""
        return float(self.matrix.max())

    @cached_property
    def floor(self) -> float:
        """The least that a model's entry counts as, where X is divided by it: rounding beside the mean of X."""
        mean = float(self.matrix.sum(dtype=float)) / (self.shape[0] * self.shape[1])
        return max(float(np.finfo(self.dtype).eps) * mean, float(np.finfo(self.dtype).tiny))

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        raise NotImplementedError

    def squared_error(self, factors: Sequence[Array]) -> float:
        raise NotImplementedError

    def vectors(self, mode: int, which: Array) -> Array:
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


class Wrapped:
    """The same X for another model or another loss."""

    squared = True

    def __init__(self, data: Data) -> None:
        self.data: Any = data
        self.shape, self.dtype, self.matrix, self.sqnorm = data.shape, data.dtype, data.matrix, data.sqnorm
        self.times, self.vectors, self.sqnorms = data.times, data.vectors, data.sqnorms


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

"""What the loop and the starts may ask of X, and what dense and sparse matrices share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..runtime.compiled import kernel
from ..statistics import Array, Stats, gram

CHUNK_ENTRIES = 2**18  # of the largest temporary that a pass over X may make
Form = Callable[[Sequence[Array], int], Array]  # a slice, times a vector for each of its modes but one


class Data(Protocol):
    """What the loop, the starts and the recipes may ask of X, wherever it lies: one factor for each of its modes."""

    dtype: np.dtype[Any]
    squared: bool  # whether the loss is ½‖X − model‖² (plus penalties), which three sums tell

    @property
    def complete(self) -> bool:
        """Whether no entry is missing."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """How many samples, features, …"""
        ...

    @property
    def size(self) -> int:
        """How many entries a pass goes through."""
        ...

    @property
    def sqnorm(self) -> float:
        """‖X‖²."""
        ...

    @property
    def matrix(self) -> Any:
        """X, for linear algebra that takes arrays and scipy's sparse matrices (a start's truncated SVD)."""
        ...

    def sqnorms(self, mode: int) -> Array:
        """‖·‖² of each sample (mode 0) or feature (mode 1)."""
        ...

    def counts(self, mode: int) -> Array:
        """How many entries of each sample (mode 0) or feature (mode 1) are observed."""
        ...

    def squared_error(self, factors: Sequence[Array]) -> float:
        """‖X − model‖², from the residual itself: exact where the statistics cancel."""
        ...


class Sliced(Data, Protocol):
    """What can be asked of a matrix or a tensor that lies in one place."""

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        """The statistics of ``factors[mode]``, given the Gram matrix of every factor.

        The arrays belong to the data: the next call for the same mode overwrites them.
        """
        ...

    def loss(self, stats: Any, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """The loss at ``factors``, given the statistics that ``factors[mode]`` was just updated with."""
        ...

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        """‖·‖² of the residual of each slice of one mode, whose statistics are ``stats``."""
        ...

    def left_of(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        """What the model leaves of slice ``i`` of one mode: of a sample (mode 0) or feature (mode 1)."""
        ...

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """What the model leaves of X, times a vector for every mode but one, in double precision."""
        ...


class Whole(Sliced, Protocol):
    """What can be asked of a matrix that lies in one place."""

    def times(self, vector: Array, mode: int) -> Array:
        """X·vector (mode 0: one number a sample) or Xᵀ·vector (mode 1: one a feature), in double precision."""
        ...

    def vectors(self, mode: int, which: Array) -> Array:
        """Samples (mode 0) or features (mode 1) of X, as the columns of a dense array."""
        ...

    def subset(self, which: Array) -> Matrix:
        """Some of the samples, in memory."""
        ...


class InMemory(ABC):
    """What matrices and tensors in memory share."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    matrix: Any
    squared = True
    complete = True

    def __init__(self) -> None:
        self._sqnorms: dict[int, Array] = {}

    @property
    def size(self) -> int:
        """How many entries a pass goes through: those that are stored."""
        return int(self.matrix.size)

    @cached_property
    def peak(self) -> float:
        """The largest entry."""
        return float(self.matrix.max())

    @abstractmethod
    def check(self) -> None:
        """Refuse values that no factorization can use."""

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """The loss at ``factors``, given the statistics that ``factors[mode]`` was just updated with."""
        return stats.loss(factors[mode], grams[mode])

    @cached_property
    def sqnorm(self) -> float:
        """‖X‖²."""
        return float(self.sqnorms(0).sum())

    def sqnorms(self, mode: int) -> Array:
        """‖·‖² of each slice of one mode: of each sample (0), feature (1), …"""
        if mode not in self._sqnorms:
            self._sqnorms[mode] = self.summed_squares(mode)
        return self._sqnorms[mode]

    @abstractmethod
    def summed_squares(self, mode: int) -> Array:
        """The same, found by a pass."""


class Matrix(InMemory):
    """What dense and sparse matrices share; ``first`` is the number of its first sample, if it is a chunk of X."""

    shape: tuple[int, int]
    first = 0

    def __init__(self) -> None:
        check_shape(self.shape)
        super().__init__()
        self._cross: dict[int, Array] = {}

    @abstractmethod
    def subset(self, which: Array) -> Matrix:
        """Some of the samples."""

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        return Stats(self.cross(factors[1 - mode], mode), grams[1 - mode], self.sqnorm)

    def sums(self, factors: Sequence[Array], grams: Sequence[Array | None], mode: int) -> Stats:
        """The statistics without ‖X‖², where that is the same for all factors; what is None need not be known."""
        other = grams[1 - mode]
        return Stats(self.cross(factors[1 - mode], mode), gram(factors[1 - mode]) if other is None else other, 0.0)

    def patterns(self, parts: Array) -> Iterator[tuple[Any, Stats]]:
        """Samples that are observed at the same features, and the statistics of their activations there."""
        yield slice(None), Stats(self.cross(parts, 0), gram(parts), self.sqnorm)

    def counts(self, mode: int) -> Array:
        """How many entries of each sample (mode 0) or feature (mode 1) are observed."""
        return np.full(self.shape[mode], self.shape[1 - mode])

    @cached_property
    def unseen(self) -> Array:
        """Samples that are missing altogether."""
        return np.empty(0, dtype=int)

    def raw(self, which: Array) -> Array:
        """Some samples, one a row, NaN where they are missing."""
        return self.vectors(0, which).T

    def cross(self, rest: Array, mode: int) -> Array:
        """X·rest (mode 0) or Xᵀ·rest (mode 1); the next call for the same mode overwrites it."""
        out = self.room(mode, rest.shape[1])
        self.multiply(rest, mode, out)
        return out

    def room(self, mode: int, r: int) -> Array:
        """The array for products with ``r`` columns: the same as in the last call for this mode, if it fits."""
        shape = (self.shape[mode], r)
        if mode not in self._cross or self._cross[mode].shape != shape:
            self._cross[mode] = np.empty(shape, dtype=self.dtype, order="F")
        return self._cross[mode]

    @abstractmethod
    def ratios(self, left: Array, right: Array, mode: int) -> Array:
        """(X / left·rightᵀ)·right (mode 0), or its transpose times left (mode 1)."""

    @abstractmethod
    def divergence(self, left: Array, right: Array) -> float:
        """Σ x·log(x / model) − x + model, with model = left·rightᵀ."""

    @cached_property
    def floor(self) -> float:
        """The least that a model's entry counts as, where X is divided by it: rounding beside the mean of X."""
        mean = float(self.matrix.sum(dtype=float)) / (self.shape[0] * self.shape[1])
        return max(float(np.finfo(self.dtype).eps) * mean, float(np.finfo(self.dtype).tiny))

    @abstractmethod
    def multiply(self, rest: Array, mode: int, out: Array) -> None: ...

    @abstractmethod
    def squared_error(self, factors: Sequence[Array]) -> float: ...

    @abstractmethod
    def vectors(self, mode: int, which: Array) -> Array: ...

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        return row_errors(self.sqnorms(mode), factors[mode], stats)

    def residuals(self, factors: Sequence[Array], mode: int, which: Array) -> Array:
        """What the model leaves of samples (mode 0) or features (mode 1), as the columns of a dense array."""
        return np.asarray(self.vectors(mode, which) - factors[1 - mode] @ factors[mode][which].T)

    def left_of(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        residual = self.residuals(factors, mode, np.array([i]))[:, 0]
        return lambda vectors, mode: residual

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        (vector,) = vectors
        return np.asarray(self.times(vector, mode) - factors[mode] @ (factors[1 - mode].T @ vector))

    def times(self, vector: Array, mode: int) -> Array:
        return np.asarray((self.matrix.T if mode else self.matrix) @ vector.astype(self.dtype), dtype=float)


class Wrapped(ABC):
    """The same X for another model or another loss."""

    squared = True

    def __init__(self, data: Sliced) -> None:
        self.data = data
        self.shape, self.dtype, self.size = data.shape, data.dtype, data.size
        self.sqnorm, self.complete = data.sqnorm, data.complete

    @abstractmethod
    def folded(self, factors: Sequence[Array]) -> list[Array]:
        """Factors of the same model in which X itself has its own: whatever lies between them is multiplied in."""

    @property
    def matrix(self) -> Any:
        return self.data.matrix

    def sqnorms(self, mode: int) -> Array:
        return self.data.sqnorms(mode)

    def counts(self, mode: int) -> Array:
        return self.data.counts(mode)

    def squared_error(self, factors: Sequence[Array]) -> float:
        return self.data.squared_error(self.folded(factors))

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        """‖·‖² of the residual of each slice of one mode, from its statistics."""
        return row_errors(self.sqnorms(mode), factors[mode], stats)

    def left_of(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        return self.data.left_of(self.folded(factors), mode, i)

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        return self.data.residual_times(vectors, self.folded(factors), mode)


def row_errors(sqnorms: Array, factor: Array, stats: Stats) -> Array:
    """‖·‖² of the residual of each row that a factor stands for, from the row's own and its statistics."""
    own = factor.astype(float)
    errors = sqnorms - 2 * np.einsum("ij,ij->i", own, stats.cross, dtype=float)
    return np.asarray(errors + np.einsum("ij,jk,ik->i", own, stats.gram, own, optimize=True))


def check_shape(shape: tuple[int, ...]) -> None:
    """Refuse what is not samples × features."""
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"X has shape {shape}: give samples × features, at least one of each")


@kernel
def square_sums(rows: Any) -> Any:
    """The sum of squares of each row, in double precision."""
    sums = np.zeros(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += np.float64(rows[i, j]) * np.float64(rows[i, j])
        sums[i] = total
    return sums

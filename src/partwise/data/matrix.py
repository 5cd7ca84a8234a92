"""The base classes of matrices in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np

from ..runtime.arrays import DType
from ..runtime.compiled import kernel
from ..runtime.together import Request
from ..statistics import Array, Stats, gram
from .protocols import Form, LineGroup, Sliced, Which
from .scales import Scales
from .values import check_shape

Arrangement: TypeAlias = Callable[[Sequence[Array]], Iterable[Array]]  # of several matrices, for a product

CHUNK_ENTRIES = 2**18  # entries of the largest temporary array in a pass over X


class InMemory(ABC):
    """The base class of matrices and tensors in memory."""

    shape: tuple[int, ...]
    dtype: DType
    matrix: Any
    squared = True
    complete = True
    signed = False  # whether negative entries are allowed
    can_accelerate = True  # whether statistics and loss allow for extrapolated factors
    scales = Scales()  # by which the X of the user was multiplied

    def __init__(self) -> None:
        self._sqnorms: dict[int, Array] = {}

    @property
    def size(self) -> int:
        """The number of stored entries, which a pass reads."""
        return int(self.matrix.size)

    @cached_property
    def peak(self) -> float:
        """The largest entry, or magnitude if entries may be negative."""
        return max(float(self.matrix.max()), -float(self.matrix.min()) if self.signed else 0.0)

    def entrywise(self) -> Any:
        """The data with weights of all entries in place of scales, if there is such a kind; otherwise the same data."""
        return self

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError for NaN, infinite or negative values."""

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """Return the loss at ``factors``, given the statistics that ``factors[mode]`` was just updated with."""
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

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        return row_errors(self.sqnorms(mode), factors[mode], stats)

    @abstractmethod
    def summed_squares(self, mode: int) -> Array:
        """The same, computed by a pass over X."""

    @abstractmethod
    def pieces(self) -> Iterator[Array]: ...


class Matrix(InMemory):
    """The base class of dense and sparse matrices. If it is a chunk, ``first`` is the index of its first sample."""

    shape: tuple[int, int]
    first = 0
    arrangements: Arrangements | None = None  # of the components, for all chunks of a pass

    def __init__(self) -> None:
        check_shape(self.shape)
        super().__init__()
        self._cross: dict[int, Array] = {}

    @abstractmethod
    def subset(self, which: Which, features: Which = slice(None)) -> Matrix:
        """Return some of the samples and features."""

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        return Stats(self.cross(factors[1 - mode], mode), grams[1 - mode], self.sqnorm)

    def sums(self, factors: Sequence[Array], grams: Sequence[Array | None], mode: int) -> Stats:
        """Return the statistics without ‖X‖² (included if entries are missing). A Gram matrix may be None: unknown."""
        other = grams[1 - mode]
        return Stats(self.cross(factors[1 - mode], mode), gram(factors[1 - mode]) if other is None else other, 0.0)

    @property
    def shared(self) -> bool:
        """Whether one product serves several fits: whether the statistics are those of X itself, whatever the model."""
        return self.complete and type(self).statistics is Matrix.statistics and type(self).sums is Matrix.sums

    def crosses(self, rests: Sequence[Array], mode: int, fresh: bool = False) -> list[Array]:
        """The products with several matrices, from one pass. They share an array, like `cross`, unless it is fresh."""
        ends = np.cumsum([rest.shape[1] for rest in rests])
        if fresh:
            out = np.empty((self.shape[mode], ends[-1]), dtype=self.dtype, order="F")
        else:
            out = self.product_array(mode, ends[-1])
        if len(rests) == 1:
            self.multiply(rests[0], mode, out)
        else:
            self.multiply_wide(rests, mode, out)
        return np.split(out, ends[:-1], axis=1)

    def patterns(self, parts: Array) -> Iterator[tuple[Which, Stats]]:
        """Yield groups of samples with the same observed features, and the statistics of their activations."""
        yield slice(None), Stats(self.cross(parts, 0), gram(parts), self.sqnorm)

    def counts(self, mode: int) -> Array:
        """The number of observed entries of each sample (mode 0) or feature (mode 1)."""
        return np.full(self.shape[mode], self.shape[1 - mode])

    @cached_property
    def unseen(self) -> Array:
        """Samples without any observed entry."""
        return np.empty(0, dtype=int)

    def raw(self, which: Array) -> Array:
        """Return some samples as rows, with NaN for missing entries."""
        return self.vectors(0, which).T

    def cross(self, rest: Array, mode: int) -> Array:
        """X·rest (mode 0) or Xᵀ·rest (mode 1). The next call for the same mode overwrites it."""
        out = self.product_array(mode, rest.shape[1])
        self.multiply(rest, mode, out)
        return out

    def product_array(self, mode: int, r: int) -> Array:
        """Return the array for products with ``r`` columns. Calls for the same mode reuse it."""
        shape = (self.shape[mode], r)
        if mode not in self._cross or self._cross[mode].shape != shape:
            self._cross[mode] = np.empty(shape, dtype=self.dtype, order="F")
        return self._cross[mode]

    @abstractmethod
    def lines(self, mode: int) -> Iterator[LineGroup]:
        """Yield all samples (mode 0) or features (mode 1), some at a time."""

    @abstractmethod
    def multiply(self, rest: Array, mode: int, out: Array) -> None: ...

    def multiply_wide(self, rests: Sequence[Array], mode: int, out: Array) -> None:
        """The same for several matrices side by side."""
        (wide,) = self.arranged(rests, mode, side_by_side)
        self.multiply(wide, mode, out)

    def arranged(self, rests: Sequence[Array], mode: int, arrangement: Arrangement) -> Iterable[Array]:
        """Several matrices in the arrangement for a product."""
        if mode or self.arrangements is None:
            return arrangement(rests)
        return self.arrangements.of(rests, arrangement)

    @abstractmethod
    def squared_error(self, factors: Sequence[Array]) -> float: ...

    @abstractmethod
    def vectors(self, mode: int, which: Array) -> Array: ...

    def residuals(self, factors: Sequence[Array], mode: int, which: Array) -> Array:
        """The residuals of samples (mode 0) or features (mode 1), as the columns of a dense array."""
        return np.asarray(self.vectors(mode, which) - factors[1 - mode] @ factors[mode][which].T)

    def slice_residual(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        residual = self.residuals(factors, mode, np.array([i]))[:, 0]
        return lambda vectors, mode: residual

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        (vector,) = vectors
        return np.asarray(self.times(vector, mode) - factors[mode] @ (factors[1 - mode].T @ vector))

    def times(self, vector: Array, mode: int) -> Array:
        return np.asarray((self.matrix.T if mode else self.matrix) @ vector.astype(self.dtype), dtype=float)


class Arrangements:
    """Arrangements of the same matrices, made once. The matrices must not change."""

    def __init__(self) -> None:
        self.last: dict[Arrangement, tuple[Sequence[Array], list[Array]]] = {}

    def of(self, rests: Sequence[Array], arrangement: Arrangement) -> list[Array]:
        """The last arrangement of this kind, if it is of these matrices, or else a new one."""
        known, arranged = self.last.get(arrangement, ((), []))
        if [*map(id, known)] != [*map(id, rests)]:
            arranged = [*arrangement(rests)]
            self.last[arrangement] = rests, arranged
        return arranged


def side_by_side(rests: Sequence[Array]) -> list[Array]:
    """Several matrices as one, with contiguous columns."""
    return [np.concatenate([rest.T for rest in rests]).T]


@dataclass(frozen=True, eq=False)
class Statistics(Request):
    """What a fit awaits: the statistics of ``factors[mode]``, as by ``data.statistics``.

    Those of several fits to the same matrix come from one product, unless entries are missing.
    """

    data: Sliced
    factors: Sequence[Array]
    grams: Sequence[Array]
    mode: int

    @property
    def kind(self) -> Hashable:
        """The same X and mode."""
        return (id(self.data), self.mode) if isinstance(self.data, Matrix) and self.data.shared else super().kind

    @property
    def cost(self) -> float:
        """The number of entries that are read."""
        return float(self.data.size)

    def answers(self, requests: Sequence[Self]) -> list[Stats]:
        """The statistics of several fits."""
        data, other = self.data, 1 - self.mode
        if len(requests) == 1:
            return [data.statistics(self.factors, self.grams, self.mode)]
        assert isinstance(data, Matrix)
        crosses = data.crosses([one.factors[other] for one in requests], self.mode)
        return [Stats(cross, one.grams[other], data.sqnorm) for cross, one in zip(crosses, requests, strict=True)]


class Wrapped(ABC):
    """X with another model or loss."""

    squared = True

    def __init__(self, data: Sliced) -> None:
        self.data = data
        self.shape, self.dtype, self.size = data.shape, data.dtype, data.size
        self.complete = data.complete

    @abstractmethod
    def folded(self, factors: Sequence[Array]) -> list[Array]:
        """Return factors of the same model for ``data``, with any middle factor multiplied in."""

    @property
    def matrix(self) -> Any:
        return self.data.matrix

    @property
    def sqnorm(self) -> float:
        return self.data.sqnorm

    def pieces(self) -> Iterator[Array]:
        return self.data.pieces()

    def sqnorms(self, mode: int) -> Array:
        return self.data.sqnorms(mode)

    def counts(self, mode: int) -> Array:
        return self.data.counts(mode)

    def squared_error(self, factors: Sequence[Array]) -> float:
        return self.data.squared_error(self.folded(factors))

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        return row_errors(self.sqnorms(mode), factors[mode], stats)

    def slice_residual(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        return self.data.slice_residual(self.folded(factors), mode, i)

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        return self.data.residual_times(vectors, self.folded(factors), mode)


def row_errors(sqnorms: Array, factor: Array, stats: Stats) -> Array:
    """‖·‖² of the residual of each slice of X, given ‖·‖² of the slice, its rows of the factor, and the statistics."""
    own = factor.astype(float)
    errors = sqnorms - 2 * np.einsum("ij,ij->i", own, stats.cross, dtype=float)
    return np.asarray(errors + np.einsum("ij,jk,ik->i", own, stats.gram, own, optimize=True))


@kernel
def square_sums(rows: Array) -> Array:
    """The sum of squares of each row, in double precision."""
    sums = np.zeros(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += np.float64(rows[i, j]) * np.float64(rows[i, j])
        sums[i] = total
    return sums

"""The interface of data: all that the rest of the code can ask of X."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ..runtime.arrays import DType
from ..statistics import Array, Stats
from .scales import Scales

Which = slice | Array  # some of the samples
Form = Callable[[Sequence[Array], int], Array]  # (vectors, mode) → a slice times a vector for each mode but one


class LineGroup(NamedTuple):
    """Some lines of X, beginning with line ``first``, in compressed form.

    If ``indices`` is empty, all entries are listed. If not all lines are ``whole``, entries that are not stored or are
    NaN are missing; otherwise they are zero.
    """

    first: int
    values: Array
    indices: Array
    starts: Array
    whole: bool

    @property
    def number(self) -> int:
        """The number of lines."""
        return len(self.starts) - 1


class Data(Protocol):
    """The interface of all data, in memory, on disk or on a cluster. The model has one factor for each mode of X."""

    dtype: DType
    squared: bool  # whether the loss is ½‖X − model‖² (plus penalties), which follows from `Stats`

    @property
    def complete(self) -> bool:
        """Whether no entry is missing."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of samples, features, …"""
        ...

    @property
    def size(self) -> int:
        """The number of entries that a pass reads."""
        ...

    @property
    def sqnorm(self) -> float:
        """‖X‖² or, with another loss, twice the loss of a trivial model: what relative errors are relative to."""
        ...

    @property
    def matrix(self) -> Any:
        """X as an array or a SciPy sparse matrix, for linear algebra (the truncated SVD of a start)."""
        ...

    def sqnorms(self, mode: int) -> Array:
        """‖·‖² of each sample (mode 0) or feature (mode 1)."""
        ...

    def counts(self, mode: int) -> Array:
        """The number of observed entries of each sample (mode 0) or feature (mode 1)."""
        ...

    def squared_error(self, factors: Sequence[Array]) -> float:
        """‖X − model‖², computed from the residual: accurate near a perfect fit, where the statistics cancel."""
        ...

    def pieces(self) -> Iterator[Array]:
        """Yield the values of X for `checksum`, in an order that does not depend on the memory layout or on chunks."""
        ...


class Sliced(Data, Protocol):
    """The interface of matrices and tensors in memory."""

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        """Return the statistics of ``factors[mode]``, given the Gram matrix of every factor.

        The arrays belong to the data: the next call for the same mode overwrites them.
        """
        ...

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """Return the loss at ``factors``, given the statistics that ``factors[mode]`` was just updated with."""
        ...

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        """‖·‖² of the residual of each slice of one mode, given its statistics."""
        ...

    def slice_residual(self, factors: Sequence[Array], mode: int, i: int) -> Form:
        """The residual of slice ``i`` of one mode: of a sample (mode 0) or feature (mode 1)."""
        ...

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """The residual X − model times a vector for every mode but one, in double precision."""
        ...


class Whole(Sliced, Protocol):
    """The interface of matrices in memory."""

    scales: Scales  # by which the X of the user was multiplied

    def times(self, vector: Array, mode: int) -> Array:
        """X·vector (mode 0) or Xᵀ·vector (mode 1), in double precision."""
        ...

    def vectors(self, mode: int, which: Array) -> Array:
        """Return samples (mode 0) or features (mode 1) of X as the columns of a dense array."""
        ...

    def subset(self, which: Array) -> Whole:
        """Return some of the samples, in memory."""
        ...

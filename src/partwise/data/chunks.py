"""X in chunks of samples: the base classes for data on disk and on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..runtime.arrays import DType
from ..runtime.together import Request
from ..statistics import Array, Stats
from .dense import DenseData
from .matrix import Matrix
from .missing import MissingDense
from .scales import Scales
from .steps import Cut, Question, Residual, Start, Step, Survey, Surveyed, Surveying, own_gram, surveyed
from .values import check_scale
from .zeros import DenseChunk


class Chunked(ABC):
    """Data that is processed in passes over its chunks. Each chunk is a `Matrix`.

    ``bounds`` holds the first sample of each chunk, followed by the number of samples.
    """

    shape: tuple[int, int]
    dtype: DType
    bounds: Sequence[int]
    squared = True
    here = True  # whether the activations are in this process
    missing = False  # whether NaN marks a missing entry
    shared = False  # whether a pass can serve several fits
    passes = 0  # over X, so far
    signed = False
    scales = Scales()  # by which the X of the user is multiplied when it is read

    @cached_property
    def complete(self) -> bool:
        """Whether no entry is missing. If NaN is allowed, this needs the first pass."""
        return not self.missing or bool((self.survey.seen == self.shape[0]).all())

    @property
    def can_accelerate(self) -> bool:
        """Whether factors can be extrapolated. With missing entries, the loss at them would take another pass."""
        return self.complete

    def kind(self) -> type[DenseData]:
        """The class of a dense chunk. Until the first pass is complete, any entry may be missing."""
        return MissingDense if self.missing and not self.__dict__.get("complete", False) else DenseChunk

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.shape[0] * self.shape[1]

    @abstractmethod
    def chunks(self) -> Iterator[Matrix]:
        """Yield the chunks in this process. Each chunk is valid until the next one is requested."""

    def pieces(self) -> Iterator[Array]:
        """Yield the values of X for `checksum`: those of its chunks."""
        return (piece for chunk in self.chunks() for piece in chunk.pieces())

    @abstractmethod
    def total(self, question: Question) -> Any:
        """Return the sum of ``question(chunk)`` over all chunks."""

    @abstractmethod
    def hold(self, start: Start, r: int) -> Held:
        """Return activations that stay with their chunks, initialised by ``start``."""

    @abstractmethod
    def subset(self, which: Array) -> Matrix:
        """Load some of the samples into memory."""

    def entrywise(self) -> Any:
        """The data with weights of all entries in place of scales, if there is such a kind; otherwise the same data."""
        return self

    def adapted(self, step: Step) -> Step:
        """The step for chunks with the loss of this data."""
        return step

    def visit_together(self, held: Sequence[Held], steps: Sequence[Step]) -> list[Any]:
        """Take a step with each of several fits' activations, and return the sums, from one pass if possible."""
        return [one.visit_all(step) for one, step in zip(held, steps, strict=True)]

    def mapped(self, start: Start, step: Step, r: int) -> Any:
        """The activations after one step from the start, as a lazy array; None if the data has no lazy form."""
        return None

    @cached_property
    def survey(self) -> Survey:
        """The result of the first pass, which also validates all values."""
        found: Survey = self.total(surveyed)
        check_scale(found.peak, self.dtype)
        return found

    def first_total(self, question: Question) -> Any:
        """The same as `total`. If this is the first pass, it makes the survey, too."""
        if "survey" in self.__dict__:
            return self.total(question)
        both: Surveyed = self.total(Surveying(question))
        check_scale(both.survey.peak, self.dtype)
        self.__dict__["survey"] = both.survey
        return both.answer

    def check(self) -> None:
        """Raise ValueError for NaN, infinite or negative values. Makes the first pass if it has not been made yet."""
        _ = self.survey

    @cached_property
    def sqnorm(self) -> float:
        """‖X‖²."""
        return float(self.survey.squares.sum())

    @property
    def peak(self) -> float:
        """The largest entry."""
        return self.survey.peak

    def sqnorms(self, mode: int) -> Array:
        """‖·‖² of each feature (mode 1). Those of the samples are not available."""
        if mode == 0:
            raise ValueError("the norms of the samples are not available for chunked data")
        return self.survey.squares

    def counts(self, mode: int) -> Array:
        """The number of samples in which each feature is observed (mode 1)."""
        return self.survey.seen

    def with_sqnorm(self, stats: Stats) -> Stats:
        """Add ‖X‖² to the summed statistics of the chunks. If entries are missing, the sum already contains it."""
        return replace(stats, sqnorm=self.sqnorm) if self.complete else stats

    def squared_error(self, factors: Sequence[Array | Held]) -> float:
        """‖X − model‖², computed from the residual."""
        activations, parts = factors
        assert isinstance(activations, Held)
        assert isinstance(parts, np.ndarray)
        return float(activations.sweep(Residual(parts)))

    @property
    def matrix(self) -> Any:
        """Not available for chunked data."""
        raise ValueError(
            "init='nndsvd' needs X in memory: use 'samples' or 'random', or give (activations, components)"
        )


class Held(ABC):
    """Activations (samples × r) that are stored with their chunks. Only `sweep` reads and writes them."""

    data: Chunked

    def __init__(self, data: Chunked, r: int) -> None:
        self.shape, self.dtype = (data.shape[0], r), data.dtype
        self.scale: Array | None = None  # of the columns; applied in the next sweep
        self.cut = False  # whether the next sweep drops the columns that steps have added

    def __len__(self) -> int:
        return self.shape[0]

    def __imul__(self, scale: Array | float) -> Held:
        self.scale = (np.ones(self.shape[1]) if self.scale is None else self.scale) * scale
        return self

    def __itruediv__(self, scale: Array | float) -> Held:
        return self.__imul__(1 / np.asarray(scale, dtype=float))

    @staticmethod
    def scaled(scale: Array | None, activations: Array) -> Array:
        """Return the activations with their columns multiplied by ``scale``, and without columns beyond it."""
        if scale is None:
            return activations
        return np.asfortranarray(activations[:, : len(scale)] * scale.astype(activations.dtype))

    def sweep(self, step: Step) -> Any:
        """Apply ``step`` to every chunk and return the sum of the results.

        A step may add columns, which the next step gets, too, unless ``cut`` is set.
        """
        return self.visit_all(self.after_cut(step))

    def after_cut(self, step: Step) -> Step:
        """The step that drops columns first if ``cut`` is set."""
        cut, self.cut = self.cut, False
        return Cut(step, self.shape[1]) if cut else step

    @abstractmethod
    def visit_all(self, step: Step) -> Any:
        """Apply ``step`` to every chunk and return the sum of the results."""

    @abstractmethod
    def collected(self) -> Any:
        """The activations as a NumPy or Dask array."""

    def gram(self) -> Array:
        """AᵀA of the activations A."""
        return np.asarray(self.sweep(own_gram))

    def release(self) -> None:  # noqa: B027
        """Free the activations on remote workers. Local ones are freed by the garbage collector."""


@dataclass(frozen=True, eq=False)
class Pass(Request):
    """What a fit awaits: the sum of a step over all chunks, as by ``held.sweep``."""

    held: Held
    step: Step

    @property
    def kind(self) -> Hashable:
        """The same X."""
        return id(self.held.data) if self.held.data.shared else super().kind

    @property
    def cost(self) -> float:
        """The number of entries that are read."""
        return float(self.held.data.size)

    def answers(self, requests: Sequence[Self]) -> list[Any]:
        """The sums of several fits."""
        if len(requests) == 1:
            return [self.held.sweep(self.step)]
        steps = [one.held.after_cut(one.step) for one in requests]
        return self.held.data.visit_together([one.held for one in requests], steps)


@contextmanager
def in_chunk(index: int, first: int, end: int) -> Iterator[None]:
    """Add the chunk to the message of an error, once, even if the error is raised again."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "chunk"):
            raise
        error.chunk = index  # type: ignore[attr-defined]
        where = f"chunk {index} (samples {first} to {end - 1})"
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (f"{where}: {error.args[0]}",)
        else:
            error.add_note(f"in {where}")
        raise

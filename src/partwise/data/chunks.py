"""X in chunks of samples: what data on disk and data on a cluster share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..statistics import Array, Stats, gram
from .dense import DenseData
from .matrix import Matrix
from .missing import MissingDense
from .values import check_scale

Start = Callable[[int, int], Array]  # activations to begin with, of samples first … end
Step = Callable[
    [Matrix, Array], tuple[Array, Any]
]  # a chunk and its activations → new ones, and something that adds up


class Chunked(ABC):
    """Data that no array holds: it answers by passes over its chunks, each a `Matrix`.

    ``bounds`` has the first sample of each chunk, and the number of samples as its last entry.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    bounds: Sequence[int]
    squared = True
    here = True  # whether activations lie in this process
    missing = False  # whether NaN means a missing entry

    @cached_property
    def complete(self) -> bool:
        """Whether no entry is missing: the first pass knows, where any may be."""
        return not self.missing or bool((self.survey.seen == self.shape[0]).all())

    def kind(self) -> type[DenseData]:
        """What a dense chunk is: while the first pass is not over, any entry may be missing."""
        return MissingDense if self.missing and not self.__dict__.get("complete", False) else DenseData

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.shape[0] * self.shape[1]

    @abstractmethod
    def chunks(self) -> Iterator[Matrix]:
        """One chunk after the other, here; each is good until the next one is asked for."""

    @abstractmethod
    def total(self, question: Callable[[Matrix], Any]) -> Any:
        """The sum of the answers of all chunks."""

    @abstractmethod
    def hold(self, start: Start, r: int) -> Held:
        """Activations that stay with their chunks, from ``start``."""

    @abstractmethod
    def subset(self, which: Array) -> Matrix:
        """Some of the samples, in memory."""

    def mapped(self, start: Start, step: Step, r: int) -> Any:
        """The activations after one step from the start, to be computed when they are asked for; None: do it now."""
        return None

    @cached_property
    def survey(self) -> Survey:
        """What the first pass finds out, which also checks all values."""
        found: Survey = self.total(surveyed)
        check_scale(found.peak, self.dtype)
        return found

    def check(self) -> None:
        """Refuse values that no factorization can use: the first pass, if there was none yet."""
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
        """‖·‖² of each feature (mode 1); those of samples stay with their chunks."""
        if mode == 0:
            raise ValueError("the norms of samples stay with their chunks")
        return self.survey.squares

    def counts(self, mode: int) -> Array:
        """How many samples have each feature (mode 1)."""
        return self.survey.seen

    def settled(self, stats: Stats) -> Stats:
        """Sums of the chunks' statistics as statistics: with ‖X‖², which completed chunks have summed up themselves."""
        return replace(stats, sqnorm=self.sqnorm) if self.complete else stats

    def squared_error(self, factors: Sequence[Any]) -> float:
        """‖X − model‖², from the residual itself."""
        return float(factors[0].sweep(Residual(factors[1])))

    @property
    def matrix(self) -> Any:
        """Not to be had."""
        raise ValueError(
            "init='nndsvd' needs X in memory: take 'samples' or 'random', or give (activations, components)"
        )


class Held(ABC):
    """Activations (samples × r) that lie with the chunks of their samples, and are seen by `sweep` alone."""

    def __init__(self, data: Chunked, r: int) -> None:
        self.shape, self.dtype = (data.shape[0], r), data.dtype
        self.scale: Array | None = None  # of the columns, to be applied at the next sweep

    def __len__(self) -> int:
        return self.shape[0]

    def __imul__(self, scale: Any) -> Held:
        self.scale = (np.ones(self.shape[1]) if self.scale is None else self.scale) * scale
        return self

    def __itruediv__(self, scale: Any) -> Held:
        return self.__imul__(1 / np.asarray(scale, dtype=float))

    @staticmethod
    def scaled(scale: Array | None, activations: Array) -> Array:
        """Activations with a scale applied."""
        return activations if scale is None else np.asfortranarray(activations * scale.astype(activations.dtype))

    @abstractmethod
    def sweep(self, step: Step) -> Any:
        """Let every chunk take a step; the sum of what they return."""

    @abstractmethod
    def collected(self) -> Any:
        """The activations as an array, of a kind that can hold them."""

    def gram(self) -> Array:
        """AᵀA of the activations A."""
        return np.asarray(self.sweep(own_gram))

    def release(self) -> None:  # noqa: B027
        """Drop what lies with the chunks; whatever lies here goes by itself."""


@contextmanager
def released_on_error(factors: Sequence[Any]) -> Iterator[None]:
    """Drop activations that lie elsewhere if something fails: whoever looks at the error still refers to them."""
    try:
        yield
    except BaseException:
        for factor in factors:
            if isinstance(factor, Held):
                factor.release()
        raise


@dataclass(frozen=True)
class Survey:
    """‖·‖² of each feature, the largest entry, and how many samples have each feature."""

    squares: Array
    peak: float
    seen: Array

    def __add__(self, other: Survey) -> Survey:
        return Survey(self.squares + other.squares, max(self.peak, other.peak), self.seen + other.seen)


def surveyed(chunk: Matrix) -> Survey:
    """The survey of a chunk, whose values are found to be good."""
    chunk.check()
    check_scale(chunk.peak, chunk.dtype, np.inf)  # a chunk may be dark, but not too bright
    return Survey(chunk.sqnorms(1), chunk.peak, chunk.counts(1))


def own_gram(chunk: Matrix, activations: Array) -> tuple[Array, Array]:
    """The step that asks for the Gram matrix of the activations."""
    return activations, gram(activations)


class Residual:
    """The step that asks for ‖X − activations·partsᵀ‖²."""

    def __init__(self, parts: Array) -> None:
        self.parts = parts

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, float]:
        """The activations, unchanged, and the squared error of the chunk."""
        return activations, chunk.squared_error([activations, self.parts])


@contextmanager
def named(index: int, first: int, end: int) -> Iterator[None]:
    """Say in which chunk an error happened, in the error itself: once, however often it is raised again."""
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

"""What a pass does with a chunk: questions to it, and steps, which also change its activations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..runtime.together import Request, alone
from ..statistics import Additive, Array, Stats, gram
from .matrix import Matrix
from .values import check_scale

Question = Callable[[Matrix], Any]  # chunk → a result that is summed over the chunks
Start = Callable[[int, int], Array]  # (first, end) → the initial activations of these samples
# (chunk, activations) → new activations, and a result that is summed over the chunks
Step = Callable[[Matrix, Array], tuple[Array, Any]]


@dataclass(frozen=True)
class Survey:
    """‖·‖² of each feature, the largest entry, and the number of samples in which each feature is observed."""

    squares: Array
    peak: float
    seen: Array

    def __add__(self, other: Survey) -> Survey:
        return Survey(self.squares + other.squares, max(self.peak, other.peak), self.seen + other.seen)


def surveyed(chunk: Matrix) -> Survey:
    """Validate a chunk and return its survey."""
    chunk.check()
    check_scale(chunk.peak, chunk.dtype, np.inf)  # no lower limit: all values of one chunk may be tiny
    return Survey(chunk.sqnorms(1), chunk.peak, chunk.counts(1))


@dataclass(frozen=True)
class Surveyed(Additive):
    """A survey, and the answer to another question."""

    survey: Survey
    answer: Any


@dataclass(frozen=True)
class Surveying:
    """Another question, asked after a chunk is validated."""

    question: Question

    def __call__(self, chunk: Matrix) -> Surveyed:
        """Return the survey of the chunk and its answer."""
        return Surveyed(surveyed(chunk), self.question(chunk))


@dataclass(frozen=True, eq=False)
class ChunkSums(Request):
    """The statistics of ``factors[mode]`` in a chunk, as by ``chunk.sums``."""

    chunk: Matrix
    factors: Sequence[Array]
    grams: Sequence[Array | None]
    mode: int

    @property
    def kind(self) -> Hashable:
        """The same mode of the same chunk."""
        return (id(self.chunk), self.mode) if self.chunk.shared else super().kind

    def answers(self, requests: Sequence[Self]) -> list[Stats]:
        """The statistics of several fits."""
        if not self.chunk.shared:
            return [self.chunk.sums(self.factors, self.grams, self.mode)]
        others = [one.factors[1 - self.mode] for one in requests]
        grams = [one.grams[1 - self.mode] for one in requests]
        crosses = self.chunk.crosses(others, self.mode, fresh=True)  # a pass keeps them until it ends
        return [
            Stats(cross, gram(other) if own is None else own, 0.0)
            for cross, other, own in zip(crosses, others, grams, strict=True)
        ]


class SharingStep(ABC):
    """A step that awaits its `ChunkSums`, so that the steps of several fits share the products with a chunk."""

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Any]:
        """Return new activations of the chunk, and a result that is summed over the chunks."""
        return alone(self.take(chunk, activations))

    @abstractmethod
    async def take(self, chunk: Matrix, activations: Array) -> tuple[Array, Any]:
        """The same as a job."""


async def taken(step: Step, chunk: Matrix, activations: Array) -> tuple[Array, Any]:
    """Any step as a job."""
    return await step.take(chunk, activations) if isinstance(step, SharingStep) else step(chunk, activations)


@dataclass(frozen=True)
class Cut(SharingStep):
    """Another step, which gets only the first ``r`` columns."""

    step: Step
    r: int

    async def take(self, chunk: Matrix, activations: Array) -> tuple[Array, Any]:
        """Return what the other step returns."""
        return await taken(self.step, chunk, np.asfortranarray(activations[:, : self.r]))


@dataclass(frozen=True)
class Residual:
    """A step that returns ‖X − activations·partsᵀ‖²."""

    parts: Array

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, float]:
        """Return the unchanged activations and the squared error of the chunk."""
        return activations, chunk.squared_error([activations, self.parts])


def own_gram(chunk: Matrix, activations: Array) -> tuple[Array, Array]:
    """A step that returns the Gram matrix of the activations."""
    return activations, gram(activations)

"""X in chunks, with the Kullback–Leibler divergence as the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..statistics import Array
from .chunks import Chunked, Held
from .dense import DenseData
from .divergence import DivergenceData, Totals, lowest_model
from .matrix import Matrix
from .steps import Question, Start, Step, Survey
from .weighted import WeightedDense


class DivergenceChunks(Chunked):
    """X in chunks, each of which is a `DivergenceData`."""

    squared = False

    def __init__(self, data: Chunked) -> None:
        self.data = data
        self.shape, self.dtype, self.bounds = data.shape, data.dtype, data.bounds
        self.here, self.missing = data.here, data.missing

    @cached_property
    def floor(self) -> float:
        """What is added to the model."""
        return lowest_model(self.data.peak, self.dtype)

    @cached_property
    def sqnorm(self) -> float:
        """Twice the divergence from the features' means: what relative errors are relative to."""
        return 2 * float(self.data.total(Totals.of).divergence)

    @property
    def survey(self) -> Survey:
        return self.data.survey

    @property
    def passes(self) -> int:  # type: ignore[override]
        """The number of passes over X so far."""
        return self.data.passes

    @property
    def complete(self) -> bool:
        return self.data.complete

    def kind(self) -> type[DenseData]:
        return self.data.kind()

    def chunks(self) -> Iterator[Any]:
        return (DivergenceData(chunk, floor=self.floor) for chunk in self.data.chunks())

    def total(self, question: Question) -> Any:
        return self.data.total(AskWithDivergence(question, self.floor))

    def hold(self, start: Start, r: int) -> Held:
        return self.data.hold(start, r)

    def subset(self, which: Array) -> Matrix:
        return self.data.subset(which)

    def adapted(self, step: Step) -> Step:
        return StepWithDivergence(step, self.floor)

    def mapped(self, start: Start, step: Step, r: int) -> Any:
        return self.data.mapped(start, self.adapted(step), r)

    def with_sqnorm(self, stats: Any) -> Any:
        """Return the same sums, which contain the divergence."""
        return stats


@dataclass(frozen=True)
class AskWithDivergence:
    """A question about chunks with the divergence as their loss."""

    question: Question
    floor: float

    def __call__(self, chunk: Matrix) -> Any:
        """Return the answer."""
        return self.question(DivergenceData(chunk, floor=self.floor))  # type: ignore[arg-type]


@dataclass(frozen=True)
class StepWithDivergence:
    """A step for chunks with the divergence as their loss."""

    step: Step
    floor: float

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Any]:
        """Return the new activations, and what is summed over the chunks."""
        return self.step(DivergenceData(chunk, floor=self.floor), activations)  # type: ignore[arg-type]


def with_divergence(data: Any) -> Any:
    """X with the Kullback–Leibler divergence as its loss. Raises ValueError for weights and negative entries."""
    if isinstance(data, WeightedDense) or data.scales:
        raise ValueError("weights need the squared loss: omit them, or use loss='squared'")
    if data.signed:
        raise ValueError("negative='allow' needs the squared loss: use loss='squared', or shift or clip the data")
    return DivergenceChunks(data) if isinstance(data, Chunked) else DivergenceData(data)

"""X with the Kullback–Leibler divergence as the loss, which needs the model at every nonzero entry of X."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from ..runtime.arrays import DType
from ..statistics import Additive, Array, Quadratic, Rates, Slopes, Stats, Unpenalised, as_factor, gram
from .lines import Rest, slopes_of_lines, solve_lines
from .logarithms import add_lines, entropy
from .matrix import Matrix, Wrapped
from .protocols import Which

FLOOR = 1.75  # power of machine epsilon, times the largest entry: what is added to the model, against division by zero
EQUAL = 1e-10  # of the sum of X: a divergence from the means below this is rounding


class DivergenceData(Wrapped):
    """X with the loss Σ x·log(x / model) − x + model, where model = activations · ``middle`` · componentsᵀ.

    Where the model is zero and X is not, the divergence would be infinite. A tiny ``floor`` is therefore added to the
    model, in double precision 4e-28 times the largest entry of X (by default that of ``data``).
    """

    data: Matrix
    squared = False
    signed = False
    shared = False  # its statistics depend on the model

    def __init__(self, data: Matrix, middle: Array | None = None, floor: float | None = None) -> None:
        super().__init__(data)
        self.middle = None if middle is None else middle.astype(data.dtype)
        self.floor = lowest_model(data.peak, data.dtype) if floor is None else floor

    @cached_property
    def sqnorm(self) -> float:
        """Twice the divergence from the features' means: what relative errors are relative to."""
        return 2 * Totals.of(self.data).divergence

    def row_errors(self, factors: Sequence[Array], stats: Any, mode: int) -> Array:
        """Twice the divergence of each line."""
        return 2 * LineRates(self, self.rest(factors, mode), mode).losses(factors[mode])

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """Zeros: a component that is restarted begins with zeros, which do not raise the divergence."""
        return np.zeros(self.shape[mode])

    def statistics(
        self, factors: Sequence[Array], grams: Sequence[Array], mode: int
    ) -> Any:  # Rates, which the loop passes on to the update
        return LineRates(self, self.rest(factors, mode), mode)

    def rest(self, factors: Sequence[Array], mode: int) -> Array:
        """The matrix that a factor is multiplied with in the model."""
        rest = factors[1 - mode]
        return rest if self.middle is None else rest @ (self.middle if mode else self.middle.T)

    def loss(self, stats: Stats | Rates, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        assert isinstance(stats, LineRates)
        return stats.loss(factors[mode]) if stats.value is None else stats.value

    def sums(self, factors: Sequence[Array], grams: Sequence[Array | None], mode: int) -> Any:
        """The statistics of the activations, or what adds up over samples: the slopes of the components."""
        rates = LineRates(self, self.rest(factors, mode), mode)
        return rates.slopes(factors[1]) if mode else rates

    def subset(self, which: Which) -> DivergenceData:
        """Return some of the samples."""
        return DivergenceData(self.data.subset(which), self.middle, self.floor)

    @property
    def first(self) -> int:
        """The index of the first sample, if this is a chunk."""
        return self.data.first

    @property
    def unseen(self) -> Array:
        """Samples without any observed entry."""
        return self.data.unseen

    def patterns(self, parts: Array) -> Iterator[tuple[Which, Any]]:
        """Yield all samples, and the statistics of their activations."""
        yield slice(None), LineRates(self, parts, 0)

    def folded(self, factors: Sequence[Array]) -> list[Array]:
        if self.middle is None:
            return [*factors]
        return [np.asfortranarray(factors[0] @ self.middle), factors[1]]


@dataclass(frozen=True)
class Totals(Additive):
    """Σ x·log x, and the sum and the number of the observed entries of each feature."""

    logs: float
    sums: Array
    counts: Array

    @classmethod
    def of(cls, data: Matrix) -> Totals:
        """The totals of a matrix."""
        logs, sums = 0.0, np.zeros(data.shape[1])
        for some in data.lines(0):
            logs += float(entropy(some.values))
            add_lines(some.values, some.indices, some.starts, sums)
        return cls(logs, sums, data.counts(1))

    @property
    def divergence(self) -> float:
        """The divergence of X from the means of its features, to which that of a model is compared.

        If all samples are equal, it is zero up to rounding, and the sum of X takes its place.
        """
        found = self.logs - float(xlogy(self.sums, self.sums / np.maximum(self.counts, 1)).sum())
        total = float(self.sums.sum())
        return found if found > EQUAL * total else total


class LineRates(Unpenalised, Rates):
    """The statistics of one factor, computed line by line. ``value`` is the divergence after the last update, if known.

    ``which`` are the columns of the factor that change, next to those of ``fixed``; by default all do.
    """

    def __init__(
        self,
        data: DivergenceData,
        rest: Array,
        mode: int,
        which: Sequence[int] | None = None,
        fixed: Array | None = None,
    ) -> None:
        self.data, self.rest, self.mode, self.fixed = data, as_factor(rest), mode, fixed
        self.which = np.arange(rest.shape[1]) if which is None else np.array(which)
        self.value: float | None = None

    @cached_property
    def layouts(self) -> Rest:
        """The rest in the layouts that the kernels need."""
        return Rest.of(self.rest)

    def beside(self, factor: Array, known: list[int], free: list[int]) -> LineRates:
        return LineRates(self.data, self.rest, self.mode, free, factor)

    def whole(self, factor: Array) -> Array:
        """The factor with its fixed columns."""
        if self.fixed is None:
            return as_factor(factor)
        whole = self.fixed.copy(order="F")
        whole[:, self.which] = factor
        return whole

    def slopes(self, factor: Array, curved: bool = True) -> Slopes:
        whole = self.whole(factor)
        numerator, curvature = np.empty_like(whole), np.empty_like(whole[: len(whole) if curved else 0], order="F")
        complete = self.data.complete
        sums = np.empty((0 if complete else len(whole), whole.shape[1]), order="F")
        value = float(self.measured(whole, numerator, curvature, sums).sum())
        which = self.which
        sums = self.layouts.sums[which] if complete else sums[:, which]
        return Slopes(numerator[:, which], sums, curvature[:, which], value, gram(self.rest)[np.ix_(which, which)])

    def measured(self, whole: Array, *outs: Array) -> Array:
        """The divergence of each line. Writes numerator, curvature and sums to arrays that are not empty."""
        return slopes_of_lines(self.data.data.lines(self.mode), self.layouts, whole, self.data.floor, *outs)

    def solved(self, factor: Array, sweeps: int, tol: float = 0.0) -> Array:
        # the divergence takes logarithms, and is recorded after updates of the activations only
        whole = self.whole(factor)
        lines, losses = self.data.data.lines(self.mode), np.empty(0 if self.mode else len(whole))
        solve_lines(lines, self.layouts, whole, self.which, sweeps, tol, self.data.floor, losses)
        self.value = None if self.mode else float(losses.sum())
        return whole if self.fixed is None else np.asfortranarray(whole[:, self.which])

    def losses(self, factor: Array) -> Array:
        """The divergence of each line."""
        return self.measured(self.whole(factor), *(np.empty((0, self.rest.shape[1]), dtype) for dtype in self.kinds))

    def loss(self, factor: Array, own_gram: Array | None = None) -> float:
        return float(self.losses(factor).sum())

    def around(self, factor: Array) -> Quadratic:
        return self.slopes(factor).quadratic()

    def fits(self, factor: Array) -> Array:
        return np.asarray(factor.sum(axis=0, dtype=float) * self.layouts.sums[self.which])

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The dtypes of what is computed besides the divergence."""
        return self.data.dtype, self.data.dtype, np.float64


def lowest_model(peak: float, dtype: DType) -> float:
    """What is added to the model of data with this largest entry."""
    return float(np.finfo(dtype).eps) ** FLOOR * peak or float(np.finfo(dtype).tiny)

"""The statistics of the Kullback–Leibler divergence.

It does not follow from a few sums, as the squared loss does. `Rates` answer at a given factor with `Slopes`, whose
`Quadratic` form can be kept while the factor moves on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ..runtime.arrays import Array
from .factors import Additive

STEEP = 100.0  # numerators above this many times the sums are of entries that the model hardly covers


class Rates(Protocol):
    """The statistics of one factor for the Kullback–Leibler divergence.

    The divergence does not follow from a few sums, so an update asks for what it needs at a given factor. What is
    computed at each request is a pass over X.
    """

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Rates:
        """Return the same statistics. Raises ValueError for a penalty, which the divergence does not support."""
        ...

    def beside(self, factor: Array, known: list[int], free: list[int]) -> Rates:
        """The statistics of the ``free`` columns, next to the ``known`` ones."""
        ...

    def slopes(self, factor: Array, curved: bool = True) -> Slopes:
        """Gradient, curvature (if ``curved``) and divergence at ``factor``."""
        ...

    def solved(self, factor: Array, sweeps: int, tol: float = 0.0) -> Array:
        """Improve each row of ``factor`` by itself, in place, by sweeps of Newton steps that never raise the loss."""
        ...

    def loss(self, factor: Array, own_gram: Array | None = None) -> float:
        """The divergence at ``factor``."""
        ...

    def around(self, factor: Array) -> Quadratic:
        """What can be kept of the statistics while the factor moves on."""
        ...

    def fits(self, factor: Array) -> Array:
        """The sum of the model's entries that are due to each component."""
        ...


class Unpenalised:
    """The base class of statistics that support no penalties."""

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Self:
        """Return the same statistics. Raises ValueError for a penalty."""
        refuse_penalties(l1, l2, rows)
        return self


@dataclass(frozen=True)
class Slopes(Additive, Unpenalised):
    """The Kullback–Leibler divergence near one point of a factor F.

    Attributes
    ----------
    numerator : array of shape (rows, r)
        (X / model)·rest.
    sums : float64 array of shape (r,), or of shape (rows, r) if entries are missing
        The column sums of rest, over the entries that are observed in each row. The gradient is sums − numerator.
    curvature : array of shape (rows, r)
        (X / model²)·(rest ∘ Σ rest), where Σ rest are the sums of its rows: the diagonal of a quadratic form that is
        nowhere below that of the second derivatives.
    value : float
        The divergence.
    gram : float64 array of shape (r, r)
        restᵀrest.
    """

    numerator: Array
    sums: Array
    curvature: Array
    value: float
    gram: Array

    def quadratic(self, steep: bool = True) -> Quadratic:
        """A quadratic form whose minimum is that of the divergence, also where entries have to grow by much.

        With the bound of `data.lines`, an entry with numerator N and sum s < N has its minimum at N/s times Newton's
        step, so its curvature is divided by N/s. Where N is very large, because the model is next to zero, the form
        would demand this step at any price. With ``steep``, such slopes and curvatures are reduced to what the
        divergence gains, which grows only as the logarithm.
        """
        numerator, sums = self.numerator.astype(float), np.broadcast_to(self.sums, self.numerator.shape)
        growth = np.divide(numerator, sums, out=np.ones_like(numerator), where=(numerator > sums) & (sums > 0))
        gradient, curvature = sums - numerator, self.curvature / growth
        if steep:
            beyond = np.maximum(growth / STEEP, 1)
            share = (1 + np.log(beyond)) / beyond
            gradient, curvature = gradient * share, curvature * share
        return Quadratic(gradient, curvature, self.gram)

    def beside(self, factor: Array, known: list[int], free: list[int]) -> Slopes:
        """The slopes of the ``free`` columns."""
        numerator, sums, curvature = (a[..., free] for a in (self.numerator, self.sums, self.curvature))
        return Slopes(numerator, sums, curvature, self.value, self.gram[np.ix_(free, free)])

    def loss(self, factor: Array, own_gram: Array | None = None) -> float:
        """The divergence at the factor that the slopes belong to."""
        return self.value


@dataclass(frozen=True)
class Quadratic(Additive, Unpenalised):
    """A quadratic form with a diagonal matrix of second derivatives, near one point of a factor.

    Unlike the divergence, it can be kept while the factor moves on (`after`), so that forms of earlier samples can be
    discounted and added up.
    """

    gradient: Array
    curvature: Array
    gram: Array

    def discounted(self, share: float) -> Quadratic:
        """The form times ``share``."""
        return Quadratic(self.gradient * share, self.curvature * share, self.gram * share)

    def without(self, which: Array) -> Quadratic:
        """The form without what is known about some columns."""
        gradient, curvature, own = (array.copy(order="F") for array in (self.gradient, self.curvature, self.gram))
        gradient[:, which], curvature[:, which], own[which], own[:, which] = 0, 0, 0, 0
        return Quadratic(gradient, curvature, own)

    def after(self, step: Array) -> Quadratic:
        """The form at a factor that has changed by ``step``."""
        return replace(self, gradient=self.gradient + self.curvature * step)

    def mixed(self, scale: Array) -> Quadratic:
        """The form for a factor divided by ``scale``, a number for each column."""
        return Quadratic(self.gradient * scale, self.curvature * scale**2, self.gram * np.outer(scale, scale))

    def numbers(self) -> list[Any]:
        """What the form consists of, for files."""
        return [self.gradient, self.curvature, self.gram]

    def beside(self, factor: Array, known: list[int], free: list[int]) -> Quadratic:
        """The form of the ``free`` columns."""
        return Quadratic(self.gradient[:, free], self.curvature[:, free], self.gram[np.ix_(free, free)])

    def quadratic(self, steep: bool = True) -> Quadratic:
        """The form itself."""
        return self


def refuse_penalties(*penalties: float) -> None:
    """Raise ValueError for a penalty, which the divergence does not support."""
    if any(penalties):
        raise ValueError("penalties are not available with the Kullback–Leibler divergence: use the squared loss")

"""The statistics of X that updates use in place of X.

With every other factor fixed, the loss of a factor F (rows × r) is

    ½‖X − model‖² = ½·sqnorm − ⟨F, cross⟩ + ½⟨FᵀF, gram⟩,      cross = X·rest,  gram = restᵀrest,

so that no update needs X. The statistics add up over samples, and a penalty is a change of the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .runtime.arrays import Array as Array
from .runtime.compiled import kernel
from .runtime.threads import LEAST, in_parts, product

STEEP = 100.0  # numerators above this many times the sums are of entries that the model hardly covers
ROWS = 8192  # rows of a factor that stay in cache
NOTHING = 1e-24  # a component is dead if its ‖·‖² is at most this times the largest one


@dataclass(frozen=True)
class Stats:
    """The statistics of one factor.

    Attributes
    ----------
    cross : array of shape (rows, r), its columns contiguous
        X·rest, where rest is the matrix that the factor is multiplied with in the model: model = F·restᵀ.
    gram : float64 array of shape (r, r)
        restᵀrest.
    sqnorm : float
        ‖X‖².

    Examples
    --------
    >>> X, rest = np.eye(3), np.ones((3, 1))
    >>> stats = Stats(X @ rest, rest.T @ rest, 3.0)
    >>> stats.loss(np.zeros((3, 1))), stats.loss(np.full((3, 1), 1 / 3))
    (1.5, 1.0)
    """

    cross: Array
    gram: Array
    sqnorm: float

    def __add__(self, other: Stats) -> Stats:
        """The statistics of two sets of samples together, for the factor that they share."""
        return Stats(self.cross + other.cross, self.gram + other.gram, self.sqnorm + other.sqnorm)

    def discounted(self, share: float) -> Stats:
        """The statistics with each sample weighted by ``share``."""
        return Stats(self.cross * self.cross.dtype.type(share), self.gram * share, self.sqnorm * share)

    def without(self, which: Array) -> Stats:
        """The statistics without what is known about some columns."""
        cross, own = self.cross.copy(order="F"), self.gram.copy()
        cross[:, which], own[which], own[:, which] = 0, 0, 0
        return Stats(cross, own, self.sqnorm)

    def around(self, factor: Array) -> Stats:
        """What can be kept of the statistics while the factor moves on: everything, because the loss is quadratic."""
        return self

    def after(self, step: Array) -> Stats:
        """The statistics after the factor has changed by ``step``: they are the same."""
        return self

    def numbers(self) -> list[Any]:
        """What the statistics consist of, for files."""
        return [self.cross, self.gram, self.sqnorm]

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Stats:
        """The statistics of the loss plus l1·ΣF + ½·l2·‖F‖² + ½·rows·Σ_i(Σ_j F_ij)²."""
        stats = self
        if l1:
            stats = replace(stats, cross=stats.cross - stats.cross.dtype.type(l1))
        if l2 or rows:
            stats = replace(stats, gram=stats.gram + l2 * np.eye(len(stats.gram)) + rows)
        return stats

    def mixed(self, middle: Array) -> Stats:
        """The statistics with rest·``middle`` in place of rest. A vector stands for a diagonal matrix."""
        small = middle.astype(self.cross.dtype)
        if middle.ndim == 1:
            return replace(self, cross=self.cross * small, gram=self.gram * np.outer(middle, middle))
        return replace(self, cross=product(small.T, self.cross.T).T, gram=middle.T @ self.gram @ middle)

    def normalised(self) -> tuple[Array, Array, Array]:
        """(cross, gram, scale) for columns of rest normalised to 1. A solution F then stands for the factor F·scale.

        Rows of ``cross`` are contiguous and in double precision. Columns of norm 0 have scale 0.
        """
        norms = np.sqrt(self.gram.diagonal())
        scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
        cross = np.ascontiguousarray(self.cross * scale, dtype=float)
        return cross, self.gram * scale * scale[:, None], scale

    def divisors(self, dtype: npt.DTypeLike) -> Array:
        """The Gram matrix in another precision. Diagonal entries are 0 where they are too small to divide by."""
        gram = np.array(self.gram, dtype=dtype, order="C")
        own = gram.diagonal()
        np.fill_diagonal(gram, np.where(own < np.finfo(gram.dtype).tiny, 0, own))
        return gram

    def slope(self, factor: Array) -> Array:
        """The gradient of the loss, F·gram − cross."""
        slope = product(self.gram.astype(factor.dtype), factor.T).T
        slope -= self.cross
        return slope

    def change(self, slope: Array, step: Array) -> tuple[float, float]:
        """The change of the loss by a step from a point with this slope: its linear and its quadratic term."""
        bent = product(self.gram.astype(step.dtype), step.T).T
        return inner(slope, step), 0.5 * inner(step, bent)

    def loss(self, factor: Array, own_gram: Array | None = None) -> float:
        """The loss at ``factor``. ``own_gram`` is its Gram matrix, if known.

        Near a perfect fit the three terms cancel: relative errors below 1e-8 (1e-4 in float32) are lost to rounding.
        """
        own = gram(factor) if own_gram is None else own_gram
        return float(0.5 * self.sqnorm - inner(factor, self.cross) + 0.5 * np.vdot(own, self.gram))

    def beside(self, factor: Array, known: list[int], free: list[int]) -> Stats:
        """The statistics of the ``free`` columns, for X minus the share of the ``known`` ones."""
        fixed = factor[:, known]
        cross = self.cross[:, free] - fixed @ self.gram[np.ix_(known, free)].astype(factor.dtype)
        rest = 2 * Stats(self.cross[:, known], self.gram[np.ix_(known, known)], self.sqnorm).loss(fixed)
        return Stats(np.asfortranarray(cross), self.gram[np.ix_(free, free)], rest)

    def fits(self, factor: Array) -> Array:
        """⟨activations_j · component_j, 2X − model⟩ of each component. It adds up over samples.

        The sum over the components is the part of ‖X‖² that the model explains. Each value is nonnegative if the
        activations are optimal.
        """
        overlaps = np.einsum("jk,jk->j", gram(factor), self.gram)
        return np.asarray(2 * np.einsum("ij,ij->j", factor, self.cross, dtype=float) - overlaps)


@dataclass(frozen=True)
class Slopes:
    """The Kullback–Leibler divergence near one point of a factor F. It adds up over samples.

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

    def __add__(self, other: Slopes) -> Slopes:
        """The divergence of two sets of samples together, for the factor that they share."""
        return Slopes(
            self.numerator + other.numerator,
            self.sums + other.sums,
            self.curvature + other.curvature,
            self.value + other.value,
            self.gram + other.gram,
        )

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

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Slopes:
        """Return the same slopes. Raises ValueError for a penalty, which the divergence does not support."""
        refuse_penalties(l1, l2, rows)
        return self

    def beside(self, factor: Array, known: list[int], free: list[int]) -> Slopes:
        """The slopes of the ``free`` columns."""
        numerator, sums, curvature = (a[..., free] for a in (self.numerator, self.sums, self.curvature))
        return Slopes(numerator, sums, curvature, self.value, self.gram[np.ix_(free, free)])

    def loss(self, factor: Array, own_gram: Array | None = None) -> float:
        """The divergence at the factor that the slopes belong to."""
        return self.value


@dataclass(frozen=True)
class Quadratic:
    """A quadratic form with a diagonal matrix of second derivatives, near one point of a factor.

    Unlike the divergence, it can be kept while the factor moves on (`after`), so that forms of earlier samples can be
    discounted and added up.
    """

    gradient: Array
    curvature: Array
    gram: Array

    def __add__(self, other: Quadratic) -> Quadratic:
        """The sum of two forms at the same point."""
        gradient, curvature = self.gradient + other.gradient, self.curvature + other.curvature
        return Quadratic(gradient, curvature, self.gram + other.gram)

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

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> Quadratic:
        """Return the same form. Raises ValueError for a penalty, which the divergence does not support."""
        refuse_penalties(l1, l2, rows)
        return self

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


@dataclass(frozen=True)
class WeightedStats:
    """The statistics of one factor for weighted least squares, where each row f has a Gram matrix of its own.

    With weights v, the loss of F is Σ_f ½·F_f gram_f F_fᵀ − cross_f F_fᵀ + const, gram_f = Σ_i v_if·rest_iᵀ rest_i.

    Attributes
    ----------
    cross : array of shape (rows, r)
        (V∘X)·rest.
    grams : callable
        ``grams(j)`` is row j of the Gram matrix of every row, as an array of shape (rows, r). It may be overwritten.
    l2 : float
        Added to the diagonal of all Gram matrices.
    """

    cross: Array
    grams: Callable[[int], Array]
    l2: float = 0.0

    def penalised(self, l1: float = 0.0, l2: float = 0.0, rows: float = 0.0) -> WeightedStats:
        """The statistics of the loss plus l1·ΣF + ½·l2·‖F‖²."""
        if rows:
            raise ValueError("the squared sum of a row cannot be penalised together with weights: use ssnmf")
        return replace(self, cross=self.cross - self.cross.dtype.type(l1), l2=self.l2 + l2)


def as_factor(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return an array in the layout of all factors: contiguous columns, aligned, writable.

    BLAS and compiled kernels round differently for other layouts, which arrays that were unpickled, memory-mapped or
    received from Dask may have.
    """
    return np.require(array, dtype, ["F", "A", "W", "E"])


class HasGram(Protocol):
    """A factor that is not an array but knows its Gram matrix: activations that stay with their chunks."""

    def gram(self) -> Array: ...


def gram(factor: Array | HasGram) -> Array:
    """FᵀF as a double precision array, multiplied in the precision of ``factor``."""
    if not isinstance(factor, np.ndarray):
        return factor.gram()
    return sum_over_rows(lambda first, end: (factor[first:end].T @ factor[first:end]).astype(float), len(factor))


def sum_over_rows(term: Callable[[int, int], Array], rows: int) -> Array:
    """Σ term(first, end) over ranges of rows that fit into the cache; each thread takes some of them."""

    def part(first: int, end: int) -> Array:
        return reduce(np.add, (term(i, min(i + ROWS, end)) for i in range(first, max(end, 1), ROWS)))

    return reduce(np.add, in_parts(part, rows, LEAST))


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩, summed in double precision."""
    return float(_inner(np.ravel(a.T), np.ravel(b.T)))


@kernel
def _inner(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += np.float64(a[i]) * np.float64(b[i])  # in compiled code float() would keep float32
    return total


def relative_error(sqnorm: float, loss: float) -> float:
    """‖X − model‖ / ‖X‖, given ½‖X − model‖²; 0 if X is zero."""
    return float(np.sqrt(max(2 * loss, 0.0) / sqnorm)) if sqnorm > 0 else 0.0


def dead_components(grams: Sequence[Array], share: float = NOTHING) -> Array:
    """Components that are negligible relative to the largest one. Their ‖·‖² is the product over the factors."""
    sizes = math.prod(g.diagonal() for g in grams)
    return np.flatnonzero(sizes <= share * np.max(sizes))

"""The statistics of the squared loss.

With every other factor fixed, the loss of a factor F (rows × r) is

    ½‖X − model‖² = ½·sqnorm − ⟨F, cross⟩ + ½⟨FᵀF, gram⟩,      cross = X·rest,  gram = restᵀrest,

so that no update needs X. The statistics add up over samples, and a penalty is a change of the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Array
from ..runtime.threads import product
from .factors import Additive, gram, inner


@dataclass(frozen=True)
class Stats(Additive):
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
        own = gram.ravel()[:: len(gram) + 1]  # a view of the diagonal
        own[own < np.finfo(gram.dtype).tiny] = 0
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


def relative_error(sqnorm: float, loss: float) -> float:
    """‖X − model‖ / ‖X‖, given ½‖X − model‖²; 0 if X is zero."""
    return float(np.sqrt(max(2 * loss, 0.0) / sqnorm)) if sqnorm > 0 else 0.0

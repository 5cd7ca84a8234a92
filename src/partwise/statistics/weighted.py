"""The statistics of weighted least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..runtime.arrays import Array


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

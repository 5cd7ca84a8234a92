"""D in X ≈ activations · D · components: a third factor, diagonal or full, or a fixed matrix.

With the other two factors A and P fixed, the entries of D form one row and have statistics of the same form. For a
diagonal D

    cross = diag(AᵀXP),   gram = AᵀA ∘ PᵀP,

and for a full D cross = vec(AᵀXP) and gram = AᵀA ⊗ PᵀP. Any update for y ≥ 0 can therefore solve for D. For a tensor, a
diagonal D holds the weights of the components, with the same statistics over all modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data import Sliced, Wrapped
from ..statistics import Array, Stats

MIDDLE = 2  # the mode of D if X is a matrix
MOST = 64  # the largest number of components for a full D, whose Gram matrix has r⁴ entries


class WithMiddle(Wrapped):
    """X with the model factors[0] · D · factors[1]ᵀ. D is ``fixed`` (r × r), or the last of the factors, as one row.

    A row of r entries is a diagonal D, a row of r² entries a full one. For a tensor, D must be diagonal.
    """

    def __init__(self, data: Sliced, fixed: Array | None = None) -> None:
        super().__init__(data)
        self.fixed = fixed
        self.modes = len(data.shape)
        self._product: tuple[Sequence[Array], Array | None] = ([], None)  # Gram matrices of the rest, and X·rest

    def middle(self, factors: Sequence[Array]) -> Array:
        """D in double precision; a vector if D is diagonal."""
        if self.fixed is not None:
            return self.fixed
        row, r = factors[self.modes][0].astype(float), factors[0].shape[1]
        return row if row.size == r else row.reshape(r, r)

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        if mode == self.modes:
            return self._statistics_of_middle(factors, grams)
        stats = self.data.statistics(factors[: self.modes], grams[: self.modes], mode)
        if mode == 0:
            self._product = (grams[1 : self.modes], stats.cross)
        middle = self.middle(factors)
        return stats.mixed(middle if mode or middle.ndim == 1 else middle.T)

    def _statistics_of_middle(self, factors: Sequence[Array], grams: Sequence[Array]) -> Stats:
        known, product = self._product
        rest = grams[1 : self.modes]
        # a Gram matrix is a new array whenever its factor has changed
        if product is None or any(a is not b for a, b in zip(known, rest, strict=True)):
            product = self.data.statistics(factors[: self.modes], grams[: self.modes], 0).cross
            self._product = (rest, product)
        if factors[self.modes].size == factors[0].shape[1]:
            cross = np.einsum("ij,ij->j", factors[0], product, dtype=float)
            own = np.prod(grams[: self.modes], axis=0)
        else:
            cross = np.asarray(factors[0].T @ product, dtype=float).ravel()
            own = np.kron(grams[0], grams[1])
        return Stats(np.asfortranarray(cross[None], dtype=self.dtype), own, self.sqnorm)

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        return stats.loss(factors[mode], grams[mode])

    def folded(self, factors: Sequence[Array]) -> list[Array]:
        """Return factors of the same model without a middle factor: D is multiplied into the activations."""
        middle = self.middle(factors)
        left = factors[0] * middle if middle.ndim == 1 else factors[0] @ middle
        return [np.asfortranarray(left, dtype=self.dtype), *factors[1 : self.modes]]

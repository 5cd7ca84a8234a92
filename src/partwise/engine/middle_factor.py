"""D in X ≈ activations · D · components: a third factor, diagonal or full, or a matrix that stays.

With the other two fixed, the loss of D's entries d (one row) has statistics too: for a diagonal D

    cross = diag(AᵀXP),   gram = AᵀA ∘ PᵀP,

for a full one cross = vec(AᵀXP) and gram = AᵀA ⊗ PᵀP. Any update for y ≥ 0 therefore serves as a solver. For a tensor,
a diagonal D holds the weights of its components: the same sums, over all modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import Whole, Wrapped
from ..statistics import Array, Stats, gram
from ..updates import Sets
from .starts import Factors

MIDDLE = 2  # the mode of D, where X is a matrix
MOST = 64  # components with a full D, whose Gram matrix has r⁴ entries


class WithMiddle(Wrapped):
    """X for the model factors[0] · D · factors[1]ᵀ; D is ``fixed`` (r × r), or the last of the factors, as one row.

    A row of r entries is a diagonal, one of r² entries a full matrix. A tensor, with a factor for each mode, takes a
    diagonal.
    """

    def __init__(self, data: Whole, fixed: Array | None = None) -> None:
        super().__init__(data)
        self.fixed = fixed
        self.modes = len(data.shape)
        self._product: tuple[Sequence[Array], Array | None] = ([], None)  # Gram matrices of the rest, and X·rest

    def middle(self, factors: Sequence[Array]) -> Array:
        """D in double precision: a vector if it is diagonal."""
        if self.fixed is not None:
            return self.fixed
        row, r = factors[self.modes][0].astype(float), factors[0].shape[1]
        return row if row.size == r else row.reshape(r, r)

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        if mode == self.modes:
            return self._statistics_of_middle(factors, grams)
        stats: Stats = self.data.statistics(factors[: self.modes], grams[: self.modes], mode)
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

    def squared_error(self, factors: Sequence[Array]) -> float:
        middle = self.middle(factors)
        left = factors[0] * middle if middle.ndim == 1 else factors[0] @ middle
        return float(self.data.squared_error([np.asfortranarray(left, dtype=self.dtype), *factors[1 : self.modes]]))


def revive_unused(data: Any, factors: Factors, stats: Stats, mode: int, sets: Sequence[Sets], dead: Array) -> list[int]:
    """Start components again whose entry of a diagonal D is zero: they may be anything, and D decides if they help.

    Each takes the positive residual of a badly fitted sample as its part, and what fits to that as its activations.
    """
    unused = [int(j) for j in dead if factors[MIDDLE][0, j] == 0]
    errors = data.row_errors(factors, data.statistics(factors, [gram(f) for f in factors], 0), 0)
    alive = []
    for j, row in zip(unused, np.argsort(-errors, kind="stable"), strict=False):
        weights = factors[MIDDLE][0]
        residual = data.vectors(0, np.array([row]))[:, 0] - factors[1] @ (weights * factors[0][row])
        if errors[row] <= 1e-12 * data.sqnorm / len(errors) or residual.max() <= 0:
            break
        factors[1][:, j] = part = sets[1][j](np.maximum(residual, 0))
        fit = data.times(part, 0) - factors[0] @ (weights * (factors[1].T @ part))
        factors[0][:, j] = sets[0][j](np.maximum(fit, 0).astype(data.dtype))
        alive.append(j)
    return alive

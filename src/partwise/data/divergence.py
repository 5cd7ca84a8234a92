"""X with the Kullback–Leibler divergence as the loss, which needs the model at every entry of X."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..statistics import Array, Ratios, Stats
from .matrix import Matrix, Wrapped


class DivergenceData(Wrapped):
    """X with the loss Σ x·log(x / model) − x + model, where model = activations · ``middle`` · componentsᵀ.

    Its statistics are `Ratios`, which only multiplicative updates accept. Of sparse data, only stored entries are read.
    """

    data: Matrix
    squared = False

    def __init__(self, data: Matrix, middle: Array) -> None:
        super().__init__(data)
        self.middle = middle.astype(data.dtype)

    def statistics(
        self, factors: Sequence[Array], grams: Sequence[Array], mode: int
    ) -> Any:  # Ratios, which the loop passes on to the update
        left, right = factors
        if mode:
            left = left @ self.middle
        else:
            right = right @ self.middle.T
        rest = left if mode else right
        return Ratios(self.data.ratios(left, right, mode), rest.sum(axis=0, dtype=float))

    def loss(self, stats: Stats | Ratios, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        return self.data.divergence(factors[0] @ self.middle, factors[1])

    def folded(self, factors: Sequence[Array]) -> list[Array]:
        return [np.asfortranarray(factors[0] @ self.middle), factors[1]]

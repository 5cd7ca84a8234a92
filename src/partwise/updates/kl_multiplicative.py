"""Multiplicative updates for the Kullback–Leibler divergence.

References
----------
D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", NIPS 2000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Ratios, Stats
from .interface import Sets, State, Update


@dataclass(frozen=True)
class Divergence(Update):
    """F ← F ∘ ((X / model)·rest) / Σ rest, once: each update needs its own pass over X."""

    def __call__(self, factor: Array, stats: Stats | Ratios, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place. Raises ValueError for the statistics of the squared loss."""
        if not isinstance(stats, Ratios):
            raise ValueError(
                "Divergence needs data with the Kullback–Leibler divergence as its loss: use DivergenceData"
            )
        used = stats.sums > 0
        factor *= np.divide(stats.numerator, stats.sums, out=np.zeros_like(stats.numerator), where=used, dtype=float)
        return factor, state

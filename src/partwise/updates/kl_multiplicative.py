"""Multiplicative updates for the Kullback–Leibler divergence.

References
----------
D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", NIPS 2000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Rates, Stats
from .interface import Sets, State, Update, as_rates


@dataclass(frozen=True)
class Divergence(Update):
    """F ← F ∘ ((X / model)·rest) / Σ rest, once: each update needs its own pass over X."""

    def __call__(self, factor: Array, stats: Stats | Rates, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place. Raises ValueError for the statistics of the squared loss."""
        slopes = as_rates(stats, self).slopes(factor, curved=False)
        ratio = np.divide(slopes.numerator, slopes.sums, out=np.zeros(factor.shape), where=slopes.sums > 0)
        factor *= ratio.astype(factor.dtype, copy=False)
        return factor, state

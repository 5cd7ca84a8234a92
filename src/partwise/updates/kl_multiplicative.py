"""Multiplicative updates for the Kullback–Leibler divergence.

References
----------
D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", NIPS 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..statistics import Array
from .interface import Sets, State, Update


@dataclass(frozen=True)
class Divergence(Update):
    """F ← F ∘ ((X / model)·rest) / Σ rest, once: each update needs its own pass over X."""

    def __call__(self, factor: Array, stats: Any, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place; ``stats`` are `Ratios`."""
        used = stats.sums > 0
        factor *= np.divide(stats.numerator, stats.sums, out=np.zeros_like(stats.numerator), where=used, dtype=float)
        return factor, state

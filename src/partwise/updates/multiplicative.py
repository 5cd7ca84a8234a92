"""Multiplicative updates.

For y ≥ 0 each entry is multiplied by cross / (F·gram). The factor stays nonnegative without a projection, and the loss
never rises. But zeros stay zero, and convergence is slow in the end.

References
----------
D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", NIPS 2000 (the paper's Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..runtime.threads import product
from ..statistics import Array, Stats
from .interface import Sets, State, Update, nearest_in


@dataclass(frozen=True)
class Multiplicative(Update):
    """F ← F ∘ cross / (F·gram + epsilon), ``repeats`` times.

    The step minimises a separable upper bound of the loss, which has a weight for every entry. Sets other than y ≥ 0
    need a single weight for each column. For these the bound is gram ≼ diag(weights) with weights = gram·v / v, where v
    are the norms of the columns, and F_j ← projection of F_j − gradient_j / weights_j. Neither step increases the loss.

    Parameters
    ----------
    repeats : int
        Updates for the same statistics.
    epsilon : float
        Added to the denominators, as in the paper. All are first divided by √G_jj, and epsilon is a share of the
        largest in the row, so that the scales of X and of the columns do not matter.
    l1 : float
        The ℓ1 penalty that was subtracted from cross. It is moved to the denominator (Hoyer 2002; y ≥ 0 only).
    """

    repeats: int = 1
    epsilon: float = 1e-9
    l1: float = 0.0

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        gram = stats.divisors(factor.dtype)
        if sets.nonnegative:
            self.scale_entries(factor, stats.cross, gram)
        else:
            self.project_columns(factor, stats.cross, gram, sets)
        return factor, state

    def scale_entries(self, factor: Array, cross: Array, gram: Array) -> None:
        """Update under y ≥ 0, with the other factor's columns scaled to norm 1, which does not change the ratios."""
        norms = np.sqrt(gram.diagonal())
        inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
        l1 = factor.dtype.type(self.l1) * inverse
        wanted = cross * inverse
        if self.l1:
            wanted += l1
        np.maximum(wanted, 0, out=wanted)
        least = np.maximum(1e-30 * wanted.max(axis=1), np.finfo(factor.dtype).tiny)  # keeps ratios finite
        scaled = gram * inverse[:, None]
        for _ in range(self.repeats):
            model = product(scaled, factor.T).T
            model += np.maximum(self.epsilon * model.max(axis=1), least).astype(factor.dtype)[:, None]
            if self.l1:
                model += l1
            np.divide(wanted, model, out=model)
            factor *= model

    def project_columns(self, factor: Array, cross: Array, gram: Array, sets: Sets) -> None:
        """Update under other sets, with a single weight for each column."""
        for _ in range(self.repeats):
            slope = product(gram, factor.T).T - cross
            norms = np.maximum(np.linalg.norm(factor, axis=0), np.finfo(factor.dtype).tiny)
            weights = gram @ norms / norms
            for j in np.flatnonzero(gram.diagonal() > 0).tolist():
                factor[:, j] = nearest_in(sets[j], factor[:, j] - slope[:, j] / weights[j], factor[:, j])

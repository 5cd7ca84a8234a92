"""Multiplicative updates.

For y ≥ 0 each entry is scaled by cross / (F·gram): the factor stays nonnegative without a projection, and the loss
never rises; but zeros are locked, and the tail is slow.

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
from .protocol import State, Update
from .sets import Sets


@dataclass(frozen=True)
class Multiplicative(Update):
    """F ← F ∘ cross / (F·gram + epsilon), ``repeats`` times.

    The step minimises a separable bound of the loss, with a weight for every entry. For other sets than y ≥ 0, whose
    nearest point needs one weight for all entries of a column, the bound gram ≼ diag(gram·v / v) with v the norms of
    the columns takes its place: F_j ← nearest point to F_j − gradient_j / weight_j. Neither increases the loss.

    Parameters
    ----------
    repeats : int
        Updates for the same statistics.
    epsilon : float
        Added to the denominator, as in the paper; here in units of the largest in its row, so that X may have
        any scale.
    l1 : float
        What a penalty has subtracted from cross: it is moved to the denominator (Hoyer 2002; y ≥ 0 only).
    """

    repeats: int = 1
    epsilon: float = 1e-9
    l1: float = 0.0

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        gram = stats.gram.astype(factor.dtype)
        for _ in range(self.repeats):
            model = product(gram, factor.T).T
            if sets.nonnegative:
                wanted = np.maximum(stats.cross + factor.dtype.type(self.l1), 0)
                small = np.maximum(self.epsilon * model.max(axis=1), 1e-30 * wanted.max(axis=1))  # a ratio is finite
                model += np.maximum(small + self.l1, np.finfo(factor.dtype).tiny).astype(factor.dtype)[:, None]
                np.divide(wanted, model, out=model)
                factor *= model
            else:
                model -= stats.cross
                norms = np.maximum(np.linalg.norm(factor, axis=0), np.finfo(factor.dtype).tiny)
                weights = gram @ norms / norms
                for j in np.flatnonzero(gram.diagonal() > 0).tolist():
                    factor[:, j] = sets[j](factor[:, j] - model[:, j] / weights[j], near=factor[:, j])
        return factor, state

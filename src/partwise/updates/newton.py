"""Newton steps for single entries with the Kullback–Leibler divergence, row by row (see `data.lines`).

References
----------
C.-J. Hsieh and I. S. Dhillon, "Fast coordinate descent methods with variable selection for non-negative matrix
factorization", KDD 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..statistics import Array, Rates, Stats
from .interface import Sets, State, Update, as_rates, require_nonnegative


@dataclass(frozen=True)
class Newton(Update):
    """Sweep over the entries of each row. No step raises the divergence.

    Parameters
    ----------
    sweeps : int
        The largest number of sweeps. Reading X and computing the model cost about as much as one.
    tol : float
        Stop when no step of a sweep is larger than this, relative to the model of the row.
    """

    sweeps: int = 2
    tol: float = 0.0
    separable = True

    def __call__(self, factor: Array, stats: Stats | Rates, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        require_nonnegative(sets, "Newton")
        return as_rates(stats, self).solved(factor, self.sweeps, self.tol), state

"""Exact least squares with bounds: 0 ≤ a ≤ u.

This is a special case of rows on the simplex. Divided by 2Σu, the entries of a row sum to at most ½. With an additional
component of zeros, whose entry is the rest, each row sums to 1, and `simplex` solves for shares with upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..projections import Bounded, Nonnegative
from ..runtime.threads import LEAST, in_parts
from ..statistics import Array, Stats
from .interface import Columns, Sets, State, Update
from .pivot import SWEEPS, work_arrays
from .sequential import Sequential
from .simplex import UNREACHED, rows_of_sum_one


@dataclass(frozen=True)
class WithinBounds(Update):
    """Solve min ½·aᵀGa − cᵀa over 0 ≤ a ≤ u exactly, for every row a of the factor.

    A row is improved from where it is. Rows of a factor of zeros start from a few sweeps without the bounds, which
    need no projection in Python for each column.
    """

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor`` by the solution. Columns whose component is zero do not change."""
        upper = upper_bounds(sets)
        if not factor.any():
            factor, _ = Sequential(SWEEPS)(factor, stats, Columns.same(Nonnegative(), len(upper)), {})
        gram = np.pad(stats.divisors(float), (1, 0))
        used, scale = gram.diagonal()[1:] > 0, 2 * upper.sum()
        most = np.concatenate([[UNREACHED], upper / scale])

        def solve(first: int, end: int) -> None:
            cross = np.pad(stats.cross[first:end].astype(float) / scale, ((0, 0), (1, 0)))
            before, shares = np.clip(factor[first:end], 0, upper), np.zeros(cross.shape)
            np.divide(before, scale, out=shares[:, 1:], where=used)
            shares[:, 0] = 1 - shares.sum(axis=1)
            rows_of_sum_one(shares, cross, gram, most, *work_arrays(len(gram)))
            found = np.where(shares[:, 1:] == most[1:], upper, np.minimum(shares[:, 1:] * scale, upper))
            factor[first:end] = np.where(used, found, before)

        in_parts(solve, len(factor), LEAST)
        return factor, state


def upper_bounds(sets: Sets) -> Array:
    """The upper bound of each column. Raises ValueError for sets without one."""
    own = [sets[j] for j in range(len(sets))]
    bounds = [s.upper for s in own if isinstance(s, Bounded)]
    if len(bounds) < len(own):
        other = next(s for s in own if not isinstance(s, Bounded))
        raise ValueError(f"WithinBounds supports sets 0 ≤ y ≤ u only, not {other!r}")
    return np.array(bounds)

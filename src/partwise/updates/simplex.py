"""Exact least squares with rows on the simplex: a ≥ 0, Σa = 1.

With a multiplier λ for the sum, a row solves nonnegative least squares with the cross product c − λ. Its sum falls as λ
grows: it is 0 at λ = max c and, with c_j = max c, at least 1 at λ = c_j − 2·G_jj, where a_j = 2 alone lowers the
objective by 2·G_jj, and no a lowers it by more than 2·G_jj·Σa. It is piecewise linear in λ, so that the Illinois method
ends on the piece with Σa = 1, where the mixture of two solutions is exact. (It is exact as well if components are
linearly dependent and the sum jumps: both solutions are then optimal for the same λ.)

Reference: D. C. Heinz and C.-I Chang, "Fully constrained least squares linear spectral mixture analysis", IEEE TGRS 39
(2001), for the problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..projections import Nonnegative, Simplex
from ..statistics import Array, Stats
from .interface import Columns, Rows, Sets, State, Update
from .pivot import Pivot

MOST_ROUNDS, BISECT_AFTER = 100, 30
EXACT = 1e-14


@dataclass(frozen=True)
class SumToOne(Update):
    """Solve min ½·aᵀGa − cᵀa over a ≥ 0, Σa = 1 exactly, for every row a of the factor."""

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor`` by the solution."""
        if not (isinstance(sets, Rows) and isinstance(sets.row, Simplex)):
            raise ValueError(f"SumToOne supports rows on the simplex only, not {sets!r}")
        used = np.flatnonzero(stats.divisors(float).diagonal())
        factor[...] = 0 if used.size else 1 / factor.shape[1]
        if used.size:
            gram, cross = stats.gram[np.ix_(used, used)], stats.cross[:, used].astype(float)
            factor[:, used] = rows_of_sum_one(cross, gram)
        return factor, state


def rows_of_sum_one(cross: Array, gram: Array) -> Array:
    """The solution of every row; no column of zeros may be in the Gram matrix.

    ½ρ(Σa)² is constant where Σa = 1. With it, every λ gives a least-squares problem, even if components are dependent.
    """
    gram = gram + gram.diagonal().mean()
    best = cross.argmax(axis=1)
    high = cross[np.arange(len(cross)), best]
    low = high - 2 * gram.diagonal()[best]
    above, below = solved(cross, gram, low, np.zeros_like(cross)), np.zeros_like(cross)
    excess, lack = above.sum(axis=1) - 1, np.full(len(cross), -1.0)
    side = np.zeros(len(cross))  # the end that moved last
    left = np.flatnonzero(excess > EXACT)
    for round_ in range(MOST_ROUNDS):
        if not left.size:
            break
        a, b, x, y = low[left], high[left], excess[left], lack[left]
        secant, middle = (b * x - a * y) / (x - y), (a + b) / 2
        useful = (a < secant) & (secant < b) & (round_ < BISECT_AFTER)  # not where the sum jumps
        at = np.where(useful, secant, middle)
        rows = solved(cross[left], gram, at, below[left])
        found = rows.sum(axis=1) - 1
        more = found >= 0
        up, down = left[more], left[~more]
        lack[up[side[up] > 0]] *= 0.5  # Illinois: an end that does not move counts half
        excess[down[side[down] < 0]] *= 0.5
        low[up], above[up], excess[up], side[up] = at[more], rows[more], found[more], 1
        high[down], below[down], lack[down], side[down] = at[~more], rows[~more], found[~more], -1
        same = ((above[left] > 0) == (below[left] > 0)).all(axis=1)  # on one piece: their mixture is exact
        left = left[~(same | (np.abs(found) <= EXACT) | (middle <= a) | (middle >= b))]
    return mixed(above, below)


def solved(cross: Array, gram: Array, at: Array, start: Array) -> Array:
    """Nonnegative least squares with cross − λ for each row, from a starting point."""
    stats = Stats(np.asfortranarray(cross - at[:, None]), gram, 0.0)
    return Pivot()(np.asfortranarray(start), stats, Columns.same(Nonnegative(), len(gram)), {})[0]


def mixed(above: Array, below: Array) -> Array:
    """The mixture of two solutions, with sums of at least and of at most 1, that sums to 1."""
    more, less = above.sum(axis=1), below.sum(axis=1)
    share = np.divide(1 - less, more - less, out=np.ones_like(more), where=more > less)[:, None]
    rows = np.clip(share, 0, 1) * above + (1 - np.clip(share, 0, 1)) * below
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))

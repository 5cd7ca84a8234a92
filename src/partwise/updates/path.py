"""The regularisation path of nonnegative ℓ1-penalised least squares, followed to a given number of nonzeros.

References
----------
M. Mørup, K. H. Madsen and L. K. Hansen, "Approximate L0 constrained non-negative matrix and tensor factorization",
ISCAS 2008 (NLARS). B. Efron et al., "Least angle regression", Annals of Statistics 32 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..runtime.compiled import kernel, piece
from ..statistics import Array, Stats
from .interface import Sets, State, Update
from .pivot import cholesky, solve_support, work_arrays


@dataclass(frozen=True)
class Path(Update):
    """For every row min ½·hᵀGh − cᵀh + λΣh over h ≥ 0, with λ such that at most ``nonzeros`` entries are positive.

    The solution is followed from λ = max c, where h = 0, as a piecewise linear function of λ. An entry joins the
    support when its slope reaches λ, and leaves when it falls to zero. The path ends when an entry too many would join
    for the first time.

    Parameters
    ----------
    nonzeros : int
    refit : bool
        Solve again on the support without the penalty, which removes the shrinkage. Entries that would turn negative
        leave the support.
    """

    nonzeros: int
    refit: bool = True

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor``."""
        cross, gram, scale = stats.normalised()  # so that the scale of the components does not matter
        solution = np.zeros(cross.shape)
        follow_rows(solution, cross, gram, self.nonzeros, self.refit, *work_arrays(len(gram)))
        factor[...] = solution * scale
        return factor, state


@kernel
def follow_rows(
    h: Array, cross: Array, gram: Array, most: int, refit: bool, factor: Array, vectors: Array, places: Array
) -> None:
    """Follow the path of every row."""
    r = gram.shape[0]
    x, ray, y, ones = vectors[0], vectors[1], vectors[2], vectors[3]
    passive, useless, members = places[0], places[1], places[2]
    for a in range(r):
        ones[a] = 1.0
    for i in range(h.shape[0]):
        for a in range(r):
            passive[a], useless[a], h[i, a] = 0, gram[a, a] <= 0, 0.0
        size, left, last = 0, -1, -1
        level = largest_slope(cross[i], useless)
        floor = 1e-13 * level  # smaller λ are rounding errors: the end of the path
        for _ in range(8 * r + 8):
            if level <= floor:
                break
            # on the support h(λ) = x − λ·ray
            if size:
                if cholesky(gram, passive, members, factor) < 0:
                    break
                solve_support(gram, ones, passive, members, size, factor, y, ray)
                solve_support(gram, cross[i], passive, members, size, factor, y, x)
            following, event, joins = next_change(cross[i], gram, x, ray, passive, useless, left, level, floor)
            if size > most and (joins or following < level):  # an entry too many has joined, and none leaves
                break
            level = following if event >= 0 else 0.0
            break_at(h, i, x, ray, passive, level)
            left = -1
            if event < 0:
                break
            passive[event] = joins
            size += 1 if joins else -1
            if joins and cholesky(gram, passive, members, factor) < 0:
                passive[event], useless[event] = 0, 1
                size -= 1
            elif joins:
                last = event
            else:
                left, h[i, event] = event, 0.0
        if size > most:
            passive[last] = 0
        if refit:
            solve_chosen(h[i], cross[i], gram, passive, members, factor, y, x)


@piece
def largest_slope(c: Array, useless: Array) -> float:
    """The largest slope of a usable entry, slightly enlarged so that this entry joins first."""
    top = 0.0
    for a in range(c.size):
        if not useless[a]:
            top = max(top, c[a])
    return top * (1 + 1e-12)


@piece
def next_change(
    c: Array, gram: Array, x: Array, ray: Array, passive: Array, useless: Array, left: int, level: float, floor: float
) -> tuple[float, int, bool]:
    """The next λ at which the support changes, the entry that does, or −1, and whether it joins.

    On the support, the solution at λ is x − λ·ray. The entry ``left`` was the last to leave.
    """
    following, event, joins = floor, -1, False
    for a in range(c.size):
        if passive[a] and ray[a] < 0:  # decreases with λ
            at = min(x[a] / ray[a], level)
            if at > following:
                following, event, joins = at, a, False
    for a in range(c.size):  # at equal levels, entries leave before others join
        if not passive[a] and not useless[a] and a != left:
            slope, turn = c[a], 1.0
            for b in range(c.size):
                if passive[b]:
                    slope -= gram[a, b] * x[b]
                    turn -= gram[a, b] * ray[b]
            # the slope at λ is slope + λ·(1 − turn); it reaches λ where slope = λ·turn
            if turn > 1e-12:
                at = min(slope / turn, level)
                if at > following:
                    following, event, joins = at, a, True
    return following, event, joins


@piece
def break_at(h: Array, i: int, x: Array, ray: Array, passive: Array, level: float) -> None:
    """Write the solution at λ = ``level`` to row i of h."""
    for a in range(passive.size):
        h[i, a] = max(x[a] - level * ray[a], 0.0) if passive[a] else 0.0


@piece
def solve_chosen(
    h: Array, c: Array, gram: Array, passive: Array, members: Array, factor: Array, y: Array, x: Array
) -> None:
    """Least squares on the support, without entries that turn negative. If no solution is left, h is unchanged."""
    negative, size = True, 1
    while negative and size > 0:
        size = cholesky(gram, passive, members, factor)
        negative = False
        if size > 0:
            solve_support(gram, c, passive, members, size, factor, y, x)
            for a in range(h.size):
                if passive[a] and x[a] <= 0:
                    passive[a] = 0
                    negative = True
    if size > 0:
        for a in range(h.size):
            h[a] = x[a] if passive[a] else 0.0

"""Block principal pivoting: exact nonnegative least squares.

References
----------
H. Kim and H. Park, "Nonnegative matrix factorization based on alternating nonnegativity constrained least squares and
active set method", SIAM J. Matrix Anal. Appl. 30 (2008); J. Kim and H. Park, "Toward faster nonnegative matrix
factorization: a new algorithm and comparisons", ICDM 2008. C. L. Lawson and R. J. Hanson, "Solving Least Squares
Problems", 1974, chapter 23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..runtime.compiled import kernel, piece
from ..statistics import Array, Stats
from .interface import Sets, State, Update, require_nonnegative
from .sequential import sweep_rows

SWEEPS = 12  # for an initial guess
ROWS = 2**14  # rows that are solved at a time


@dataclass(frozen=True)
class Pivot(Update):
    """Solve min ½·hᵀGh − cᵀh over h ≥ 0 exactly, for every row h of the factor (y ≥ 0 only).

    The support of the factor is the initial guess; that of a factor of zeros comes from a few sweeps. All entries with
    the wrong sign are exchanged at once. After three such exchanges without progress, only the last of them is
    exchanged, which cannot cycle. Rows with the same support share one Cholesky factor. If the Gram matrix of a support
    is singular (equal components, or more components than features), the row is solved by Lawson and Hanson's method,
    whose supports stay linearly independent.
    """

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor`` by the solution."""
        require_nonnegative(sets, "Pivot")
        known = bool(factor.any())
        for first in range(0, len(factor), ROWS):  # several copies of some rows only
            rows = slice(first, first + ROWS)
            solve(factor[rows], replace(stats, cross=stats.cross[rows]), known)
        return factor, state


def solve(factor: Array, stats: Stats, known: bool) -> None:
    """Replace rows of a factor by the solution. ``known``: their support is the initial guess."""
    cross, gram, scale = stats.normalised()  # so that the scale of the components does not matter
    used = scale > 0
    guess = factor if known else swept(cross, gram) * scale
    solution = np.divide(guess, scale, out=np.zeros(factor.shape), where=used)
    unsolved = np.ones(len(factor), dtype=bool)
    order = np.lexsort(np.packbits(solution > 0, axis=1).T)  # equal supports are adjacent
    solve_rows(solution, cross, gram, order, unsolved, *work_arrays(len(gram)))
    if unsolved.any():
        grow_support(solution, cross, gram, np.flatnonzero(unsolved), len(gram), *work_arrays(len(gram)))
    factor[...] = np.where(used, solution * scale, factor)


def swept(cross: Array, gram: Array) -> Array:
    """An approximate solution, by sweeps over the columns from zero."""
    factor = np.zeros(cross.shape, order="F")
    sweep_rows(factor, np.asfortranarray(cross), gram, np.tile(np.arange(len(gram)), (SWEEPS, 1)))
    return factor


def work_arrays(r: int) -> tuple[Array, Array, Array]:
    """Return work arrays for the kernels: a Cholesky factor, vectors, and sets of columns."""
    return np.empty((r, r)), np.empty((4, r)), np.empty((3, r), dtype=np.int64)


@kernel
def solve_rows(
    h: Array, cross: Array, gram: Array, order: Array, unsolved: Array, factor: Array, vectors: Array, places: Array
) -> None:
    """Solve every row from its own support. Rows with a singular Gram matrix stay marked as unsolved."""
    r = gram.shape[0]
    z, y, passive, held, members = vectors[0], vectors[1], places[0], places[1], places[2]
    size = -1  # of the support with a known Cholesky factor; −1: none yet
    for n in range(order.size):
        i = order[n]
        c, row = cross[i], h[i]
        rounding = 0.0
        for a in range(r):
            rounding = max(rounding, 1e-13 * abs(c[a]))
            passive[a] = row[a] > 0
        fewest, patience = r + 1, 3
        for _ in range(100 + 10 * r):
            same = size >= 0
            for a in range(r):
                same = same and held[a] == passive[a]
                held[a] = passive[a]
            if not same:
                size = cholesky(gram, passive, members, factor)
            if size < 0:
                break
            solve_support(gram, c, passive, members, size, factor, y, z)
            wrong, last = 0, -1
            for a in range(r):
                if z[a] < (0.0 if passive[a] else -rounding):
                    wrong, last = wrong + 1, a
            if wrong == 0:
                unsolved[i] = False
                for a in range(r):
                    row[a] = z[a] if passive[a] else 0.0
                break
            patience -= 1
            if wrong < fewest:
                fewest, patience = wrong, 3
            for a in range(r):
                if z[a] < (0.0 if passive[a] else -rounding) and (patience >= 0 or a == last):
                    passive[a] = 1 - passive[a]


@piece
def cholesky(gram: Array, passive: Array, members: Array, factor: Array) -> int:
    """Write the members of a support and the Cholesky factor of their Gram matrix. Returns its size, −1 if singular."""
    size = 0
    for a in range(passive.size):
        members[size] = a
        size += passive[a]
    p = 0
    while p < size:
        own, g = factor[p], gram[members[p]]
        for q in range(p + 1):
            other, total = factor[q], g[members[q]]
            for n in range(q):
                total -= own[n] * other[n]
            own[q] = total / other[q] if q < p else total
        p += 1
        if own[p - 1] > 1e-13 * g[members[p - 1]]:
            own[p - 1] = math.sqrt(own[p - 1])
        else:
            size = -1
    return size


@piece
def solve_support(
    gram: Array, c: Array, passive: Array, members: Array, size: int, factor: Array, y: Array, z: Array
) -> None:
    """Write the solution on the support, and the slope gram·x − c elsewhere, to z. y is overwritten."""
    for p in range(size):
        own, total = factor[p], c[members[p]]
        for n in range(p):
            total -= own[n] * y[n]
        y[p] = total / own[p]
    for p in range(size - 1, -1, -1):
        total = y[p]
        for n in range(p + 1, size):
            total -= factor[n, p] * y[n]
        y[p] = total / factor[p, p]
    for a in range(z.size):
        if not passive[a]:
            g, total = gram[a], -c[a]
            for p in range(size):
                total += g[members[p]] * y[p]
            z[a] = total
    for p in range(size):
        z[members[p]] = y[p]


@kernel
def grow_support(
    h: Array, cross: Array, gram: Array, rows: Array, most: int, factor: Array, vectors: Array, places: Array
) -> None:
    """Lawson and Hanson's method for ``rows``: the support grows by one entry at a time and stays linearly independent.

    An entry whose column depends on those of the support is skipped: its dual is zero up to rounding. The method stops
    at the solution, or when ``most`` entries are positive.
    """
    r = gram.shape[0]
    x, trial, y = vectors[0], vectors[1], vectors[2]
    passive, useless, members = places[0], places[1], places[2]
    for n in range(rows.size):
        i = rows[n]
        c = cross[i]
        rounding, size = 0.0, 0
        for a in range(r):
            x[a], passive[a], useless[a] = 0.0, 0, gram[a, a] <= 0
            rounding = max(rounding, 1e-13 * abs(c[a]))
        for _ in range(10 * r):
            best, where, size = -rounding, -1, 0
            for a in range(r):
                size += passive[a]
                if not passive[a] and not useless[a]:
                    total = -c[a]
                    for b in range(r):
                        total += gram[a, b] * x[b]
                    if total < best:
                        best, where = total, a
            if where < 0 or size >= most:
                break
            passive[where] = 1
            leaving = where
            while leaving >= 0:
                size = cholesky(gram, passive, members, factor)
                if size < 0:  # only in the first round: the new entry depends on the others
                    passive[where], useless[where] = 0, 1
                    break
                solve_support(gram, c, passive, members, size, factor, y, trial)
                share, leaving = 1.0, -1
                for a in range(r):
                    if passive[a] and trial[a] <= 0 and x[a] <= share * (x[a] - trial[a]):
                        share, leaving = x[a] / (x[a] - trial[a]) if x[a] > 0 else 0.0, a
                for a in range(r):
                    x[a] += share * (trial[a] - x[a]) * passive[a]
                if leaving >= 0:
                    x[leaving], passive[leaving] = 0.0, 0
                    useless[leaving] = leaving == where
        for a in range(r):
            h[i, a] = max(x[a], 0.0)

"""Block principal pivoting: nonnegative least squares, exactly.

References
----------
H. Kim and H. Park, "Nonnegative matrix factorization based on alternating nonnegativity constrained least squares and
active set method", SIAM J. Matrix Anal. Appl. 30 (2008); J. Kim and H. Park, "Toward faster nonnegative matrix
factorization: a new algorithm and comparisons", ICDM 2008. C. L. Lawson and R. J. Hanson, "Solving Least Squares
Problems", 1974, chapter 23.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..compiled import kernel, reduction
from ..statistics import Array, Stats
from .protocol import State, require_nonnegative
from .sets import Sets


@dataclass(frozen=True)
class Pivot:
    """Solve min ½·hᵀGh − cᵀh over h ≥ 0 exactly, for every row h of the factor (y ≥ 0 only).

    The factor's support is the first guess of the answer's. Entries with the wrong sign change sides all at once; after
    three such exchanges without progress only the last of them does, which cannot cycle. Rows with the same support
    share one Cholesky factor. Where the Gram matrix of a support is singular (twin parts, more parts than features),
    the row is solved by Lawson and Hanson's method instead, whose supports stay independent.
    """

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor`` by the solution."""
        require_nonnegative(sets, "Pivot")
        cross, gram, scale = stats.normalised()  # parts of all sizes count alike
        used = scale > 0
        solution = np.divide(factor, scale, out=np.zeros(factor.shape), where=used)
        open_rows = solve_rows(solution, cross, gram, grouped(solution > 0))
        grow_support(solution, cross, gram, open_rows, len(gram))
        factor[...] = np.where(used, solution * scale, factor)
        return factor, state


def grouped(support: Array) -> Array:
    """The order of the rows that brings equal supports together."""
    return np.lexsort(np.packbits(support, axis=1).T)


@kernel
def solve_rows(h: Any, cross: Any, gram: Any, order: Any) -> Any:
    """Solve every row from its own support; those that a singular Gram matrix leaves open."""
    r = gram.shape[0]
    open_rows = np.zeros(h.shape[0], dtype=np.bool_)
    passive, held = np.empty(r, dtype=np.bool_), np.zeros(r, dtype=np.bool_)
    factor = np.empty((r, r))
    held_size = -1  # the support whose Cholesky factor is at hand: none yet
    dual = np.empty(r)
    x = np.empty(r)
    for n in range(order.size):
        i = order[n]
        size = 0.0
        for a in range(r):
            size = max(size, abs(cross[i, a]))
            passive[a] = h[i, a] > 0 and gram[a, a] > 0
        fewest, patience = r + 1, 3
        solved = False
        for _ in range(100 + 10 * r):
            same = held_size >= 0
            for a in range(r):
                same = same and held[a] == passive[a]
            if not same:
                for a in range(r):
                    held[a] = passive[a]
                held_size = cholesky(gram, passive, factor)
            if held_size < 0:
                break
            solve_support(gram, cross[i], passive, factor, x, dual)
            wrong, last = 0, -1
            for a in range(r):
                if (passive[a] and x[a] < 0) or (not passive[a] and dual[a] < -1e-13 * size and gram[a, a] > 0):
                    wrong += 1
                    last = a
            if wrong == 0:
                solved = True
                break
            if wrong < fewest:
                fewest, patience = wrong, 3
            else:
                patience -= 1
            for a in range(r):
                if (passive[a] and x[a] < 0) or (not passive[a] and dual[a] < -1e-13 * size and gram[a, a] > 0):
                    if patience >= 0 or a == last:
                        passive[a] = not passive[a]
        open_rows[i] = not solved
        for a in range(r):
            h[i, a] = x[a] if solved else h[i, a]
    return indices(open_rows)


@kernel
def indices(chosen: Any) -> Any:
    """Where ``chosen`` is true."""
    where = np.empty(chosen.size, dtype=np.int64)
    n = 0
    for i in range(chosen.size):
        where[n] = i
        n += chosen[i]
    return where[:n]


@kernel
def how_many(chosen: Any) -> int:
    """How often ``chosen`` is true."""
    n = 0
    for i in range(chosen.size):
        n += chosen[i]
    return n


@kernel
def cholesky(gram: Any, passive: Any, factor: Any) -> int:
    """The Cholesky factor of gram[passive][:, passive] and its size, or −1 where it is singular."""
    members = indices(passive)
    for p in range(members.size):
        a = members[p]
        for q in range(p + 1):
            b = members[q]
            total = gram[a, b] - row_product(factor, p, q)
            if q < p:
                factor[p, q] = total / factor[q, q]
            elif total > 1e-13 * gram[a, a]:
                factor[p, p] = math.sqrt(total)
            else:
                return -1
    return members.size


@reduction
def row_product(factor: Any, p: int, q: int) -> float:
    """Σ_n factor_pn·factor_qn over n < q."""
    total = 0.0
    for n in range(q):
        total += factor[p, n] * factor[q, n]
    return total


@kernel
def solve_support(gram: Any, c: Any, passive: Any, factor: Any, x: Any, dual: Any) -> None:
    """x solves the equations of the support and is zero elsewhere; dual = gram·x − c off the support."""
    members = indices(passive)
    for a in range(x.size):
        x[a] = 0.0
    for p in range(members.size):
        total = c[members[p]]
        for n in range(p):
            total -= factor[p, n] * x[members[n]]
        x[members[p]] = total / factor[p, p]
    for p in range(members.size - 1, -1, -1):
        total = x[members[p]]
        for n in range(p + 1, members.size):
            total -= factor[n, p] * x[members[n]]
        x[members[p]] = total / factor[p, p]
    for a in range(x.size):
        dual[a] = 0.0
        if not passive[a]:
            dual[a] = -c[a]
            for p in range(members.size):
                dual[a] += gram[a, members[p]] * x[members[p]]


@kernel
def grow_support(h: Any, cross: Any, gram: Any, rows: Any, most: int) -> None:
    """Lawson and Hanson's method for ``rows``: the support grows by one entry at a time, and stays independent.

    An entry whose column depends on those of the support has nothing to add: its dual is zero but for rounding. It ends
    at the solution, or where ``most`` entries are positive.
    """
    r = gram.shape[0]
    x, trial, dual = np.empty(r), np.empty(r), np.empty(r)
    passive, useless = np.empty(r, dtype=np.bool_), np.empty(r, dtype=np.bool_)
    factor = np.empty((r, r))
    for n in range(rows.size):
        i = rows[n]
        size = 0.0
        for a in range(r):
            x[a], passive[a], useless[a] = 0.0, False, gram[a, a] <= 0
            size = max(size, abs(cross[i, a]))
        for _ in range(10 * r):
            if how_many(passive) >= most:
                break
            best, where = -1e-13 * size, -1
            for a in range(r):
                if not passive[a] and not useless[a]:
                    dual[a] = -cross[i, a]
                    for b in range(r):
                        dual[a] += gram[a, b] * x[b]
                    if dual[a] < best:
                        best, where = dual[a], a
            if where < 0:
                break
            passive[where] = True
            if cholesky(gram, passive, factor) < 0:
                passive[where], useless[where] = False, True
                continue
            while True:
                solve_support(gram, cross[i], passive, factor, trial, dual)
                share, leaving = 1.0, -1
                for a in range(r):
                    if passive[a] and trial[a] <= 0 and x[a] <= share * (x[a] - trial[a]):
                        share, leaving = x[a] / (x[a] - trial[a]) if x[a] > 0 else 0.0, a
                for a in range(r):
                    x[a] += share * (trial[a] - x[a])
                if leaving < 0:
                    break
                x[leaving], passive[leaving] = 0.0, False
                useless[leaving] = leaving == where
                cholesky(gram, passive, factor)
        for a in range(r):
            h[i, a] = max(x[a], 0.0)

"""Exact least squares with rows on the simplex: a ≥ 0, Σa = 1. Entries may have upper bounds.

A primal active-set method, as Lawson and Hanson's: the support grows by the entry with the steepest descent, and the
row moves to the optimum of the support, or as far towards it as no entry leaves its bounds. Entries at their upper
bounds u are outside the support, too, as in Stark and Parker's method. The sum is eliminated: on a support, a reference
component k takes what the others leave, a_k = s − Σa_j with s = 1 − Σu, and the others solve least squares with the
differences of the components to it,

    H_jl = G_jl − G_jk − G_kl + G_kk,      d_j = c_j − c_k − s·G_jk + s·G_kk − Σ_l (G_jl − G_kl)·u_l.

The reference is the smallest component of the support: a large one would swamp the differences. No step raises the
loss, so that a row is never worse than its start. If the components of a support are affinely dependent, the row moves
along the dependence, which does not change the model, until one of them is not needed.

References: D. C. Heinz and C.-I Chang, "Fully constrained least squares linear spectral mixture analysis", IEEE TGRS 39
(2001), for the problem. C. L. Lawson and R. J. Hanson, "Solving Least Squares Problems", 1974, chapter 23. P. B. Stark
and R. L. Parker, "Bounded-variable least squares: an algorithm and applications", Computational Statistics 10 (1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..projections import Simplex
from ..runtime.compiled import kernel, piece
from ..runtime.threads import LEAST, in_parts
from ..statistics import Array, Stats
from .interface import Rows, Sets, State, Update
from .pivot import work_arrays

EXACT = 1e-13  # rounding errors of a slope, relative to its terms
LEAST_SHARE = 1e-12  # smaller shares, of components that are no larger for it, are rounding errors
UNREACHED = 2.0  # an upper bound that no share reaches


@dataclass(frozen=True)
class SumToOne(Update):
    """Solve min ½·aᵀGa − cᵀa over a ≥ 0, Σa = 1 exactly, for every row a of the factor.

    A row on the simplex is improved from its support; any other one starts from the best single component. If all
    components are zero, all shares are equal.
    """

    separable: ClassVar[bool] = True

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Replace ``factor`` by the solution."""
        if not (isinstance(sets, Rows) and isinstance(sets.row, Simplex)):
            raise ValueError(f"SumToOne supports rows on the simplex only, not {sets!r}")
        gram = stats.divisors(float)
        if not gram.diagonal().any():
            factor[...] = 1 / factor.shape[1]
            return factor, state
        upper = np.full(len(gram), UNREACHED)

        def solve(first: int, end: int) -> None:
            shares, cross = (np.array(m[first:end], dtype=float, order="C") for m in (factor, stats.cross))
            rows_of_sum_one(shares, cross, gram, upper, *work_arrays(len(gram)))
            factor[first:end] = shares

        in_parts(solve, len(factor), LEAST)
        return factor, state


@kernel
def rows_of_sum_one(
    a: Array, cross: Array, gram: Array, upper: Array, factor: Array, vectors: Array, places: Array
) -> None:
    """Solve every row, from its support.

    The bounds ``upper`` must leave a component of each row, such as one without a bound, that never reaches its own.
    """
    r = gram.shape[0]
    z, refused = vectors[0], places[2]
    for i in range(a.shape[0]):
        x, c, passive = a[i], cross[i], places[0]
        if not on_simplex(x, upper, passive):
            to_best_component(x, c, gram, passive)
        descend(x, c, gram, upper, passive, z, factor, places[1])
        refused[:] = 0
        for _ in range(100 + 10 * r):
            j = steepest(x, c, gram, passive, refused)
            if j < 0:
                break
            passive[j], before = 1, x[j]
            descend(x, c, gram, upper, passive, z, factor, places[1])
            if x[j] != before:
                refused[:] = 0
            else:
                refused[j] = 1
        if without_rounding_errors(x, gram, passive):
            descend(x, c, gram, upper, passive, z, factor, places[1])


@piece
def on_simplex(x: Array, upper: Array, passive: Array) -> bool:
    """Write the support of a row, and scale the row to sum 1. Returns False if it cannot be."""
    total, least = 0.0, 0.0
    for j in range(x.size):
        total += x[j]
        least = min(least, x[j])
    fine = least == 0.0 and 0.5 < total < 2.0
    for j in range(x.size):
        x[j] = x[j] / total if fine else 0.0
        if x[j] > upper[j] * (1 - EXACT):
            x[j] = upper[j]
        passive[j] = 0 < x[j] < upper[j]
    return fine


@piece
def to_best_component(x: Array, c: Array, gram: Array, passive: Array) -> None:
    """Write the best row with a single component."""
    best = 0
    for j in range(x.size):
        x[j], passive[j] = 0.0, 0
        if 0.5 * gram[j, j] - c[j] < 0.5 * gram[best, best] - c[best]:
            best = j
    x[best], passive[best] = 1.0, 1


@piece
def steepest(x: Array, c: Array, gram: Array, passive: Array, refused: Array) -> int:
    """The entry outside the support whose move away from its bound lowers the loss fastest; −1 if none does."""
    k = smallest(gram, passive)
    level, rounding = slope(x, c, gram, k)
    best, most = -1, 0.0
    for j in range(x.size):
        if not (passive[j] or refused[j]):
            own, error = slope(x, c, gram, j)
            fall = own - level if x[j] > 0 else level - own
            speed = fall / math.sqrt(max(gram[j, j] + gram[k, k], 1e-300))
            if fall > EXACT * (rounding + error) and speed > most:
                best, most = j, speed
    return best


@piece
def smallest(gram: Array, passive: Array) -> int:
    """The reference: the smallest component of the support."""
    k = -1
    for j in range(passive.size):
        if passive[j] and (k < 0 or gram[j, j] < gram[k, k]):
            k = j
    return k


@piece
def slope(x: Array, c: Array, gram: Array, j: int) -> tuple[float, float]:
    """Entry j of gram·x − c, and the sum of the absolute values of its terms."""
    total, size = -c[j], abs(c[j])
    for l in range(x.size):
        total += gram[j, l] * x[l]
        size += abs(gram[j, l]) * x[l]
    return total, size


@piece
def descend(
    x: Array, c: Array, gram: Array, upper: Array, passive: Array, z: Array, factor: Array, members: Array
) -> None:
    """Move a row to the optimum of its support; entries that would leave their bounds leave the support at them.

    If components of the support are affinely dependent, the row moves along the dependence until an entry leaves it.
    """
    moving = True
    while moving:
        dependent = solve_support(x, c, gram, passive, z, factor, members)
        rise = 0.0
        for j in range(x.size):
            if passive[j] and dependent:
                rise += z[j] * slope(x, c, gram, j)[0]
        step, blocked, bound = math.inf if dependent else 1.0, -1, 0.0
        for j in range(x.size):
            if passive[j]:
                z[j] = x[j] - z[j] if rise > 0 else x[j] + z[j] if dependent else z[j]
                falls = z[j] < x[j] if dependent else z[j] <= 0
                rises = z[j] > x[j] if dependent else z[j] >= upper[j]
                room, way = x[j] if falls else upper[j] - x[j], abs(z[j] - x[j])
                if (falls or rises) and room <= step * way:
                    step, blocked, bound = room / way if way > 0 else 0.0, j, 0.0 if falls else upper[j]
        moving = blocked >= 0
        for j in range(x.size):
            if passive[j]:
                x[j] = min(max(x[j] + step * (z[j] - x[j]), 0.0), upper[j]) if moving else z[j]
        if moving:
            x[blocked], passive[blocked] = bound, 0


@piece
def solve_support(x: Array, c: Array, gram: Array, passive: Array, z: Array, factor: Array, members: Array) -> bool:
    """Write the optimum of a support, of any sign, to z. Entries outside of it keep their values, and the sum is 1.

    Returns True if components are affinely dependent; z is then a direction with sum 0 that leaves the model as it is.
    """
    k, size, rest, dependent = smallest(gram, passive), 0, 1.0, False
    for j in range(passive.size):
        z[j] = 0.0
        if not passive[j]:
            rest -= x[j]
        elif j != k:
            members[size] = j
            size += 1
    p = 0
    while p < size and not dependent:
        j, own = members[p], factor[p]
        z[j] = c[j] - c[k] - rest * gram[j, k] + rest * gram[k, k]
        for l in range(x.size):
            if x[l] > 0 and not passive[l]:
                z[j] -= (gram[j, l] - gram[k, l]) * x[l]
        for q in range(p + 1):
            l, other = members[q], factor[q]
            total = gram[j, l] - gram[j, k] - gram[k, l] + gram[k, k]
            for n in range(q):
                total -= own[n] * other[n]
            own[q] = total / other[q] if q < p else total
        dependent = own[p] <= EXACT * (gram[j, j] + gram[k, k])
        if not dependent:
            own[p] = math.sqrt(own[p])
            for n in range(p):
                z[j] -= own[n] * z[members[n]]
            z[j] /= own[p]
            p += 1
    z[k] = rest
    if dependent:
        z[members[p]], z[k] = 1.0, -1.0
        for n in range(p):
            z[members[n]] = -factor[p, n]
    for q in range(p - 1, -1, -1):
        j = members[q]
        for n in range(q + 1, p):
            z[j] -= factor[n, q] * z[members[n]]
        z[j] /= factor[q, q]
        z[k] -= z[j]
    return dependent


@piece
def without_rounding_errors(x: Array, gram: Array, passive: Array) -> bool:
    """Set shares to zero that neither matter as shares nor, times their component, in the model. Returns if any.

    Otherwise the components that they belong to would be divided by next to nothing.
    """
    most, found = 0.0, False
    for j in range(x.size):
        most = max(most, x[j] * math.sqrt(gram[j, j]))
    for j in range(x.size):
        if passive[j] and x[j] <= LEAST_SHARE and x[j] * math.sqrt(gram[j, j]) <= LEAST_SHARE * most:
            x[j], passive[j], found = 0.0, 0, True
    return found

"""Block coordinate descent over columns, each solved exactly: the paper's sequential pass, and HALS.

With all other columns fixed, column j of F has the loss ½·g‖y‖² − bᵀy + const, where g = G_jj and
b = C_j − Σ_{l≠j} F_l G_lj. Its minimiser over a set is the projection of b/g.

References
----------
Potluru et al., "Block Coordinate Descent for Sparse NMF", Algorithm 3 (sets: Hoyer).
A. Cichocki and A. H. Phan, "Fast local algorithms for large scale nonnegative matrix and tensor factorizations",
IEICE 92 (2009): HALS (sets: Nonnegative).
N. Gillis and F. Glineur, "Accelerated multiplicative updates and hierarchical ALS algorithms", Neural Comp. 24 (2012):
several sweeps for each product with X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from ..projections.fast import write_solution
from ..runtime.compiled import kernel, loop, piece
from ..runtime.threads import in_parts, product, scratch
from ..statistics import Array, Stats
from .interface import Sets, State, Update, write_nearest

BLOCK = 8  # columns that share one matrix product
GROUP = 2  # columns of a block that share one read of the columns solved before
PIECE = 1024  # rows that stay in cache within a group
TILE = 512  # rows that stay in cache over all sweeps
LEAST = 8192  # rows per thread, at least


@dataclass(frozen=True)
class Sequential(Update):
    """Sweep over the columns, solving each exactly.

    Parameters
    ----------
    sweeps : int
        Passes over all columns. Computing the statistics costs as much as several sweeps.
    order : {"fixed", "random"}
        From the first column to the last, or (as in the paper) in a new random order for each sweep.
    seed : int
        The seed of the random order.
    """

    sweeps: int = 1
    order: Literal["fixed", "random"] = "fixed"
    seed: int = 0

    @property
    def separable(self) -> bool:
        """Whether rows with sets of their own are updated independently of each other and of the state."""
        return self.order == "fixed"

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        calls = state.get("calls", 0)
        orders = np.tile(np.arange(factor.shape[1]), (self.sweeps, 1))
        if self.order == "random":
            np.random.default_rng([self.seed, calls]).permuted(orders, axis=1, out=orders)
        gram = stats.divisors(factor.dtype)
        thresholds = state.get("thresholds", np.full(factor.shape[1], np.nan)).copy()
        if sets.nonnegative:
            sweep_rows(factor, stats.cross, gram, orders)
        else:
            sweep_blocks(factor, stats.cross, gram, orders, sets, thresholds)
        return factor, {"calls": calls + 1, "thresholds": thresholds}


def sweep_rows(factor: Array, cross: Array, gram: Array, orders: Array) -> None:
    """HALS: sweep over columns with independent rows. Each thread takes a range of rows."""
    every = np.arange(len(gram))

    def sweep(first: int, end: int) -> None:
        b = np.empty(min(TILE, end - first), dtype=factor.dtype)
        sweep_tiles(factor.T, cross.T, gram, orders, every, b, first, end)

    in_parts(sweep, len(factor), LEAST)


def sweep_blocks(factor: Array, cross: Array, gram: Array, orders: Array, sets: Sets, thresholds: Array) -> None:
    """Sweep over columns whose sets couple their rows, with one matrix product for BLOCK columns.

    The kernel solves Hoyer sets. It stops at a column with another kind of set, or on which the fast projection fails;
    that column is projected by its set. ``thresholds`` holds the last threshold of each column, in units of b/g.
    """
    share = scratch((min(BLOCK, len(gram)), len(factor)), factor.dtype)
    ranges = sets.l1_ranges(len(factor))
    p, q = pairs_in_blocks(len(gram))
    for order in orders:
        weights = gram[order]
        weights[p, order[q]] = 0
        for start in range(0, len(order), BLOCK):
            block = order[start : start + BLOCK]
            product(weights[start : start + BLOCK], factor.T, share[: len(block)])
            place = sweep_block(factor.T, cross.T, gram, block, ranges, thresholds, share, 0)
            while place < len(block):
                j = block[place]
                write_nearest(sets[j], share[place], factor[:, j], factor[:, j])
                place = sweep_block(factor.T, cross.T, gram, block, ranges, thresholds, share, place + 1)


@cache
def pairs_in_blocks(r: int) -> tuple[Array, Array]:
    """All pairs of positions (p, q) with q ≤ p in the same block: column q changes before or together with column p."""
    p, q = np.tril_indices(r)
    same = p // BLOCK == q // BLOCK
    return p[same], q[same]


@kernel
def sweep_block(
    columns: Array, cross: Array, gram: Array, block: Array, ranges: Array, thresholds: Array, share: Array, first: int
) -> int:
    """Solve the columns of a block from position ``first`` on.

    Returns the position of a column that its set must project, or the length of the block. ``share`` holds Σ F_l G_lj
    over the columns l that do not change before column j is solved, and is overwritten by b/g.
    """
    m = columns.shape[1]
    for p in range(first, block.size):
        j, head = block[p], p - p % GROUP
        g, b, low, high = gram[j, j], share[p], ranges[j, 0], ranges[j, 1]
        inverse = 1 / g if g > 0 else 0.0
        threshold = thresholds[j] if low == high else 0.0
        above = math.inf if math.isnan(threshold) else threshold
        d, s1, s2 = 0, 0.0, 0.0
        # The columns solved before the group are read once for the whole group, then those of the group itself.
        solved, last = (0, min(head + GROUP, block.size)) if p == head else (head, p + 1)
        for start in range(0, m, PIECE):
            end = min(start + PIECE, m)
            for q in range(p, last):
                if p == head:
                    subtract_from(share[q, start:end], cross[block[q], start:end])
                subtract_columns(share[q, start:end], gram[block[q]], block, solved, p, columns, start, end)
            more, t1, t2 = scale(b[start:end], inverse, above)
            d, s1, s2 = d + more, s1 + t1, s2 + t2
        if g > 0:
            k, thresholds[j] = low, math.nan
            if low < high:  # the best ‖y‖₁ is ‖b₊‖₁ / ‖b₊‖₂, clipped to the interval; see `HoyerBetween`
                k = min(max(s1 / math.sqrt(s2), low), high) if 1e-270 < s2 < 1e290 else math.nan
            if k > 1:
                thresholds[j] = write_solution(b, k, columns[j], threshold, d, s1, s2)
            if math.isnan(thresholds[j]):
                return p
    return block.size


@kernel
def sweep_tiles(
    columns: Array, cross: Array, gram: Array, orders: Array, every: Array, buffer: Array, first: int, end: int
) -> None:
    """Make all sweeps over one tile of rows, then over the next."""
    r = columns.shape[0]
    for start in range(first, end, TILE):
        stop = min(start + TILE, end)
        b = buffer[: stop - start]
        for sweep in range(orders.shape[0]):
            for place in range(r):
                j = orders[sweep, place]
                if gram[j, j] > 0:
                    y, c, step = columns[j, start:stop], cross[j, start:stop], 1 / gram[j, j]
                    for i in range(b.size):
                        b[i] = c[i]
                    subtract_columns(b, gram[j], every, 0, r, columns, start, stop)
                    for i in range(b.size):
                        y[i] = max(y[i] + step * b[i], 0)


@piece
def subtract_columns(
    b: Array, g: Array, which: Array, first: int, last: int, columns: Array, start: int, end: int
) -> None:
    """b ← b − Σ g_l·x_l over some rows, for l = which[first:last]. b is read and written once for four columns."""
    q = first
    while q + 4 <= last:
        subtract_four(b, g, which[q : q + 4], columns, start, end)
        q += 4
    while q < last:
        subtract(b, g[which[q]], columns[which[q], start:end])
        q += 1


@loop
def subtract_four(b: Array, g: Array, which: Array, columns: Array, start: int, end: int) -> None:
    """b ← b − Σ g_l·x_l over four columns."""
    l0, l1, l2, l3 = which[0], which[1], which[2], which[3]
    x0, x1, x2, x3 = columns[l0, start:end], columns[l1, start:end], columns[l2, start:end], columns[l3, start:end]
    g0, g1, g2, g3 = g[l0], g[l1], g[l2], g[l3]
    for i in range(b.size):
        b[i] -= (g0 * x0[i] + g1 * x1[i]) + (g2 * x2[i] + g3 * x3[i])


@loop
def subtract(b: Array, g: float, x: Array) -> None:
    """b ← b − g·x"""
    for i in range(b.size):
        b[i] -= g * x[i]


@loop
def subtract_from(b: Array, x: Array) -> None:
    """b ← x − b"""
    for i in range(b.size):
        b[i] = x[i] - b[i]


@loop
def scale(b: Array, inverse: float, above: float) -> tuple[int, float, float]:
    """b ← b·inverse. Returns the number of entries above a threshold, Σ(b − above)₊ and Σ(b − above)₊²."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(b.size):
        b[i] *= inverse
        t = max(b[i] - above, 0.0)
        d += t > 0
        s1 += t
        s2 += t * t
    return d, s1, s2

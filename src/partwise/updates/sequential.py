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
from functools import partial
from typing import Literal

import numpy as np

from ..projections.fast import write_solution
from ..runtime.compiled import apart, kernel, loop, piece
from ..runtime.threads import in_parts, scratch
from ..statistics import Array, Stats
from .interface import Sets, State, Update, write_nearest

BLOCK = 16  # columns that share one read of all others
GROUP = 4  # columns that share one load of another column into registers
PIECE = 1024  # rows that stay in cache within a block
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
        return self.order == "fixed"

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        state = state or {"calls": 0, "thresholds": np.full(factor.shape[1], np.nan)}
        orders = np.repeat(np.arange(factor.shape[1])[None], self.sweeps, axis=0)
        if self.order == "random":
            np.random.default_rng([self.seed, state["calls"]]).permuted(orders, axis=1, out=orders)
        gram = stats.divisors(factor.dtype)
        thresholds = state["thresholds"].copy()
        if sets.nonnegative:
            sweep_rows(factor, stats.cross, gram, orders)
        else:
            sweep_blocks(factor, stats.cross, gram, orders, sets, thresholds)
        return factor, {"calls": state["calls"] + 1, "thresholds": thresholds}


def sweep_rows(factor: Array, cross: Array, gram: Array, orders: Array) -> None:
    """HALS: sweep over columns with independent rows. Each thread takes a range of rows."""

    def sweep(first: int, end: int) -> None:
        share = np.empty((GROUP, min(TILE, end - first)), dtype=factor.dtype)
        sweep_tiles(factor.T, cross.T, gram, orders, share, first, end)

    in_parts(sweep, len(factor), LEAST)


def sweep_blocks(factor: Array, cross: Array, gram: Array, orders: Array, sets: Sets, thresholds: Array) -> None:
    """Sweep over columns whose sets couple their rows, BLOCK columns at a time.

    The kernel solves Hoyer sets. It stops at a column with another kind of set, or on which the fast projection fails;
    that column is projected by its set. ``thresholds`` holds the last threshold of each column, in units of b/g.
    """
    share = scratch((min(BLOCK, len(gram)), len(factor)), factor.dtype)
    ranges = sets.l1_ranges(len(factor))
    for order in orders:
        for start in range(0, len(order), BLOCK):
            block, others = order[start : start + BLOCK], np.concatenate([order[:start], order[start + BLOCK :]])
            subtract = partial(subtract_unchanged, factor.T, cross.T, gram, block, others, share)
            in_parts(subtract, len(factor), LEAST)
            place = sweep_block(factor.T, gram, block, ranges, thresholds, share, 0)
            while place < len(block):
                j = block[place]
                write_nearest(sets[j], share[place], factor[:, j], factor[:, j])
                place = sweep_block(factor.T, gram, block, ranges, thresholds, share, place + 1)


@kernel
def subtract_unchanged(
    columns: Array, cross: Array, gram: Array, block: Array, others: Array, share: Array, first: int, end: int
) -> None:
    """Write C_j − Σ F_l G_lj to ``share``, for the columns j of a block, over a range of rows.

    The sum is over the ``others`` and over the columns of the block that are solved after column j.
    """
    for start in range(first, end, PIECE):
        stop = min(start + PIECE, end)
        for p in range(0, block.size, GROUP):
            q = min(p + GROUP, block.size)
            for place in range(p, q):
                copy(share[place, start:stop], cross[block[place], start:stop])
                subtract_columns(share[place, start:stop], gram[block[place]], block[place + 1 : q], columns, start)
            subtract_from_group(share[p:q], start, stop, gram, block[p:q], block[q:], columns, start)
            subtract_from_group(share[p:q], start, stop, gram, block[p:q], others, columns, start)


@kernel
def sweep_block(
    columns: Array, gram: Array, block: Array, ranges: Array, thresholds: Array, share: Array, first: int
) -> int:
    """Solve the columns of a block from position ``first`` on.

    Returns the position of a column that its set must project, or the length of the block. ``share`` holds
    C_j − Σ F_l G_lj over the columns l that do not change before column j is solved, and is overwritten by b/g.
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
        for start in range(0, m, PIECE):
            end = min(start + PIECE, m)
            if p == head:
                last = min(head + GROUP, block.size)
                subtract_from_group(share[p:last], start, end, gram, block[p:last], block[:p], columns, start)
            else:
                subtract_columns(b[start:end], gram[j], block[head:p], columns, start)
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
def sweep_tiles(columns: Array, cross: Array, gram: Array, orders: Array, share: Array, first: int, end: int) -> None:
    """Make all sweeps over one tile of rows, then over the next. ``share`` is overwritten."""
    r = columns.shape[0]
    for start in range(first, end, TILE):
        rows = min(TILE, end - start)
        for sweep in range(orders.shape[0]):
            order = orders[sweep]
            for p in range(0, r, GROUP):
                q = min(p + GROUP, r)
                for place in range(p, q):
                    copy(share[place - p, :rows], cross[order[place], start : start + rows])
                subtract_from_group(share[: q - p], 0, rows, gram, order[p:q], order[:p], columns, start)
                subtract_from_group(share[: q - p], 0, rows, gram, order[p:q], order[q:], columns, start)
                for place in range(p, q):
                    j, b = order[place], share[place - p, :rows]
                    if gram[j, j] > 0:
                        subtract_columns(b, gram[j], order[p:q], columns, start)
                        step_within(columns[j, start : start + rows], 1 / gram[j, j], b)


@piece
def subtract_from_group(
    share: Array, first: int, end: int, gram: Array, group: Array, which: Array, columns: Array, start: int
) -> None:
    """b_j ← b_j − Σ g_jl·x_l over l in ``which``, for each column j of a group. b_j is share[·, first:end].

    ``start`` is the row of ``columns`` that b_j begins with. Full groups take four l at a time.
    """
    stop, q = start + end - first, 0
    while group.size == 4 and q + 4 <= which.size:
        l = which[q : q + 4]
        b0, b1, b2, b3 = share[0, first:end], share[1, first:end], share[2, first:end], share[3, first:end]
        x0, x1, x2, x3 = (
            columns[l[0], start:stop],
            columns[l[1], start:stop],
            columns[l[2], start:stop],
            columns[l[3], start:stop],
        )
        subtract_sixteen(b0, b1, b2, b3, x0, x1, x2, x3, gram, group, l)
        q += 4
    for place in range(group.size if q < which.size else 0):
        subtract_columns(share[place, first:end], gram[group[place]], which[q:], columns, start)


@piece
def subtract_columns(b: Array, g: Array, which: Array, columns: Array, start: int) -> None:
    """b ← b − Σ g_l·x_l over l in ``which``; x_l begins at row ``start``. b is read and written once for four l."""
    q, stop = 0, start + b.size
    while q + 4 <= which.size:
        subtract_four(b, g, which[q : q + 4], columns, start, stop)
        q += 4
    while q < which.size:
        subtract(b, g[which[q]], columns[which[q], start:stop])
        q += 1


@apart
def subtract_sixteen(
    b0: Array,
    b1: Array,
    b2: Array,
    b3: Array,
    x0: Array,
    x1: Array,
    x2: Array,
    x3: Array,
    gram: Array,
    j: Array,
    l: Array,
) -> None:
    """b_j ← b_j − Σ g_jl·x_l for four j and four l: a vector is read once for sixteen multiplications, not four."""
    g00, g01, g02, g03 = gram[j[0], l[0]], gram[j[0], l[1]], gram[j[0], l[2]], gram[j[0], l[3]]
    g10, g11, g12, g13 = gram[j[1], l[0]], gram[j[1], l[1]], gram[j[1], l[2]], gram[j[1], l[3]]
    g20, g21, g22, g23 = gram[j[2], l[0]], gram[j[2], l[1]], gram[j[2], l[2]], gram[j[2], l[3]]
    g30, g31, g32, g33 = gram[j[3], l[0]], gram[j[3], l[1]], gram[j[3], l[2]], gram[j[3], l[3]]
    for i in range(b0.size):
        y0, y1, y2, y3 = x0[i], x1[i], x2[i], x3[i]
        b0[i] -= (g00 * y0 + g01 * y1) + (g02 * y2 + g03 * y3)
        b1[i] -= (g10 * y0 + g11 * y1) + (g12 * y2 + g13 * y3)
        b2[i] -= (g20 * y0 + g21 * y1) + (g22 * y2 + g23 * y3)
        b3[i] -= (g30 * y0 + g31 * y1) + (g32 * y2 + g33 * y3)


@loop
def subtract_four(b: Array, g: Array, which: Array, columns: Array, start: int, stop: int) -> None:
    """b ← b − Σ g_l·x_l over four columns."""
    l0, l1, l2, l3 = which[0], which[1], which[2], which[3]
    x0, x1, x2, x3 = columns[l0, start:stop], columns[l1, start:stop], columns[l2, start:stop], columns[l3, start:stop]
    g0, g1, g2, g3 = g[l0], g[l1], g[l2], g[l3]
    for i in range(b.size):
        b[i] -= (g0 * x0[i] + g1 * x1[i]) + (g2 * x2[i] + g3 * x3[i])


@loop
def subtract(b: Array, g: float, x: Array) -> None:
    """b ← b − g·x"""
    for i in range(b.size):
        b[i] -= g * x[i]


@loop
def copy(b: Array, x: Array) -> None:
    """b ← x"""
    for i in range(b.size):
        b[i] = x[i]


@loop
def step_within(y: Array, step: float, b: Array) -> None:
    """y ← (y + step·b)₊"""
    for i in range(b.size):
        y[i] = max(y[i] + step * b[i], 0)


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

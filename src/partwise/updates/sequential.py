"""One column at a time, each solved exactly: the paper's sequential pass, and HALS.

With all other columns fixed, column j of F has the loss ½·g‖y‖² − bᵀy + const, where g = G_jj and
b = C_j − Σ_{l≠j} F_l G_lj: its minimiser over a set is the point of the set nearest to b/g.

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
from typing import Any, Literal

import numpy as np

from ..compiled import kernel, reduction
from ..projections.columns import project_column
from ..statistics import Array, Stats
from .protocol import Columns, State

BLOCK = 8  # columns whose b share one matrix product
CHUNK = 1024  # rows of a block that stay in cache while two columns read them
TILE = 512  # rows that stay in cache over all sweeps


@dataclass(frozen=True)
class Sequential:
    """Sweep over the columns, solving each exactly.

    Parameters
    ----------
    sweeps : int
        Passes over all columns. Forming the statistics costs as much as several.
    order : {"fixed", "random"}
        The columns as they stand, or (as in the paper) a new random order each sweep.
    seed : int
        Of the random order.
    """

    sweeps: int = 1
    order: Literal["fixed", "random"] = "fixed"
    seed: int = 0

    def __call__(self, factor: Array, stats: Stats, sets: Columns, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        calls = state.get("calls", 0)
        orders = np.tile(np.arange(factor.shape[1]), (self.sweeps, 1))
        if self.order == "random":
            np.random.default_rng([self.seed, calls]).permuted(orders, axis=1, out=orders)
        gram = np.ascontiguousarray(stats.gram, dtype=factor.dtype)
        table = sets.encoded(len(factor))
        if sets.nonnegative:
            sweep_tiles(factor.T, stats.cross.T, gram, orders)
        elif table is not None:
            sweep_blocks(factor, stats.cross, gram, orders, table)
        else:
            sweep_columns(factor, stats.cross, gram, orders, sets)
        return factor, {"calls": calls + 1}


def sweep_columns(factor: Array, cross: Array, gram: Array, orders: Array, sets: Columns) -> None:
    """The pass as it is defined, for sets that only Python knows."""
    for j in orders.ravel():
        g = gram[j, j]
        if g > 0:
            b = cross[:, j] - factor @ gram[:, j] + factor[:, j] * g
            factor[:, j] = sets[j](b / g, near=factor[:, j])


def sweep_blocks(factor: Array, cross: Array, gram: Array, orders: Array, table: Array) -> None:
    """The same pass with one matrix product for every BLOCK columns, and compiled projections."""
    share = np.empty((min(BLOCK, factor.shape[1]), len(factor)), dtype=factor.dtype)
    for order in orders:
        for first in range(0, len(order), BLOCK):
            block = order[first : first + BLOCK]
            others = gram[block]
            others[:, block] = 0
            np.matmul(others, factor.T, out=share[: len(block)])
            sweep_block(factor.T, cross.T, gram, block, table, share)


@kernel
def sweep_block(columns: Any, cross: Any, gram: Any, block: Any, table: Any, share: Any) -> None:
    """Solve the columns of one block, two for each reading of the others.

    ``share`` holds Σ F_l G_lj over the columns l outside of the block, and then the b of each column.
    """
    for c in range(0, block.size, 2):
        pair = block[c : c + 2]
        d, s1, s2 = subtract_block(columns, cross, gram, block, pair, share[c : c + 2])
        solve_column(columns[pair[0]], table[pair[0]], gram[pair[0], pair[0]], share[c], d, s1, s2)
        if pair.size == 2:
            i, j = pair
            subtract(share[c + 1], gram[i, j], columns[i])
            d, s1, s2 = scale(share[c + 1], gram[j, j], columns[j])
            solve_column(columns[j], table[j], gram[j, j], share[c + 1], d, s1, s2)


@kernel
def solve_column(column: Any, encoded: Any, g: float, b: Any, d: int, s1: float, s2: float) -> None:
    """Project b/g, starting from the threshold of the column's present support (d entries, their sums s1 and s2)."""
    code, low, high = int(encoded[0]), encoded[1], encoded[2]
    guess = math.nan
    if low == high and d > low * low and d * s2 > s1 * s1:
        guess = (s1 - low * math.sqrt((d * s2 - s1 * s1) / (d - low * low))) / d
    if g > 0:
        project_column(code, low, high, b, column, column, guess)


@kernel
def subtract_block(columns: Any, cross: Any, gram: Any, block: Any, pair: Any, share: Any) -> tuple[int, float, float]:
    """C_j − share − Σ F_l G_lj for both columns of a pair; for the first one scaled, and summed as `scale` does.

    The second one still lacks the first, which is about to change.
    """
    d, s1, s2 = 0, 0.0, 0.0
    first = pair[0]
    for start in range(0, share.shape[1], CHUNK):
        part = slice(start, min(start + CHUNK, share.shape[1]))
        for c in range(pair.size):
            subtract_from(share[c, part], cross[pair[c], part])
            for l in block:
                if l != first and l != pair[c]:
                    subtract(share[c, part], gram[l, pair[c]], columns[l, part])
        sums = scale(share[0, part], gram[first, first], columns[first, part])
        d, s1, s2 = d + sums[0], s1 + sums[1], s2 + sums[2]
    return d, s1, s2


@reduction
def scale(b: Any, g: float, column: Any) -> tuple[int, float, float]:
    """b ← b/g; the number of entries, the sum and the square sum of b where ``column`` is positive."""
    d, s1, s2 = 0, 0.0, 0.0
    inverse = 1 / g if g > 0 else 0.0
    for i in range(b.size):
        b[i] *= inverse
        on = column[i] > 0
        t = b[i] * on
        d += on
        s1 += t
        s2 += t * t
    return d, s1, s2


@kernel
def sweep_tiles(columns: Any, cross: Any, gram: Any, orders: Any) -> None:
    """All sweeps of HALS over one tile of rows after the other: rows do not depend on each other."""
    r, rows = columns.shape
    buffer = np.empty(TILE, dtype=columns.dtype)
    for start in range(0, rows, TILE):
        tile = slice(start, min(start + TILE, rows))
        b = buffer[: tile.stop - start]
        for order in orders:
            for j in order:
                if gram[j, j] > 0:
                    b[:] = cross[j, tile]
                    for l in range(0, r - 3, 4):
                        subtract_four(b, gram[j, l : l + 4], columns[l : l + 4], tile)
                    for l in range(r - r % 4, r):
                        subtract(b, gram[j, l], columns[l, tile])
                    add_clipped(columns[j, tile], b, 1 / gram[j, j])


@reduction
def subtract(b: Any, g: float, x: Any) -> None:
    """b ← b − g·x"""
    for i in range(b.size):
        b[i] -= g * x[i]


@reduction
def subtract_from(b: Any, x: Any) -> None:
    """b ← x − b"""
    for i in range(b.size):
        b[i] = x[i] - b[i]


@reduction
def subtract_four(b: Any, g: Any, x: Any, tile: Any) -> None:
    """b ← b − Σ gᵢ·xᵢ over four rows of x: one reading and writing of b instead of four."""
    x0, x1, x2, x3 = x[0, tile], x[1, tile], x[2, tile], x[3, tile]
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    for i in range(b.size):
        b[i] -= (g0 * x0[i] + g1 * x1[i]) + (g2 * x2[i] + g3 * x3[i])


@reduction
def add_clipped(y: Any, b: Any, step: float) -> None:
    """y ← (y + step·b)₊"""
    for i in range(b.size):
        y[i] = max(y[i] + step * b[i], 0)

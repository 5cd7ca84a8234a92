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
from functools import partial
from typing import Any, Literal

import numpy as np

from ..compiled import kernel, piece, reduction
from ..projections.columns import FAST, project_column
from ..projections.fast import sparse_opt_from
from ..statistics import Array, Stats
from ..threads import in_parts, product, scratch
from .protocol import State
from .sets import Sets

BLOCK = 8  # columns that share one matrix product
GROUP = 2  # columns of a block that share one reading of those solved before
PIECE = 1024  # rows that stay in cache for that
TILE = 512  # rows that stay in cache over all sweeps
LEAST = 8192  # rows for which a thread of their own pays


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

    @property
    def separable(self) -> bool:
        """Whether rows with sets of their own are updated independently of all else."""
        return self.order == "fixed"

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` in place."""
        calls = state.get("calls", 0)
        orders = np.tile(np.arange(factor.shape[1]), (self.sweeps, 1))
        if self.order == "random":
            np.random.default_rng([self.seed, calls]).permuted(orders, axis=1, out=orders)
        gram = np.ascontiguousarray(stats.gram, dtype=factor.dtype)
        table = sets.encoded(len(factor))
        thresholds = state.get("thresholds", np.full(factor.shape[1], np.nan)).copy()
        if sets.nonnegative:
            in_parts(partial(sweep_tiles, factor.T, stats.cross.T, gram, orders), len(factor), LEAST)
        elif table is not None:
            sweep_blocks(factor, stats.cross, gram, orders, table, thresholds)
        else:
            sweep_columns(factor, stats.cross, gram, orders, sets)
        return factor, {"calls": calls + 1, "thresholds": thresholds}


def sweep_columns(factor: Array, cross: Array, gram: Array, orders: Array, sets: Sets) -> None:
    """The pass as it is defined, for sets that only Python knows."""
    for j in orders.ravel():
        g = gram[j, j]
        if g > 0:
            b = cross[:, j] - factor @ gram[:, j] + factor[:, j] * g
            factor[:, j] = sets[j](b / g, near=factor[:, j])


def sweep_blocks(factor: Array, cross: Array, gram: Array, orders: Array, table: Array, thresholds: Array) -> None:
    """The same pass for compiled sets: one matrix product serves BLOCK columns, one reading of the solved ones GROUP.

    ``thresholds`` holds what the last pass found for each column, in units of b/g.
    """
    share = scratch((min(BLOCK, len(gram)), len(factor)), factor.dtype)
    for order in orders:
        weights = staying(gram, order)
        for start in range(0, len(order), BLOCK):
            block = order[start : start + BLOCK]
            product(weights[start : start + BLOCK], factor.T, share[: len(block)])
            sweep_block(factor.T, cross.T, gram, block, table, thresholds, share)


@kernel
def staying(gram: Any, order: Any) -> Any:
    """For each j of the order its row of G, without the columns of its block that change before or with it."""
    weights = gram[order]
    for p in range(order.size):
        for q in range(p - p % BLOCK, p + 1):
            weights[p, order[q]] = 0
    return weights


@kernel
def sweep_block(columns: Any, cross: Any, gram: Any, block: Any, table: Any, thresholds: Any, share: Any) -> None:
    """Solve the columns of one block; ``share`` holds Σ F_l G_lj over the columns l that stay as they are till then."""
    for c in range(0, block.size, GROUP):
        group = slice(c, min(c + GROUP, block.size))
        sums = subtract_solved(columns, cross, gram, block[:c], block[group], share[group], thresholds)
        for p in range(c, group.stop):
            j = block[p]
            if p > c:
                sums = subtract_rest(columns, gram, block[c:p], j, share[p], thresholds[j])
            solve_column(columns, gram, table, thresholds, j, share[p], sums)


@piece
def subtract_solved(
    columns: Any, cross: Any, gram: Any, solved: Any, group: Any, share: Any, thresholds: Any
) -> tuple[int, float, float]:
    """share ← C_j − share − Σ F_l G_lj over the ``solved`` columns, for each j of a group; the first is scaled too."""
    first = group[0]
    d, s1, s2 = 0, 0.0, 0.0
    for start in range(0, share.shape[1], PIECE):
        part = slice(start, min(start + PIECE, share.shape[1]))
        for p, j in enumerate(group):
            subtract_from(share[p, part], cross[j, part])
            subtract_columns(share[p, part], gram[j], solved, columns, part)
        sums = scale(share[0, part], gram[first, first], thresholds[first])
        d, s1, s2 = d + sums[0], s1 + sums[1], s2 + sums[2]
    return d, s1, s2


@piece
def subtract_rest(columns: Any, gram: Any, solved: Any, j: int, b: Any, threshold: float) -> tuple[int, float, float]:
    """b ← (b − Σ F_l G_lj) / G_jj over the columns of its own group that were solved before, and its sums."""
    d, s1, s2 = 0, 0.0, 0.0
    for start in range(0, b.size, PIECE):
        part = slice(start, min(start + PIECE, b.size))
        subtract_columns(b[part], gram[j], solved, columns, part)
        sums = scale(b[part], gram[j, j], threshold)
        d, s1, s2 = d + sums[0], s1 + sums[1], s2 + sums[2]
    return d, s1, s2


@piece
def subtract_columns(b: Any, g: Any, which: Any, columns: Any, part: Any) -> None:
    """b ← b − Σ g_l·x_l, four columns for one reading and writing of b."""
    for q in range(0, which.size - 3, 4):
        subtract_four(b, g, which[q : q + 4], columns, part)
    for q in range(which.size - which.size % 4, which.size):
        subtract(b, g[which[q]], columns[which[q], part])


@kernel
def solve_column(
    columns: Any, gram: Any, table: Any, thresholds: Any, j: int, b: Any, sums: tuple[int, float, float]
) -> None:
    """Project b/g, given its sums above the column's last threshold."""
    if gram[j, j] > 0:
        code, low, high = int(table[j, 0]), table[j, 1], table[j, 2]
        if code == FAST and low == high:
            thresholds[j] = sparse_opt_from(b, low, columns[j], columns[j], thresholds[j], *sums)
        else:
            project_column(code, low, high, b, columns[j], columns[j], math.nan)


@reduction
def scale(b: Any, g: float, threshold: float) -> tuple[int, float, float]:
    """b ← b/g, and its sums above ``threshold``: how many, Σ(b − threshold)₊, Σ(b − threshold)₊² (nan: none)."""
    d, s1, s2 = 0, 0.0, 0.0
    inverse = 1 / g if g > 0 else 0.0
    a = np.inf if np.isnan(threshold) else threshold
    for i in range(b.size):
        b[i] *= inverse
        t = max(b[i] - a, 0.0)
        d += t > 0
        s1 += t
        s2 += t * t
    return d, s1, s2


@kernel
def sweep_tiles(columns: Any, cross: Any, gram: Any, orders: Any, first: int, end: int) -> None:
    """All sweeps of HALS over one tile of rows after the other: rows do not depend on each other."""
    r = columns.shape[0]
    buffer = np.empty(TILE, dtype=columns.dtype)
    every = np.arange(r)
    for start in range(first, end, TILE):
        tile = slice(start, min(start + TILE, end))
        b = buffer[: tile.stop - start]
        for order in orders:
            for j in order:
                if gram[j, j] > 0:
                    b[:] = cross[j, tile]
                    for p in range(0, r - 3, 4):
                        subtract_four(b, gram[j], every[p : p + 4], columns, tile)
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
def subtract_four(b: Any, g: Any, which: Any, columns: Any, part: Any) -> None:
    """b ← b − Σ g_l·x_l over four columns: one reading and writing of b instead of four."""
    l0, l1, l2, l3 = which[0], which[1], which[2], which[3]
    x0, x1, x2, x3 = columns[l0, part], columns[l1, part], columns[l2, part], columns[l3, part]
    g0, g1, g2, g3 = g[l0], g[l1], g[l2], g[l3]
    for i in range(b.size):
        b[i] -= (g0 * x0[i] + g1 * x1[i]) + (g2 * x2[i] + g3 * x3[i])


@reduction
def add_clipped(y: Any, b: Any, step: float) -> None:
    """y ← (y + step·b)₊"""
    for i in range(b.size):
        y[i] = max(y[i] + step * b[i], 0)

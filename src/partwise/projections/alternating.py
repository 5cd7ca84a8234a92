"""Projection-Hoyer: project onto S_k by alternating between its hyperplane and its sphere.

Reference: P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004), §3.1.

v starts on the hyperplane Σv = k. Move from the midpoint (all free entries equal) through v to the sphere ‖v‖ = 1; fix
negative entries at zero permanently; return to the hyperplane along the free entries; repeat until no entry is
negative. Both moves are affine in v, so each round takes one pass over v. The worst case is O(m²).
"""

from __future__ import annotations

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel, loop
from .careful import sparse_opt_select
from .fast import sums_about, threshold_norm

WORST_GROWTH = 1e3  # the rounding error of the variance grows with its square; beyond this `careful` takes over


def sparse_opt_alternating(b: Vector, k: float, near: Vector | None, out: Vector) -> None:
    """Project b onto S_k, into ``out``."""
    v = b.astype(float)
    if k > 1 and alternate(v, k):
        out[:] = v
    else:  # k = 1 needs exactly one nonzero, without rounding errors elsewhere
        sparse_opt_select(b, k, near, out)


@kernel
def alternate(v: Vector, k: float) -> bool:
    """Project v, in place; return False if rounding errors are too large."""
    centre, free = v[0], v.size
    s1, s2 = sums_about(v, centre)
    norm = threshold_norm(free, s1, s2, k)
    if norm < 0:
        return False
    d, s1, s2 = move_all(v, centre, (k - s1 / norm) / free, 1 / norm)
    growth = 1.0
    while d < free:
        free = d
        norm = threshold_norm(free, s1, s2, k)
        growth /= norm
        if norm < 0 or growth > WORST_GROWTH:
            return False
        d, s1, s2 = move_free(v, (k - s1 / norm) / free, 1 / norm)
    return True


@loop
def move_free(v: Vector, offset: float, slope: float) -> tuple[int, float, float]:
    """v ← (offset + slope·v)₊ where v > 0, else 0; return count, sum and sum of squares of the positive entries."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(v.size):
        moved = max(offset + slope * v[i], 0.0)
        moved = moved if v[i] > 0 else 0.0
        v[i] = moved
        s1 += moved
        s2 += moved * moved
        d += moved > 0
    return d, s1, s2


@loop
def move_all(v: Vector, centre: float, offset: float, slope: float) -> tuple[int, float, float]:
    """The first round: v ← (offset + slope·(v − centre))₊, with every entry free."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(v.size):
        moved = max(offset + slope * (v[i] - centre), 0.0)
        v[i] = moved
        s1 += moved
        s2 += moved * moved
        d += moved > 0
    return d, s1, s2

"""Sparse-opt by sorting, in O(m log m): the paper's Algorithm 2 with two corrections.

Reference: Potluru et al., "Block Coordinate Descent for Sparse NMF". The loop starts at p = ⌊k²⌋ + 1, because the
printed one divides by zero at p = k². It stops by the rule in the pseudocode, which differs from the one in the text.
"""

from __future__ import annotations

import math

import numpy as np

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel
from .careful import write_by_support


def sparse_opt_sorted(b: Vector, k: float, near: Vector | None, out: Vector) -> None:
    """Write to ``out`` the y in S_k that maximises bᵀy."""
    write_by_support(b, k, near, out, lambda depths: float(smallest_of_sorted(np.sort(depths), k)))


@kernel
def smallest_of_sorted(a: Vector, k: float) -> float:
    """The smallest entry in the support: in descending order, the last one above the threshold of its predecessors."""
    s1, s2 = 0.0, 0.0
    larger = a[-1]
    for p in range(1, a.size + 1):
        v = a[a.size - p]
        s1 += v
        s2 += v * v
        if p > k * k:
            lam = -math.sqrt(max(0.0, p * s2 - s1 * s1) / (p - k * k))
            mu = -s1 / p - k / p * lam
            if v <= -mu and v < larger:
                return larger
        larger = v
    return a[0]

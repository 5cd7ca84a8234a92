"""Sparse-opt as the paper prints it (Algorithm 2), with its slips corrected: by sorting, O(m log m).

Reference: Potluru et al., "Block Coordinate Descent for Sparse NMF". The loop starts at p = ⌊k²⌋ + 1 (at p = k² the
printed one divides by zero) and ends by the pseudocode's rule, not by the text's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..runtime.compiled import kernel
from .careful import Vector, is_flat, write_by_support, write_flat


def sparse_opt_sorted(b: Vector, k: float, near: Vector | None, out: Vector) -> None:
    """Write to ``out`` the y of S_k that maximises bᵀy."""
    if is_flat(k, b.size):
        write_flat(out)
    else:
        write_by_support(b, k, near, out, lambda depths: float(smallest_of_sorted(np.sort(depths), k)))


@kernel
def smallest_of_sorted(a: Any, k: float) -> float:
    """The least entry in the support: the last, from the largest down, above the threshold of those before it."""
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

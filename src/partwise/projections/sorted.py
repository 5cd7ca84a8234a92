"""Sparse-opt as the paper prints it (Algorithm 2), with its slips corrected: by sorting, O(m log m).

Reference: Potluru et al., "Block Coordinate Descent for Sparse NMF". The loop starts at p = ⌊k²⌋ + 1 (at p = k² the
printed one divides by zero) and ends by the pseudocode's rule, not by the text's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import kernel
from .careful import settle, write_support


@kernel
def sparse_opt_sorted(b: Any, k: float, near: Any, out: Any) -> None:
    """Write to ``out`` the y of S_k that maximises bᵀy."""
    if k * k >= b.size * (1 - 4e-16):
        out[:] = 1 / math.sqrt(b.size)
        return
    done, x = settle(b, k, near, out)
    if not done:
        write_support(x, smallest_by_sorting(x, k), k, out)


@kernel
def smallest_by_sorting(x: Any, k: float) -> float:
    """The least x in the support: the last of the sorted entries that exceeds the threshold of those before it."""
    a = np.sort(x)
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
                return float(larger)
        larger = v
    return float(a[0])

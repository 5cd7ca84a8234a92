"""Sparse-opt in linear time: a threshold found by a few vectorised passes.

On an active set of d entries with sums S1 = Σ(b − c), S2 = Σ(b − c)² about any reference c, the threshold that makes
‖(b − a)₊‖₁ / ‖(b − a)₊‖₂ = k is

    a = c + (S1 − k·N) / d,      N = ‖(b − a)₊‖₂ = √((d·S2 − S1²) / (d − k²)).

Start with everything active (or with a guess), and repeat: a from the active set, active ← {b > a}. From above, the
threshold rises monotonically to the answer. Active sets are nested, so that equal sizes mean equal sets: there it ends.
Taking the last threshold as reference keeps the sums free of cancellation.

Input that needs many passes (geometric gaps) goes to a quickselect over the same predicate; input whose scale or ties
hide the answer goes to `careful`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import kernel, reduction
from .careful import settle, write_support

MOST_PASSES = 20
SAMPLE_ABOVE, SAMPLE_STEP = 4096, 32  # a long vector's first guess is the threshold of every 32nd entry


@reduction
def sums_above(b: Any, a: float) -> tuple[int, float, float]:
    """|{b > a}|, Σ(b − a)₊ and Σ(b − a)₊², without a branch."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(b.size):
        t = max(b[i] - a, 0.0)
        s1 += t
        s2 += t * t
        d += t > 0
    return d, s1, s2


@reduction
def sums_about(b: Any, c: float) -> tuple[float, float]:
    """Σ(b − c) and Σ(b − c)²."""
    s1, s2 = 0.0, 0.0
    for i in range(b.size):
        t = b[i] - c
        s1 += t
        s2 += t * t
    return s1, s2


@reduction
def write_above(b: Any, a: float, offset: float, slope: float, out: Any) -> float:
    """out = (offset + slope·(b − a))₊, and its sum."""
    total = 0.0
    for i in range(b.size):
        y = max(offset + slope * (b[i] - a), 0.0)
        out[i] = y
        total += y
    return total


@kernel
def threshold_norm(d: int, s1: float, s2: float, k: float) -> float:
    """N of the module's formula; −1 where rounding hides it."""
    spread = d * s2 - s1 * s1
    if d > k * k and 1e-270 < spread < 1e290 and spread > 1e-12 * d * s2:
        return math.sqrt(spread / (d - k * k))
    return -1.0


@kernel
def sparse_opt_fast(b: Any, k: float, near: Any, out: Any, guess: float) -> None:
    """Write to ``out`` the y of S_k that maximises bᵀy; ``guess`` is a first threshold, or nan for none."""
    if math.isnan(guess) and b.size >= SAMPLE_ABOVE:
        sample = np.empty((b.size + SAMPLE_STEP - 1) // SAMPLE_STEP, dtype=b.dtype)
        for i in range(sample.size):
            sample[i] = b[i * SAMPLE_STEP]
        shrink = math.sqrt(sample.size / b.size)
        if k * shrink > 2:
            guess = write_solution(sample, k * shrink, out, guess, 0, 0.0, 0.0)
    d, s1, s2 = (0, 0.0, 0.0) if math.isnan(guess) else sums_above(b, guess)
    sparse_opt_from(b, k, near, out, guess, d, s1, s2)


@kernel
def sparse_opt_from(b: Any, k: float, near: Any, out: Any, guess: float, d: int, s1: float, s2: float) -> float:
    """The same, given the sums above the guess (d = 0: none); the threshold, or nan where there is none."""
    if k * k >= b.size * (1 - 4e-16):
        out[:] = 1 / math.sqrt(b.size)
        return math.nan
    if k == 1:  # a single nonzero, and no rounding beside it
        sparse_opt_select(b, k, near, out)
        return math.nan
    threshold = write_solution(b, k, out, guess, d, s1, s2)
    if math.isnan(threshold):
        sparse_opt_select(b, k, near, out)
    return threshold


@kernel
def write_solution(b: Any, k: float, out: Any, a: float, d: int, s1: float, s2: float) -> float:
    """Write the solution and return its threshold, or nan where too many passes or rounding hide it.

    The passes start from the sums above ``a``, or where d ≤ k² with everything active.
    """
    if d <= k * k:
        a, d = np.float64(b[0]), b.size  # float() of a float32 stays one in compiled code
        s1, s2 = sums_about(b, a)
    for _ in range(MOST_PASSES):
        norm = threshold_norm(d, s1, s2, k)
        if norm < 0:
            break
        step = (s1 - k * norm) / d
        if abs(step) * d * d < s1:  # hardly an entry lies between the two thresholds: write, and see if one did,
            if write_above(b, a, (k - s1 / norm) / d, 1 / norm, out) <= k * (1 + 1e-12):  # for each adds to the sum
                return a + step
        a += step
        d, s1, s2 = sums_above(b, a)
    return math.nan


@kernel
def sparse_opt_select(b: Any, k: float, near: Any, out: Any) -> None:
    """The same answer for every input, in expected linear time."""
    done, x = settle(b, k, near, out)
    if not done:
        write_support(x, smallest_in_support(x.copy(), k), k, out)


@kernel
def smallest_in_support(x: Any, k: float) -> float:
    """The least depth in the support, by a quickselect that overwrites ``x``.

    v belongs to the support iff v exceeds the threshold of {x ≥ v}, and whatever is larger than such a v does too.
    """
    d, s1, s2 = 0, 0.0, 0.0  # of the entries known to be in the support
    smallest = 0.0
    random = np.uint64(88172645463325252)
    while x.size:
        random = xorshift(random)
        pivot = x[int(random % np.uint64(x.size))]
        more, t1, t2 = sums_from(x, pivot)
        more, t1, t2 = d + more, s1 + t1, s2 + t2
        root = math.sqrt(max(0.0, more * t2 - t1 * t1) / max(more - k * k, 1e-300))
        if more <= k * k or pivot > (t1 - k * root) / more:
            d, s1, s2, smallest = more, t1, t2, pivot
            x = x[: keep_below(x, pivot)]
        else:
            x = x[: keep_above(x, pivot)]
    return smallest


@kernel
def xorshift(state: Any) -> Any:
    """The next of Marsaglia's 64-bit pseudorandom numbers."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@reduction
def sums_from(x: Any, least: float) -> tuple[int, float, float]:
    """|{x ≥ least}| and the sums of these entries and of their squares."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(x.size):
        t = x[i] if x[i] >= least else 0.0
        s1 += t
        s2 += t * t
        d += x[i] >= least
    return d, s1, s2


@kernel
def keep_below(x: Any, pivot: float) -> int:
    """Move {x < pivot} to the front; how many they are. Without a branch, as `keep_above`."""
    n = 0
    for i in range(x.size):
        x[n] = x[i]
        n += x[i] < pivot
    return n


@kernel
def keep_above(x: Any, pivot: float) -> int:
    """Move {x > pivot} to the front; how many they are."""
    n = 0
    for i in range(x.size):
        x[n] = x[i]
        n += x[i] > pivot
    return n

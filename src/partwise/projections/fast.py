"""Sparse-opt in linear time: find the threshold in a few vectorised passes.

On an active set of d entries with sums S1 = Σ(b − c), S2 = Σ(b − c)² about any reference c, the threshold that gives
‖(b − a)₊‖₁ / ‖(b − a)₊‖₂ = k is

    a = c + (S1 − k·N) / d,      N = ‖(b − a)₊‖₂ = √((d·S2 − S1²) / (d − k²)).

Start with all entries active (or from a guess), and repeat: a from the active set, active ← {b > a}. The threshold
rises monotonically to the solution. Active sets are nested, so equal sizes mean equal sets, and the iteration stops.
Using the last threshold as the reference avoids cancellation in the sums.

Inputs that need many passes (geometric gaps), or with extreme scale or ties, are left to `careful`.
"""

from __future__ import annotations

import math

import numpy as np

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel, loop, piece
from .careful import sparse_opt_select

MOST_PASSES = 20
SAMPLE_ABOVE, SAMPLE_STEP = 4096, 32  # the first guess for a long vector is the threshold of every 32nd entry


def sparse_opt_fast(b: Vector, k: float, near: Vector | None, out: Vector) -> None:
    """Write to ``out`` the y in S_k that maximises bᵀy. ``out`` may be ``near``."""
    if near is not None and np.may_share_memory(near, out):
        near = near.copy()  # a fast solution that fails is written before that is known
    if k == 1 or math.isnan(solve(b, k, out, first_guess(b, k))):  # k = 1: exactly one nonzero
        sparse_opt_select(b, k, near, out)


def first_guess(b: Vector, k: float) -> float:
    """A threshold to start from, or NaN."""
    sample = b[::SAMPLE_STEP].copy() if b.size >= SAMPLE_ABOVE else b[:1]
    shrunk = k * math.sqrt(sample.size / b.size)
    return solve(sample, shrunk, np.empty_like(sample), math.nan) if shrunk > 2 else math.nan


@kernel
def solve(b: Vector, k: float, out: Vector, guess: float) -> float:
    """Write the solution and return its threshold, or NaN if the passes from ``guess`` (NaN: none) fail."""
    d, s1, s2 = 0, 0.0, 0.0
    if not math.isnan(guess):
        d, s1, s2 = sums_above(b, guess)
    return write_solution(b, k, out, guess, d, s1, s2)


@kernel
def positive_sums(b: Vector, a: float) -> tuple[float, float]:
    """Σ(b − a)₊ and Σ(b − a)₊²."""
    _, s1, s2 = sums_above(b, a)
    return s1, s2


@piece
def write_solution(b: Vector, k: float, out: Vector, a: float, d: int, s1: float, s2: float) -> float:
    """Write the solution and return its threshold, or NaN after too many passes or if rounding prevents it.

    The passes start from the sums above ``a``, or with all entries active if d ≤ k².
    """
    found = math.nan
    if d <= k * k:
        a, d = np.float64(b[0]), b.size  # float() of a float32 stays one in compiled code
        s1, s2 = sums_about(b, a)
    for _ in range(MOST_PASSES):
        norm = threshold_norm(d, s1, s2, k)
        if norm < 0:
            break
        step = (s1 - k * norm) / d
        if abs(step) * d * d < s1:  # few or no entries lie between the two thresholds: write, and check that none does
            if write_above(b, a, (k - s1 / norm) / d, 1 / norm, out) == d:
                found = a + step
                break
        a += step
        d, s1, s2 = sums_above(b, a)
    return found


@piece
def threshold_norm(d: int, s1: float, s2: float, k: float) -> float:
    """N in the module's formula; −1 if rounding errors make it unreliable."""
    spread = d * s2 - s1 * s1
    known = d > k * k and 1e-270 < spread < 1e290 and spread > 1e-12 * d * s2
    return math.sqrt(spread / (d - k * k)) if known else -1.0


@loop
def sums_above(b: Vector, a: float) -> tuple[int, float, float]:
    """|{b > a}|, Σ(b − a)₊ and Σ(b − a)₊². Branch-free."""
    d, s1, s2 = 0, 0.0, 0.0
    for i in range(b.size):
        t = max(b[i] - a, 0.0)
        s1 += t
        s2 += t * t
        d += t > 0
    return d, s1, s2


@loop
def sums_about(b: Vector, c: float) -> tuple[float, float]:
    """Σ(b − c) and Σ(b − c)²."""
    s1, s2 = 0.0, 0.0
    for i in range(b.size):
        t = b[i] - c
        s1 += t
        s2 += t * t
    return s1, s2


@loop
def write_above(b: Vector, a: float, offset: float, slope: float, out: Vector) -> int:
    """out ← (offset + slope·(b − a))₊; return the number of positive entries.

    Not their sum: a loop that reads one array and writes another is vectorised unless the two lie close together in
    memory, so the order of its sums would depend on addresses.
    """
    d = 0
    for i in range(b.size):
        y = max(offset + slope * (b[i] - a), 0.0)
        out[i] = y
        d += y > 0
    return d

"""The column problem in a diagonal metric, in linear time: a few vectorised passes.

The problem: min ½Σhw² − Σbw over {w ≥ 0, low ≤ Σw ≤ high, Σw² = 1}, with h ≥ 0. With multipliers λ and μ,

    w = (b − λ)₊ / (h + μ).

Where h + μ ≥ 0 everywhere, the Lagrangian is convex, and w is the global minimum: the multipliers certify it. For a
fixed μ, Σw falls with λ; with λ(μ) from Σw = k, Σw² falls as μ grows. A pass computes the sums that Newton's method
needs for both conditions on the active set {b > λ}: λ is corrected first, exactly on that set, then μ by the equation

    1/√(Σw² − k²/d) = 1/√(1 − k²/d),      d = |{b > λ}|,

which is linear in μ if h is constant. In an interval, λ = 0 unless Σw then leaves it, and has the sign of the end.

What the passes cannot solve is left to `metric_careful`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel, loop, piece
from .careful import ROUNDING
from .fast import SAMPLE_ABOVE, SAMPLE_STEP, sums_about, sums_above
from .metric_careful import solve_carefully

MOST_PASSES = 24
EXACT = 1e-12  # relative error of both conditions at which w is written

Plain = Callable[[Vector, Vector | None, Vector], None]  # (b, near, out): write the nearest point of the set to out


def write_in_metric(
    b: Vector, h: Vector, low: float, high: float, near: Vector | None, out: Vector, plain: Plain
) -> bool:
    """Write the minimum of ½Σhw² − Σbw with ``low`` ≤ Σw ≤ ``high`` to ``out``; return whether it is certified.

    ``out`` may be ``near``. ``plain`` projects onto the same set. Without a certificate, the result is a point from which no step of the
    projected gradient descends, and is no worse than the point of the set nearest to ``near``.
    """
    if h.min() == h.max() or low * low >= b.size * (1 - ROUNDING):  # ‖w‖ = 1, so that a constant metric is none
        plain(b, near, out)
        return True
    if high == 1:
        write_single(b, h, near, out)
        return True
    if near is not None and np.may_share_memory(near, out):
        near = near.copy()
    return solve_by_passes(b, h, low, high, out) or solve_carefully(b, h, low, high, near, out, plain)


def write_single(b: Vector, h: Vector, near: Vector | None, out: Vector) -> None:
    """Write the best vector with a single nonzero, 1; ``near`` breaks ties, then the position."""
    values = 0.5 * h.astype(float) - b
    best = np.flatnonzero(values == values.min())
    chosen = best[0] if near is None else best[np.argmax(near[best])]
    out[:] = 0
    out[chosen] = 1


def solve_by_passes(b: Vector, h: Vector, low: float, high: float, out: Vector) -> bool:
    """Write the solution and return True, or return False if the passes fail."""
    k, least = low, h.min()
    if low < high:
        _, _, total = solve(b, h, least, math.nan, 1.0, out, *first_guess(b, h, least, math.nan))
        if low <= total <= high:
            return True
        if math.isnan(total):
            return False
        k = high if total > high else low
    threshold, _, total = solve(b, h, least, k, 1.0, out, *first_guess(b, h, least, k))
    return bool(total == k and (low == high or threshold * (k - low) >= threshold * (high - k)))


def first_guess(b: Vector, h: Vector, least: float, k: float) -> tuple[float, float]:
    """(λ, ν) to start from: for long vectors those of every 32nd entry, whose sums have that share; or NaN."""
    if b.size < SAMPLE_ABOVE:
        return math.nan, math.nan
    few, metric = b[::SAMPLE_STEP].copy(), h[::SAMPLE_STEP].copy()
    share = few.size / b.size
    if k * k * share <= 4:
        return math.nan, math.nan
    a, nu, _ = solve(few, metric, least, k * share, share, np.empty_like(few), math.nan, math.nan)
    return a, nu


@kernel
def solve(
    b: Vector, h: Vector, least: float, k: float, square: float, out: Vector, a: float, nu: float
) -> tuple[float, float, float]:
    """Write w with Σw = ``k`` and Σw² = ``square``; return (λ, ν = μ + ``least``, Σw), or NaN if the passes fail.

    With k = NaN, λ = 0. The passes start from (a, nu), or from the solution for a constant metric if these are NaN.
    """
    free, found = math.isnan(k), False
    if math.isnan(nu):
        a, nu = constant_solution(b, h, least, k, square)
    for _ in range(MOST_PASSES):
        d, p0, p1, q0, q1, q2, r0, r1, r2 = metric_sums(b, h, a, least, nu)
        total = p1 if free else k
        centre = 0.0 if free else k * k / d
        wanted, spread = square - centre, q2 - (0.0 if free else p1 * p1 / d)
        if not (d > 0 and wanted > 1e-9 * square and 1e-9 * q2 < spread < 1e270):
            break
        if abs(p1 - total) <= EXACT * total and abs(q2 - square) <= EXACT * square:
            slope = math.sqrt(wanted / spread)
            offset = 0.0 if free else (k - slope * p1) / d
            found = write_above(b, h, a, least, nu, offset, slope, out) == d
            k = slope * p1 if free else k
            break
        move = 0.0 if free else (p1 - k) / p0  # the change of λ that gives Σw = k on the active set
        q2 += move * (move * q0 - 2 * q1)
        r2 += move * (move * r0 - 2 * r1)
        q1 -= move * q0
        bend = r2 if free else r2 - q1 * q1 / p0
        step = (q2 - centre) * (math.sqrt(max(q2 - centre, 0.0) / wanted) - 1) / bend
        step = max(step, -0.9 * nu)
        if not free:
            a += move - step * q1 / p0
        nu += step
    return (a, nu, k) if found else (math.nan, math.nan, math.nan)


@piece
def constant_solution(b: Vector, h: Vector, least: float, k: float, square: float) -> tuple[float, float]:
    """(λ, ν) for the mean of h and with all entries active; with k = NaN, λ = 0 and the positive entries are active."""
    m = b.size
    bend, _ = sums_about(h, least)
    if math.isnan(k):
        _, _, s2 = sums_above(b, 0.0)
        a, size = 0.0, math.sqrt(s2 / square)
    else:
        reference = np.float64(b[0])
        s1, s2 = sums_about(b, reference)
        size = math.sqrt(max(m * s2 - s1 * s1, 0.0) / max(m * square - k * k, 1e-300))
        a = reference + (s1 - k * size) / m
    return a, max(size - bend / m, 0.1 * size)


@loop
def metric_sums(
    b: Vector, h: Vector, a: float, least: float, nu: float
) -> tuple[int, float, float, float, float, float, float, float, float]:
    """The number d of entries with t = b − a > 0, and Σρt⁰, Σρt¹, Σρ²t⁰, …, Σρ³t² over them, ρ = 1/(h − least + ν)."""
    d = 0
    p0, p1, q0, q1, q2, r0, r1, r2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(b.size):
        t = b[i] - a
        rho = 1.0 / ((h[i] - least) + nu)
        rho = rho if t > 0 else 0.0
        w = rho * t
        p0 += rho
        p1 += w
        q0 += rho * rho
        q1 += rho * w
        q2 += w * w
        r0 += rho * rho * rho
        r1 += rho * rho * w
        r2 += rho * w * w
        d += t > 0
    return d, p0, p1, q0, q1, q2, r0, r1, r2


@loop
def write_above(
    b: Vector, h: Vector, a: float, least: float, nu: float, offset: float, slope: float, out: Vector
) -> int:
    """out ← (offset + slope·(b − a)ρ)₊ where b > a, else 0; return the number of positive entries."""
    d = 0
    for i in range(b.size):
        t = b[i] - a
        y = max(offset + slope * t / ((h[i] - least) + nu), 0.0)
        y = y if t > 0 else 0.0
        out[i] = y
        d += y > 0
    return d

"""The column problem in a diagonal metric, in linear time: a few vectorised passes.

The problem: min ½Σhw² − Σbw over {w ≥ 0, low ≤ Σw ≤ high, Σw² = 1}, with h ≥ 0. With multipliers λ and μ,

    w = (b − λ)₊ / (h + μ).

Where h + μ ≥ 0 everywhere, the Lagrangian is convex, and w is the global minimum: the multipliers certify it. For a
fixed μ, Σw falls with λ; with λ(μ) from Σw = k, Σw² falls as μ grows. A pass computes the sums that Newton's method
needs for both conditions on the active set {b > λ}: λ is corrected first, exactly on that set, then μ by the equation

    1/√(Σw² − k²/d) = 1/√(1 − k²/d),      d = |{b > λ}|,

which is linear in μ if h is constant. In an interval, λ = 0 unless Σw then leaves it, and has the sign of the end.

Where the passes fail, `metric_careful` decides whether multipliers exist. Where they do not (a duality gap), a proximal
term lifts the smallest curvatures to a level τ: with h′ = max(h, τ) and the last point v,

    ½Σhw² − Σbw ≤ ½Σh′w² − Σ(b + (h′ − h)v)w + const,

with equality at w = v. The right side has a certified minimum if τ is large enough, and there the left side is no
larger than at v.
"""

from __future__ import annotations

import math

import numpy as np

from ..runtime.arrays import Vector
from ..runtime.compiled import kernel, loop, piece
from .careful import ROUNDING
from .fast import SAMPLE_ABOVE, SAMPLE_STEP, sums_about, sums_above
from .metric_careful import Plain, solve_carefully

MOST_PASSES = 24
MOST_CUTS = 3  # passes in which ν would become negative, after which there is probably no solution
MOST_STEPS = 10  # of the descent without a certificate
LEAST_LEVEL = 1e-6  # of the lifted curvatures, relative to the largest one
LEAST_GAIN = 1e-7  # relative decrease of the objective at which the descent ends
EXACT = 1e-12  # relative error of both conditions at which w is written


def write_in_metric(
    b: Vector, h: Vector, low: float, high: float, near: Vector | None, out: Vector, plain: Plain
) -> bool:
    """Write the minimum of ½Σhw² − Σbw with ``low`` ≤ Σw ≤ ``high`` to ``out``; return whether it is certified.

    ``out`` may be ``near``. ``plain`` projects onto the same set. Without a certificate, the result is no worse than
    the point of the set nearest to ``near``.
    """
    if h.min() == h.max() or low * low >= b.size * (1 - ROUNDING):  # ‖w‖ = 1, so that a constant metric is none
        plain(b, near, out)
        return True
    if high == 1:
        write_single(b, h, near, out)
        return True
    if near is not None and np.may_share_memory(near, out):
        near = near.copy()
    if solve_by_passes(b, h, low, high, out):
        return True
    if not (low == high and lacks_certificate(b, h, low)) and solve_carefully(b, h, low, high, near, out, plain):
        return True
    descend(b, h, low, high, near, out, plain)
    return False


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


def lacks_certificate(b: Vector, h: Vector, k: float) -> bool:
    """Whether it is certain that no multipliers certify a minimum: ‖w‖ < 1 even for ν → 0, with b < λ where h is least.

    ‖w‖ falls as ν grows, and entries with the least h vanish for ν → 0 if their b is below λ.
    """
    a, square = limit(b, h, h.min(), k)
    return bool(square < 1 - 1e-9 and b[h == h.min()].max() < a)


@np.errstate(all="ignore")
def descend(b: Vector, h: Vector, low: float, high: float, near: Vector | None, out: Vector, plain: Plain) -> None:
    """Write the end of a descent that begins at the best of a few points, among them the one nearest to ``near``."""
    top = float(h.max())
    unit = max(float(np.abs(b).max()), top)
    b, h, top = b.astype(float) / unit, h.astype(float) / unit, top / unit

    def projected(point: Vector, near: Vector | None = None) -> Vector:
        y = np.empty(b.size)
        plain(point.astype(float), near, y)
        return y

    single = np.zeros(b.size)
    single[np.argmin(0.5 * h - b)] = 1
    starts = [projected(x) for x in (b, b / (h + h.mean()), single, *([] if near is None else [near]))]
    w = min(starts, key=lambda w: objective(b, h, w))
    value, moved, pulled, lifted = objective(b, h, w), np.empty(b.size), np.empty(b.size), np.empty(b.size)
    for _ in range(MOST_STEPS):
        level = max(float(np.einsum("i,i,i", h, w, w)), LEAST_LEVEL * top)
        lift(b, h, w, level, lifted, pulled)
        while level < top and not solve_by_passes(pulled, lifted, low, high, moved):
            level *= 2
            lift(b, h, w, min(level, top), lifted, pulled)
        if level >= top:  # the metric is constant
            plain(pulled, w, moved)
        gain = value - objective(b, h, moved)
        if gain > 0:
            w, moved, value = moved, w, value - gain
        if not gain > LEAST_GAIN * abs(value):
            break
    out[:] = w


@kernel
def lift(b: Vector, h: Vector, w: Vector, level: float, lifted: Vector, pulled: Vector) -> None:
    """lifted ← max(h, level) and pulled ← b + (lifted − h)·w"""
    for i in range(b.size):
        up = max(h[i], level)
        lifted[i] = up
        pulled[i] = b[i] + (up - h[i]) * w[i]


@kernel
def objective(b: Vector, h: Vector, w: Vector) -> float:
    """½Σhw² − Σbw"""
    total = 0.0
    for i in range(b.size):
        total += (0.5 * h[i] * w[i] - b[i]) * w[i]
    return total


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
    free, found, cuts = math.isnan(k), False, 0
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
        if step < -0.9 * nu:
            step, cuts = -0.9 * nu, cuts + 1
            if cuts > MOST_CUTS:
                break
        if not free:
            a += move - step * q1 / p0
        nu += step
    return (a, nu, k) if found else (math.nan, math.nan, math.nan)


@kernel
def limit(b: Vector, h: Vector, least: float, k: float) -> tuple[float, float]:
    """(λ, Σw²) of w with Σw = ``k`` for ν = 0 and without the entries with the least h; NaN after too many passes."""
    a, before = np.float64(b[0]), -1
    for i in range(b.size):
        a = min(a, np.float64(b[i]))
    a -= 1e-3 * abs(a)
    for _ in range(2 * MOST_PASSES):
        d, p0, p1, q2 = limit_sums(b, h, a, least)
        if d == before and abs(p1 - k) <= EXACT * k:
            return a, q2
        a, before = a + (p1 - k) / p0, d
    return math.nan, math.nan


@loop
def limit_sums(b: Vector, h: Vector, a: float, least: float) -> tuple[int, float, float, float]:
    """The number of entries with t = b − a > 0 and 1/ρ = h − least > 0, and Σρ, Σρt and Σρ²t² over them."""
    d, p0, p1, q2 = 0, 0.0, 0.0, 0.0
    for i in range(b.size):
        t = b[i] - a
        rho = 1.0 / (h[i] - least)
        rho = rho if t > 0 and h[i] > least else 0.0
        p0 += rho
        p1 += rho * t
        q2 += rho * t * rho * t
        d += rho > 0
    return d, p0, p1, q2


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

"""A numerically robust solver of the column problem in a diagonal metric, for any scale, ties and near ties.

The problem: min ½Σhw² − Σbw over {w ≥ 0, low ≤ Σw ≤ high, Σw² = 1}. For a fixed ν = μ + min h > 0, the problem without
the norm is convex, and its solution w(ν) = (b − λ)₊ / (h − min h + ν) takes one sort and a cumulative sum. ‖w(ν)‖ falls
as ν grows, so that a bracketed Newton iteration finds ‖w(ν)‖ = 1. The limit ν → 0 decides whether there is such a ν:

- If the limit's norm is at least 1, there is, and w is the global minimum.
- Else an entry with the smallest h may be larger than in the limit only if its b equals λ. If several such ties, or an
  open interval, leave room for ‖w‖ = 1, all these points are global minima, and ``near`` decides.
- Else no multipliers certify a minimum (a duality gap).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..runtime.arrays import Vector
from .careful import sparse_opt_select

NEGLIGIBLE = 1e-40  # differences of b and of h that are zero beside the larger of their ranges
CLOSE = 1e-14
MOST_TRIALS = 200

Plain = Callable[[Vector, Vector | None, Vector], None]  # (b, near, out): write the point of the set nearest to b


@np.errstate(all="ignore")
def solve_carefully(
    b: Vector, h: Vector, low: float, high: float, near: Vector | None, out: Vector, plain: Plain
) -> bool:
    """Write the global minimum to ``out`` and return True, or return False if no multipliers certify one."""
    exponent = int(np.frexp(max(float(np.abs(b).max()), float(h.max())))[1])
    b, h = np.ldexp(b.astype(float), -exponent), np.ldexp(h.astype(float), -exponent)
    problem = MetricProblem.of(b, h - h.min(), low, high)
    if problem is None:  # beside b, the metric is constant
        plain(b.astype(out.dtype), near, out)
        return True
    w = problem.limit()
    if w @ w < 1:
        tied = problem.with_ties(w, near)
        if tied is None:
            return False
        out[:] = tied
        return True
    out[:] = problem.solve()
    return True


@dataclass(frozen=True)
class MetricProblem:
    """The problem in units of the range, with b relative to the largest b among the entries with the smallest h."""

    x: Vector
    h: Vector  # its smallest entry is 0
    zero: float  # the place of b = 0
    low: float
    high: float
    order: Vector  # sorts x in descending order
    pole: Vector  # the entries with h = 0

    @classmethod
    def of(cls, b: Vector, h: Vector, low: float, high: float) -> MetricProblem | None:
        """Return the problem; None if h is constant compared with the range of b."""
        unit = max(float(np.ptp(b)), float(h.max()))
        h = h / unit
        pole = h <= NEGLIGIBLE
        if pole.all():
            return None
        top = float(b[pole].max())
        x, zero = (b - top) / unit, -top / unit
        x[np.abs(x) <= NEGLIGIBLE] = 0
        zero = 0.0 if abs(zero) <= NEGLIGIBLE else zero
        return cls(x, np.where(pole, 0, h), zero, low, high, np.argsort(-x, kind="stable"), pole)

    def threshold(self, rho: Vector) -> float:
        """λ with low ≤ Σρ(x − λ)₊ ≤ high: that of b = 0 if it fits, otherwise the one at the nearer end."""
        if self.low <= rho @ np.maximum(self.x - self.zero, 0) <= self.high:
            return self.zero
        k = self.high if rho @ np.maximum(self.x - self.zero, 0) > self.high else self.low
        x, sums = self.x[self.order], np.cumsum(rho[self.order])
        first = np.cumsum(rho[self.order] * x)
        d = max(1, int(np.count_nonzero(first - x * sums < k)))
        a = (first[d - 1] - k) / sums[d - 1]
        for _ in range(3):  # the cumulative sums have cancelled: correct the threshold by its own sums
            t = np.maximum(self.x - a, 0)
            a += (rho @ t - k) / rho[t > 0].sum() if t.any() else 0.0
        return float(a)

    def limit(self) -> Vector:
        """w(ν) for ν → 0. Equal entries with the smallest h share what the others leave of Σw."""
        rho = np.where(self.pole, 0, 1 / np.where(self.pole, 1, self.h))
        a = self.threshold(rho) if (rho > 0).any() else -math.inf
        w = rho * np.maximum(self.x - max(a, 0.0), 0)
        if a < 0 or self.zero == 0:
            ties = self.ties
            left = (self.low if self.zero >= 0 else self.high) - w.sum()
            w[ties] = max(left, 0.0) / np.count_nonzero(ties)
        return w

    @property
    def ties(self) -> Vector:
        """The entries with the smallest h and, among these, the largest b."""
        return self.pole & (self.x == 0)

    def with_ties(self, w: Vector, near: Vector | None) -> Vector | None:
        """``w`` with the ties moved apart, as near to ``near`` as possible, so that ‖w‖ = 1; None if there is none."""
        ties = self.ties
        shared = float(w[ties].sum())
        rest = np.where(ties, 0, w)
        size = math.sqrt(max(1 - float(rest @ rest), 0.0))
        least, most = shared, shared
        if self.zero == 0:
            least, most = max(self.low - rest.sum(), 0.0), self.high - rest.sum()
        least, most = max(least, size), min(most, size * math.sqrt(np.count_nonzero(ties)))
        if (shared == 0 and self.zero != 0) or not least <= most * (1 + CLOSE):
            return None
        chosen = np.zeros(np.count_nonzero(ties)) if near is None else near[ties].astype(float)
        wanted = chosen.sum() * size / math.sqrt(chosen @ chosen) if chosen.any() else least
        y = np.empty_like(chosen)
        sparse_opt_select(chosen, min(max(wanted, least), most) / size, None, y)
        rest[ties] = size * y
        return rest

    def solve(self) -> Vector:
        """Find ν with ‖w(ν)‖ = 1 and return w."""
        below, above, nu = 0.0, math.inf, 1.0
        for _ in range(MOST_TRIALS):
            rho = 1 / (self.h + nu)
            a = self.threshold(rho)
            w = rho * np.maximum(self.x - a, 0)
            square, total, d = w @ w, w.sum(), np.count_nonzero(w)
            if abs(square - 1) <= CLOSE or above - below <= CLOSE * below:
                break
            below, above = (nu, above) if square > 1 else (below, nu)
            inside = a == self.zero
            centre = 0.0 if inside or total * total >= d else total * total / d
            bend = rho @ (w * w) - (0.0 if inside else (rho @ w) ** 2 / rho[w > 0].sum())
            nu += (square - centre) * (np.sqrt((square - centre) / (1 - centre)) - 1) / bend
            if not below < nu < above:
                nu = 4 * below if above == math.inf else math.sqrt(max(below, above * 1e-6) * above)
        return w / math.sqrt(square) if a == self.zero else onto(w, min(max(total, self.low), self.high))


def onto(w: Vector, k: float) -> Vector:
    """``w``, which has Σw ≈ k and ‖w‖ ≈ 1, with both exact: moved along the line from the mean of its support."""
    support = w > 0
    d, mean = np.count_nonzero(support), w.sum() / np.count_nonzero(support)
    apart = w[support] - mean
    slope = math.sqrt(max(1 - k * k / d, 0.0) / (apart @ apart)) if apart.any() else 0.0
    moved = np.zeros_like(w)
    moved[support] = np.maximum(k / d + slope * apart, 0)
    return moved

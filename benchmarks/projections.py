"""Time to project a vector onto a given sparsity: Partwise's methods, sorting, and Projection-Hoyer.

    python benchmarks/projections.py [--quick]

One thread. All methods run on each vector, in rotating order. Short calls are repeated until the clock can resolve
them, and the best of three is taken, so that b is in cache, as in a fit. Methods are called without the input checks of
the public functions. On the geometric input, "fast" falls back to a slower method, and methods that lose all precision
are left out (–).

There are two compiled versions of Projection-Hoyer. "Hoyer, published" takes two passes over the vector per round, as
the published steps do. "Hoyer", the version in the package, takes one, with the closed form that "fast" also uses.
The column problem in a diagonal metric (`solve_in_metric`) is compared with "fast" on the same vectors, for curvatures
with different spreads, whose mean is that of the solution without a metric. Targets at 409,600 entries: see the last
lines of the output.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import itertools
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from partwise.projections.metric import write_in_metric
from partwise.projections.sparsity import METHODS

Vector = np.ndarray[Any, np.dtype[np.float64]]
Solver = Callable[[Vector, float, Vector], object]  # b, k, and the output array

SPARSITIES = (0.2, 0.4, 0.6, 0.8)
MOST_METRIC = 6
SHORTEST = 2e-4  # seconds; shorter calls are repeated
vectorised = numba.njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")  # the package's own flags

INPUTS: dict[str, Callable[[np.random.Generator, int], Vector]] = {
    "uniform": lambda rng, m: rng.random(m),
    "normal": lambda rng, m: rng.standard_normal(m),
    "exponential": lambda rng, m: rng.exponential(size=m),
    "geometric": lambda rng, m: -rng.permutation(np.exp(np.linspace(-30, 30, m))),
}


def packaged(method: str) -> Solver:
    return lambda b, k, out: METHODS[method](b, k, None, out)


def sorted_numpy(b: Vector, k: float, out: Vector) -> None:
    """The paper's Algorithm 2 in NumPy: all thresholds at once, from cumulative sums."""
    a = np.sort(b)[::-1] - b.mean()
    s1, s2 = np.cumsum(a), np.cumsum(a * a)
    first = math.floor(k * k)
    a, s1, s2, p = a[first:], s1[first:], s2[first:], np.arange(first + 1, b.size + 1)
    norm = np.sqrt((p * s2 - s1 * s1) / (p - k * k))
    threshold = (s1 - k * norm) / p
    last = np.count_nonzero(a > threshold) - 1
    np.subtract(b, b.mean() + threshold[last], out=out)
    np.maximum(out, 0, out=out)
    out /= norm[last]


def hoyer_numpy(b: Vector, k: float, out: Vector) -> None:
    """Hoyer's §3.1 in NumPy. Only the nonzero entries are kept from round to round."""
    free, v = np.arange(b.size), b + (k - b.sum()) / b.size
    while True:
        middle = k / v.size
        v -= middle
        v *= math.sqrt((1 - k * middle) / (v @ v))
        v += middle
        stay = v > 0
        if stay.all():
            break
        free, v = free[stay], v[stay]
        v += (k - v.sum()) / v.size
    out[:] = 0
    out[free] = v


@vectorised
def copy_and_sum(b: Vector, v: Vector) -> float:
    s = 0.0
    for i in range(b.size):
        v[i] = b[i]
        s += b[i]
    return s


@vectorised
def spread(v: Vector, least: float, offset: float) -> float:
    """Σw² of w = v + offset over the entries with v > least."""
    s = 0.0
    for i in range(v.size):
        w = v[i] + offset if v[i] > least else 0.0
        s += w * w
    return s


@vectorised
def move(v: Vector, least: float, offset: float, alpha: float, middle: float) -> tuple[int, float]:
    """Set entries with v > least to (middle + α·w)₊, others to zero; return the number and sum of the positive ones.

    In place, because the compiler does not vectorise the loop for two arrays that may overlap.
    """
    d, s = 0, 0.0
    for i in range(v.size):
        moved = max(middle + alpha * (v[i] + offset), 0.0)
        moved = moved if v[i] > least else 0.0
        v[i] = moved
        s += moved
        d += moved > 0
    return d, s


@numba.njit(error_model="numpy")
def hoyer_published(b: Vector, k: float, out: Vector) -> None:
    """Hoyer's §3.1 as published: one pass for the quadratic equation of α (its mixed term vanishes), one for the step.

    The projection onto the hyperplane is a shift of the nonzero entries; the next two passes apply it while reading.
    """
    d, stay, least, s = 0, b.size, -np.inf, copy_and_sum(b, out)
    while stay != d:
        d, middle = stay, k / stay
        offset = (k - s) / d - middle
        alpha = math.sqrt((1 - k * middle) / spread(out, least, offset))
        stay, s = move(out, least, offset, alpha, middle)
        least = 0.0


SOLVERS: dict[str, Solver] = {
    "np.sort": lambda b, k, out: np.sort(b),
    "fast": packaged("fast"),
    "sorted": packaged("sorted"),
    "Hoyer": packaged("hoyer"),
    "sorted, NumPy": sorted_numpy,
    "Hoyer, published": hoyer_published,
    "Hoyer, NumPy": hoyer_numpy,
}
NAMES = list(SOLVERS)


def seconds(solve: Solver, b: Vector, k: float, out: Vector) -> float:
    """Seconds per call: the best of three measurements, each the mean of enough calls for the clock."""
    best = math.inf
    for _ in range(3):
        calls, elapsed, start = 0, 0.0, time.perf_counter()
        while elapsed < SHORTEST:
            solve(b, k, out)
            calls, elapsed = calls + 1, time.perf_counter() - start
        best = min(best, elapsed / calls)
    return best


def measure(kind: str, m: int, problems: int) -> Vector:
    """Seconds by sparsity, problem and solver; nan for solvers that are left out."""
    names = NAMES[:4] if kind == "geometric" else NAMES
    answers, times = {n: np.empty(m) for n in names}, np.full((len(SPARSITIES), problems, len(NAMES)), np.nan)
    for j, (i, sparsity) in itertools.product(range(problems), enumerate(SPARSITIES)):
        b = INPUTS[kind](np.random.default_rng((m, j)), m)
        k = math.sqrt(m) - sparsity * (math.sqrt(m) - 1)
        for n in names[j % len(names) :] + names[: j % len(names)]:
            times[i, j, NAMES.index(n)] = seconds(SOLVERS[n], b, k, answers[n])
        assert all(np.abs(answers[n] - answers["sorted"]).max() < 1e-8 for n in names[1:]), (kind, m, sparsity, j)
    return times


def compare_metric(kind: str, m: int, problems: int, width: float) -> str:
    """A line on seconds with a metric ÷ seconds without. The metric is log-normal with that standard deviation."""
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for j, sparsity in itertools.product(range(problems), SPARSITIES):
        rng, out = np.random.default_rng((m, j)), np.empty(m)
        b = INPUTS[kind](rng, m)
        h = np.linalg.norm(b) * np.exp(width * rng.standard_normal(m))
        k = math.sqrt(m) - sparsity * (math.sqrt(m) - 1)
        plain = partial(METHODS["fast"], k=k)

        def solve(b: Vector, k: float, out: Vector, h: Vector = h, plain: Any = plain) -> bool:
            return write_in_metric(b, h, k, k, None, out, lambda b, near, out: plain(b, near=near, out=out))

        certified = solve(b, k, out)
        ratios[certified].append(seconds(solve, b, k, out) / seconds(packaged("fast"), b, k, out))
    mean, median = np.mean(ratios[True]), np.median(ratios[True])
    line = f"{f'{kind}: metric of width {width} ÷ fast':<40} mean {mean:6.2f}  median {median:6.2f}  "
    line += f"{'meets' if max(mean, median) <= MOST_METRIC else 'misses'} ≤ {MOST_METRIC}"
    return line + (f"; {len(ratios[False])} uncertified: {np.mean(ratios[False]):.0f}" if ratios[False] else "")


def row(label: str, means: Vector) -> str:
    return f"{label:>12}" + "".join(f"{'–':>18}" if np.isnan(t) else f"{1e3 * t:18.4f}" for t in means)


def verdict(kind: str, times: Vector, above: str, below: str, least: float = 0, most: float = math.inf) -> str:
    """The ratio of mean times and the median ratio; the target is met if both are between ``least`` and ``most``."""
    upper, lower = times[..., NAMES.index(above)], times[..., NAMES.index(below)]
    mean, median = upper.mean() / lower.mean(), float(np.median(upper / lower))
    target = f"≥ {least}" if least else f"≤ {most}"
    outcome = "meets" if least <= min(mean, median) <= max(mean, median) <= most else "misses"
    return f"{f'{kind}: {above} ÷ {below}':<36} mean {mean:6.2f}  median {median:6.2f}  {outcome} {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four small sizes, three problems each")
    quick = parser.parse_args().quick
    sizes, problems = [100 * 2**i for i in range(4 if quick else 13)], 3 if quick else 40
    measure("uniform", 100, 1)  # compiles
    last = {}
    for kind in INPUTS:
        print(f"\n{kind}: mean milliseconds of {problems} problems at each of the sparsities {SPARSITIES}")
        print(f"{'size':>12}" + "".join(f"{name:>18}" for name in NAMES), flush=True)
        for m in sizes:
            last[kind] = measure(kind, m, problems)
            print(row(f"{m:,}", last[kind].mean(axis=(0, 1))), flush=True)
        for sparsity, means in zip(SPARSITIES, last[kind].mean(axis=1), strict=True):
            print(row(f"at {sparsity}", means))
    print(f"\nm = {sizes[-1]:,}")
    for kind, width in itertools.product(("uniform", "normal", "exponential"), (0.5, 1.0, 2.0)):
        print(compare_metric(kind, sizes[-1], min(problems, 10), width), flush=True)
    if quick:
        return  # the targets are for 409,600 entries
    print(verdict("uniform", last["uniform"], "fast", "np.sort", most=0.35))
    for name in ("Hoyer", "Hoyer, published", "Hoyer, NumPy"):
        print(verdict("uniform", last["uniform"], name, "fast", least=2.5))
    print(verdict("geometric", last["geometric"], "fast", "np.sort", most=5))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

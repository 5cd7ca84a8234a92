"""Weights of all entries: components found, CPU time, and what acceleration saves.

    python benchmarks/weights.py [--quick] [--seeds N]

X has planted components. Every entry was measured with another deviation, exp(spread · normal) times a common one, and
the weights are 1/deviation². Three fits have the same seed and take turns: with these weights, without weights, and
with the less precise half of the entries missing (`observed=`). The table shows the mean cosine with the planted
components and the CPU seconds. The last column is the time until the weighted fit has the final loss of the same fit
without acceleration, as a share of the time of the latter. Medians over the seeds; one thread.

The last lines compare weights of 0 and 1 with the observed mask that they stand for: the largest difference.
"""

import argparse
import itertools
import time
from typing import Any

import numpy as np

import partwise as pw
from partwise.projections import Hoyer

NOISE = 0.1
SPREADS = (0.5, 1.0, 1.5)
SPARSITIES = (None, 0.6)


def planted(seed: int, n: int, m: int, r: int, spread: float) -> tuple[Any, Any, Any]:
    """Noisy data, their planted components, and the deviations of all entries."""
    rng = np.random.default_rng(seed)
    parts = np.array([Hoyer(0.6)(rng.random(m) ** 4) for _ in range(r)])
    deviations = NOISE * np.exp(spread * rng.standard_normal((n, m)))
    return np.maximum(rng.random((n, r)) ** 2 @ parts + deviations * rng.standard_normal((n, m)), 0), parts, deviations


def timed(X: Any, r: int, **options: Any) -> tuple[Any, Any]:
    """A fit, and the CPU seconds after each iteration."""
    at: list[float] = []
    start = time.process_time()
    result = pw.ssnmf(X, r, n_threads=1, callback=lambda _: at.append(time.process_time() - start), **options)
    return result, np.array(at)


def compare(spread: float, sparsity: float | None, seeds: int, n: int, m: int, r: int) -> str:
    rows = []
    for seed in range(seeds):
        X, parts, deviations = planted(seed, n, m, r, spread)
        asked = {"sparsity": sparsity, "random_state": seed}
        weights = {"weights": deviations**-2}
        ways = (weights, {}, {"observed": deviations <= np.median(deviations)})
        fits = [timed(X, r, **asked, **way) for way in ways]
        plain, seconds = timed(X, r, **asked, **weights, accelerate=False)
        longer, at = timed(X, r, **asked, **weights, tol=1e-3)
        there = longer.losses <= plain.losses[-1]
        share = at[np.argmax(there)] / seconds[-1] if there.any() else np.inf
        cosines = [pw.match_parts(parts, fit.components).cosines.mean() for fit, _ in fits]
        rows.append([*cosines, *(at[-1] for _, at in fits), share])
    found = np.median(rows, axis=0)
    cells = [*(f"{x:>10.3f}" for x in found[:3]), *(f"{x:>12.3f}" for x in found[3:6]), f"{found[6]:>22.2f}"]
    return f"{spread:>6g}{sparsity!s:>10}{''.join(cells)}"


def apart(share: float, sparsity: float | None, seeds: int, n: int, m: int, r: int) -> str:
    """The largest difference between fits with weights of 0 and 1 and with the observed mask."""
    largest = 0.0
    for seed in range(seeds):
        X, _, _ = planted(seed, n, m, r, 1.0)
        seen = np.random.default_rng(seed).random(X.shape) >= share
        fits = [pw.ssnmf(X, r, sparsity=sparsity, random_state=seed, **{way: seen}) for way in ("weights", "observed")]
        one, other = ([*fit.factors, fit.losses] for fit in fits)
        largest = max(largest, *(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True)))
    return f"{share:.0%} weights of 0, sparsity {sparsity}: differs from the observed mask by {largest:.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small X, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    size, seeds = ((40, 50, 3), 1) if given.quick else ((400, 300, 10), given.seeds)
    for sparsity in SPARSITIES:  # compiles the kernels
        compare(1.0, sparsity, 1, 40, 50, 3)
    print(f"{size[0]} × {size[1]}, {size[2]} components, {seeds} seeds")
    print(f"{'cosine with planted components':>46}{'CPU seconds':>36}{'accelerated ÷ plain':>22}")
    ways = ("weights", "none", "half")
    names = [*(f"{way:>10}" for way in ways), *(f"{way:>12}" for way in ways), f"{'to the same loss':>22}"]
    print(f"spread{'sparsity':>10}{''.join(names)}")
    for spread, sparsity in itertools.product(SPREADS, SPARSITIES):
        print(compare(spread, sparsity, seeds, *size), flush=True)
    for share, sparsity in itertools.product((0.1, 0.5, 0.8), SPARSITIES):
        print(apart(share, sparsity, seeds, *size), flush=True)


if __name__ == "__main__":
    main()

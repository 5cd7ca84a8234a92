"""How often the held-out error recovers a known number of components.

    python benchmarks/selection.py [--quick]

Generated data (120 × 80, components of sparsity 0.5, exponential activations), 3 ranks × 3 noise levels × 5 seeds; the
noise is relative to the root mean square of the signal. `partwise.select` tries ranks from three below the true one to
three above, without a sparsity. For each noise level, the script prints how often the lowest held-out error is at the
true rank, how often within one of it (target: 80 % overall), and by how much the error one and three ranks off exceeds
the error at the true rank (medians).
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

import partwise as pw
from partwise.datasets import planted

RANKS, NOISES, REACH = (3, 5, 8), (0.05, 0.3, 0.6), 3
TARGET = 0.8


def errors(rank: int, noise: float, seed: int, n_jobs: int) -> dict[int, float]:
    """The held-out error at each rank, by the distance from the true rank."""
    X = planted(120, 80, rank, sparsity=0.5, noise=noise, random_state=seed).X
    tried = range(max(rank - REACH, 1), rank + REACH + 1)
    found = pw.select(X, tried, n_splits=2, n_init=2, random_state=seed, n_jobs=n_jobs)
    return {row["rank"] - rank: row["heldout_error"] for row in found.rows}


def main() -> None:
    """Print one line per noise level, and the overall shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one rank, one seed")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args()
    ranks, seeds = (RANKS[:1], range(1)) if options.quick else (RANKS, range(5))
    started, off = perf_counter(), []
    for noise in NOISES:
        curves = [errors(rank, noise, seed, options.n_jobs) for rank in ranks for seed in seeds]
        here = [min(curve, key=curve.__getitem__) for curve in curves]
        beside = {d: median(curve[d] / curve[0] - 1 for curve in curves if d in curve) for d in (-1, 1, REACH)}
        print(
            f"noise {noise:4.2f}: lowest at the true rank in {here.count(0)} of {len(here)}, within one in "
            f"{sum(abs(d) <= 1 for d in here)}; error " + ", ".join(f"{e:+.1%} at {d:+d}" for d, e in beside.items())
        )
        off += here
    share = sum(abs(d) <= 1 for d in off) / len(off)
    print(
        f"overall: at the true rank in {off.count(0) / len(off):.0%}, within one in {share:.0%} (target: {TARGET:.0%})"
    )
    print(f"{perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

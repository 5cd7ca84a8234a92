"""How often the held-out error recovers a known number of components, and how long a search takes.

    python benchmarks/selection.py [--quick] [--time]

Generated data (120 × 80, components of sparsity 0.5, exponential activations), 3 ranks × 3 noise levels × 5 seeds; the
noise is relative to the root mean square of the signal. `partwise.select` tries ranks from three below the true one to
three above, without a sparsity. For each noise level, the script prints how often the lowest held-out error is at the
true rank, how often within one of it (target: 80 % overall), and by how much the error one and three ranks off exceeds
the error at the true rank (medians).

With --time only: the CPU time of a search as a multiple of the time of the fits it contains, for 60 small images (two
ranks × two sparsities × two splits × two starts), and for blood cells (2000 genes, ranks 4 to 12, two splits, one
start, 50 iterations), which are read from the folder given by PARTWISE_DATA.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments.loaders.catalogue import data_sets
from partwise.datasets import planted
from partwise.recipes import RECIPES

RANKS, NOISES, REACH = (3, 5, 8), (0.05, 0.3, 0.6), 3
TARGET = 0.8


def errors(rank: int, noise: float, seed: int, n_jobs: int) -> dict[int, float]:
    """The held-out error at each rank, by the distance from the true rank."""
    X = planted(120, 80, rank, sparsity=0.5, noise=noise, random_state=seed).X
    tried = range(max(rank - REACH, 1), rank + REACH + 1)
    found = pw.select(X, tried, n_splits=2, n_init=2, random_state=seed, n_jobs=n_jobs)
    return {row["rank"] - rank: row["heldout_error"] for row in found.rows}


def time_search(name: str, X: Any, ranks: list[int], **options: Any) -> None:
    """Print the CPU time of a search, and how it compares with that of its fits."""
    spent: list[float] = []

    def measured(*args: Any, fit: Any = RECIPES["ssnmf"], **given: Any) -> Any:
        started = process_time()
        result = fit(*args, **given)
        spent.append(process_time() - started)
        return result

    measured.__signature__ = RECIPES["ssnmf"].__signature__  # type: ignore[attr-defined]
    plain, RECIPES["ssnmf"] = RECIPES["ssnmf"], measured
    started = process_time()
    pw.select(X, ranks, random_state=0, **options)
    total = process_time() - started
    RECIPES["ssnmf"] = plain
    print(f"{name}: search {total:.2f} s, {total / sum(spent):.2f} × the {len(spent)} fits it contains", flush=True)


def time_searches(quick: bool) -> None:
    """Print one line per search."""
    few = {"sparsities": [None, 0.6], "n_splits": 2, "n_init": 2}
    images = load_digits().data[:60]
    pw.select(images, [2], **few, max_iter=3, random_state=0)  # compiles
    time_search("60 small images", images, [4, 8], **few)
    for name, X, _ in data_sets([] if quick else ["cells"]):
        time_search(name, X, [*range(4, 13)], n_splits=2, n_init=1, max_iter=50)


def main() -> None:
    """Print one line per noise level, and the overall shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one rank, one seed")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--time", action="store_true", help="only the time of searches")
    options = parser.parse_args()
    if options.time or options.quick:
        time_searches(options.quick)
    if options.time:
        return
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

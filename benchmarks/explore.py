"""The cost and the quality of the explorer's path: CPU time in default fits, and the error beside fits alone.

    python benchmarks/explore.py [--quick] [--seeds 3] [--first 0] [--data NAME …] [--levels 15]

For each data set and seed, all levels from 0.2 to 0.9 are fitted as `partwise.explore` does, and three of them (the
first, the middle and the last but three) are fitted alone, with default settings. The script prints the CPU time of the
path, without writing the page, relative to the mean of the three fits (target: 3), how much larger the error of the
path is at each of the three (target: at most 1 %), and the size of the page (target: 5 MB). Medians over the seeds, and
the largest excess. Everything runs in one thread. CBCL and ORL are read from the folder given by PARTWISE_DATA, or from
the user's cache; data that are missing are skipped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments.loaders.catalogue import data_sets
from partwise.data import as_data
from partwise.estimators import SparseNMF
from partwise.pages.explore import fits_of

SHAPES = {"digits": (8, 8), "CBCL": (19, 19), "ORL": (112, 92)}


def compared(X: np.ndarray, r: int, levels: list[float], seed: int) -> tuple[float, list[float]]:
    """The CPU time of the path in fits, and the excess of its error at three levels."""
    model = SparseNMF(r, sparsity=levels[-1], n_threads=1)
    chosen = [0, len(levels) // 2, max(len(levels) - 4, 0)]
    started = process_time()
    path = fits_of(model, levels, np.random.default_rng(seed), None, lambda: None)(as_data(X))
    whole, alone, excess = process_time() - started, [], []
    for k in chosen:
        started = process_time()
        fit = pw.ssnmf(X, r, sparsity=levels[k], random_state=seed, n_threads=1)
        alone.append(process_time() - started)
        excess.append(path.results[k].relative_error / fit.relative_error - 1)
    return whole / float(np.mean(alone)), excess


def main() -> None:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits, three levels, one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--levels", type=int, default=15)
    parser.add_argument("--data", nargs="+", choices=SHAPES, default=[*SHAPES])
    options = parser.parse_args()
    warnings.simplefilter("ignore", pw.CapacityWarning)
    names, seeds, count = (["digits"], 1, 3) if options.quick else (options.data, options.seeds, options.levels)
    levels = np.linspace(0.2, 0.9, count).round(6).tolist()
    for name, X, r in data_sets(names):
        compared(X[:60], r, levels[:1], 0)  # compiles
        found = [compared(X, r, levels, seed) for seed in range(options.first, options.first + seeds)]
        page = pw.explore(X, r, levels, part_shape=SHAPES[name], random_state=0, max_iter=20).page
        costs, excesses = [cost for cost, _ in found], np.array([excess for _, excess in found])
        shown = ", ".join(f"{100 * e:+.2f} %" for e in np.median(excesses, axis=0))
        print(
            f"{name:<7} {count} levels: {np.median(costs):.2f} fits (largest {max(costs):.2f}); error against fits "
            f"alone {shown} (largest {100 * excesses.max():+.2f} %); page {len(page) / 1e6:.2f} MB",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

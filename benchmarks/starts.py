"""Final error by start: random, samples, NNDSVD and gradual.

    python benchmarks/starts.py [--quick]

ORL, CBCL and digits at sparsity 0.5, 0.7 and 0.85, five seeds, default tolerance. For each start, the script prints the
final relative error (mean and worst over the seeds), iterations and seconds, start included. ORL and CBCL are read from
the folder given by PARTWISE_DATA, or from the user's cache; a dataset that is missing is skipped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments import loaders
from partwise import datasets

DATA: dict[str, tuple[Callable[[], tuple[np.ndarray, tuple[int, int]]], int]] = {
    "digits": (datasets.load_digits, 16),
    "CBCL": (loaders.load_cbcl, 49),
    "ORL": (loaders.load_orl, 25),
}
STARTS = ("random", "samples", "nndsvd", "gradual")


def main() -> None:
    """Print a table for each dataset, and the mean of each start over all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits, one seed, few iterations")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", pw.CapacityWarning)
    excess: dict[str, list[float]] = {start: [] for start in STARTS}
    for name, (load, r) in DATA.items():
        if quick and name != "digits":
            continue
        try:
            X, _ = load()
        except (FileNotFoundError, ImportError) as error:
            print(f"{name} is skipped: {error}")
            continue
        for sparsity in (0.5, 0.7, 0.85):
            rows = {}
            for start in STARTS:
                fits = [
                    pw.ssnmf(X, r, sparsity=sparsity, init=start, random_state=seed, max_iter=20 if quick else 500)
                    for seed in range(1 if quick else 5)
                ]
                rows[start] = [(f.relative_error, f.n_iter, f.times[-1]) for f in fits]
            best = min(np.mean([error for error, *_ in row]) for row in rows.values())
            for start, row in rows.items():
                error, n_iter, seconds = np.mean(row, axis=0)
                excess[start].append(error / best - 1)
                worst = max(error for error, *_ in row)
                print(
                    f"{name:7} sparsity {sparsity:.2f} {start:8} error {error:.5f} (worst {worst:.5f}), "
                    f"{100 * excess[start][-1]:5.2f} % above the best; {n_iter:4.0f} iterations, {seconds:6.2f} s",
                    flush=True,
                )
    for start in STARTS:
        mean, worst = 100 * np.mean(excess[start]), 100 * max(excess[start])
        print(f"{start:8} mean {mean:5.2f} %, worst {worst:6.2f} % above the best")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

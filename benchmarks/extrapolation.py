"""Speedup by extrapolation (``extrapolate=True``).

    python benchmarks/extrapolation.py [--quick]

Both fits begin at the same start and run on one thread. Each row gives, at 20, 50 and 90 % of the running time of the
plain fit, the time of the plain fit ÷ the time of the extrapolated fit to the same loss. ORL and CBCL are read from the
folder given by PARTWISE_DATA, or from the user's cache; a dataset that is missing is skipped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments import loaders
from partwise import datasets

DATA = {
    "digits": (datasets.load_digits, 16, 0.5),
    "CBCL": (loaders.load_cbcl, 49, 3.0),
    "ORL": (loaders.load_orl, 25, 5.0),
}  # loader, number of components, seconds per fit


def main() -> None:
    """Print the speedups of each fit, and their median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits, one seed")
    quick = parser.parse_args().quick
    ratios: list[float] = []
    for name, (load, r, seconds) in DATA.items():
        seconds = 0.1 if quick else seconds
        if quick and name != "digits":
            continue
        try:
            X, _ = load()
        except (FileNotFoundError, ImportError) as error:
            print(f"{name} is skipped: {error}")
            continue
        pw.ssnmf(X[:50], r, sparsity=0.3, max_iter=1)  # compiles
        for sparsity in (None, 0.3, 0.5, 0.7):
            for seed in range(1 if quick else 3):
                settings = {"sparsity": sparsity, "random_state": seed, "max_time": seconds, "max_iter": 10**6}
                plain = pw.ssnmf(X, r, tol=0, **settings)
                ahead = pw.ssnmf(X, r, tol=0, extrapolate=True, **settings)
                row = []
                for share in (0.2, 0.5, 0.9):
                    i = int(np.searchsorted(plain.times, share * plain.times[-1]))
                    passed = np.flatnonzero(ahead.losses <= plain.losses[i])
                    row.append(plain.times[i] / ahead.times[passed[0]] if len(passed) else 0.0)
                ratios += row
                print(f"{name:7} sparsity {sparsity} seed {seed}: " + " ".join(f"{x:5.2f}" for x in row), flush=True)
    print(f"median {np.median(ratios):.2f}; plain fit faster in {np.mean(np.array(ratios) < 1):.0%}; 0.00: not reached")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

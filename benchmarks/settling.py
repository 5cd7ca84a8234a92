"""How far the default stop is from the end: cosines of components, and samples whose strongest component changes.

    python benchmarks/settling.py [--quick] [--seeds 5] [--data NAME …] [--sparsity S …]

For each data set and seed, the default fit is compared with the same fit run to the end: ``tol`` 1000 times smaller and
ten times the default ``max_iter``. The script prints the number of iterations of both, the mean and the smallest cosine
of matched components, and the share of samples whose strongest component differs; medians over the seeds. Targets:
0.99, 0.95 and 3 %. CBCL, ORL, newsgroups and cells are read from the folder given by PARTWISE_DATA, or from the user's
cache; data that are missing are skipped.
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
from experiments.loaders.catalogue import DATA, data_sets
from partwise.engine.options import MAX_ITER, TOL


def strongest(result: pw.Result) -> np.ndarray:
    """The component with the largest share of each sample."""
    return np.argmax(result.activations * np.linalg.norm(result.components, axis=1), axis=1)


def compared(X: object, r: int, sparsity: float | None, seed: int, longest: int) -> tuple[float, ...]:
    """Iterations, whether it converged, CPU seconds, iterations to the end, cosines, and changed samples."""
    asked = {"sparsity": sparsity, "random_state": seed, "n_threads": 1}
    started = process_time()
    usual = pw.ssnmf(X, r, **asked)
    seconds = process_time() - started
    end = pw.ssnmf(X, r, **asked, tol=TOL / 1000, max_iter=longest)
    pairs = pw.match_parts(usual.components, end.components)
    changed = pairs.second[strongest(usual)] != strongest(end)
    cosines = pairs.cosines
    return usual.n_iter, usual.converged, seconds, end.n_iter, cosines.mean(), cosines.min(), changed.mean()


def main() -> None:
    """Print a row for each data set and sparsity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits and counts, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--data", nargs="+", choices=DATA, default=[name for name in DATA if name not in ("Swimmer", "sMRI")]
    )
    parser.add_argument("--sparsity", nargs="+", default=["none", "0.7"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", pw.CapacityWarning)
    names, seeds = (["digits", "counts"], 1) if options.quick else (options.data, options.seeds)
    for name, X, r in data_sets(names):
        for text in options.sparsity:
            level = None if text == "none" else float(text)
            rows = np.array([compared(X, r, level, seed, 10 * MAX_ITER) for seed in range(seeds)])
            n_iter, _, seconds, end, mean, least, changed = np.median(rows, axis=0)
            good = mean >= 0.99 and least >= 0.95 and changed <= 0.03
            print(
                f"{name:16} sparsity {text:4} {n_iter:5.0f} iterations, {rows[:, 1].sum():.0f} of {seeds} converged, "
                f"{seconds:6.2f} s; to the end {end:5.0f}; cosines {mean:.4f}, least {least:.4f}; "
                f"changed {changed:6.2%}: {'meets' if good else 'MISSES'}",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

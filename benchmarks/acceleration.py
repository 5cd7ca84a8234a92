"""Time of the default fit to the error of the plain iteration (``accelerate=False``), as a share of its time.

    python benchmarks/acceleration.py [--quick] [--seeds 5] [--data NAME …] [--sparsity S …] [--no-compress]

The plain fit makes 200 iterations. The script prints the CPU time in which the default fit reaches its loss after 20
and after 200 iterations, as a share of the time of the plain fit (one thread, start included, medians over the seeds),
and the worst rise of the loss in one iteration. inf: not reached within as many iterations. CBCL, ORL, newsgroups and
cells are read from the folder given by PARTWISE_DATA, or from the user's cache; data that are missing are skipped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments.loaders.catalogue import DATA, data_sets


def curve(X: Any, r: int, seed: int, iterations: int, **asked: Any) -> tuple[np.ndarray, np.ndarray]:
    """The losses, and the CPU seconds at which they were reached."""
    times: list[float] = []
    started = process_time()
    result = pw.ssnmf(
        X,
        r,
        init="samples",
        random_state=seed,
        n_threads=1,
        tol=0,
        max_iter=iterations,
        callback=lambda it: times.append(process_time() - started),
        **asked,
    )
    return result.losses, np.array(times)


def main() -> None:
    """Print a row for each data set and sparsity, and their geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits, one seed, few iterations")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", nargs="+", choices=DATA, default=[*DATA])
    parser.add_argument("--sparsity", nargs="+", default=["none", "0.5", "0.7"])
    parser.add_argument("--no-compress", action="store_true", help="the default fit, but without compression")
    options = parser.parse_args()
    ways = {"compress": False} if options.no_compress else {}
    warnings.simplefilter("ignore", pw.CapacityWarning)
    seeds, early, late = (1, 5, 20) if options.quick else (options.seeds, 20, 200)
    shares = []
    for name, X, r in data_sets(["digits"] if options.quick else options.data):
        curve(X, r, 0, 3, sparsity=0.5)
        curve(X, r, 0, 3)
        for text in options.sparsity:
            asked = {"sparsity": None if text == "none" else float(text)}
            found, rises = [], []
            for seed in range(seeds):
                losses, times = curve(X, r, seed, late, accelerate=False, **asked)
                ours, seconds = curve(X, r, seed, late, **asked, **ways)
                below = [np.flatnonzero(ours <= losses[n]) for n in (early, late)]
                reached = [seconds[b[0]] if b.size else np.inf for b in below]
                found.append([s / times[n] for s, n in zip(reached, (early, late), strict=True)])
                rises.append(np.diff(ours).max() / ours[0])
            soon, last = np.median(found, axis=0)
            shares.append(last)
            print(
                f"{name:16} sparsity {text:4} to {early:2} iterations {soon:5.2f}, to {late} iterations {last:5.2f} "
                f"(worst {max(f[1] for f in found):.2f}); largest rise {max(rises):.0e}",
                flush=True,
            )
    reached = [share for share in shares if share < np.inf]
    mean, finite = np.exp(np.mean(np.log(reached))), f"{len(reached)} of {len(shares)} rows that are finite"
    print(f"geometric mean {mean:.2f} of the time of the plain iteration, over the {finite}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

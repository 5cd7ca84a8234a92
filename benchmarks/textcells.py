"""Real text and cells, no constraint: time to scikit-learn's error after its default fit.

    python benchmarks/textcells.py [--quick] [--seeds 5]

scikit-learn's NMF runs with its defaults (NNDSVDa, at most 200 iterations) on newsgroups (tf-idf, 10 and 20 components)
and on blood cells (log-normalised, all genes, 10 components). The script prints the CPU time in which Partwise reaches
the same error, to a relative 1e-6, as a share of scikit-learn's: from its own default start, start included, and from
scikit-learn's starting factors, both without the time of computing them. One thread, medians over the seeds; inf: not
reached within twice the time. Targets: 0.5 and 0.6. The data are read from the folder given by PARTWISE_DATA, or from
the user's cache; data that are missing are skipped. --quick: generated counts instead.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.decomposition._nmf import _initialize_nmf
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments.loaders.catalogue import data_sets, poisson


def time_to(error: float, X: Any, r: int, seconds: float, **asked: Any) -> float:
    """CPU seconds in which Partwise reaches that error; inf if not within ``seconds``."""
    reached = [np.inf]
    started = process_time()

    def watch(here: pw.Iteration) -> bool:
        if here.n_iter and here.relative_error <= error * (1 + 1e-6):
            reached[0] = process_time() - started
        return reached[0] < np.inf or process_time() - started > seconds

    pw.ssnmf(X, r, tol=0, max_iter=10_000, n_threads=1, callback=watch, **asked)
    return reached[0]


def compare(name: str, X: Any, r: int, seeds: int) -> None:
    """Print a row."""
    norm = float(np.sqrt(X.multiply(X).sum()))
    rows = []
    for seed in range(seeds):
        started = process_time()
        model = NMF(r, random_state=seed).fit(X)
        theirs, error = process_time() - started, float(model.reconstruction_err_) / norm
        own = time_to(error, X, r, 2 * theirs, random_state=seed)
        started = process_time()
        W, H = _initialize_nmf(X, r, init="nndsvda", random_state=seed)
        setup = process_time() - started
        same = time_to(error, X, r, 2 * theirs, random_state=seed, init=(W, H)) / (theirs - setup)
        rows.append((theirs, error, own / theirs, same))
    theirs, error, own, same = np.median(rows, axis=0)
    verdict = f"{'meets' if own <= 0.5 else 'MISSES'} 0.5, {'meets' if same <= 0.6 else 'MISSES'} 0.6"
    each = ", ".join(f"{row[2]:.2f}" for row in rows)
    print(
        f"{name:16} scikit-learn {theirs:5.1f} s, relative error {error:.5f}; ours from our start {own:.2f} of its "
        f"time (seeds {each}), from its start {same:.2f}: {verdict}",
        flush=True,
    )


def main() -> None:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="generated counts, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    small = sp.csr_array(poisson(200, 100))
    pw.ssnmf(small, 10, random_state=0, max_iter=3, tol=0)  # compiles the kernels
    if options.quick:
        compare("generated counts", small, 10, 1)
        return
    for name, X, r in data_sets(["newsgroups, 10", "newsgroups, 20", "cells, all genes"]):
        compare(name, X, r, options.seeds)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

"""Fits with missing entries: iterations, time, and the error at the missing entries.

    python benchmarks/missing.py [--quick]

Generated data (200 × 60, five components, noise 0.02; medians of five seeds) with entries missing at random, fitted
with tol=1e-4 (at most 200 iterations, the defaults) and with tol=1e-6. Prints the number of iterations, the root mean
squared error at the missing entries relative to the noise, and the time of an iteration relative to the same fit
without missing entries, for an array with NaN and for a sparse matrix with an observed mask.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import partwise as pw

NOISE, R = 0.02, 5
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7)


def problem(seed: int) -> np.ndarray:
    """Known components and activations, plus noise."""
    rng = np.random.default_rng(seed)
    parts = np.where(rng.random((R, 60)) < 0.3, rng.random((R, 60)), 0)
    return np.maximum(rng.random((200, R)) ** 2 @ parts + NOISE * rng.standard_normal((200, 60)), 0)


def run(seed: int, share: float, sparse: bool, **limits: float) -> tuple[int, float, float]:
    """Iterations, error at the missing entries in units of the noise, and seconds per iteration."""
    X = problem(seed)
    seen = np.random.default_rng(seed + 1000).random(X.shape) >= share
    given = {"observed": sp.csr_array(seen)} if sparse else {"missing": "em"}
    started = perf_counter()
    result = pw.ssnmf(sp.csr_array(X) if sparse else np.where(seen, X, np.nan), R, random_state=seed, **given, **limits)
    seconds = (perf_counter() - started) / result.n_iter
    missed = (result.activations @ result.components - X)[~seen]
    return result.n_iter, float(np.sqrt(np.mean(missed**2))) / NOISE if share else np.nan, seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed")
    seeds = range(1 if parser.parse_args().quick else 5)
    plain = {}
    for sparse in (False, True):
        run(0, 0.3, sparse)  # compiles the kernels
        print("sparse, with an observed mask" if sparse else "dense, with NaN")
        for share in SHARES:
            line = f"{share:4.0%} missing"
            for limits in ({}, {"tol": 1e-6, "max_iter": 1000}):
                iterations, errors, seconds = zip(*(run(s, share, sparse, **limits) for s in seeds), strict=True)
                unit = plain.setdefault((sparse, bool(limits)), median(seconds))
                line += f" | tol {limits.get('tol', 1e-4):g}: {median(iterations):4.0f} iterations, "
                line += f"error {median(errors):.2f} × noise, iteration {median(seconds) / unit:.1f} × plain"
            print(line)


if __name__ == "__main__":
    main()

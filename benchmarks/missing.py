"""Fits with missing entries: the cost of an iteration, iterations, and the error at the missing entries.

    python benchmarks/missing.py [--quick]

First, CPU time of an iteration in one thread, relative to the same fit of complete data, for generated arrays of the
shapes of three data sets, with NaN at random. Fits of a few iterations take turns; medians over all iterations.

Then, generated data (200 × 60, five components, noise 0.02; medians of five seeds) with entries missing at random,
fitted with the default limits and with tol=1e-6, both with at most 1000 iterations. Prints the
number of iterations, the root mean squared error at the missing entries relative to the noise, and the time of an
iteration relative to the same fit without missing entries, for an array with NaN and for a sparse matrix with an
observed mask.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter, process_time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import partwise as pw
from partwise.engine.options import TOL

NOISE, R = 0.02, 5
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7)
HIDDEN = (0.0, 0.1, 0.3, 0.5, 0.9)
SHAPES = {"cells": (3774, 2000, 10), "ORL faces": (400, 10304, 25), "CBCL faces": (2429, 361, 49)}
TINY = {"tall": (70, 30, 4), "wide": (80, 120, 3)}


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


def iteration_times(X: np.ndarray, r: int, missing: str) -> list[float]:
    """CPU seconds of each iteration of a short fit in one thread, after the first."""
    at: list[float] = []
    asked = {"max_iter": 6, "tol": 0, "n_threads": 1, "random_state": 0, "missing": missing}
    pw.ssnmf(X, r, callback=lambda _: at.append(process_time()), **asked)
    return np.diff(at)[1:].tolist()


def print_costs(shapes: dict[str, tuple[int, int, int]], rounds: int) -> None:
    """Print the time of an iteration by the share of missing entries, relative to a fit of complete data."""
    for name, (n, m, r) in shapes.items():
        for dtype in (np.float64, np.float32):
            rng = np.random.default_rng(0)
            parts = np.where(rng.random((r, m)) < 0.3, rng.random((r, m)), 0)
            X = (rng.random((n, r)) ** 2 @ parts + 0.1 * rng.random((n, m))).astype(dtype)
            drawn = rng.random(X.shape)
            given = {share: np.where(drawn < share, dtype(np.nan), X) for share in HIDDEN}
            complete, times = [], {share: [] for share in HIDDEN}
            for turn in range(rounds + 1):  # the first one compiles the kernels
                plain, holed = iteration_times(X, r, "error"), {s: iteration_times(given[s], r, "em") for s in HIDDEN}
                if turn:
                    complete += plain
                    times = {s: times[s] + holed[s] for s in HIDDEN}
            unit = median(complete)
            line = f"{name}, {n} × {m}, r {r}, {np.dtype(dtype)}: complete {1e3 * unit:.3g} ms; missing"
            print(line, ", ".join(f"{s:.0%}: {median(times[s]) / unit:.2f} ×" for s in HIDDEN), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, tiny shapes")
    quick = parser.parse_args().quick
    with threadpool_limits(1, "blas"):  # threads that wait for work take CPU time too
        print_costs(TINY if quick else SHAPES, 1 if quick else 7)
    seeds = range(1 if quick else 5)
    plain = {}
    for sparse in (False, True):
        run(0, 0.3, sparse)  # compiles the kernels
        print("sparse, with an observed mask" if sparse else "dense, with NaN")
        for share in SHARES:
            line = f"{share:4.0%} missing"
            for limits in ({}, {"tol": 1e-6, "max_iter": 1000}):
                iterations, errors, seconds = zip(*(run(s, share, sparse, **limits) for s in seeds), strict=True)
                unit = plain.setdefault((sparse, bool(limits)), median(seconds))
                line += f" | tol {limits.get('tol', TOL):g}: {median(iterations):4.0f} iterations, "
                line += f"error {median(errors):.2f} × noise, iteration {median(seconds) / unit:.1f} × plain"
            print(line)


if __name__ == "__main__":
    main()

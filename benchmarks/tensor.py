"""Tensors: time to reach tensorly's error, and recovery of known sparse factors.

    python benchmarks/tensor.py [--quick] [--only {race,recovery}]

race: 200 × 150 × 100 with 10 components, uniform factors, noise of a tenth of the signal, no sparsity. tensorly's
`non_negative_parafac_hals` runs for 100 iterations at its default tolerance. The script prints the time in which each
reaches tensorly's final error (to a relative 1e-6), from the same random start, and from the start of each (tensorly:
SVD; Partwise: slices), starts included. Three seeds in turn, one thread. Target: median from the same start ≤ 0.7 ×
tensorly's time.

recovery: 60 × 50 × 40 with 8 components whose factors have Hoyer sparsity 0.6 in every mode, and a uniform background
of ``BACKGROUND`` times the signal, which is not a component and spreads over all factors that may be dense. The script
prints the factor match score (the product of the modes' cosines, averaged over the best matching) of the unconstrained
fits by tensorly and Partwise, and of the fit with the true sparsity. Target: ≥ 0.99 with sparsity, less without.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from tensorly.cp_tensor import CPTensor
from tensorly.decomposition import non_negative_parafac_hals
from threadpoolctl import threadpool_limits

import partwise as pw

BACKGROUND = 0.5
SPARSITY = 0.6


def outer(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Σ_j a_j ∘ b_j ∘ c_j."""
    return np.einsum("ar,br,cr->abc", *factors, optimize=True)


def with_noise(signal: np.ndarray, noise: np.ndarray, share: float) -> np.ndarray:
    """The signal plus noise, whose norm is that share of the signal's."""
    return signal + noise * (share * np.linalg.norm(signal) / np.linalg.norm(noise))


def match(found: Sequence[np.ndarray], true: Sequence[np.ndarray]) -> float:
    """The factor match score."""
    unit = [[f / np.maximum(np.linalg.norm(f, axis=0), 1e-300) for f in fs] for fs in (found, true)]
    scores = math.prod(a.T @ b for a, b in zip(*unit, strict=True))
    return float(scores[linear_sum_assignment(-scores)].mean())


def time_to(error: float, X: np.ndarray, r: int, seconds: float, **asked: Any) -> float:
    """Seconds in which Partwise reaches that error; inf: not within ``seconds``."""
    reached = [np.inf]

    def watch(here: pw.Iteration) -> bool:
        if here.relative_error <= error * (1 + 1e-6):
            reached[0] = here.seconds
        return here.relative_error <= error * (1 + 1e-6)

    pw.cp(X, r, tol=0, max_iter=100_000, max_time=seconds, callback=watch, **asked)
    return reached[0]


def theirs(X: np.ndarray, r: int, init: Any, seed: int, n_iter: int = 100) -> tuple[float, Any, float]:
    """Seconds, factors and final error of tensorly."""
    started = perf_counter()
    found, errors = non_negative_parafac_hals(X, r, n_iter_max=n_iter, init=init, random_state=seed, return_errors=True)
    return perf_counter() - started, found.factors, float(errors[-1])


def race(shape: tuple[int, ...], r: int, seeds: int) -> None:
    """Print the times to tensorly's final error, and their ratios."""
    ratios: dict[str, list[float]] = {"same start": [], "own starts": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = with_noise(outer([rng.random((n, r)) for n in shape]), rng.random(shape), 0.1)
        start = [rng.random((n, r)) for n in shape]
        pw.cp(X[:5, :5, :5], 2, max_iter=2, random_state=0)  # compiles
        for label in ratios:
            given = label == "same start"
            spent, _, error = theirs(X, r, CPTensor((None, [f.copy() for f in start])) if given else "svd", seed)
            ours = time_to(error, X, r, 5 * spent, **({"init": start} if given else {"random_state": seed}))
            ratios[label].append(ours / spent)
            print(f"  seed {seed}, {label}: error {error:.5f}; tensorly {spent:.2f} s, ours {ours:.2f} s", flush=True)
    for label, found in ratios.items():
        verdict = ""
        if label == "same start":
            verdict = f": {'meets' if np.median(found) <= 0.7 else 'misses'} ≤ 0.7"
        print(f"  {label}: {np.median(found):.2f} × tensorly's time (median){verdict}")


def recovery(shape: tuple[int, ...], r: int, seeds: int) -> None:
    """Print how well the known sparse factors are recovered."""
    scores: dict[str, list[float]] = {"tensorly, unconstrained": [], "ours, unconstrained": [], "ours, sparse": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        true = [np.column_stack([pw.Hoyer(SPARSITY)(rng.random(n)) for _ in range(r)]) for n in shape]
        X = with_noise(outer(true), rng.random(shape), BACKGROUND)
        limits = {"random_state": seed, "max_iter": 500, "tol": 1e-5}
        found = {
            "tensorly, unconstrained": theirs(X, r, "random", seed, 500)[1],
            "ours, unconstrained": pw.cp(X, r, **limits).factors,
            "ours, sparse": pw.cp(X, r, sparsity=dict.fromkeys(range(len(shape)), SPARSITY), **limits).factors,
        }
        for label, factors in found.items():
            scores[label].append(match(factors, true))
    for label, values in scores.items():
        print(f"  {label}: match {np.median(values):.4f} (median; {', '.join(f'{v:.4f}' for v in values)})")
    sparse, free = (np.median(scores[f"ours, {name}"]) for name in ("sparse", "unconstrained"))
    print(f"  {'meets' if sparse >= 0.99 > free else 'misses'} ≥ 0.99 with sparsity, less without")


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small tensors, one seed")
    parser.add_argument("--only", choices=("race", "recovery"), help="one of the two comparisons")
    options = parser.parse_args()
    quick = options.quick
    warnings.simplefilter("ignore")
    if options.only != "recovery":
        shape, r, seeds = ((20, 15, 10), 3, 1) if quick else ((200, 150, 100), 10, 3)
        print(f"{' × '.join(map(str, shape))}, {r} components, no sparsity: time to tensorly's error")
        race(shape, r, seeds)
    if options.only != "race":
        shape, r = ((20, 15, 10), 3) if quick else ((60, 50, 40), 8)
        print(f"{' × '.join(map(str, shape))}, {r} components of sparsity {SPARSITY}, background {BACKGROUND}")
        recovery(shape, r, 1 if quick else 5)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

"""All recipes on the same data, from the same start: error, sparsity and time.

    python benchmarks/recipes.py [--quick] [--data NAME …] [--sparsity S …] [--seconds 30] [--others 3]

CBCL and ORL at sparsity 0.3, 0.5 and 0.7, three seeds, one thread. `nmfsc` runs for ``--seconds``, with Hoyer's
projection and with ours; the other recipes run for ``--others`` seconds. Prints medians over the seeds: relative error,
explained variance, achieved sparsity (mean, smallest, largest), number of dead components, seconds, the time to reach
the better final error of `nmfsc`, and the speedup over `nmfsc`. Target for `ssnmf` at sparsity 0.5 and above: speedup ≥
15.

Recipes with a penalty use the one whose mean sparsity is closest to the requested value (bisection on the first seed).
`l0` uses the mean number of nonzeros of the components of `ssnmf`. `tpc` uses an interval of ± 0.01, and runs only if
the components have at most 5000 entries, because its cone programs become too large.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments import loaders
from partwise import datasets
from partwise.data import as_data
from partwise.engine.starts import scale_to, starting_factors
from partwise.engine.validation import as_columns

DATA: dict[str, tuple[Callable[[], tuple[np.ndarray, tuple[int, int]]], int]] = {
    "digits": (datasets.load_digits, 16),
    "CBCL": (loaders.load_cbcl, 49),
    "ORL": (loaders.load_orl, 25),
}
Trace = list[tuple[float, float]]


def shared_start(X: np.ndarray, r: int, sparsity: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The start of all recipes; each projects it onto its own sets."""
    data = as_data(X)
    sets = [as_columns(None, r), as_columns(sparsity, r)]
    factors = starting_factors("samples", data, r, sets, np.random.default_rng(seed))
    scale_to(data, factors, 0)
    return factors[0], factors[1].T


def run(recipe: Callable[..., pw.Result], X: np.ndarray, r: int, start: Any, seconds: float, **options: Any) -> tuple:
    """The result, and the (seconds, relative error) of each iteration."""
    trace: Trace = []
    result = recipe(
        X,
        r,
        init=start,
        tol=0,
        max_iter=10**6,
        max_time=seconds,
        random_state=0,
        callback=lambda here: trace.append((here.seconds, here.relative_error)),
        **options,
    )
    return result, trace


def nearest_penalty(
    recipe: Callable[..., pw.Result], name: str, X: np.ndarray, r: int, start: Any, sparsity: float, seconds: float
) -> dict[str, float]:
    """The value of parameter ``name`` whose mean sparsity is closest to ``sparsity``, by bisection."""
    side = {} if name == "theta" else {"side": "components"}
    low, high = (0.0, 1.0) if name == "theta" else (-4.0, 6.0)
    tried = []
    for _ in range(9):
        x = 0.5 * (low + high)
        value = x if name == "theta" else 10**x
        result, _ = run(recipe, X, r, start, seconds, **{name: value}, **side)
        found = float(np.mean(np.nan_to_num(result.sparsity, nan=1.0)))
        tried.append((abs(found - sparsity), value))
        low, high = (x, high) if found < sparsity else (low, x)
    return {name: min(tried)[1], **side}


def contenders(X: np.ndarray, r: int, start: Any, sparsity: float, seconds: float) -> dict[str, tuple]:
    """Recipes with their options, in the order of the table, without nmfsc."""
    first, _ = run(pw.ssnmf, X, r, start, seconds, sparsity=sparsity)
    count = max(1, round(np.count_nonzero(first.components) / r))
    found = {
        "ssnmf": (pw.ssnmf, {"sparsity": sparsity}),
        "ssnmf + Proj": (pw.ssnmf, {"sparsity": sparsity, "projection": "hoyer"}),
        "ssnmf faithful": (pw.ssnmf, {"sparsity": sparsity, "faithful": True}),
    }
    for solver in ("multiplicative", "gradient", "greedy", "pivot"):
        found[f"ssnmf, {solver}"] = (pw.ssnmf, {"sparsity": sparsity, "solver": solver})
    found["grouped"] = (pw.grouped, {"sparsity": sparsity})
    for middle in ("diagonal", "full"):
        options = {"sparsity": sparsity, "activation_sparsity": 0.3, "middle": middle}
        found[f"bisparse {middle}"] = (pw.bisparse, options)
    found["nmfsc both sides"] = (pw.nmfsc, {"sparsity": sparsity, "activation_sparsity": 0.3, "projection": "fast"})
    for method in ("prune", "sequential"):
        found[f"l0 {method}, L={count}"] = (pw.l0, {"nonzeros": count, "method": method})
    found["l0_path, L=r/2"] = (pw.l0_path, {"nonzeros": max(1, r // 2), "side": "components"})
    for label, recipe, name in (("nnsc", pw.nnsc, "l1"), ("snmf", pw.snmf, "beta"), ("nsnmf", pw.nsnmf, "theta")):
        options = nearest_penalty(recipe, name, X, r, start, sparsity, seconds / 2)
        found[f"{label} {name}={options[name]:.3g}"] = (recipe, options)
    if X.shape[1] * r <= 5000:
        found["tpc ± .01"] = (pw.tpc, {"sparsity": (sparsity - 0.01, min(sparsity + 0.01, 1.0))})
    return found


def time_to(trace: Trace, error: float) -> float:
    """Seconds until the trace reaches that error; inf if it does not."""
    return next((seconds for seconds, here in trace if here <= error), np.inf)


def line(label: str, rows: list[tuple]) -> str:
    """Medians over the seeds."""
    results, reached, ratios = zip(*rows, strict=True)
    error = np.median([f.relative_error for f in results])
    sparsities = np.array([f.sparsity for f in results])
    dead = np.median([np.count_nonzero(~(f.components.max(axis=1) * f.activations.max(axis=0) > 0)) for f in results])
    seconds = np.median([f.times[-1] for f in results])
    when = np.median(reached)
    soon = f"{when:8.3f} s {np.median(ratios):7.1f} ×" if np.isfinite(when) else f"{'not reached':>11}"
    return (
        f"  {label:22} {error:.5f} {1 - error**2:.5f}  {np.nanmean(sparsities):.3f} {np.nanmin(sparsities):.3f} "
        f"{np.nanmax(sparsities):.3f} {dead:4.0f} {seconds:7.2f} {soon}"
    )


def compare(name: str, X: np.ndarray, r: int, sparsity: float, seeds: int, seconds: float, others: float) -> None:
    """Print the table of one dataset at one sparsity."""
    print(f"{name}, {r} components, sparsity {sparsity}, {seeds} seeds", flush=True)
    print(f"  {'':22}   error explained mean  min   max  dead seconds   time to nmfsc's error, speedup")
    starts = [shared_start(X, r, sparsity, seed) for seed in range(seeds)]
    targets = {}
    for projection in ("hoyer", "fast"):
        fits = [run(pw.nmfsc, X, r, start, seconds, sparsity=sparsity, projection=projection) for start in starts]
        targets[projection] = [(fit.relative_error, fit.times[-1]) for fit, _ in fits]
        print(line(f"nmfsc, {projection}", [(fit, fit.times[-1], 1.0) for fit, _ in fits]), flush=True)
    best = [min(pair) for pair in zip(*targets.values(), strict=True)]  # the better of the two, for each seed
    for label, (recipe, options) in contenders(X, r, starts[0], sparsity, others).items():
        rows = []
        for start, (error, spent) in zip(starts, best, strict=True):
            result, trace = run(recipe, X, r, start, others, **options)
            when = time_to(trace, error)
            rows.append((result, when, spent / when))
        print(line(label, rows), flush=True)
        if label in ("ssnmf", "ssnmf + Proj") and sparsity >= 0.5:
            ratio = np.median([row[2] for row in rows])
            print(f"  {'':22} {label}: {'meets' if ratio >= 15 else 'misses'} speedup ≥ 15 ({ratio:.0f} ×)")


def main() -> None:
    """Print a table for each dataset and sparsity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 digits at one sparsity, one seed, tenths of a second")
    parser.add_argument("--data", nargs="+", choices=DATA, default=["CBCL", "ORL"])
    parser.add_argument("--sparsity", nargs="+", type=float, default=[0.3, 0.5, 0.7])
    parser.add_argument("--seconds", type=float, default=30, help="seconds for nmfsc")
    parser.add_argument("--others", type=float, default=3, help="seconds for each other recipe")
    options = parser.parse_args()
    warnings.simplefilter("ignore", pw.CapacityWarning)
    for name in ["digits"] if options.quick else options.data:
        load, r = DATA[name]
        try:
            X, _ = load()
        except (FileNotFoundError, ImportError) as error:
            print(f"{name} is skipped: {error}")
            continue
        if options.quick:
            compare(name, X[:200], 5, 0.5, 1, 0.3, 0.05)
            continue
        contenders(X[:60, :50], 3, shared_start(X[:60, :50], 3, 0.5, 0), 0.5, 0.01)  # compiles
        for sparsity in options.sparsity:
            compare(name, X, r, sparsity, 3, options.seconds, options.others)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

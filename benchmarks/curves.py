"""Error against CPU time: Partwise with and without acceleration, scikit-learn without sparsity, and torchnmf.

    python benchmarks/curves.py [--quick] [--seed 0] [--picture docs/pictures/curves.png]

One thread. Partwise reports its error after each iteration. scikit-learn (coordinate descent, random start, no penalty)
and torchnmf (the same sparsity as Partwise) report nothing on the way, so they are run for 5, 10, 20, … iterations, and
each run is one point. The script prints the points and draws them. torchnmf is skipped if it is not installed. CBCL and
ORL are read from the folder given by PARTWISE_DATA, or from the user's cache; data that are missing are skipped.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from benchmarks.race import Pair, scikit_learn, torchnmf_sparse
from experiments.loaders.catalogue import data_sets

LEVELS = {"CBCL": 0.7, "ORL": 0.3, "digits": 0.6}
STEPS = (5, 10, 20, 50, 100, 200)
Curve = list[tuple[float, float]]  # CPU seconds and relative errors


def ours(X: np.ndarray, r: int, seed: int, iterations: int, **asked: Any) -> Curve:
    """The error after each iteration of Partwise."""
    found: Curve = []
    started = process_time()

    def note(here: pw.Iteration) -> None:
        found.append((process_time() - started, here.relative_error))

    pw.ssnmf(X, r, random_state=seed, n_threads=1, tol=0, max_iter=iterations, callback=note, **asked)
    return found


def runs(fit: Callable[[int], Pair], X: np.ndarray, steps: tuple[int, ...]) -> Curve:
    """The errors of separate runs with more and more iterations."""
    found: Curve = []
    for iterations in steps:
        started = process_time()
        activations, components = fit(iterations)
        seconds = process_time() - started
        found.append((seconds, float(np.linalg.norm(X - activations @ components) / np.linalg.norm(X))))
    return found


def curves(X: np.ndarray, r: int, level: float, seed: int, steps: tuple[int, ...]) -> dict[str, Curve]:
    """The curve of each method."""
    found = {
        f"Partwise at {level}": ours(X, r, seed, steps[-1], sparsity=level),
        "the same without acceleration": ours(X, r, seed, steps[-1], sparsity=level, accelerate=False),
        "scikit-learn, no sparsity": runs(lambda n: scikit_learn(X, r, seed, n, "random"), X, steps),
    }
    if find_spec("torchnmf"):
        fit = lambda n: torchnmf_sparse(X, r, seed, n, level)  # noqa: E731
        found[f"torchnmf at {level}"] = runs(fit, X, steps)
    return found


def draw(panels: dict[str, dict[str, Curve]]) -> Figure:
    """A panel for each data set."""
    figure = Figure(figsize=(4 * len(panels), 3.4), layout="constrained", dpi=150)
    for axes, (name, found) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        for number, (label, points) in enumerate(found.items()):
            seconds, errors = np.array(points).T
            axes.plot(
                seconds, errors, "o-" if len(points) <= len(STEPS) else "-", ms=3, label=label, color=f"C{number}"
            )
        lowest = min(points[-1][1] for points in found.values())
        axes.set(title=name, xscale="log", xlabel="CPU seconds", ylim=(0.99 * lowest, 1.25 * lowest))
        axes.legend(fontsize=7, loc="upper right")
    figure.axes[0].set_ylabel("relative error")
    return figure


def main() -> None:
    """Print and draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only digits, few iterations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", help="the file to draw to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn that they have not converged, since their iterations are limited
    steps = STEPS[:2] if options.quick else STEPS
    panels = {}
    for name, X, r in data_sets(["digits"] if options.quick else [*LEVELS]):
        curves(X, r, LEVELS[name], options.seed, (2,))  # imports and compiles
        panels[name] = curves(X, r, LEVELS[name], options.seed, steps)
        for label, points in panels[name].items():
            seconds, error = points[-1]
            print(
                f"{name:8} {label:32} {len(points):4} points, at the end {seconds:7.3f} s, error {error:.5f}",
                flush=True,
            )
    if options.picture:
        draw(panels).savefig(options.picture)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

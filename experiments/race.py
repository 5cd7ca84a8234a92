"""Error against time of several methods from the same start, on one thread, and speedups computed from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from partwise.data import as_data
from partwise.engine.natural import CapacityWarning
from partwise.engine.result import Result
from partwise.engine.starts import scale_to, starting_factors
from partwise.engine.validation import as_columns
from partwise.recipes import nmfsc, ssnmf, tpc
from partwise.statistics import Array

from .curves import Line, Panel
from .experiment import Tell
from .rows import Rows, distinct, pick
from .sources import Source

NEAR = 1.01  # errors within 1 % count as equal


@dataclass(frozen=True)
class Method:
    """A recipe with its options.

    If ``width`` is not 0, the sparsity is an interval, ± width. The time limit is multiplied by ``patience``.
    """

    label: str
    recipe: Callable[..., Result]
    options: dict[str, Any] = field(default_factory=dict)
    width: float = 0.0
    patience: float = 1.0

    def fit(self, X: Array, r: int, sparsity: float, start: Any, **limits: Any) -> Result:
        """Fit X from ``start`` on one thread, until a limit."""
        asked = (sparsity - self.width, sparsity + self.width) if self.width else sparsity
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CapacityWarning)  # the paper chose the sparsity
            result = self.recipe(
                X,
                r,
                sparsity=asked,
                init=start,
                n_threads=1,
                **{"tol": 0.0, "random_state": 0, **self.options, **limits},
            )
        if "interrupted" in result.stop_reason:
            raise KeyboardInterrupt
        return result


DEFAULT = Method("SSNMF, default", ssnmf)
PRINTED = Method("SSNMF, as printed", ssnmf, {"faithful": True})
NMFSC = Method("NMFSC", nmfsc, patience=2.0)
TPC = Method("TPC", tpc, width=0.01, patience=2.0)


@dataclass(frozen=True)
class Race:
    """The size of a race: each fit gets ``seconds`` times the method's patience, and at most ``updates`` iterations."""

    data: Callable[[], Source]
    rank: int
    sparsities: tuple[float, ...]
    seeds: int
    seconds: float
    updates: int = 10**6


def race(size: Race, methods: Sequence[Method], tell: Tell) -> Rows:
    """Run each method at each sparsity from each start."""
    source = size.data()
    cases = list(product(size.sparsities, range(size.seeds), methods))
    tell(0, f"{source.name}: compiling")
    compile_all(methods, source.X, size.rank, size.sparsities[0])
    rows: Rows = []
    for done, (sparsity, seed, method) in enumerate(cases):
        tell(done / len(cases), f"{source.name}, sparsity {sparsity:g}, seed {seed}: {method.label}")
        start = shared_start(source.X, size.rank, sparsity, seed)
        budget = method.patience * size.seconds
        limits = {"max_time": budget, "max_iter": size.updates, "random_state": seed}
        result = method.fit(source.X, size.rank, sparsity, start, **limits)
        case = {"data": source.name, "method": method.label, "sparsity": sparsity, "seed": seed, "budget": budget}
        rows += trace(result, case)
    return rows


def compile_all(methods: Iterable[Method], X: Array, r: int, sparsity: float) -> None:
    """Run one iteration of each method, so that later times do not include compilation."""
    for method in methods:
        method.fit(X, r, sparsity, shared_start(X, r, sparsity, 0), max_iter=1)


def shared_start(X: Array, r: int, sparsity: float, seed: int) -> tuple[Array, Array]:
    """The paper's random start, scaled to X; the same for all methods."""
    data = as_data(X)
    sets = [as_columns(None, r), as_columns(sparsity, r)]
    factors = starting_factors("random", data, r, sets, np.random.default_rng(seed))
    scale_to(data, factors, 0)
    return factors[0], factors[1].T


def trace(result: Result, case: dict[str, Any]) -> Rows:
    """Rows for the start, round numbers of updates, updates a tenth apart, and the last one."""
    most = result.n_iter
    wanted = {0, *(int(1.1**i) for i in range(150)), *(a * 10**i for a in (1, 3) for i in range(6)), most}
    kept = sorted(i for i in wanted if i <= most)
    errors = np.sqrt(2 * np.maximum(result.losses, 0))
    return [{**case, "updates": i, "seconds": float(result.times[i]), "error": float(errors[i])} for i in kept]


def time_to(rows: Rows, error: float) -> float:
    """Seconds until a fit reaches that error; inf if it does not."""
    return next((row["seconds"] for row in rows if row["error"] <= error), np.inf)


def speedups(rows: Rows, method: Method, rival: Method) -> dict[float, float]:
    """Speedup of ``method`` over ``rival`` by sparsity: the median over the seeds.

    Times are measured to the worse of the two final errors (within `NEAR`), which both methods reach.
    """
    found = {}
    for sparsity in distinct(rows, "sparsity"):
        ratios = []
        for seed in distinct(rows, "seed"):
            ours, theirs = (pick(rows, sparsity=sparsity, seed=seed, method=m.label) for m in (method, rival))
            target = NEAR * max(ours[-1]["error"], theirs[-1]["error"])
            ratios.append(time_to(theirs, target) / time_to(ours, target))
        found[sparsity] = float(np.median(ratios))
    return found


def final_errors(rows: Rows, method: Method) -> dict[float, float]:
    """The final error by sparsity: the median over the seeds."""
    own = pick(rows, method=method.label)
    return {
        sparsity: float(
            np.median([pick(own, sparsity=sparsity, seed=seed)[-1]["error"] for seed in distinct(own, "seed")])
        )
        for sparsity in distinct(own, "sparsity")
    }


def lower_after_equal_updates(rows: Rows, method: Method, rival: Method) -> float:
    """How often ``method`` has the lower error, as a share of the (sparsity, seed, updates) that both have."""
    ours, theirs = (
        {(row["sparsity"], row["seed"], row["updates"]): row["error"] for row in pick(rows, method=m.label)}
        for m in (method, rival)
    )
    both = [key for key in ours if key in theirs and key[-1] > 0]
    return float(np.mean([ours[key] < theirs[key] for key in both]))


def panels(rows: Rows, marks: Iterable[int] = ()) -> list[Panel]:
    """A panel for each sparsity, with a line and a band over the seeds for each method."""
    return [
        Panel(
            f"sparsity {sparsity:g}",
            [line(pick(rows, sparsity=sparsity, method=method), method, marks) for method in distinct(rows, "method")],
        )
        for sparsity in distinct(rows, "sparsity")
    ]


def line(rows: Rows, label: str, marks: Iterable[int] = ()) -> Line:
    """Median, smallest and largest error of the seeds, from the first update on; ``marks`` are numbers of updates."""
    fits = [pick(rows, seed=seed)[1:] for seed in distinct(rows, "seed")]  # without the start
    first, last = (float(np.median([fit[end]["seconds"] for fit in fits])) for end in (0, -1))
    seconds = np.geomspace(first, last, 60)
    errors = np.array(
        [np.interp(seconds, [row["seconds"] for row in fit], [row["error"] for row in fit]) for fit in fits]
    )
    points = {}
    for updates in marks:
        there = [row for fit in fits for row in fit if row["updates"] == updates]
        if len(there) == len(fits):
            points[f"after {updates} update{'s' * (updates > 1)}"] = tuple(
                float(np.median([r[k] for r in there])) for k in ("seconds", "error")
            )
    return Line(label, seconds, np.median(errors, axis=0), errors.min(axis=0), errors.max(axis=0), points)

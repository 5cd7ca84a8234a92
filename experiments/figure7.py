"""Figure 7: components of faces by NMFSC and SSNMF, side by side."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from partwise.recipes import nmfsc
from partwise.statistics import Array

from .experiment import Experiment, Tell, judged
from .mosaics import mosaics
from .race import DEFAULT, PRINTED, Method, Race, compile_all, shared_start
from .rows import Rows, between, distinct, pick
from .sources import few_digits, orl

NMFSC = Method("NMFSC", nmfsc, {"projection": "fast"}, patience=5.0)  # it needs hundreds of updates
METHODS = (NMFSC, PRINTED, DEFAULT)


def run(size: Race, tell: Tell) -> Rows:
    """Fit with all three from the same starts; one row per component."""
    source = size.data()
    cases = list(product(size.sparsities, METHODS))
    compile_all(METHODS, source.X, size.rank, size.sparsities[0])
    rows: Rows = []
    for done, (sparsity, method) in enumerate(cases):
        for seed in range(size.seeds):
            what = f"{source.name}, sparsity {sparsity:g}, seed {seed}: {method.label}"
            tell((done + seed / size.seeds) / len(cases), what)
            start = shared_start(source.X, size.rank, sparsity, seed)
            budget = method.patience * size.seconds
            updates = round(method.patience * size.updates)
            limits = {"max_time": budget, "max_iter": updates, "random_state": seed}
            result = method.fit(source.X, size.rank, sparsity, start, **limits)
            within = cosines(result.components, result.components)
            rows += [
                {
                    "data": source.name,
                    "method": method.label,
                    "sparsity": sparsity,
                    "seed": seed,
                    "budget": budget,
                    "updates": result.n_iter,
                    "part": j,
                    "achieved": float(result.sparsity[j]),
                    "overlap": float(np.mean(np.delete(within[j], j))),
                    "relative_error": float(result.relative_error),
                    "image": part.reshape(source.shape),
                }
                for j, part in enumerate(result.components)
            ]
    return rows


def cosines(parts: Array, others: Array) -> Array:
    """The cosine of each component with each of the others."""
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (parts, others))
    return np.asarray(a @ b.T)


def likeness(parts: Array, others: Array) -> float:
    """The mean cosine of components under the best one-to-one matching.

    >>> likeness(np.eye(3), np.eye(3)[::-1])
    1.0
    """
    table = cosines(parts, others)
    return float(table[linear_sum_assignment(-table)].mean())


def parts_of(rows: Rows, method: str, sparsity: float, seed: int) -> Array:
    """The components of one fit."""
    return np.array([row["image"].ravel() for row in pick(rows, method=method, sparsity=sparsity, seed=seed)])


def draw(rows: Rows) -> Any:
    """Draw the components of the first seed, one row per sparsity."""
    sets = [
        (f"{method}, sparsity {sparsity:g}", parts_of(rows, method, sparsity, 0))
        for sparsity in distinct(rows, "sparsity")
        for method in distinct(rows, "method")
    ]
    title = f"{rows[0]['data']}: parts from the same start"
    return mosaics(sets, rows[0]["image"].shape, title=title, columns=len(METHODS))


def verdict(rows: Rows) -> str:
    """SSNMF's components are as similar to NMFSC's as NMFSC's from another start, and overlap no more."""
    seeds, sparsities = distinct(rows, "seed"), distinct(rows, "sparsity")

    def like(method: str, shift: int) -> list[float]:
        return [
            likeness(parts_of(rows, method, s, seed), parts_of(rows, NMFSC.label, s, other))
            for s in sparsities
            for seed, other in zip(seeds, seeds[shift:] + seeds[:shift], strict=True)
        ]

    def overlap(method: str) -> list[float]:
        return [float(np.mean([r["overlap"] for r in pick(rows, method=method, sparsity=s)])) for s in sparsities]

    def error(method: str) -> float:
        return float(np.median([row["relative_error"] for row in pick(rows, method=method)]))

    yard = float(np.median(like(NMFSC.label, 1)))
    alike = {m.label: float(np.median(like(m.label, 0))) for m in METHODS[1:]}
    over = {m.label: overlap(m.label) for m in METHODS}
    tests = [alike[PRINTED.label] >= yard]
    tests += [a <= 1.1 * b for a, b in zip(over[PRINTED.label], over[NMFSC.label], strict=True)]
    return judged(
        tests,
        f"mean cosine of matched components with NMFSC's from the same start: SSNMF as printed "
        f"{alike[PRINTED.label]:.2f}, default {alike[DEFAULT.label]:.2f} (NMFSC from another start: {yard:.2f}); "
        f"mean cosine within a set of components, by sparsity: NMFSC {between(over[NMFSC.label], '.2f')}, as printed "
        f"{between(over[PRINTED.label], '.2f')}, default {between(over[DEFAULT.label], '.2f')}; relative error: NMFSC "
        f"{error(NMFSC.label):.3f}, as printed {error(PRINTED.label):.3f}, default {error(DEFAULT.label):.3f}",
    )


EXPERIMENT = Experiment(
    name="figure7",
    title="Faces: parts by NMFSC and SSNMF",
    claim="SSNMF gives a parts-based representation similar to that of NMFSC",
    full=Race(orl, 25, (0.5, 0.6, 0.75), 5, seconds=10.0, updates=120),
    quick=Race(few_digits, 6, (0.5, 0.75), 2, seconds=0.5, updates=20),
    run=run,
    draw=draw,
    verdict=verdict,
)

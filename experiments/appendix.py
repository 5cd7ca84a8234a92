"""The appendix: both factors sparse, with a diagonal or full D between them, or in Hoyer's formulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from partwise.data import as_data
from partwise.engine.result import Result
from partwise.engine.starts import scale_to, starting_factors
from partwise.engine.validation import as_columns
from partwise.recipes import bisparse, nmfsc, ssnmf
from partwise.statistics import Array

from .curves import Line, Panel, curves
from .experiment import Experiment, Tell, judged
from .race import Method
from .rows import Rows, between, distinct, pick
from .sources import Source, cbcl, few_digits

ONE = Method("parts alone sparse (SSNMF)", ssnmf)
HOYER = Method("Hoyer's formulation (NMFSC)", nmfsc)
DIAGONAL = Method("D diagonal", bisparse, {"middle": "diagonal"})
FULL = Method("D full", bisparse, {"middle": "full"})
METHODS = (ONE, DIAGONAL, FULL, HOYER)


@dataclass(frozen=True)
class Size:
    """The size of the experiment; each fit gets ``seconds`` and at most ``updates`` iterations."""

    data: Callable[[], Source]
    rank: int
    sparsities: tuple[float, ...]
    activation_sparsities: tuple[float, ...]
    seeds: int
    seconds: float
    updates: int = 10**6


def run(size: Size, tell: Tell) -> Rows:
    """Run all methods from the same starts; one row per fit."""
    source = size.data()
    tell(0, f"{source.name}: compiling")
    for method in METHODS:
        fit(method, source, replace(size, updates=1), size.sparsities[0], size.activation_sparsities[0], 0)
    cases = list(product(size.sparsities, size.activation_sparsities, range(size.seeds), METHODS))
    rows: Rows = []
    for done, (parts, activations, seed, method) in enumerate(cases):
        tell(done / len(cases), f"sparsity {parts:g} and {activations:g}, seed {seed}: {method.label}")
        result = fit(method, source, size, parts, activations, seed)
        rows.append(
            {
                "data": source.name,
                "method": method.label,
                "sparsity": parts,
                "activation_sparsity": activations,
                "seed": seed,
                "budget": size.seconds,
                "updates": result.n_iter,
                "seconds": float(result.times[-1]),
                "explained": 1 - float(result.relative_error) ** 2,
            }
        )
    return rows


def fit(method: Method, source: Source, size: Size, parts: float, activations: float, seed: int) -> Result:
    """One fit, from the start of that seed."""
    asked = {} if method is ONE else {"activation_sparsity": activations}
    start = shared_start(source.X, size.rank, parts, activations, seed)
    limits = {"max_time": size.seconds, "max_iter": size.updates, "random_state": seed}
    return method.fit(source.X, size.rank, parts, start, **asked, **limits)


def shared_start(X: Array, r: int, sparsity: float, activation_sparsity: float, seed: int) -> tuple[Array, Array]:
    """Samples that are far apart, projected onto the sets of both factors."""
    data = as_data(X)
    sets = [as_columns(activation_sparsity, r), as_columns(sparsity, r)]
    factors = starting_factors("samples", data, r, sets, np.random.default_rng(seed))
    scale_to(data, factors, 1)
    return factors[0], factors[1].T


def explained(rows: Rows, method: str) -> list[float]:
    """The median over the seeds, for each pair of sparsities."""
    own = pick(rows, method=method)
    pairs = dict.fromkeys((row["sparsity"], row["activation_sparsity"]) for row in own)
    return [
        float(np.median([row["explained"] for row in pick(own, sparsity=a, activation_sparsity=b)])) for a, b in pairs
    ]


def draw(rows: Rows) -> Any:
    """Draw the explained variance against the sparsity of the activations."""
    levels = distinct(rows, "activation_sparsity")
    panels = []
    for sparsity in distinct(rows, "sparsity"):
        lines = []
        for method in distinct(rows, "method"):
            own = pick(rows, sparsity=sparsity, method=method)
            shares = np.array([[row["explained"] for row in pick(own, activation_sparsity=x)] for x in levels])
            lines.append(Line(method, levels, np.median(shares, 1), shares.min(1), shares.max(1)))
        panels.append(Panel(f"parts of sparsity {sparsity:g}", lines))
    return curves(
        panels,
        title=f"{rows[0]['data']}: explained variance where both sides are sparse, {len(distinct(rows, 'seed'))} seeds",
        x="sparsity of the activations",
        y="1 − ‖X − WDH‖² / ‖X‖²",
        log="",
        caption="median, least and largest of the seeds",
    )


def verdict(rows: Rows) -> str:
    """A diagonal D explains as much as Hoyer's formulation, a full one more, both less than with one sparse factor."""
    one, diagonal, full, hoyer = (np.array(explained(rows, m.label)) for m in METHODS)
    return judged(
        [bool(np.all(np.abs(diagonal - hoyer) < 0.02)), bool(np.all(full > hoyer)), bool(np.all(hoyer < one))],
        f"explained variance (range over sparsities of the median over seeds): only components sparse {between(one)}; "
        f"both sparse: Hoyer's formulation {between(hoyer)}, D diagonal {between(diagonal)} "
        f"({between(diagonal - hoyer, '+.3f')} relative to Hoyer's), D full {between(full)} "
        f"({between(full - hoyer, '+.3f')})",
    )


EXPERIMENT = Experiment(
    name="appendix",
    title="Both sides sparse: explained variance",
    claim="sparsity on both sides can lose variance; with a diagonal D it is Hoyer's formulation, and D captures the "
    "variance",
    full=Size(cbcl, 25, (0.5, 0.7), (0.2, 0.4, 0.6), 5, seconds=1.5),
    quick=Size(few_digits, 5, (0.5,), (0.2, 0.5), 2, seconds=0.5, updates=10),
    run=run,
    draw=draw,
    verdict=verdict,
)

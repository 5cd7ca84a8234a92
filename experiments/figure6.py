"""Figure 6: SSNMF with Sparse-opt, and with Projection-Hoyer in its place."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from partwise.recipes import ssnmf

from .curves import Line, Panel, curves
from .experiment import Experiment, Tell, judged
from .race import Method, Race, race
from .rows import Rows, between, distinct, pick
from .sources import cbcl, few_digits

PAIRS = {
    "as printed": (
        Method("SSNMF, as printed (sorting)", ssnmf, {"faithful": True, "projection": "sorted"}),
        Method("SSNMF+Proj, as printed", ssnmf, {"faithful": True, "projection": "hoyer"}),
    ),
    "default": (
        Method("SSNMF, default (linear time)", ssnmf),
        Method("SSNMF+Proj, default", ssnmf, {"projection": "hoyer"}),
    ),
}
SMALL = 1.2  # ratios up to this count as hardly a difference


def run(size: Race, tell: Tell) -> Rows:
    """Run the same updates with different projections."""
    return race(size, [method for pair in PAIRS.values() for method in pair], tell)


def last(rows: Rows, method: Method, sparsity: float) -> Rows:
    """The last row of each seed."""
    own = pick(rows, method=method.label, sparsity=sparsity)
    return [pick(own, seed=seed)[-1] for seed in distinct(own, "seed")]


def draw(rows: Rows) -> Any:
    """Draw the time of all updates against sparsity."""
    sparsities = distinct(rows, "sparsity")
    drawn = []
    for title, pair in PAIRS.items():
        lines = []
        for method in pair:
            times = np.array([[row["seconds"] for row in last(rows, method, s)] for s in sparsities])
            lines.append(Line(method.label, sparsities, np.median(times, 1), times.min(1), times.max(1)))
        drawn.append(Panel(f"SSNMF, {title}", lines))
    updates, seeds = max(row["updates"] for row in rows), len(distinct(rows, "seed"))
    title = f"{rows[0]['data']}: time of {updates} updates, {seeds} seeds"
    caption = "median, least and largest of the seeds"
    return curves(drawn, title=title, x="sparsity", y="time (s)", log="", caption=caption)


def verdict(rows: Rows) -> str:
    """Projection-Hoyer takes about the same time, as printed and by default: neither longer nor shorter."""
    ratios: dict[str, list[float]] = {title: [] for title in PAIRS}
    apart = 0.0
    for title, (own, other) in PAIRS.items():
        for sparsity in distinct(rows, "sparsity"):
            pairs = list(zip(last(rows, own, sparsity), last(rows, other, sparsity), strict=True))
            ratios[title].append(float(np.median([b["seconds"] / a["seconds"] for a, b in pairs])))
            apart = max(apart, *(abs(a["error"] / b["error"] - 1) for a, b in pairs))
    both = [ratio for found in ratios.values() for ratio in found]
    return judged(
        [*(max(found) <= SMALL for found in ratios.values()), all(abs(log(x)) <= log(SMALL) for x in both)],
        f"time of SSNMF+Proj ÷ time of SSNMF for equal updates (range over sparsities of the median over seeds): as "
        f"printed {between(ratios['as printed'])}, default {between(ratios['default'])}; relative "
        f"difference of the errors: at most {apart:.0e}",
    )


EXPERIMENT = Experiment(
    name="figure6",
    title="CBCL: SSNMF and SSNMF+Proj",
    claim="in SSNMF, Projection-Hoyer in place of Sparse-opt makes hardly a difference in time on low-dimensional "
    "data: the speedup is due to the sequential updates",
    full=Race(cbcl, 49, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 5, seconds=60.0, updates=100),
    quick=Race(few_digits, 5, (0.3, 0.6), 2, seconds=60.0, updates=20),
    run=run,
    draw=draw,
    verdict=verdict,
)

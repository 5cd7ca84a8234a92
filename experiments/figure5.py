"""Figure 5: SSNMF and NMFSC on brain images: real ones, and a generated volume of the paper's size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .curves import Panel, curves
from .experiment import Experiment, Tell, judged
from .race import DEFAULT, NMFSC, PRINTED, Race, final_errors, panels, race, speedups
from .rows import Rows, between, distinct, pick
from .sources import small_volume, smri, volume

METHODS = (DEFAULT, PRINTED, replace(NMFSC, patience=3.0))
HIGHER = 0.5  # our reading of the paper's "higher sparsity"


def run(sizes: tuple[Race, ...], tell: Tell) -> Rows:
    """Run one race after another."""
    rows: Rows = []
    for done, size in enumerate(sizes):
        rows += race(size, METHODS, part_of(tell, done, len(sizes)))
    return rows


def part_of(tell: Tell, done: int, total: int) -> Tell:
    """Report the progress of one race among ``total``."""
    return lambda share, what: tell((done + share) / total, what)


def draw(rows: Rows) -> Any:
    """Draw error against time, one dataset below the other."""
    drawn = [
        Panel(f"{data}\n{panel.title}", panel.lines)
        for data in distinct(rows, "data")
        for panel in panels(pick(rows, data=data))
    ]
    return curves(
        drawn,
        title=f"Structural MRI: error against time, {len(distinct(rows, 'seed'))} seeds",
        x="time (s)",
        y="reconstruction error ‖X − WH‖",
        log="x",
        caption="median, least and largest of the seeds",
    )


def verdict(rows: Rows) -> str:
    """At higher sparsity, SSNMF is faster and has a lower final error, on each dataset."""
    tests, found = [], []
    for data in distinct(rows, "data"):
        own = pick(rows, data=data)
        printed, ours = (
            [x for s, x in speedups(own, method, NMFSC).items() if s >= HIGHER] for method in (PRINTED, DEFAULT)
        )
        ends = [final_errors(own, method) for method in (PRINTED, DEFAULT, NMFSC)]
        below = [[end[s] / ends[2][s] for s in end if s >= HIGHER] for end in ends[:2]]
        tests += [min(printed) > 1.5, max(below[0]) < 1]
        found.append(
            f"{data}: speedup over NMFSC as printed {between(printed)}, default {between(ours)}, final error ÷ NMFSC's "
            f"{between(below[0])} and {between(below[1])}"
        )
    return judged(tests, f"at sparsity {HIGHER:g} and above (range of medians over seeds): {'; '.join(found)}")


EXPERIMENT = Experiment(
    name="figure5",
    title="Structural MRI: error against time",
    claim="at higher sparsity SSNMF reaches a lower error than NMFSC on structural MRI, noticeably faster",
    full=(
        Race(smri, 40, (0.1, 0.4, 0.6, 0.8), 5, seconds=4.0),
        Race(volume, 40, (0.3, 0.8), 5, seconds=10.0),
    ),
    quick=(Race(small_volume, 4, (0.3, 0.6), 2, seconds=0.5, updates=8),),
    run=run,
    draw=draw,
    verdict=verdict,
)

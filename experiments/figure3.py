"""Figure 3: SSNMF, NMFSC and TPC on small synthetic images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .curves import curves
from .experiment import Experiment, Tell, judged
from .race import DEFAULT, NMFSC, PRINTED, TPC, Race, final_errors, panels, race, speedups
from .rows import Rows, between, distinct
from .sources import few_nines, nine_by_nine

METHODS = (DEFAULT, PRINTED, NMFSC, TPC)


def run(size: Race, tell: Tell) -> Rows:
    """Run all four from the same starts; TPC gets an interval of ± 0.01, because it cannot progress at one value."""
    return race(size, METHODS, tell)


def draw(rows: Rows) -> Any:
    """Draw error against time."""
    title = f"{rows[0]['data']}: error against time, {len(distinct(rows, 'seed'))} seeds"
    y = "reconstruction error ‖X − WH‖"
    return curves(
        panels(rows), title=title, x="time (s)", y=y, log="x", caption="median, least and largest of the seeds"
    )


def verdict(rows: Rows) -> str:
    """SSNMF and NMFSC are ten times faster than TPC, and SSNMF has the lowest final error."""
    ours, printed, nmfsc = (list(speedups(rows, method, TPC).values()) for method in METHODS[:3])
    ends = {method.label: final_errors(rows, method) for method in METHODS}
    worst = {  # final error relative to the better rival, at worst
        method.label: max(
            ends[method.label][s] / min(ends[NMFSC.label][s], ends[TPC.label][s]) for s in ends[method.label]
        )
        for method in (DEFAULT, PRINTED)
    }
    return judged(
        [float(np.median(printed)) >= 10, float(np.median(nmfsc)) >= 10, worst[PRINTED.label] <= 1],
        f"speedup over TPC (range over sparsities of the median over seeds): SSNMF as printed {between(printed)}, "
        f"default {between(ours)}, NMFSC {between(nmfsc)}; final error of SSNMF ÷ that of the better rival, at worst: "
        f"as printed {worst[PRINTED.label]:.3f}, default {worst[DEFAULT.label]:.3f}",
    )


EXPERIMENT = Experiment(
    name="figure3",
    title="Synthetic images: error against time",
    claim="SSNMF and NMFSC are over an order of magnitude faster than TPC, and the final error of SSNMF is always the "
    "lowest",
    full=Race(nine_by_nine, 5, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), 5, seconds=1.0),
    quick=Race(few_nines, 3, (0.4, 0.7), 2, seconds=0.5, updates=10),
    run=run,
    draw=draw,
    verdict=verdict,
)

"""Newton steps with the Kullback–Leibler divergence.

If the only constraint is y ≥ 0, each row is solved by itself, entry by entry (see `data.lines`). Sets that couple the
rows of a column take a step for all columns at once, in a diagonal metric: with gradient g and curvature h at F,

    F_j ← the w in its set that minimises Σ g·w + ½·eta·Σ h·(w − F_j)².

The curvature is not below that of the divergence, but only at F. A step that would raise the divergence is therefore
repeated with twice the ``eta``. (To halve the step would leave the set, which is not convex.)

References
----------
C.-J. Hsieh and I. S. Dhillon, "Fast coordinate descent methods with variable selection for non-negative matrix
factorization", KDD 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..projections.interface import Metric
from ..statistics import Array, Quadratic, Rates, Slopes, Stats
from .interface import Sets, State, Update, as_rates

SHARE = 3e-4  # of the largest curvature of a column: the least that is used
EASE, TIRED, MOST = 0.7, 2.0**6, 2.0**40  # of eta: its change after a success, and where steep slopes count in full


@dataclass(frozen=True)
class Newton(Update):
    """Sweeps that never raise the divergence.

    Parameters
    ----------
    sweeps : int
        The largest number of sweeps over the entries of a row, or of steps for all columns at once.
    tol : float
        Stop when no step of a sweep over a row is larger than this, relative to the model of the row.
    """

    sweeps: int = 2
    tol: float = 0.0
    separable = True

    def __call__(
        self, factor: Array, stats: Stats | Rates | Slopes | Quadratic, sets: Sets, state: State
    ) -> tuple[Array, State]:
        """Improve ``factor``. Where X cannot be asked again, this is one step that is not checked."""
        if isinstance(stats, Slopes | Quadratic):
            return proposed(factor, stats, sets, state.get("eta", 1.0)), {"eta": state.get("eta", 1.0)}
        rates = as_rates(stats, self)
        if sets.nonnegative:
            return rates.solved(factor, self.sweeps, self.tol), state
        eta = state.get("eta", 1.0)
        for _ in range(self.sweeps):
            factor, eta = stepped(factor, rates, sets, eta)
        return factor, {"eta": eta}


def bolder(state: State) -> State:
    """The state for longer steps, after one that has lowered the divergence at once."""
    return {"eta": EASE * state.get("eta", 1.0)}


def shier(state: State) -> State:
    """The state for a shorter step, after one that has raised the divergence."""
    return {"eta": 2 * state.get("eta", 1.0)}


def stepped(factor: Array, rates: Rates, sets: Sets, eta: float) -> tuple[Array, float]:
    """Make a step for all columns, and return the new factor and the ``eta`` for the next step."""
    slopes, first = rates.slopes(factor), eta
    while eta < MOST:
        new = proposed(factor, slopes, sets, eta)
        if rates.loss(new) <= slopes.value:
            return new, eta * EASE if eta == first else eta
        eta *= 2
    return factor, first  # no step is short enough, up to rounding


def proposed(factor: Array, slopes: Slopes | Quadratic, sets: Sets, eta: float) -> Array:
    """The factor after a step from a point with these slopes."""
    form = slopes.quadratic(steep=eta < TIRED)
    new = np.empty_like(factor, order="F")
    for j in range(factor.shape[1]):
        g, h, now = form.gradient[:, j], form.curvature[:, j], factor[:, j]
        h = eta * np.maximum(h, SHARE * h.max() or 1.0)
        project, dtype = sets[j], factor.dtype
        if isinstance(project, Metric):
            project.write_metric((h * now - g).astype(dtype), h.astype(dtype), now, new[:, j])
        else:
            new[:, j] = project(now - (g / h.max()).astype(dtype), near=now)
    return new

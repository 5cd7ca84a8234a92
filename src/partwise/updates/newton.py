"""Newton steps with the Kullback–Leibler divergence.

If the only constraint is y ≥ 0, each row is solved by itself, entry by entry (see `data.lines`). Sets that couple the
rows of a column take a step for all columns at once, in a diagonal metric: with the gradient g and the curvature h at F,

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

from ..projections.sets import Metric
from ..statistics import Array, Rates, Slopes, Stats
from .interface import Sets, State, Update, as_rates

SHARE = 3e-4  # of the largest curvature of a column: the least that is used
STEEP = 100.0  # numerators above this many times the sums are of entries that the model does not cover yet
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

    def __call__(self, factor: Array, stats: Stats | Rates, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        rates = as_rates(stats, self)
        if sets.nonnegative:
            return rates.solved(factor, self.sweeps, self.tol), state
        eta = state.get("eta", 1.0)
        for _ in range(self.sweeps):
            factor, eta = stepped(factor, rates, sets, eta)
        return factor, {"eta": eta}


def stepped(factor: Array, rates: Rates, sets: Sets, eta: float) -> tuple[Array, float]:
    """Make a step for all columns, and return the new factor and the ``eta`` for the next step."""
    slopes, first = rates.slopes(factor), eta
    while eta < MOST:
        new = proposed(factor, slopes, sets, eta)
        if rates.loss(new) <= slopes.value:
            return new, eta * EASE if eta == first else eta
        eta *= 2
    return factor, first  # no step is short enough, up to rounding


def proposed(factor: Array, slopes: Slopes, sets: Sets, eta: float) -> Array:
    """The factor after a step from a point with these slopes."""
    gradient, curvature = tempered(slopes, steep=eta < TIRED)
    new = np.empty_like(factor, order="F")
    for j in range(factor.shape[1]):
        g, h, now = gradient[:, j], curvature[:, j], factor[:, j]
        h = eta * np.maximum(h, SHARE * h.max() or 1.0)
        project, dtype = sets[j], factor.dtype
        if isinstance(project, Metric):
            project.write_metric((h * now - g).astype(dtype), h.astype(dtype), now, new[:, j])
        else:
            new[:, j] = project(now - (g / h.max()).astype(dtype), near=now)
    return new


def tempered(slopes: Slopes, steep: bool) -> tuple[Array, Array]:
    """Gradient and curvature whose minimum is that of the divergence, where entries have to grow by much.

    With N and h as in `data.lines`, the step up is (N/s − 1)·N/h, so the curvature is h·s/N. Where N is very large,
    because the model is next to zero, the quadratic form would demand this step at any price. With ``steep``, both are
    then reduced to what the divergence, which grows only as the logarithm, would gain.
    """
    numerator, sums = slopes.numerator.astype(float), np.broadcast_to(slopes.sums, slopes.numerator.shape)
    growth = np.divide(numerator, sums, out=np.ones_like(numerator), where=numerator > sums)
    growth[~np.isfinite(growth)] = 1
    gradient, curvature = sums - numerator, slopes.curvature / growth
    if steep:
        beyond = np.maximum(growth / STEEP, 1)
        share = (1 + np.log(beyond)) / beyond
        gradient, curvature = gradient * share, curvature * share
    return gradient, curvature

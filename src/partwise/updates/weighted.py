"""Block coordinate descent over columns if every row of the factor has its own Gram matrix: weighted least squares.

With all other columns fixed, column j of F has the loss ½Σh·y² − Σb·y + const, where h_f is entry (j, j) of the Gram
matrix of row f and b_f = cross_fj − Σ_{l≠j} F_fl·gram_f,lj. The set of the column solves this in the metric h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..projections import Projection
from ..projections.interface import Metric
from ..runtime.arrays import Vector
from ..statistics import Array, WeightedStats
from .interface import Sets, State, Update, nearest_in


@dataclass(frozen=True)
class Weighted(Update):
    """Sweep over the columns, solving each in its metric. The loss never rises.

    Parameters
    ----------
    sweeps : int
        Passes over all columns.
    """

    sweeps: int = 1

    def __call__(self, factor: Array, stats: WeightedStats, sets: Sets, state: State) -> tuple[Array, State]:  # type: ignore[override]
        """Improve ``factor`` in place."""
        for _ in range(self.sweeps):
            for j in range(factor.shape[1]):
                grams = stats.grams(j)
                h = grams[:, j] + factor.dtype.type(stats.l2)
                grams *= factor
                grams[:, j] = 0
                b = stats.cross[:, j] - grams.sum(axis=1)
                if h.any():
                    improve(sets[j], b, h, factor[:, j])
        return factor, state


def improve(projection: Projection, b: Vector, h: Vector, column: Vector) -> None:
    """Replace ``column`` by the solution in the metric h or, for a set without one, by a step that descends.

    If entries have no upper limit, those with a negligible h are kept: b/h would be huge, with nothing to support it.
    """
    if isinstance(projection, Metric) and not projection.unit_norm:
        few = h <= np.sqrt(np.finfo(h.dtype).eps) * h.max()
        b[few] = h[few] * column[few]
    if isinstance(projection, Metric):
        projection.write_metric(b, h, column, column)
    else:
        column[:] = nearest_in(projection, column + (b - h * column) / h.max(), column)

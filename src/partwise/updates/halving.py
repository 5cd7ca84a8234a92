"""Hoyer's line search: a gradient step and a projection, the step halved until the loss does not rise.

References
----------
P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Stats
from .protocol import State, Update
from .sets import Sets


@dataclass(frozen=True)
class Halving(Update):
    """F ← nearest point of the sets to F − step·(F·gram − cross), once.

    The step is halved until the loss does not rise, and grows by a fifth for the next call. Hoyer's first step is 1,
    where the rows of H have norm 1: here it is in units of 1/mean G_jj, so that X may have any scale. Where no step
    down to rounding serves, the factor stays as it is.

    Parameters
    ----------
    growth : float
        Of the step after each success.
    most : float
        The largest step, in the same units.
    """

    growth: float = 1.2
    most: float = 1e6

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        unit = float(np.mean(stats.gram.diagonal()))
        if unit <= np.finfo(factor.dtype).tiny * self.most:
            return factor, state
        slope = stats.slope(factor)
        step = first = state.get("step", 1.0)
        rounding = float(np.finfo(factor.dtype).eps) * float(factor.max()) * unit
        while step * float(np.abs(slope).max()) > rounding:
            moved = sets.project(factor - factor.dtype.type(step / unit) * slope, near=factor)
            linear, bend = stats.change(slope, moved - factor)
            if linear + bend <= np.finfo(factor.dtype).eps * abs(linear):
                return moved, {"step": min(self.growth * step, self.most)}
            step /= 2
        return factor, {"step": min(1024 * step, first)}  # no step serves: begin a little higher next time

"""Hoyer's line search: a projected gradient step, halved until the loss does not rise.

References
----------
P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Stats
from .interface import Sets, State, Update


@dataclass(frozen=True)
class Halving(Update):
    """F ← projection of F − step·(F·gram − cross) to the sets, once.

    The step size is halved until the loss does not rise, and is multiplied by ``growth`` for the next call. Hoyer's
    first step size is 1, for rows of H of norm 1. Here it is 1/mean G_jj, so that X may have any scale. If no step size
    above the rounding error works, the factor is left unchanged.

    Parameters
    ----------
    growth : float
        The growth factor of the step size after a successful step.
    most : float
        The largest step size, in units of 1/mean G_jj.
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
        return factor, {"step": min(1024 * step, first)}  # no step size works: start a little higher next time

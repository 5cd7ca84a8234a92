"""Hoyer's line search: a gradient step and a projection, the step halved until the loss does not rise.

References
----------
P. O. Hoyer, "Non-negative matrix factorization with sparseness constraints", JMLR 5 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Stats
from .protocol import State
from .sets import Sets


@dataclass(frozen=True)
class Halving:
    """F ← nearest point of the sets to F − step·(F·gram − cross), once.

    The step is halved until the loss does not rise, and grows by a fifth for the next call. Hoyer's first step is 1,
    where the rows of H have norm 1: here it is in units of 1/mean G_jj, so that X may have any scale. A step that has
    shrunk to nothing leaves the factor as it is, and the next call begins where this one did.

    Parameters
    ----------
    growth : float
        Of the step after each success.
    least, most : float
        The step at which the search is given up, and the largest one, in the same units.
    """

    growth: float = 1.2
    least: float = 1e-200
    most: float = 1e6

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        unit = float(np.mean(stats.gram.diagonal()))
        if unit <= np.finfo(factor.dtype).tiny * self.most:
            return factor, state
        slope = stats.slope(factor)
        step = state.get("step", 1.0)
        while step >= self.least:
            moved = factor - factor.dtype.type(step / unit) * slope
            if np.array_equal(moved, factor):  # the step is lost in rounding
                break
            moved = sets.project(moved, near=factor)
            linear, bend = stats.change(slope, moved - factor)
            if linear + bend <= np.finfo(factor.dtype).eps * abs(linear):
                return moved, {"step": min(self.growth * step, self.most)}
            step /= 2
        return factor, state

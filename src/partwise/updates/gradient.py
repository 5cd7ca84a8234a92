"""Projected gradient with a line search.

References
----------
C.-J. Lin, "Projected gradient methods for nonnegative matrix factorization", Neural Computation 19 (2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Stats
from .interface import Sets, State, Update


@dataclass(frozen=True)
class Gradient(Update):
    """F ← projection of F − step·(F·gram − cross) to the sets, ``steps`` times.

    The step size is divided by ``factor`` until the loss falls enough, or multiplied by it while the loss keeps
    falling. The next search starts from the last step size. A step of 1/‖gram‖ never increases the loss, whatever the
    sets, and is the smallest one tried.

    Parameters
    ----------
    steps : int
        Gradient steps for the same statistics.
    factor : float
        The factor by which the step size changes (Lin: 10).
    decrease : float
        The required decrease, relative to the linear term (Lin's σ). For nonconvex sets any decrease is accepted.
    """

    steps: int = 5
    factor: float = 10.0
    decrease: float = 0.01

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        curvature = float(np.linalg.eigvalsh(stats.gram)[-1])
        if curvature <= 0:
            return factor, state
        least = 1 / curvature
        step = max(state.get("step", least), least)
        enough = self.decrease if sets.nonnegative else 0.0
        for _ in range(self.steps):
            slope = stats.slope(factor)

            def attempt(step: float, factor: Array = factor, slope: Array = slope) -> tuple[Array, bool, float]:
                moved = sets.project(factor - factor.dtype.type(step) * slope, near=factor)
                linear, bend = stats.change(slope, moved - factor)
                return moved, (1 - enough) * linear + bend <= 0, linear + bend

            moved, good, gain = attempt(step)
            growing = good
            while growing:
                further, enough_still, better = attempt(step * self.factor)
                growing = enough_still and better < gain
                if growing:
                    moved, gain, step = further, better, step * self.factor
            while not good and step > least:
                step = max(step / self.factor, least)
                moved, good, gain = attempt(step)
            factor = moved
        return factor, {"step": step}

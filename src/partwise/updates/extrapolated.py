"""Extrapolation: move a little further in the direction of the last change.

References
----------
A. M. S. Ang and N. Gillis, "Accelerating nonnegative matrix factorization algorithms using extrapolation", Neural
Computation 31 (2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..statistics import Array, Stats
from .interface import Sets, State, Update, require_nonnegative


@dataclass(frozen=True)
class Extrapolated(Update):
    """F ← [new + β(new − last)]₊, where new is the result of ``update`` (y ≥ 0 only).

    β grows while the loss falls. If the loss has risen since the last call, the update restarts from the last point
    before extrapolation, and β shrinks. The loss may therefore rise occasionally.

    Parameters
    ----------
    update : Update
    beta, growth, cap_growth, shrink : float
        The initial β, the growth factor of β, the growth factor of its upper limit, and its divisor at a restart.
    """

    update: Update
    beta: float = 0.5
    growth: float = 1.05
    cap_growth: float = 1.01
    shrink: float = 1.5

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor`` by ``update``, and extrapolate."""
        require_nonnegative(sets, "Extrapolated")
        beta, cap = state.get("beta", self.beta), state.get("cap", 1.0)
        last = state.get("last", factor.copy(order="F"))
        loss = stats.loss(factor)
        if loss > state.get("loss", np.inf):
            factor = last.copy(order="F")
            loss, cap, beta = stats.loss(factor), beta, beta / self.shrink
        elif state:
            beta, cap = min(cap, beta * self.growth), min(1.0, cap * self.cap_growth)
        new, inner = self.update(factor, stats, sets, state.get("inner", {}))
        ahead = new + factor.dtype.type(beta) * (new - last)
        np.maximum(ahead, 0, out=ahead)
        return ahead, {"beta": beta, "cap": cap, "last": new, "loss": loss, "inner": inner}

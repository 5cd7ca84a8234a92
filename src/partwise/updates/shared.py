"""Columns that share a mean sparsity: a gradient step shifts sparsity between them, and a sequential pass follows.

Reference: R. Ohib et al., "Explicit group sparse projection with applications to deep learning and NMF", TMLR 2022 (the
shared sparsity and its projection, with gradient steps alone).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..projections import Hoyer, hoyer_sparsity
from ..statistics import Array, Stats
from .gradient import Gradient
from .interface import Columns, Sets, State, Update
from .sequential import Sequential


@dataclass(frozen=True)
class Shared(Update):
    """A `Gradient` step over the whole set, then `Sequential` with the sparsity that each column then has.

    Neither increases the loss.

    Parameters
    ----------
    sweeps : int
        Sweeps of the sequential pass.
    """

    sweeps: int = 1

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        factor, gradient = Gradient(1, factor=2.0)(factor, stats, sets, state.get("gradient", {}))
        columns = Columns(tuple(Hoyer(float(s)) for s in hoyer_sparsity(factor, axis=0)))
        factor, sequential = Sequential(self.sweeps)(factor, stats, columns, state.get("sequential", {}))
        return factor, {"gradient": gradient, "sequential": sequential}

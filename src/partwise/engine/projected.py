"""Acceleration where a pass over X gives the loss at its own factors only: missing entries, weights, and tensors.

With missing entries, or weights of all entries, the statistics and the loss of a pass are valid for one pair of
factors. The loss at the factors before extrapolation, as in `accelerated`, would take another pass. Here a factor is
extrapolated and projected to its sets right after its update, F ← P(N + β(N − N')), where N' is N of the last
iteration. F is feasible, and the pass that the next update needs anyway gives the loss at F. If the loss has risen, F
is replaced by N, which cannot raise it, and the pass is repeated. All factors are in their sets at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..statistics import Stats, as_factor, gram
from .accelerated import Extrapolating, extrapolate
from .running import Snapshot, WholeFit
from .starts import Factors


class ProjectedFit(Extrapolating, WholeFit):
    """A fit to X in memory. ``ahead`` are the factors before they were extrapolated, in the last iteration."""

    ahead: Factors | None = None
    pending: int | None = None  # the mode whose factor was extrapolated last, until its loss is known

    def snapshot(self) -> Snapshot:
        return {**super().snapshot(), **({} if self.ahead is None else {"ahead": self.ahead})}

    async def restore(self, snapshot: Snapshot) -> None:
        await super().restore(snapshot)
        if "ahead" in snapshot:
            self.ahead = [*map(as_factor, snapshot["ahead"])]

    def begin(self) -> None:
        self.ahead = [f.copy(order="F") for f in self.factors]

    async def advance(self, order: Sequence[int], undo: bool = False) -> bool:
        """Make an iteration. It never has to be undone as a whole."""
        for mode in order:
            stats = await self.judged(mode)
            self.factors[mode], self.states[mode] = self.blocks[mode](self.factors[mode], stats, self.states[mode])
            self.shift(mode)
        self.fresh = order[0], await self.judged(order[0])
        self.momentum = self.momentum.after_fall()
        return True

    def shift(self, mode: int) -> None:
        """Extrapolate a factor that was just updated, and keep it as it was."""
        assert self.ahead is not None
        new, out, beta, sets = self.factors[mode], self.ahead[mode], self.momentum.beta, self.blocks[mode].sets
        if beta > 0:
            sets.project(extrapolate(new, out, beta, out), near=new)
            self.pending = mode
        else:
            np.copyto(out, new)
        self.factors[mode], self.ahead[mode] = out, new
        self.grams[mode] = gram(out)

    async def judged(self, mode: int) -> Stats:
        """The statistics of one factor. If they show that the loss has risen, the last extrapolation is undone."""
        stats, loss = await self.here(mode)
        if self.pending is not None and loss > self.value:
            assert self.ahead is not None
            np.copyto(self.factors[self.pending], self.ahead[self.pending])
            self.grams[self.pending] = gram(self.factors[self.pending])
            self.momentum = self.momentum.after_rise()
            stats, loss = await self.here(mode)
        self.pending, self.value = None, loss
        return stats

    async def here(self, mode: int) -> tuple[Stats, float]:
        """The statistics of one factor, and the loss at the current factors."""
        stats = await self.current(mode)
        return stats, self.data.loss(stats, self.factors, self.grams, mode) + self.penalties()

"""Online learning: components from discounted statistics of all batches so far.

Reference: J. Mairal, F. Bach, J. Ponce and G. Sapiro, "Online learning for matrix factorization and sparse coding",
JMLR 11 (2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Chunked, Matrix
from ..statistics import Array, Quadratic, Stats, dead_components, gram
from ..updates import State
from .blocks import Block
from .revival import revive
from .solving import solve_samples
from .starts import Factors


@dataclass
class BatchLearner:
    """Components, and the discounted statistics of all batches so far.

    Attributes
    ----------
    parts : array of shape (features, r)
    stats : Stats, Quadratic or None
        The statistics of the components; None before the first batch.
    state : dict
        The state of the components' update.
    """

    parts: Array
    stats: Stats | Quadratic | None
    state: State

    def __setstate__(self, state: dict[str, object]) -> None:
        """Copy the arrays of an unpickled state: those received from Dask may be unaligned, see `as_factor`."""
        self.__dict__.update(deepcopy(state))

    def step(self, batch: Matrix, encoder: Block, block: Block, keep: float) -> float:
        """Solve the batch's activations, add its statistics to ``keep`` times the old ones, and update the components.

        Returns the mean loss per sample of the batch, before the components are updated.
        """
        activations, loss = self.encoded(batch, encoder, block)
        factors = [activations, self.parts]
        stats: Any = batch.statistics(factors, [gram(f) for f in factors], 1).around(self.parts)
        if self.stats is not None and keep > 0:
            stats = self.stats.discounted(keep) + stats
        before = self.parts.copy(order="F")
        self.parts, self.state = block(self.parts, stats, self.state)
        stats = stats.after(self.parts - before)
        if block.sets.scale_free and not (encoder.penalised or block.penalised):
            norms = np.linalg.norm(self.parts, axis=0).astype(float)
            norms[norms == 0] = 1
            norms[list(block.sets.kept)] = 1
            self.parts /= norms.astype(self.parts.dtype)
            stats = stats.mixed(norms)
        self.stats = stats
        return loss / batch.shape[0]

    def encoded(self, batch: Matrix, encoder: Block, block: Block) -> tuple[Array, float]:
        """Return the activations of a batch and their loss. Unused components restart from its worst-fitted samples."""
        activations = np.zeros((batch.shape[0], self.parts.shape[1]), dtype=self.parts.dtype, order="F")
        activations, loss, _ = solve_samples(encoder, batch, self.parts, activations)
        used = gram(activations) if self.stats is None else gram(activations) + self.stats.gram
        dead = dead_components([used, gram(self.parts)], kept=block.sets.kept)
        factors = [activations, self.parts]
        if dead.size and not (encoder.penalised or block.penalised):
            stats = batch.statistics(factors, [gram(f) for f in factors], 0)
            if revive(batch, factors, stats, 0, [encoder.sets, block.sets], dead):
                self.restart(dead)
                activations, loss, _ = solve_samples(encoder, batch, self.parts, activations)
        return activations, loss

    def restart(self, dead: Array) -> None:
        """Reset the statistics of dead components."""
        if self.stats is not None:
            self.stats = self.stats.without(dead)


class Epochs:
    """A running fit in which an iteration is one pass over X, batch by batch.

    ``forget`` is the weight of earlier statistics after ``size`` samples. ``rng`` shuffles the samples, except in the
    first pass. The loss is the sum over the batches, each computed before its update of the components.
    """

    def __init__(
        self,
        data: Matrix | Chunked,
        learner: BatchLearner,
        encoder: Block,
        block: Block,
        size: int,
        forget: float,
        rng: np.random.Generator | None,
    ) -> None:
        self.data, self.learner, self.encoder, self.block = data, learner, encoder, block
        self.size, self.forget, self.rng = size, forget, rng
        self.steps = 0  # batches so far
        self.total = 0.0

    @property
    def advice(self) -> str:
        """What to do if the fit ran out of iterations."""
        larger = ", batch_size (components then fluctuate less)" if self.size < self.data.shape[0] else ""
        return f"raise max_iter{larger} or tol"

    @property
    def factors(self) -> Factors:
        """The components; activations are not stored."""
        return [None, self.learner.parts]

    async def first_loss(self, mode: int) -> float:
        """The loss with all activations zero, because none have been computed."""
        return 0.5 * self.data.sqnorm

    async def step(self, order: Sequence[int], measure: bool = False) -> float:
        """Make one pass over X."""
        self.total, whole = 0.0, min(self.size, self.data.shape[0])
        for batch in batches(self.data, self.size, self.rng if self.steps else None):
            n = batch.shape[0]
            self.total += n * self.learner.step(batch, self.encoder, self.block, self.forget ** (n / whole))
            self.steps += 1
        return np.inf

    def loss(self, mode: int) -> float:
        """The loss, summed over the batches of the last pass."""
        return self.total

    def moving(self) -> list[Array]:
        """The components."""
        return [self.learner.parts]

    def penalties(self) -> float:
        """Zero: the loss does not include penalties."""
        return 0.0


def batches(data: Matrix | Chunked, size: int, rng: np.random.Generator | None = None) -> Iterator[Matrix]:
    """Yield all samples in batches of ``size``, shuffled by ``rng``. Samples in chunks keep their order."""
    if not isinstance(data, Chunked):
        order = np.arange(data.shape[0]) if rng is None else rng.permutation(data.shape[0])
        for start in range(0, len(order), size):
            yield data.subset(np.sort(order[start : start + size])) if size < len(order) else data
        return
    for chunk in data.chunks():
        for start in range(0, chunk.shape[0], size):
            yield chunk.subset(np.arange(start, min(start + size, chunk.shape[0])))

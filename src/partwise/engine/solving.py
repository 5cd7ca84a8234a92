"""The activations of X for fixed components: in memory, or in a pass over chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Chunked, Data, Held, Matrix
from ..statistics import Array, Stats, as_factor, gram, relative_error
from ..updates import Known
from .blocks import Block, nonnegative_encoder, unchanged
from .starts import Factors, Placed, Zeros

CANCELLED = 16  # times √eps of what the loss is a difference of: a squared error below this has lost its digits


def solved(block: Block, data: Matrix, parts: Array, activations: Array) -> tuple[Array, float, Array]:
    """The activations for given parts, exactly if the block's update is exact, from ``activations`` (overwritten).

    Also their loss without penalties, and what each part fits of X (`fits`). Samples that are observed at the
    same features are solved together: each pattern has a Gram matrix of its own.
    """
    loss, fitted = 0.0, np.zeros(parts.shape[1])
    for rows, stats in data.patterns(parts):
        some, _ = block(np.asfortranarray(activations[rows]), stats, {})
        activations[rows] = some
        loss, fitted = loss + stats.loss(some), fitted + fits(some, stats)
    return activations, loss, fitted


def fits(factor: Array, stats: Stats) -> Array:
    """⟨activations_j · component_j, 2X − model⟩ of each component. It adds up over samples.

    The sum over the components is the part of ‖X‖² that the model explains. Each value is nonnegative if the
    activations are optimal.
    """
    overlaps = np.einsum("jk,jk->j", gram(factor), stats.gram)
    return np.asarray(2 * np.einsum("ij,ij->j", factor, stats.cross, dtype=float) - overlaps)


def shares(fits: Array, sqnorm: float) -> Array:
    """The `fits` divided by ‖X‖²; zeros if X is zero."""
    return fits / sqnorm if sqnorm else np.zeros_like(fits)


def exact_relative_error(data: Data, factors: Factors, loss: float, penalties: float = 0.0) -> float:
    """The relative error from the loss, or from the residual itself where the statistics or the penalties cancel."""
    left = loss - penalties
    if not data.squared or 2 * left < CANCELLED * np.finfo(data.dtype).eps ** 0.5 * (data.sqnorm + 2 * penalties):
        left = 0.5 * data.squared_error(factors)
    return relative_error(data.sqnorm, left)


@dataclass(frozen=True)
class Solved:
    """Activations for given parts, the relative error that they leave, and each part's share of the fit."""

    activations: Any
    relative_error: float
    explained: Array


@dataclass(frozen=True)
class Solve:
    """Solve a chunk's activations for good, see `solved`; the sums are their loss, and what each part fits."""

    parts: Array
    encoder: Block

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Array]:
        """The activations of the chunk, and its sums."""
        activations, loss, fitted = solved(self.encoder, chunk, self.parts, activations)
        return activations, np.append(loss, fitted)


class SolvedInChunks:
    """The same for data in chunks, whose passes are made when they are needed."""

    def __init__(self, data: Chunked, parts: Array, encoder: Block, start: Zeros | Placed) -> None:
        self.data, self.parts = data, parts
        self.start, self.step = start, Solve(parts, encoder)

    @cached_property
    def summed(self) -> tuple[Held, Array]:
        """One pass: the activations with their chunks, and their sums."""
        self.data.check()
        held = self.data.hold(self.start, self.parts.shape[1])
        return held, held.sweep(self.step)

    @cached_property
    def activations(self) -> Any:
        """An array, or a Dask array that is computed when it is asked for."""
        lazy = self.data.mapped(self.start, self.step, self.parts.shape[1])
        return self.summed[0].collected() if lazy is None else lazy

    @cached_property
    def relative_error(self) -> float:
        """‖X − model‖ / ‖X‖."""
        held, sums = self.summed
        return exact_relative_error(self.data, [held, self.parts], float(sums[0]))

    @cached_property
    def explained(self) -> Array:
        """Each part's share of the fit."""
        return shares(self.summed[1][1:], self.data.sqnorm)


def appraised(data: Matrix, parts: Array, activations: Array) -> Solved:
    """What activations that are settled leave and explain, for X in memory."""
    parts = as_factor(parts, data.dtype)
    _, loss, fitted = solved(unchanged(parts.shape[1]), data, parts, activations)
    return Solved(activations, exact_relative_error(data, [activations, parts], loss), shares(fitted, data.sqnorm))


def solve_activations(
    data: Matrix | Chunked, parts: Array, encoder: Block | None = None, known: Known | None = None
) -> Solved | SolvedInChunks:
    """The activations that fit X best to fixed ``parts`` (features × r); in chunks, if X comes in chunks.

    Those that are ``known`` already stay.
    """
    parts = as_factor(parts, data.dtype)
    r = parts.shape[1]
    encoder = encoder or nonnegative_encoder(r)
    start: Zeros | Placed = Zeros(r, data.dtype)
    if known is not None:
        encoder, start = encoder.keeping(known), Placed(start, known)
    if isinstance(data, Chunked):
        return SolvedInChunks(data, parts, encoder, start)
    activations, loss, fitted = solved(encoder, data, parts, start(0, data.shape[0]))
    error = exact_relative_error(data, [activations, parts], loss)
    return Solved(activations, error, shares(fitted, data.sqnorm))

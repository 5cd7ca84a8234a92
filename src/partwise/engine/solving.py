"""The activations of X for fixed components: in memory, or in a pass over chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Chunked, Data, Held, Matrix
from ..statistics import Array, Stats, as_factor, gram, relative_error
from ..updates import Known
from .blocks import Block, divergence_encoder, fixed_encoder, nonnegative_encoder
from .starts import Factors, Placed, Zeros

INDEPENDENT = 1e-8  # the least eigenvalue of the Gram matrix of components of norm 1, if they are independent
CANCELLED = 16  # times √eps of what the loss is a difference of: a squared error below this has lost its digits


def solve_samples(block: Block, data: Matrix, parts: Array, activations: Array) -> tuple[Array, float, Array]:
    """Solve for the activations, starting from ``activations`` (overwritten). Exact if the block's update is exact.

    Also returns their loss without penalties, and `fits`. Samples with the same observed features share a Gram matrix
    and are solved together.
    """
    loss, fitted = 0.0, np.zeros(parts.shape[1])
    for rows, stats in data.patterns(parts):
        some, _ = block(np.asfortranarray(activations[rows]), stats, {})
        activations[rows] = some
        loss, fitted = loss + stats.loss(some), fitted + stats.fits(some)
    return activations, loss, fitted


def shares(fits: Array, data: Data, error: float) -> Array:
    """The share of X that each component explains. They add up to 1 − (relative error)².

    With the divergence, this is distributed in proportion to the sums of the components' entries in the model.
    """
    size = data.sqnorm if data.squared else float(fits.sum()) / (1 - error**2 or 1.0)
    return fits / size if size else np.zeros_like(fits)


def exact_relative_error(data: Data, factors: Factors, loss: float, penalties: float = 0.0) -> float:
    """The relative error, from the loss or, if its terms nearly cancel, from the residual, which is more accurate."""
    left = loss - penalties
    if data.squared and 2 * left < CANCELLED * np.finfo(data.dtype).eps ** 0.5 * (data.sqnorm + 2 * penalties):
        left = 0.5 * data.squared_error(factors)
    return relative_error(data.sqnorm, left)


@dataclass(frozen=True)
class Solved:
    """Activations for fixed components, the relative error, the share that each component explains, and `sqnorm`."""

    activations: Any
    relative_error: float
    explained: Array
    sqnorm: float

    @property
    def error(self) -> float:
        """‖X − model‖, or √(2·divergence)."""
        return self.relative_error * float(np.sqrt(self.sqnorm))


@dataclass(frozen=True)
class Solve:
    """A step that solves for the activations of a chunk. Its sums are the loss and `fits`."""

    parts: Array
    encoder: Block

    def __call__(self, chunk: Matrix, activations: Array) -> tuple[Array, Array]:
        """Return the activations of the chunk, and its sums."""
        activations, loss, fitted = solve_samples(self.encoder, chunk, self.parts, activations)
        return activations, np.append(loss, fitted)


class SolvedInChunks:
    """The same as `Solved` for data in chunks. Passes over X are made when they are needed."""

    def __init__(self, data: Chunked, parts: Array, encoder: Block, start: Zeros | Placed) -> None:
        self.data, self.parts = data, parts
        self.start, self.step = start, Solve(parts, encoder)

    @cached_property
    def summed(self) -> tuple[Held, Array]:
        """The activations, which stay with their chunks, and their sums, from one pass."""
        self.data.check()
        held = self.data.hold(self.start, self.parts.shape[1])
        return held, held.sweep(self.data.adapted(self.step))

    @cached_property
    def activations(self) -> Any:
        """The activations as an array, or as a lazy Dask array."""
        lazy = self.data.mapped(self.start, self.step, self.parts.shape[1])
        return self.summed[0].collected() if lazy is None else lazy

    @cached_property
    def relative_error(self) -> float:
        """‖X − model‖ / ‖X‖, or √(divergence / divergence of the features' means)."""
        held, sums = self.summed
        return exact_relative_error(self.data, [held, self.parts], float(sums[0]))

    @property
    def error(self) -> float:
        """‖X − model‖, or √(2·divergence)."""
        return self.relative_error * float(np.sqrt(self.data.sqnorm))

    @cached_property
    def explained(self) -> Array:
        """The share of X that each component explains."""
        return shares(self.summed[1][1:], self.data, self.relative_error)


def evaluated(data: Matrix, parts: Array, activations: Array) -> Solved:
    """The same as `solve_activations` for activations that are given."""
    parts = as_factor(parts, data.dtype)
    return solve_in_memory(fixed_encoder(parts.shape[1]), data, parts, activations)


def solve_in_memory(encoder: Block, data: Matrix, parts: Array, activations: Array) -> Solved:
    """The same as `solve_samples`, with the relative error in place of the loss."""
    activations, loss, fitted = solve_samples(encoder, data, parts, activations)
    error = exact_relative_error(data, [activations, parts], loss)
    return Solved(activations, error, shares(fitted, data, error), data.sqnorm)


def independent(parts: Array) -> bool:
    """Whether the components are clearly linearly independent."""
    _, own, _ = Stats(parts[:0], gram(parts), 0.0).normalised()
    return bool(np.linalg.eigvalsh(own)[0] > INDEPENDENT)


def solve_activations(
    data: Matrix | Chunked,
    parts: Array,
    encoder: Block | None = None,
    known: Known | None = None,
    guess: Array | None = None,
) -> Solved | SolvedInChunks:
    """Solve for the optimal activations for fixed components ``parts`` (features × r). ``known`` ones are kept.

    A ``guess`` saves time. It is used only where the solution is unique, so that the result does not depend on it.
    """
    parts = as_factor(parts, data.dtype)
    r = parts.shape[1]
    encoder = encoder or (nonnegative_encoder if data.squared else divergence_encoder)(r)
    start: Zeros | Placed = Zeros(r, data.dtype)
    if known is not None:
        encoder, start = encoder.keeping(known), Placed(start, known)
    if isinstance(data, Chunked):
        return SolvedInChunks(data, parts, encoder, start)
    first = start(0, data.shape[0])
    if guess is not None and data.squared and encoder.sets.nonnegative and independent(parts):
        first[...] = guess
    return solve_in_memory(encoder, data, parts, first)

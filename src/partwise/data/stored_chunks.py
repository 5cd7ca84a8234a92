"""X on disk in chunks of samples. The next chunk is read while the current one is processed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..runtime.together import together
from ..runtime.untrusted import in_units
from ..statistics import Array, added, gram
from .chunks import Chunked, Held, in_chunk
from .matrix import Arrangements, Matrix
from .scales import Scales
from .steps import Question, Start, Step, taken
from .stored import COPIES, Stored

CHUNK = 2**27  # bytes of a chunk, at most: larger ones are not read faster
BUFFERS = 4  # chunks within the memory limit: one being read, one being processed, and their converted copies


def at_least(count: int, stored: Stored) -> str:
    """The advice for a memory limit below ``count`` bytes, which chunks need. X as a whole may need less."""
    whole = stored.nbytes <= count
    megabytes = math.ceil(min(stored.nbytes, count) / 1e6)
    return f"set memory_limit to at least {megabytes} MB{' to load X whole' if whole else ''}"


class StoredData(Chunked):
    """A stored array, read in chunks of samples. A thread reads the next chunk while the current one is processed."""

    def __init__(self, stored: Stored, limit: int, missing: bool = False, scales: Scales = Chunked.scales) -> None:
        self.missing, self.scales = missing, scales
        self.stored, self.shape, self.dtype = stored, (stored.shape[0], stored.shape[1]), stored.kind
        row = self.shape[1] * (self.dtype.itemsize + (stored.dtype.itemsize if stored.dtype != self.dtype else 0))
        if row * BUFFERS > limit:
            needed = at_least(BUFFERS * row, stored)
            raise ValueError(f"memory_limit={limit} is too small: one sample takes {in_units(row)}: {needed}")
        if limit < 2 * COPIES * stored.tile_bytes:
            size, needed = in_units(stored.tile_bytes), at_least(2 * COPIES * stored.tile_bytes, stored)
            raise ValueError(
                f"memory_limit={limit} is too small: one stored chunk {stored.tile} takes {size}: {needed}, or store X "
                f"in smaller chunks"
            )
        rows = max(1, min(limit // (2 if stored.tile else 1) // BUFFERS, CHUNK) // row)
        if rows > stored.stride:
            rows -= rows % stored.stride
        self.bounds = [*range(0, self.shape[0], rows), self.shape[0]]

    def chunks(self) -> Iterator[Matrix]:
        """Yield the chunks. Each chunk is valid until the next one is requested."""
        self.stored.check()
        self.passes += 1
        rows = self.bounds[1] - self.bounds[0]
        buffers = [np.empty((rows, self.shape[1]), dtype=self.stored.dtype) for _ in range(2)]

        def read(k: int) -> Array:
            rows = self.stored.read(self.bounds[k], self.bounds[k + 1], buffers[k % 2])
            return self.scales.rows(rows, self.bounds[k])

        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(read, 0)
            for k in range(len(self.bounds) - 1):
                with in_chunk(k, self.bounds[k], self.bounds[k + 1]):
                    array = ahead.result()
                if k + 2 < len(self.bounds):
                    ahead = reader.submit(read, k + 1)
                chunk = self.kind()(array, check=False)
                chunk.first = self.bounds[k]
                yield chunk

    def total(self, question: Question) -> Any:
        total = None
        for k, chunk in enumerate(self.chunks()):
            with in_chunk(k, self.bounds[k], self.bounds[k + 1]):
                answer = question(chunk)
            total = answer if total is None else added(total, answer)
        return total

    def hold(self, start: Start, r: int) -> HeldHere:
        """Return activations held in an array of this process."""
        return HeldHere(self, start, r)

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """A pass serves several fits, unless entries are missing."""
        return self.complete

    def visit_together(self, held: Sequence[Held], steps: Sequence[Step]) -> list[Any]:
        """Take a step with each of several fits' activations, and return the sums, from one pass."""
        tours = [Tour(one, step) for one, step in zip(held, steps, strict=True) if isinstance(one, HeldHere)]
        arrangements = Arrangements()  # the components are the same for all chunks

        def visit(chunk: Matrix) -> Each:
            chunk.arrangements = arrangements
            answers = dict(together((tour.at(chunk) for tour in tours), len(tours)))
            return Each([answers[k] for k in range(len(tours))])

        found: Each = self.total(visit)
        for tour in tours:
            tour.held.array = tour.new
        return found.answers

    def subset(self, which: Array) -> Matrix:
        """Load some of the samples (indices in increasing order) into memory."""
        self.stored.check()
        found = np.empty((len(which), self.shape[1]), dtype=self.dtype)
        step = min(self.stored.stride, self.bounds[1])
        buffer = np.empty((self.bounds[1], self.shape[1]), dtype=self.stored.dtype)
        apart = np.diff(which // step, prepend=-2) > 1  # each stored chunk is read once, together with its neighbours
        apart |= np.diff(which // self.bounds[1], prepend=-1) > 0
        for start, stop in pairwise([*np.flatnonzero(apart).tolist(), len(which)]):
            first, last = which[start] // step * step, which[stop - 1] // step * step
            rows = self.stored.read(first, min(last + step, self.shape[0]), buffer)
            found[start:stop] = self.scales.rows(rows, first)[which[start:stop] - first]
        return self.kind()(found, check=False)


class HeldHere(Held):
    """Activations in memory, for data on disk."""

    data: StoredData

    def __init__(self, data: StoredData, start: Start, r: int) -> None:
        super().__init__(data, r)
        self.data = data
        self.array = np.empty(self.shape, dtype=self.dtype, order="F")
        for first, end in pairwise(data.bounds):
            self.array[first:end] = start(first, end)

    def visit_all(self, step: Step) -> Any:
        (found,) = self.data.visit_together([self], [step])
        return found

    def gram(self) -> Array:
        """AᵀA of the activations A, without reading X."""
        return gram(self.collected())

    def collected(self) -> Array:
        """The activations."""
        if self.cut:
            self.array, self.cut = self.array[:, : self.shape[1]].copy(order="F"), False
        if self.scale is not None:
            self.array *= self.scale.astype(self.dtype)
            self.scale = None
        return self.array


class Tour:
    """A step on its way over the chunks. It writes the new activations."""

    def __init__(self, held: HeldHere, step: Step) -> None:
        self.held, self.step = held, step
        self.scale, held.scale = held.scale, None
        self.old = self.new = held.array

    async def at(self, chunk: Matrix) -> Any:
        """Take the step at one chunk, and return its result."""
        rows = slice(chunk.first, chunk.first + chunk.shape[0])
        before = Held.scaled(self.scale, np.array(self.old[rows], order="F"))
        activations, answer = await taken(self.step, chunk, before)
        if self.new.shape[1] != activations.shape[1]:
            self.new = np.empty((len(self.old), activations.shape[1]), dtype=self.held.dtype, order="F")
        self.new[rows] = activations
        return answer


@dataclass(frozen=True)
class Each:
    """Results of several steps, which are summed separately."""

    answers: list[Any]

    def __iadd__(self, other: Each) -> Each:
        return Each([*map(added, self.answers, other.answers)])

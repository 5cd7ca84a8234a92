"""What is done with a chunk of a Dask array, in the worker where it lies, and the log of it.

The activations of a chunk stay in the worker that visited it last (`KEPT`), outside of any graph, so that graphs do not
grow. They are a pure function of (chunk, start, steps so far); the steps are written down (`Log`), and a chunk whose
activations are lost takes them again. A visit may be asked for twice: the second time it says what it said before.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..statistics import Array
from .chunks import Held, named
from .dense import DenseData
from .matrix import Matrix
from .sparse import SparseData

AT_ONCE = 16  # steps that a lost chunk takes in one task


class ChunkState(NamedTuple):
    """The steps that a chunk has taken, its activations after them, and what it returned at the last."""

    taken: int
    activations: Array
    answer: Any


KEPT: dict[tuple[str, int], ChunkState] = {}  # in each worker, by fit and chunk
FORGOTTEN: deque[str] = deque(maxlen=1000)  # fits that are over: a visit that ends later must not keep anything
keeping = threading.Lock()


class LostError(RuntimeError):
    """What a worker kept is gone."""


@dataclass(frozen=True)
class Answer:
    """The sum of what chunks returned, and the chunks whose activations were lost."""

    total: Any = None
    lost: tuple[int, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        totals = [t for t in (self.total, other.total) if t is not None]
        total = totals[0] + totals[1] if len(totals) == 2 else totals[0] if totals else None
        return Answer(total, self.lost + other.lost)


def added(answers: Sequence[Answer]) -> Answer:
    """The sum of some answers, from the left."""
    return sum(answers[1:], answers[0])


@dataclass(frozen=True)
class Place:
    """Which samples a chunk holds."""

    index: int
    first: int
    end: int
    kind: type[DenseData] = DenseData

    def matrix(self, block: Any, features: int) -> Matrix:
        """The chunk's values as a matrix that knows its place."""
        if block.shape != (self.end - self.first, features):
            raise ValueError(f"it has shape {block.shape} instead of {(self.end - self.first, features)}")
        chunk: Matrix = SparseData(block, check=False) if sp.issparse(block) else self.kind(block, check=False)
        chunk.first = self.first
        return chunk

    def named(self) -> Any:
        """Errors inside say which chunk they come from."""
        return named(self.index, self.first, self.end)


def ask(block: Any, features: int, place: Place, payload: bytes) -> Answer:
    """Put a question to a chunk."""
    with place.named():
        return Answer(pickle.loads(payload)(place.matrix(block, features)))


def take(block: Any, rows: Array) -> Any:
    """Some samples of a chunk."""
    return block[rows]


def visit(block: Any, features: int, place: Place, fit: str, done: int, payloads: Sequence[bytes]) -> Answer:
    """Let a chunk that has taken ``done`` steps take some more; the answer to the last.

    A payload is (start, scale, step), pickled; the start matters where no step has been taken.
    """
    key, end = (fit, place.index), done + len(payloads)
    with place.named():
        before = KEPT.get(key)
        if before is not None and before.taken == end:
            return Answer(before.answer)
        if done and (before is None or before.taken != done):
            return Answer(lost=(place.index,))
        steps = [pickle.loads(payload) for payload in payloads]
        chunk = place.matrix(block, features)
        # a copy: should this visit be lost halfway, another one begins where it began
        activations = (
            np.array(before.activations, order="F") if before and done else steps[0][0](place.first, place.end)
        )
        for _, scale, step in steps:
            activations, answer = step(chunk, Held.scaled(scale, activations))
        keep(key, ChunkState(end, activations, answer))
        return Answer(answer)


def keep(key: tuple[str, int], what: ChunkState) -> None:
    """Keep what a chunk has come to, unless its fit is over."""
    with keeping:
        if key[0] not in FORGOTTEN:
            KEPT[key] = what


def kept(place: Place, fit: str, taken: int) -> Array:
    """The activations of a chunk after so many steps, as they are kept in the worker that visited it."""
    found = KEPT.get((fit, place.index))
    if found is None or found.taken != taken:
        raise LostError(f"the activations of chunk {place.index} were lost with their worker: use transform")
    return np.ascontiguousarray(found.activations)


def solved(block: Any, features: int, place: Place, payload: bytes) -> Array:
    """The activations of a chunk after one step from the start."""
    with place.named():
        start, _, step = pickle.loads(payload)
        chunk = place.matrix(block, features)
        chunk.check()
        return np.ascontiguousarray(step(chunk, start(place.first, place.end))[0])


def unchanged(chunk: Matrix, activations: Array) -> tuple[Array, int]:
    """The step that leaves everything as it is."""
    return activations, 0


def forget(fit: str) -> None:
    """Drop what a fit has left in this process, and what it may still bring."""
    with keeping:
        FORGOTTEN.append(fit)
        for key in [key for key in KEPT if key[0] == fit]:
            del KEPT[key]


async def forget_there(fit: str) -> None:
    """The same, as something that nobody waits for."""
    forget(fit)


class Log:
    """The steps of a fit, on disk: memory does not grow with the number of iterations."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        self.ends = [0]

    def __len__(self) -> int:
        return len(self.ends) - 1

    def append(self, payload: bytes) -> None:
        """Write down one more step."""
        self.file.seek(self.ends[-1])
        self.file.write(payload)
        self.ends.append(self.file.tell())

    def pieces(self) -> Iterator[tuple[int, list[bytes]]]:
        """All steps, some at once, each time with the number of those before."""
        for start in range(0, len(self), AT_ONCE):
            bounds = self.ends[start : start + AT_ONCE + 1]
            self.file.seek(bounds[0])
            yield start, [self.file.read(b - a) for a, b in pairwise(bounds)]

"""Tasks that process one chunk of a Dask array on a worker, and the log of the steps of a fit.

The activations of a chunk stay on the worker that visited it last (`KEPT`), outside of any graph, so that graphs do not
grow. They are a pure function of (chunk, start, steps so far). The steps are logged (`Log`), and are repeated for a
chunk whose activations are lost. Visits are idempotent: a repeated visit returns the same answer.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Sparse
from ..runtime.threads import in_child
from ..statistics import Array
from .chunks import Held, in_chunk
from .dense import DenseData
from .matrix import Matrix
from .sparse import SparseData

AT_ONCE = 16  # steps that are repeated for a lost chunk in one task


class ChunkState(NamedTuple):
    """The number of steps applied to a chunk, its activations after them, and the answer to the last step."""

    taken: int
    activations: Array
    answer: Any


KEPT: dict[tuple[str, int], ChunkState] = {}  # on each worker, by fit and chunk
FORGOTTEN: deque[str] = deque(maxlen=1000)  # finished fits: a late visit must not store anything for them
keeping = threading.Lock()


def renew_lock() -> None:
    """Replace the lock, which another thread may hold for ever in a forked process."""
    global keeping
    keeping = threading.Lock()


in_child(renew_lock)


class LostError(RuntimeError):
    """Activations were lost with their worker."""


@dataclass(frozen=True)
class Answer:
    """The sum of the results of some chunks, and the chunks whose activations were lost."""

    total: Any = None
    lost: tuple[int, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        totals = [t for t in (self.total, other.total) if t is not None]
        total = totals[0] + totals[1] if len(totals) == 2 else totals[0] if totals else None
        return Answer(total, self.lost + other.lost)


def added(answers: Sequence[Answer]) -> Answer:
    """Return the sum of the answers, added from left to right."""
    return sum(answers[1:], answers[0])


@dataclass(frozen=True)
class Place:
    """The samples of a chunk."""

    index: int
    first: int
    end: int
    kind: type[DenseData] = DenseData

    def matrix(self, block: Array | Sparse, features: int) -> Matrix:
        """Return the values of the chunk as a matrix that knows its first sample."""
        if block.shape != (self.end - self.first, features):
            raise ValueError(f"the chunk has shape {block.shape} instead of {(self.end - self.first, features)}")
        chunk: Matrix = SparseData(block, check=False) if sp.issparse(block) else self.kind(block, check=False)
        chunk.first = self.first
        return chunk

    def named(self) -> AbstractContextManager[None]:
        """Return a context that adds the chunk to the message of an error."""
        return in_chunk(self.index, self.first, self.end)


def ask(block: Array | Sparse, features: int, place: Place, payload: bytes) -> Answer:
    """Return the answer of a chunk to a pickled question."""
    with place.named():
        return Answer(pickle.loads(payload)(place.matrix(block, features)))


def take(block: Array | Sparse, rows: Array) -> Array | Sparse:
    """Return some samples of a chunk."""
    return block[rows]


def visit(block: Array | Sparse, features: int, place: Place, fit: str, done: int, payloads: Sequence[bytes]) -> Answer:
    """Apply further steps to a chunk after its first ``done`` steps, and return the answer to the last one.

    A payload is a pickled (start, scale, step). The start is used only if ``done`` is 0.
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
        # a copy: if this visit fails halfway, a repeated one starts from the same activations
        activations = (
            np.array(before.activations, order="F") if before and done else steps[0][0](place.first, place.end)
        )
        for _, scale, step in steps:
            activations, answer = step(chunk, Held.scaled(scale, activations))
        keep(key, ChunkState(end, activations, answer))
        return Answer(answer)


def keep(key: tuple[str, int], what: ChunkState) -> None:
    """Store the activations of a chunk, unless its fit is over."""
    with keeping:
        if key[0] not in FORGOTTEN:
            KEPT[key] = what


def kept(place: Place, fit: str, taken: int) -> Array:
    """Return the activations of a chunk after ``taken`` steps, as stored on this worker."""
    found = KEPT.get((fit, place.index))
    if found is None or found.taken != taken:
        raise LostError(
            f"the activations of chunk {place.index} were lost with their worker: call transform to recompute them"
        )
    return np.ascontiguousarray(found.activations)


def solved(block: Array | Sparse, features: int, place: Place, payload: bytes) -> Array:
    """Return the activations of a chunk after one step from the start."""
    with place.named():
        start, _, step = pickle.loads(payload)
        chunk = place.matrix(block, features)
        chunk.check()
        return np.ascontiguousarray(step(chunk, start(place.first, place.end))[0])


def unchanged(chunk: Matrix, activations: Array) -> tuple[Array, int]:
    """A step that changes nothing."""
    return activations, 0


def forget(fit: str) -> None:
    """Free the activations of a fit in this process, and refuse later ones."""
    with keeping:
        FORGOTTEN.append(fit)
        for key in [key for key in KEPT if key[0] == fit]:
            del KEPT[key]


async def forget_there(fit: str) -> None:
    """The same as a coroutine, so that the client need not wait."""
    forget(fit)


class Log:
    """The steps of a fit. They are stored on disk, so that memory does not grow with the iterations."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        self.ends = [0]

    def __len__(self) -> int:
        return len(self.ends) - 1

    def append(self, payload: bytes) -> None:
        """Append one step."""
        self.file.seek(self.ends[-1])
        self.file.write(payload)
        self.ends.append(self.file.tell())

    def pieces(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield all steps in groups, each with the number of steps before it."""
        for start in range(0, len(self), AT_ONCE):
            bounds = self.ends[start : start + AT_ONCE + 1]
            self.file.seek(bounds[0])
            yield start, [self.file.read(b - a) for a, b in pairwise(bounds)]

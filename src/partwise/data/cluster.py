"""Dask arrays: each chunk of samples is worked on where it lies.

A pass is one graph: every chunk is visited, and what the visits return is added up by a tree. It runs on the active
`distributed.Client`, or on threads of this process if there is none. The activations of a chunk stay in the worker that
visited it last (`KEPT`), outside of any graph, so that graphs do not grow. They are a pure function of (chunk, start,
steps so far); the steps are written down (`Log`), and a chunk whose activations are lost takes them again.
"""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4
from warnings import warn

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from threadpoolctl import threadpool_limits

from ..statistics import Array
from .chunks import Chunked, Held, Start, Step, named
from .dense import DenseData
from .matrix import Matrix, check_shape
from .sparse import SparseData

BRANCHES = 8  # of the tree that adds up
AT_ONCE = 16  # steps that a lost chunk takes in one task
SHARE = 0.6  # of the workers' memory that chunks may take; more are computed anew in each pass

KEPT: dict[tuple[str, int], tuple[int, Array]] = {}  # in each worker: steps taken by a chunk, and its activations


@dataclass(frozen=True)
class Answer:
    """The sum of what chunks returned, and the chunks whose activations were lost."""

    total: Any = None
    lost: tuple[int, ...] = ()

    def __add__(self, other: Answer) -> Answer:
        totals = [t for t in (self.total, other.total) if t is not None]
        total = totals[0] + totals[1] if len(totals) == 2 else totals[0] if totals else None
        return Answer(total, self.lost + other.lost)


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
    key = (fit, place.index)
    with place.named():
        steps = [pickle.loads(payload) for payload in payloads]
        taken, activations = KEPT.pop(key, (0, None))
        if activations is None and done == 0:
            taken, activations = 0, steps[0][0](place.first, place.end)
        if activations is None or taken != done:
            return Answer(lost=(place.index,))
        chunk = place.matrix(block, features)
        for _, scale, step in steps:
            activations, answer = step(chunk, Held.scaled(scale, activations))
        KEPT[key] = (done + len(steps), activations)
        return Answer(answer)


def kept(place: Place, fit: str) -> Array:
    """The activations of a chunk, as they are kept in the worker that visited it."""
    if (fit, place.index) not in KEPT:
        raise RuntimeError(f"the activations of chunk {place.index} were lost with their worker: use transform")
    return np.ascontiguousarray(KEPT[fit, place.index][1])


def solved(block: Any, features: int, place: Place, payload: bytes) -> Array:
    """The activations of a chunk after one step from the start."""
    with place.named():
        start, _, step = pickle.loads(payload)
        chunk = place.matrix(block, features)
        chunk.check()
        return np.ascontiguousarray(step(chunk, start(place.first, place.end))[0])


def forget(fit: str) -> None:
    """Drop what a fit has left in this process."""
    for key in [key for key in KEPT if key[0] == fit]:
        KEPT.pop(key, None)


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


class DaskData(Chunked):
    """A Dask array of samples × features, of dense or scipy sparse chunks."""

    here = False

    def __init__(self, X: da.Array, missing: bool = False) -> None:
        self.missing = missing
        if X.dtype.kind not in "buif":
            raise ValueError(f"X has dtype {X.dtype}: give real numbers. Complex data not supported")
        if any(np.isnan(size) for sizes in X.chunks for size in sizes):
            raise ValueError("X has chunks of unknown size: call X.compute_chunk_sizes() first")
        check_shape(X.shape)
        if 0 in X.chunks[0]:
            raise ValueError(f"chunk {X.chunks[0].index(0)} of X is empty: drop it, or rechunk X")
        if X.numblocks[1] > 1:
            warn(f"X has {X.numblocks[1]} chunks along its features; it is rechunked by samples", stacklevel=2)
            X = X.rechunk({0: "auto", 1: -1})
        self.shape, self.bounds = X.shape, [0, *np.cumsum(X.chunks[0]).tolist()]
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.client = active_client()
        memory = 0 if self.client is None else sum(w["memory_limit"] for w in workers(self.client).values())
        fits = self.client is not None and X.nbytes <= SHARE * memory
        self.array, self.near = X, self.client.persist(X) if fits else X
        self.blocks = self.near.to_delayed().ravel().tolist()

    @property
    def places(self) -> list[Place]:
        """Which samples each chunk holds."""
        return [Place(k, *bounds, self.kind()) for k, bounds in enumerate(pairwise(self.bounds))]

    def compute(self, tasks: Sequence[Any]) -> Any:
        """Compute delayed values: on the cluster, or on threads of this process with one thread each."""
        if self.client is None:
            scheduler = "synchronous" if dask.config.get("scheduler", None) in ("sync", "synchronous") else "threads"
            with threadpool_limits(limits=1):
                return dask.compute(*tasks, scheduler=scheduler)
        futures = self.client.compute(list(tasks))
        try:
            return self.client.gather(futures)
        except BaseException:
            self.client.cancel(futures)
            raise

    def tree(self, answers: list[Any], most: int) -> list[Any]:
        """Delayed answers added up until there are at most so many."""
        while len(answers) > most:
            answers = [delayed(added)(answers[i : i + BRANCHES]) for i in range(0, len(answers), BRANCHES)]
        return answers

    def summed(self, answers: list[Any]) -> Answer:
        """The sum of delayed answers, added up by a tree."""
        try:
            (answer,) = self.compute(self.tree(answers, 1))
        except Exception as error:
            raise self.blamed(error) from None
        return answer

    def blamed(self, error: Exception) -> Exception:
        """The error with the name of its chunk, where it was the chunk itself that could not be computed."""
        if "chunk " in str(error):
            return error
        for place, block in zip(self.places, self.blocks, strict=True):
            try:
                self.compute([delayed(np.shape)(block)])
            except Exception as found:
                try:
                    with place.named():
                        raise found
                except Exception as blamed:
                    return blamed
        return error

    def chunks(self) -> Iterator[Matrix]:
        """One chunk after the other, brought here."""
        for place, block in zip(self.places, self.blocks, strict=True):
            (values,) = self.compute([block])
            with place.named():
                yield place.matrix(values, self.shape[1])

    def total(self, question: Callable[[Matrix], Any]) -> Any:
        """The sum of the answers of all chunks."""
        payload = delayed(pickle.dumps(question), pure=True)
        pairs = zip(self.blocks, self.places, strict=True)
        return self.summed([delayed(ask)(block, self.shape[1], place, payload) for block, place in pairs]).total

    def hold(self, start: Start, r: int) -> HeldThere:
        """Activations in the workers."""
        return HeldThere(self, start, r)

    def subset(self, which: Array) -> Matrix:
        """Some of the samples (in rising order), in memory."""
        inside = [which[(p.first <= which) & (which < p.end)] - p.first for p in self.places]
        pairs = zip(self.blocks, inside, strict=True)
        rows = self.compute([delayed(take)(block, rows) for block, rows in pairs if rows.size])
        if sp.issparse(rows[0]):
            return SparseData(sp.vstack(rows, format="csr"), check=False)
        return self.kind()(np.concatenate(rows), check=False)

    def mapped(self, start: Start, step: Step, r: int) -> da.Array:
        """The activations after one step from the start, as a Dask array that is computed when it is asked for."""
        payload = delayed(pickle.dumps((start, None, step)), pure=True)
        pairs = zip(self.array.to_delayed().ravel(), self.places, strict=True)
        return self.stacked([delayed(solved)(block, self.shape[1], place, payload) for block, place in pairs], r)

    def stacked(self, chunks: Sequence[Any], r: int) -> da.Array:
        """A Dask array (samples × r) of delayed chunks."""
        sizes = [place.end - place.first for place in self.places]
        arrays = zip(chunks, sizes, strict=True)
        return da.concatenate([da.from_delayed(c, (size, r), dtype=self.dtype) for c, size in arrays], axis=0)


class HeldThere(Held):
    """Activations in the workers that visited the chunks last."""

    def __init__(self, data: DaskData, start: Start, r: int) -> None:
        super().__init__(data, r)
        self.data, self.start, self.fit, self.log = data, start, uuid4().hex, Log()
        self.homes: dict[int, str] = {}
        self.release = weakref.finalize(self, forget_everywhere, data.client, self.fit)

    def sweep(self, step: Step) -> Any:
        """Let every chunk take a step; the sum of what they return."""
        payload = pickle.dumps((self.start if not len(self.log) else None, self.scale, step))
        self.scale = None
        answer = self.visited(self.data.places, len(self.log), [payload])
        self.log.append(payload)
        tries = 0
        while answer.lost:
            if (tries := tries + 1) > 5:
                raise RuntimeError(f"workers are lost again and again, and chunks {answer.lost} with them")
            lost, answer = [self.data.places[k] for k in answer.lost], Answer(answer.total)
            for done, payloads in self.log.pieces():
                again = self.visited(lost, done, payloads)
                answer = answer + (again if done + len(payloads) == len(self.log) else Answer(lost=again.lost))
                lost = [place for place in lost if place.index not in again.lost]
        return answer.total

    def visited(self, places: Sequence[Place], done: int, payloads: list[bytes]) -> Answer:
        """Visit some chunks, each in the worker where it was last."""
        if not places:
            return Answer()
        given = delayed(payloads, pure=False)
        visits: dict[str | None, list[Any]] = {}
        for place, home in zip(places, self.at_home(places), strict=True):
            with staying_at(home):
                block = self.data.blocks[place.index]
                task = delayed(visit, pure=False)(block, self.data.shape[1], place, self.fit, done, given)
            visits.setdefault(home, []).append(task)
        return self.data.summed([task for tasks in visits.values() for task in self.data.tree(tasks, 1)])

    def at_home(self, places: Sequence[Place]) -> list[str | None]:
        """The worker of each chunk: where it was, else where its values lie, else the one with the fewest chunks."""
        client = self.data.client
        if client is None:
            return [None] * len(places)
        alive = list(workers(client))
        self.homes = {k: home for k, home in self.homes.items() if home in alive}
        lies = client.who_has() if any(place.index not in self.homes for place in places) else {}
        for place in places:
            if place.index not in self.homes:
                counts = dict.fromkeys(alive, 0)
                for home in self.homes.values():
                    counts[home] += 1
                here = [w for w in lies.get(self.data.blocks[place.index].key, ()) if w in alive]
                self.homes[place.index] = min(here or alive, key=lambda w: counts[w])
        return [self.homes[place.index] for place in places]

    def collected(self) -> da.Array:
        """The activations as a Dask array whose chunks stay in the workers."""
        self.sweep(unchanged)
        chunks = []
        for place, home in zip(self.data.places, self.at_home(self.data.places), strict=True):
            with staying_at(home):
                chunks.append(delayed(kept, pure=False)(place, self.fit))
        array = self.data.stacked(chunks, self.shape[1])
        if self.data.client is None:
            array = array.persist(scheduler="synchronous")
        else:
            array = self.data.client.persist(array, optimize_graph=False)
            self.data.client.compute(array.sum()).result()
        self.release()
        return array


def unchanged(chunk: Matrix, activations: Array) -> tuple[Array, int]:
    """The step that leaves everything as it is."""
    return activations, 0


def added(answers: Sequence[Answer]) -> Answer:
    """The sum of some answers, from the left."""
    return sum(answers[1:], answers[0])


def active_client() -> Any:
    """The active `distributed.Client`, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def staying_at(home: str | None) -> Any:
    """Tasks made inside go to that worker, as long as it is there."""
    return dask.annotate(workers=[home], allow_other_workers=True) if home else nullcontext()


def workers(client: Any) -> dict[str, Any]:
    """The workers that a client knows, by address."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def forget_everywhere(client: Any, fit: str) -> None:
    """Drop what a fit has left in the workers."""
    forget(fit)
    if client is not None and client.status == "running":
        client.run(forget_there, fit, wait=False)

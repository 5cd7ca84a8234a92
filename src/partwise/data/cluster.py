"""Dask arrays: each chunk of samples is processed on the worker that holds it.

A pass is one graph. It visits every chunk (`visits`) and adds up the results in a tree, in the order of the chunks, so
that the bits of a sum do not depend on the workers. It runs on the active `distributed.Client`, or on threads of this
process if there is none.
"""

from __future__ import annotations

import pickle
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cached_property, partial
from itertools import pairwise
from typing import Any
from uuid import uuid4
from warnings import warn

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from threadpoolctl import threadpool_limits

from ..runtime.arrays import Sparse
from ..statistics import Array
from .chunks import Chunked, Held
from .matrix import Matrix
from .scales import Scales
from .sparse import SparseData
from .steps import Question, Start, Step
from .values import check_shape, precision
from .visits import Answer, Log, LostError, Place, added, ask, kept, solved, take, unchanged, visit
from .workers import active_client, awaited, forget_everywhere, leave_thread, memory, staying_at

BRANCHES = 8  # of the tree that adds up results
SHARE = 0.6  # of the workers' memory: an X that needs more is recomputed in each pass
TRIES = 5  # attempts at a pass when workers are lost
LARGE = "distributed.admin.large-graph-warning-threshold"  # a graph has what it sends only once
CHECK = "check the workers' logs and memory limits"


class DaskData(Chunked):
    """A Dask array (samples × features) with dense or SciPy sparse chunks."""

    here = False

    def __init__(self, X: da.Array, missing: bool = False, scales: Scales = Chunked.scales) -> None:
        self.missing, self.scales = missing, scales
        self.dtype = precision(X.dtype)
        if any(np.isnan(size) for sizes in X.chunks for size in sizes):
            raise ValueError("X has chunks of unknown size: call X.compute_chunk_sizes() first")
        check_shape(X.shape)
        if 0 in X.chunks[0]:
            raise ValueError(f"chunk {X.chunks[0].index(0)} of X is empty: drop it, or rechunk X")
        if X.numblocks[1] > 1:
            warn(f"X has {X.numblocks[1]} chunks along its features; rechunking X by samples", stacklevel=2)
            X = X.rechunk({0: "auto", 1: -1})
        self.shape, self.bounds = X.shape, [0, *np.cumsum(X.chunks[0]).tolist()]
        self.array, self.client = scaled(X, scales) if scales else X, active_client()
        if self.client is not None:
            leave_thread()  # now, because a property holds a lock while it is computed (until Python 3.12)

    @property
    def places(self) -> list[Place]:
        """Which samples each chunk holds."""
        return [Place(k, *bounds, self.kind()) for k, bounds in enumerate(pairwise(self.bounds))]

    @cached_property
    def near(self) -> da.Array:
        """The array, persisted on the workers if it fits into their memory."""
        fits = self.client is not None and self.array.nbytes <= SHARE * memory(self.client)
        return self.client.persist(self.array) if fits else self.array

    @cached_property
    def blocks(self) -> list[Delayed]:
        """The chunks, as delayed values."""
        found: list[Delayed] = self.near.to_delayed().ravel().tolist()
        return found

    def run(self, tasks: Sequence[Delayed], homes: Sequence[str | None] = ()) -> Any:
        """Compute delayed values on the cluster or, without a client, on threads of this process.

        Raises LostError if one of ``homes``, the workers that tasks are restricted to, is gone.
        """
        if self.client is None:
            scheduler = "synchronous" if dask.config.get("scheduler", None) in ("sync", "synchronous") else "threads"
            with threadpool_limits(limits=1):
                return dask.compute(*tasks, scheduler=scheduler)
        with dask.config.set({LARGE: "1 TB"}):
            futures, bound = self.client.compute(list(tasks)), {home for home in homes if home}
        try:
            return [awaited(self.client, f, bound) for f in futures] if bound else self.client.gather(futures)
        except BaseException:
            self.client.cancel(futures)
            raise

    def compute(self, tasks: Sequence[Delayed], homes: Sequence[str | None] = ()) -> Any:
        """The same, but errors name the chunk that they come from."""
        try:
            return self.run(tasks, homes)
        except LostError:
            raise
        except Exception as error:
            raise self.blamed(error) from None

    def blamed(self, error: Exception) -> Exception:
        """Return the error with the name of its chunk, if computing the chunk itself has failed."""
        if hasattr(error, "chunk"):
            return error
        for place, block in zip(self.places, self.blocks, strict=True):
            try:
                with place.named():
                    self.run([delayed(np.shape)(block)])
            except Exception as found:
                return found
        return error

    def summed(self, answers: list[Delayed], homes: Sequence[str | None] = ()) -> Answer:
        """Compute the sum of delayed answers, added up in a tree."""
        while len(answers) > 1:
            answers = [delayed(added)(answers[i : i + BRANCHES]) for i in range(0, len(answers), BRANCHES)]
        (answer,) = self.compute(answers, homes)
        return deepcopy(answer)  # arrays received from Dask may be unaligned; see `as_factor`

    def chunks(self) -> Iterator[Matrix]:
        """Yield the chunks, each loaded into this process."""
        self.passes += 1
        for place, block in zip(self.places, self.blocks, strict=True):
            (values,) = self.compute([block])
            with place.named():
                yield place.matrix(values, self.shape[1])

    def total(self, question: Question) -> Any:
        self.passes += 1
        payload = delayed(pickle.dumps(question), pure=True)
        pairs = zip(self.blocks, self.places, strict=True)
        return self.summed([delayed(ask)(block, self.shape[1], place, payload) for block, place in pairs]).total

    def hold(self, start: Start, r: int) -> HeldThere:
        """Return activations that stay on the workers."""
        return HeldThere(self, start, r)

    def subset(self, which: Array) -> Matrix:
        """Load some of the samples (indices in increasing order) into memory. Dask computes whole chunks for that."""
        self.passes += 1
        inside = [which[(p.first <= which) & (which < p.end)] - p.first for p in self.places]
        pairs = zip(self.blocks, inside, strict=True)
        rows = self.compute([delayed(take)(block, rows) for block, rows in pairs if rows.size])
        if sp.issparse(rows[0]):
            return SparseData(sp.vstack(rows, format="csr"), check=False)
        return self.kind()(np.concatenate(rows), check=False)

    def mapped(self, start: Start, step: Step, r: int) -> da.Array:
        """The activations after one step from the start, as a lazy Dask array."""
        payload = delayed(pickle.dumps((start, None, step)), pure=True)
        pairs = zip(self.array.to_delayed().ravel(), self.places, strict=True)
        return self.stacked([delayed(solved)(block, self.shape[1], place, payload) for block, place in pairs], r)

    def stacked(self, chunks: Sequence[Delayed], r: int) -> da.Array:
        """Concatenate delayed chunks into a Dask array (samples × r)."""
        sizes = [place.end - place.first for place in self.places]
        arrays = zip(chunks, sizes, strict=True)
        return da.concatenate([da.from_delayed(c, (size, r), dtype=self.dtype) for c, size in arrays], axis=0)


class HeldThere(Held):
    """Activations on the workers. Each worker keeps those of the chunks that it visited last."""

    data: DaskData

    def __init__(self, data: DaskData, start: Start, r: int) -> None:
        super().__init__(data, r)
        self.data, self.start, self.fit, self.log = data, start, uuid4().hex, Log()
        self.homes: dict[int, str] = {}
        self.over = weakref.finalize(self, forget_everywhere, data.client, self.fit)

    def release(self) -> None:
        """Free the activations."""
        self.over()

    def visit_all(self, step: Step) -> Any:
        self.data.passes += 1
        payload = pickle.dumps((self.start if not len(self.log) else None, self.scale, step))
        self.scale = None
        try:
            answer = self.visited(self.data.places, len(self.log), [payload])
            self.log.append(payload)
            for _ in range(TRIES):
                if answer.lost:
                    answer = Answer(answer.total) + self.repeated([self.data.places[k] for k in answer.lost])
            if answer.lost:
                raise RuntimeError(f"chunks {answer.lost} were lost {TRIES} times in one pass: {CHECK}")
            return answer.total
        except BaseException:  # the step was applied to some chunks only, so the fit cannot continue
            self.release()
            raise

    def repeated(self, places: Sequence[Place]) -> Answer:
        """Repeat all steps for chunks whose activations are lost, and return the answer to the last step."""
        lost: tuple[int, ...] = ()
        answer = Answer()
        for done, payloads in self.log.pieces():
            answer = self.visited(places, done, payloads)
            places = [place for place in places if place.index not in answer.lost]
            lost += answer.lost
        return Answer(answer.total, lost)

    def visited(self, places: Sequence[Place], done: int, payloads: list[bytes]) -> Answer:
        """Visit some chunks, each on the worker of its last visit or, if that is gone, on another one."""
        if not places:
            return Answer()
        for _ in range(TRIES):
            homes, tasks, given = self.at_home(places), [], delayed(payloads, pure=False)
            for place, home in zip(places, homes, strict=True):
                with staying_at(home):
                    block = self.data.blocks[place.index]
                    tasks.append(delayed(visit, pure=False)(block, self.data.shape[1], place, self.fit, done, given))
            try:
                return self.data.summed(tasks, homes)
            except LostError:
                continue
        raise RuntimeError(f"workers were lost {TRIES} times in one pass: {CHECK}")

    def at_home(self, places: Sequence[Place]) -> list[str | None]:
        """Choose a worker for each chunk: that of its last visit, else one that holds its values, else any.

        Neighbouring chunks tend to share a worker, because they are added up first. No worker gets more than its share
        of the chunks, unless it holds their values.
        """
        client = self.data.client
        alive = list(client.nthreads()) if client is not None else []
        if not alive:
            return [None] * len(places)
        self.homes = {k: home for k, home in self.homes.items() if home in alive}
        homeless = [place.index for place in places if place.index not in self.homes]
        holders = client.who_has(self.data.near) if homeless else {}
        counts, share = Counter(self.homes.values()), -(-len(self.data.places) // len(alive))
        for k in homeless:
            here = [w for w in holders.get(self.data.blocks[k].key, ()) if w in alive] or alive
            self.homes[k] = next((w for w in here if counts[w] < share), min(here, key=lambda w: counts[w]))
            counts[self.homes[k]] += 1
        return [self.homes[place.index] for place in places]

    def collected(self) -> da.Array:
        """The activations as a Dask array whose chunks stay on the workers."""
        for _ in range(TRIES):
            self.sweep(unchanged)
            try:
                array = self.persisted()
            except LostError:
                continue
            self.release()
            return array
        raise RuntimeError(f"workers were lost {TRIES} times while the activations were collected: {CHECK}")

    def persisted(self) -> da.Array:
        """Persist the activations as a Dask array. Raises LostError if some of them are gone."""
        client, chunks, homes = self.data.client, [], self.at_home(self.data.places)
        for place, home in zip(self.data.places, homes, strict=True):
            with staying_at(home):
                chunks.append(delayed(kept, pure=False)(place, self.fit, len(self.log)))
        array = self.data.stacked(chunks, self.shape[1])
        if client is None:
            return array.persist(scheduler="synchronous")
        array = client.persist(array, optimize_graph=False)
        self.data.run([delayed(len)([delayed(np.shape)(chunk) for chunk in array.to_delayed().ravel()])], homes)
        # if a worker dies later, the remaining ones must raise LostError instead of waiting for it
        client.sync(client.scheduler.set_restrictions, worker={chunk.key: None for chunk in chunks})
        return array


def scaled(X: da.Array, scales: Scales) -> da.Array:
    """X multiplied by its scales, chunk by chunk. X has one chunk along its features."""
    rows = [] if scales.samples is None else [da.from_array(scales.samples[:, None], chunks=(X.chunks[0], 1))]
    kind = precision(X.dtype)
    function = partial(scaled_block, features=scales.features)
    return da.map_blocks(function, X, *rows, dtype=kind, meta=X._meta.astype(kind), chunks=X.chunks)


def scaled_block(block: Array | Sparse, samples: Array | None = None, features: Array | None = None) -> Array | Sparse:
    """A chunk of X and the scales of its samples, multiplied."""
    scales = Scales(None if samples is None else samples[:, 0], features)
    if isinstance(block, np.ndarray):
        return scales.rows(block)
    return scales.stored(block if block.format in ("csr", "csc") else block.tocsr())

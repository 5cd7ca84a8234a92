"""Arrays on disk, read in chunks of samples. The next chunk is read while the current one is processed."""

from __future__ import annotations

import math
import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.arrays import ArrayLike
from ..runtime.npy import mapped
from ..runtime.together import together
from ..runtime.untrusted import in_units, reading
from ..statistics import Array, gram
from .chunks import Chunked, Held, Question, Start, Step, named, taken
from .matrix import Matrix, check_shape, precision
from .scales import Scales

LIMIT = 2**30  # bytes of memory for X, by default
CHUNK = 2**27  # bytes of a chunk, at most: larger ones are not read faster
AT_ONCE = 2**30  # bytes read by one call, at most
BUFFERS = 4  # chunks within the memory limit: one being read, one being processed, and their converted copies
COPIES = 6  # of a stored chunk: compressed, decompressed, the part in use, and as much that the allocator keeps
COLUMNS = 16  # of a file in Fortran order, read and transposed together


class Stored:
    """An object with shape, dtype and row slicing: a zarr array, an HDF5 dataset, or a memory map.

    ``tile`` is the shape of the chunks that it is stored in. Reading ``at_once`` of them takes at most half of
    ``limit``.
    """

    tile: tuple[int, int] | None = None

    def __init__(self, array: Any, limit: int = LIMIT) -> None:
        self.array, self.shape, self.dtype = array, tuple(array.shape), np.dtype(array.dtype)
        self.check_kind()
        chunks = getattr(array, "chunks", None)
        if isinstance(chunks, tuple) and len(chunks) == 2 and all(isinstance(n, int) and n > 0 for n in chunks):
            self.tile = (chunks[0], chunks[1])
            self.at_once = limit // (2 * COPIES * self.tile_bytes)

    @property
    def stride(self) -> int:
        """The number of samples that are stored together."""
        return self.tile[0] if self.tile else 1

    @property
    def tile_bytes(self) -> int:
        """The size of a chunk that X is stored in."""
        return math.prod(self.tile or (0,)) * self.dtype.itemsize

    def check_kind(self) -> None:
        """Raise ValueError for an unusable shape or dtype, and set ``kind``, the dtype for computations."""
        check_shape(self.shape)
        self.kind = precision(self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes that X takes in memory."""
        return self.shape[0] * self.shape[1] * self.kind.itemsize

    def whole(self) -> Array:
        """Load X into memory."""
        self.check()
        return self.read(0, self.shape[0], np.empty(self.shape, dtype=self.dtype))

    def check(self) -> None:
        """Raise ValueError if the array has changed its shape, or its file was truncated."""
        now = present_shape(self.array)
        if now != self.shape:
            raise ValueError(f"X had shape {self.shape} and now has {now}: X must not change during a fit")
        self.check_map()

    def check_map(self) -> None:
        """Raise ValueError if the file of a memory map was truncated: reading beyond its end kills the process."""
        mapped = getattr(self.array, "_mmap", None)
        if isinstance(self.array, np.memmap) and mapped is not None:
            need = len(mapped) + self.array.offset - self.array.offset % mmap.ALLOCATIONGRANULARITY
            if mapped.size() < need:
                raise ValueError(f"{self.array.filename} is truncated: {mapped.size()} of {need} bytes are left")

    def read(self, first: int, end: int, buffer: Array) -> Array:
        """Return samples ``first`` to ``end``. They may use the buffer."""
        if self.tile:
            return self.read_tiles(first, end, buffer, self.tile)
        self.check_map()
        rows = self.part(first, end)
        if isinstance(self.array, np.memmap):  # copy, so that this thread waits for the disk and not the computation
            np.copyto(buffer[: end - first], rows)
            return buffer[: end - first]
        return rows

    def read_tiles(self, first: int, end: int, buffer: Array, tile: tuple[int, int]) -> Array:
        """The same for an array that is stored in chunks, of which few are read by one call."""
        across = -(-self.shape[1] // tile[1])
        width = tile[1] * max(1, min(self.at_once, across))
        height = tile[0] * max(1, self.at_once // across)
        if width >= self.shape[1] and end - first // height * height <= height:
            return self.part(first, end)
        for top in range(first // height * height, end, height):
            a, b = max(first, top), min(end, top + height)
            for left in range(0, self.shape[1], width):
                buffer[a - first : b - first, left : left + width] = self.part(a, b, left, left + width)
        return buffer[: end - first]

    def part(self, first: int, end: int, left: int = 0, right: int | None = None) -> Array:
        """Return samples ``first`` to ``end`` of all features, or of those from ``left`` to ``right``."""
        right = self.shape[1] if right is None else min(right, self.shape[1])
        some = right - left < self.shape[1]
        name = name_of(self.array)
        with reading(name) if name else nullcontext():
            rows = np.asarray(self.array[first:end, left:right] if some else self.array[first:end])
        if rows.shape != (end - first, right - left):
            raise ValueError(f"X[{first}:{end}] has shape {rows.shape} instead of {(end - first, right - left)}")
        return rows


def present_shape(array: Any) -> tuple[int, ...]:
    """The current shape of a stored array. A zarr array only knows its shape when it was opened."""
    if type(array).__module__.split(".")[0] == "zarr":
        import zarr  # optional

        array = zarr.open_array(array.store, path=array.path, mode="r")
    return tuple(array.shape)


def name_of(array: Any) -> str:
    """The file of an array, or an empty string if the array does not know it."""
    known = (getattr(array, name, "") for name in ("source", "filename", "store_path"))
    return str(next(filter(None, known), getattr(getattr(array, "file", None), "filename", "")))


class StoredFile(Stored):
    """Numbers in a file, which stays open, by rows or by columns."""

    def __init__(self, path: Path, array: np.memmap[Any, Any]) -> None:
        self.path, self.offset, self.shape, self.dtype = path, array.offset, array.shape, array.dtype
        self.check_kind()
        self.by_rows = array.flags.c_contiguous
        self.file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.file)

    def check(self) -> None:
        """Raise ValueError if the file is too short."""
        size, need = os.fstat(self.file).st_size, self.offset + self.shape[0] * self.shape[1] * self.dtype.itemsize
        if size < need:
            raise ValueError(f"{self.path} is truncated: {size} of {need} bytes are left, for shape {self.shape}")

    def read(self, first: int, end: int, buffer: Array) -> Array:
        """Read samples ``first`` to ``end`` into the buffer."""
        rows = buffer[: end - first]
        if self.by_rows:
            self.fill(rows, first * self.shape[1])
            return rows
        columns = np.empty((COLUMNS, len(rows)), dtype=self.dtype)
        for j in range(0, self.shape[1], COLUMNS):
            some = columns[: self.shape[1] - j]
            for i, column in enumerate(some, j):
                self.fill(column, i * self.shape[0] + first)
            rows[:, j : j + COLUMNS] = some.T
        return rows

    def fill(self, array: Array, start: int) -> None:
        """Read numbers from number ``start`` of the file on."""
        view, done = memoryview(array.view(np.uint8)).cast("B"), 0  # type: ignore[arg-type]
        while done < len(view):
            place = self.offset + start * self.dtype.itemsize + done
            got = os.preadv(self.file, [view[done : done + AT_ONCE]], place)
            if not got:
                raise ValueError(f"{self.path} is truncated: it ends at byte {os.fstat(self.file).st_size}")
            done += got


def as_stored(X: ArrayLike, limit: int = LIMIT) -> Stored:
    """Open a .npy file by its path, or wrap an array that can be sliced."""
    if not isinstance(X, str | os.PathLike):
        return Stored(X, limit)
    path = Path(X)
    if path.suffix != ".npy":
        raise ValueError(f"X={os.fspath(path)!r} is not a .npy file: open other formats yourself and give the array")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise type(error)(f"X={os.fspath(path)!r} cannot be read: {error.strerror}; give the path of a file") from error
    with reading(path):
        array = mapped(path)
    if array.ndim == 2 and hasattr(os, "preadv"):  # missing on Windows
        return StoredFile(path, array)
    return Stored(array, limit)


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
                with named(k, self.bounds[k], self.bounds[k + 1]):
                    array = ahead.result()
                if k + 2 < len(self.bounds):
                    ahead = reader.submit(read, k + 1)
                chunk = self.kind()(array, check=False)
                chunk.first = self.bounds[k]
                yield chunk

    def total(self, question: Question) -> Any:
        """Return the sum of ``question(chunk)`` over all chunks."""
        total = None
        for k, chunk in enumerate(self.chunks()):
            with named(k, self.bounds[k], self.bounds[k + 1]):
                answer = question(chunk)
            total = answer if total is None else total + answer
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

        def visit(chunk: Matrix) -> Each:
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
        self.array = np.empty(self.shape, dtype=self.dtype)
        for first, end in pairwise(data.bounds):
            self.array[first:end] = start(first, end)

    def visit_all(self, step: Step) -> Any:
        """Apply ``step`` to every chunk and return the sum of the results."""
        (found,) = self.data.visit_together([self], [step])
        return found

    def gram(self) -> Array:
        """AᵀA of the activations A, without reading X."""
        return gram(self.collected())

    def collected(self) -> Array:
        """The activations."""
        if self.cut:
            self.array, self.cut = np.ascontiguousarray(self.array[:, : self.shape[1]]), False
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
            self.new = np.empty((len(self.old), activations.shape[1]), dtype=self.held.dtype)
        self.new[rows] = activations
        return answer


@dataclass(frozen=True)
class Each:
    """Results of several steps, which are summed separately."""

    answers: list[Any]

    def __add__(self, other: Each) -> Each:
        return Each([a + b for a, b in zip(self.answers, other.answers, strict=True)])

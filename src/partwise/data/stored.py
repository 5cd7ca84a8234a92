"""Arrays on disk, read in chunks of samples. The next chunk is read while the current one is processed."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.npy import mapped
from ..runtime.untrusted import reading
from ..statistics import Array, gram
from .chunks import Chunked, Held, Start, Step, named
from .matrix import Matrix, check_shape, precision

LIMIT = 2**30  # bytes of memory for X, by default
CHUNK = 2**27  # bytes of a chunk, at most: larger ones are not read faster
AT_ONCE = 2**30  # bytes read by one call, at most
BUFFERS = 4  # chunks within the memory limit: one being read, one being processed, and their converted copies


class Stored:
    """An object with shape, dtype and row slicing: a zarr array, an HDF5 dataset, or a memory map."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, tuple(array.shape), np.dtype(array.dtype)
        self.check_kind()
        chunks = getattr(array, "chunks", None)
        self.stride = chunks[0] if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int) else 1

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
        mapped = getattr(self.array, "_mmap", None)
        if isinstance(self.array, np.memmap) and mapped is not None:
            need = len(mapped) + self.array.offset - self.array.offset % mmap.ALLOCATIONGRANULARITY
            if mapped.size() < need:  # reading beyond the end would crash the process
                raise ValueError(f"the file of the memory map is truncated: {mapped.size()} of {need} bytes are left")

    def read(self, first: int, end: int, buffer: Array) -> Array:
        """Return samples ``first`` to ``end``. They may use the buffer."""
        name = name_of(self.array)
        with reading(name) if name else nullcontext():
            rows = np.asarray(self.array[first:end])
        if rows.shape != (end - first, self.shape[1]):
            raise ValueError(f"X[{first}:{end}] has shape {rows.shape} instead of {(end - first, self.shape[1])}")
        if isinstance(self.array, np.memmap):  # copy, so that this thread waits for the disk and not the computation
            np.copyto(buffer[: end - first], rows)
            return buffer[: end - first]
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
    """Rows stored contiguously in a file, which stays open."""

    stride = 1

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path, self.offset, self.shape, self.dtype = path, offset, shape, dtype
        self.check_kind()
        self.row = int(np.prod(shape[1:], dtype=int)) * dtype.itemsize
        self.file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.file)

    def check(self) -> None:
        """Raise ValueError if the file is too short."""
        size, need = os.fstat(self.file).st_size, self.offset + self.row * self.shape[0]
        if size < need:
            raise ValueError(f"{self.path} is truncated: {size} of {need} bytes are left, for shape {self.shape}")

    def read(self, first: int, end: int, buffer: Array) -> Array:
        """Read samples ``first`` to ``end`` into the buffer."""
        rows = buffer[: end - first]
        view, done = memoryview(rows.view(np.uint8)).cast("B"), 0  # type: ignore[arg-type]
        while done < len(view):
            got = os.preadv(self.file, [view[done : done + AT_ONCE]], self.offset + first * self.row + done)
            if not got:
                raise ValueError(f"{self.path} is truncated: it ends before sample {end - 1}")
            done += got
        return rows


def as_stored(X: Any) -> Stored:
    """Open a .npy file by its path, or wrap an array that can be sliced."""
    if not isinstance(X, str | os.PathLike):
        return Stored(X)
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
    if array.ndim == 2 and array.flags.c_contiguous and hasattr(os, "preadv"):  # missing on Windows
        return StoredFile(path, array.offset, array.shape, array.dtype)
    return Stored(array)


class StoredData(Chunked):
    """A stored array, read in chunks of samples. A thread reads the next chunk while the current one is processed."""

    def __init__(self, stored: Stored, limit: int, missing: bool = False) -> None:
        self.missing = missing
        self.stored, self.shape, self.dtype = stored, (stored.shape[0], stored.shape[1]), stored.kind
        row = self.shape[1] * (self.dtype.itemsize + (stored.dtype.itemsize if stored.dtype != self.dtype else 0))
        if row * BUFFERS > limit:
            raise ValueError(
                f"memory_limit={limit} is too small: {BUFFERS} samples of {row} bytes must fit; "
                f"raise it to at least {BUFFERS * row}"
            )
        rows = max(1, min(limit // BUFFERS, CHUNK) // row)
        if rows > stored.stride:
            rows -= rows % stored.stride
        self.bounds = [*range(0, self.shape[0], rows), self.shape[0]]

    def chunks(self) -> Iterator[Matrix]:
        """Yield the chunks. Each chunk is valid until the next one is requested."""
        self.stored.check()
        rows = self.bounds[1] - self.bounds[0]
        buffers = [np.empty((rows, self.shape[1]), dtype=self.stored.dtype) for _ in range(2)]

        def read(k: int) -> Array:
            return self.stored.read(self.bounds[k], self.bounds[k + 1], buffers[k % 2])

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

    def total(self, question: Callable[[Matrix], Any]) -> Any:
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

    def subset(self, which: Array) -> Matrix:
        """Load some of the samples (indices in increasing order) into memory."""
        self.stored.check()
        found = np.empty((len(which), self.shape[1]), dtype=self.dtype)
        step = min(self.stored.stride, self.bounds[1])
        buffer = np.empty((step, self.shape[1]), dtype=self.stored.dtype)
        bounds = np.flatnonzero(np.diff(which // step, prepend=-1, append=-1))  # read each stored chunk once
        for start, stop in pairwise(bounds.tolist()):
            first = which[start] // step * step
            rows = self.stored.read(first, min(first + step, self.shape[0]), buffer)
            found[start:stop] = rows[which[start:stop] - first]
        return self.kind()(found, check=False)


class HeldHere(Held):
    """Activations in memory, for data on disk."""

    def __init__(self, data: StoredData, start: Start, r: int) -> None:
        super().__init__(data, r)
        self.data = data
        self.array = np.empty(self.shape, dtype=self.dtype)
        for first, end in pairwise(data.bounds):
            self.array[first:end] = start(first, end)

    def sweep(self, step: Step) -> Any:
        """Apply ``step`` to every chunk and return the sum of the results."""
        scale, self.scale = self.scale, None

        def visit(chunk: Matrix) -> Any:
            rows = slice(chunk.first, chunk.first + chunk.shape[0])
            activations, answer = step(chunk, self.scaled(scale, np.array(self.array[rows], order="F")))
            self.array[rows] = activations
            return answer

        return self.data.total(visit)

    def gram(self) -> Array:
        """AᵀA of the activations A, without reading X."""
        return gram(self.collected())

    def collected(self) -> Array:
        """The activations."""
        if self.scale is not None:
            self.array *= self.scale.astype(self.dtype)
            self.scale = None
        return self.array

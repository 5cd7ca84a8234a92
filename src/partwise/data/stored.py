"""Arrays on disk, of which some samples are read at a time."""

from __future__ import annotations

import math
import mmap
import os
import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.arrays import ArrayLike
from ..runtime.npy import mapped
from ..runtime.untrusted import reading
from ..statistics import Array
from .values import check_shape, precision

LIMIT = 2**30  # bytes of memory for X, by default
AT_ONCE = 2**30  # bytes read by one call, at most
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

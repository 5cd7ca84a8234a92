"""MATLAB files: .mat of versions 4 to 7.3."""

from __future__ import annotations

import io
import math
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..runtime.untrusted import allow
from .delimited import PIECE
from .hdf5 import open_hdf5
from .indices import checked_sparse, compressed
from .table import Table, chosen, is_sparse, numeric, transposed

NUMBERS = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
MATRIX, COMPRESSED, SPARSE = 14, 15, 5  # types of elements, and a class of matrices, in version 5
CLASSES = {SPARSE: 8, 6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}  # bytes of a number in memory
TYPES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1}  # and in the file


def read_mat(path: Path, inner: str = "") -> Table:
    """Read a matrix from a MATLAB file. Files of version 7.3 are HDF5; their matrices stay on disk."""
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in (head := file.read(128)) or head.startswith(b"\x89HDF"):
            return _read_mat_73(path, inner)
    order = {b"IM": "<", b"MI": ">"}.get(head[126:128])  # of version 5
    sizes = order and _value_sizes(path, order)  # before SciPy opens it
    found = whosmat(path)
    sizes = sizes or [8 * math.prod(shape) * (kind != "sparse") for _, shape, kind in found]
    claimed = {
        name: 8 * sum(shape) + size
        for (name, shape, kind), size in zip(found, sizes, strict=True)
        if kind in (*NUMBERS, "sparse") and len(shape) == 2 and math.prod(shape) > 1
    }
    name = chosen(list(claimed), inner, str(path), "matrix")
    if [one for one, *_ in found].count(name) > 1:
        raise ValueError(f"it has several matrices with the name {name}")
    allow(path, claimed[name])
    X = loadmat(path, variable_names=[name])[name]
    return Table(numeric(checked_sparse(X) if is_sparse(X) else X, str(path)), "MATLAB matrix", str(path))


def _read_mat_73(path: Path, inner: str) -> Table:
    """Read an HDF5-based file. MATLAB stores matrices by columns, so HDF5 has the transpose."""
    file = open_hdf5(path, "stored", "a MATLAB 7.3 file")

    def usable(item: Any) -> bool:
        if item is None:  # a dangling link
            return False
        shape = getattr(item, "shape", None)
        return "MATLAB_sparse" in item.attrs or (
            shape is not None and len(shape) == 2 and item.dtype.kind in "buif" and item.size > 1
        )

    name = chosen([k for k in file if not k.startswith("#") and usable(file.get(k))], inner, str(path), "matrix")
    item = file[name]
    if "MATLAB_sparse" not in item.attrs:
        return Table(transposed(item), "MATLAB 7.3 matrix", str(path))
    shape = (int(item.attrs["MATLAB_sparse"]), len(item["jc"]) - 1)
    allow(path, 8 * sum(shape) + sum(item[k].nbytes for k in ("jc", "ir", "data") if k in item))
    values, rows = (item[k][()] if k in item else np.zeros(0, dtype=int) for k in ("data", "ir"))
    X = compressed("csc", values, rows, item["jc"][()], shape)
    return Table(numeric(X, str(path)).tocsr(), "MATLAB 7.3 sparse matrix", str(path))


def _value_sizes(path: Path, order: str) -> list[int]:
    """The memory that the values of each matrix of version 5 take.

    Raises ValueError if a part of a matrix has an unknown type, which SciPy would use as an address.
    """
    sizes = []
    with path.open("rb") as file:
        file.seek(128)
        while tag := file.read(8):
            kind, size = struct.unpack(f"{order}II", tag)
            if size > path.stat().st_size - file.tell():
                raise ValueError("it is truncated")
            body: IO[bytes] = io.BytesIO(file.read(size))
            if kind == COMPRESSED:
                body = io.BufferedReader(Inflated(body.read()))
                kind, _ = struct.unpack(f"{order}II", body.read(8))
            if kind != MATRIX:
                raise ValueError(f"it has an element of type {kind}")
            flags = struct.unpack(f"{order}4I", body.read(16))[2]
            count = 2 + (3 if flags & 0xFF == SPARSE else 1) + (flags >> 11 & 1)
            width = CLASSES.get(flags & 0xFF)
            sizes.append(sum(_skipped(body, order, width) for _ in range(count)) if width else 0)
    return sizes


def _skipped(body: IO[bytes], order: str, width: int) -> int:
    """Skip one part of a matrix: its dimensions, its name, or some of its values. Returns its size in memory."""
    kind, size = struct.unpack(f"{order}II", body.read(8))
    if kind >> 16:  # a short part has its size and up to four bytes in the tag
        kind, size = kind & 0xFFFF, 0
    if kind not in TYPES:
        raise ValueError(f"it has a part of type {kind}")
    left = size + -size % 8
    while left > 0 and (piece := body.read(min(left, PIECE))):
        left -= len(piece)
    if left >= 8:  # more than the padding is missing
        raise ValueError("it is truncated")
    return max(size, size // TYPES[kind] * width)


class Inflated(io.RawIOBase):
    """A zlib stream as a file."""

    def __init__(self, content: bytes) -> None:
        self.rest, self.stream = content, zlib.decompressobj()

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Decompress into the buffer."""
        piece = self.stream.decompress(self.rest, len(buffer))
        self.rest = self.stream.unconsumed_tail
        buffer[: len(piece)] = piece
        return len(piece)

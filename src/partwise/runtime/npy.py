"""The .npy format, read without pickle; memory is allocated only for what the file holds."""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
MAGIC = np.lib.format.MAGIC_PREFIX


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, whether it is stored by columns, and the dtype; ``size`` is that of the whole file in bytes."""
    start = file.read(len(MAGIC) + 2)
    if start[:-2] != MAGIC or tuple(start[-2:]) not in HEADERS:
        raise ValueError("it is not a .npy file of numbers")
    shape, by_columns, dtype = HEADERS[tuple(start[-2:])](file)  # type: ignore[index]
    if dtype.kind in "OV" or not dtype.itemsize:  # items of no bytes take memory once they are objects
        raise ValueError(f"it has dtype {dtype}: real numbers are needed")
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) * dtype.itemsize > size - file.tell():
        raise ValueError(f"it is truncated, or its shape {shape} is wrong")
    return shape, by_columns, dtype


def mapped(path: str | os.PathLike[str]) -> np.memmap[Any, Any]:
    """Memory-map a .npy file."""
    with open(path, "rb") as file:
        shape, by_columns, dtype = read_header(file, os.fstat(file.fileno()).st_size)
        return np.memmap(file, dtype, "r", file.tell(), shape, "F" if by_columns else "C")


def read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one .npy member of a zip archive."""
    with archive.open(name) as member:
        shape, by_columns, dtype = read_header(member, archive.getinfo(name).file_size)
        if member.tell() + math.prod(shape) * dtype.itemsize != archive.getinfo(name).file_size:
            raise ValueError(f"the size of {name} does not match its shape {shape}")
        array = np.empty(shape[::-1] if by_columns else shape, dtype=dtype)
        view: Any = array.reshape(-1).view(np.uint8) if array.nbytes else b""
        while len(view) and (piece := member.read(min(len(view), 2**24))):
            view[: len(piece)] = np.frombuffer(piece, np.uint8)
            view = view[len(piece) :]
        if len(view):
            raise ValueError(f"{name} is truncated")
        return array.T if by_columns else array

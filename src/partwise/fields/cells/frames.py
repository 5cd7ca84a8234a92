"""cNMF's data frames in .npz files, read without running any code that a file may hold."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from typing import Any

import numpy as np
import pandas as pd

from partwise.runtime.files import replacing
from partwise.runtime.untrusted import UnreadableError, allow, reading
from partwise.statistics import Array

MEMBERS = ("data", "index", "columns")
HARMLESS = {  # all that a pickled array of names needs
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *((f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class NamesOnly(pickle.Unpickler):
    """Reads pickled arrays of strings and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what arrays consist of."""
        if (module, name) not in HARMLESS:
            raise ValueError(f"it holds a {module}.{name}, which is not read")
        return super().find_class(module, name)


def write_frame(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a data frame as cNMF does, except that names are not pickled and nothing is compressed.

    Spectra hardly shrink by it, and compressing them would take longer than reading and writing.
    """
    parts = {"data": frame.to_numpy(), "index": plain(frame.index), "columns": plain(frame.columns)}
    with replacing(path) as fresh, open(fresh, "xb") as file:
        np.savez(file, **parts)


def plain(names: Any) -> Array:
    """Names as an array that needs no pickle."""
    values = np.asarray(names)
    return values.astype(str) if values.dtype.kind == "O" else values


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a data frame that cNMF or `write_frame` wrote."""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is no file {name!r}: has the step before been run?")
    with reading(name), zipfile.ZipFile(name) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if set(sizes) != {f"{member}.npy" for member in MEMBERS}:
            raise UnreadableError(f"{name} is not a data frame of cNMF: it has {', '.join(sizes)}")
        allow(name, 2 * sum(sizes.values()))
        return pd.DataFrame(**{member: read_member(archive.read(f"{member}.npy")) for member in MEMBERS})


def read_member(content: bytes) -> Array:
    """An array in .npy format, whose objects may be strings and numbers."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.kind != "O":
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    found = np.asarray(NamesOnly(file).load())
    if found.shape != shape:
        raise ValueError(f"an array has shape {found.shape} instead of {shape}")
    return found

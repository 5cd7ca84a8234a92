"""Arrays of NumPy, SciPy and MATLAB: .npy (left on disk), .npz, .mat."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.stored import Stored
from .table import Table, as_names, extra, flattened, numeric, the_one, turned


def read_npy(path: Path, inner: str = "") -> Table:
    """An array, left on disk: (samples, features), or (samples, height, width) for images."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a .npy file that can be read, or it is cut off: {error}") from error
    if not isinstance(array, np.memmap):
        array.close()
        raise ValueError(f"{path} is not a .npy file but an archive: give it the ending .npz")
    X, shape = flattened(array)
    numeric(X, str(path))
    if X.ndim == 2 and X.size:
        Stored(X).check()
    return Table(X, ".npy array", str(path), part_shape=shape)


def read_npz(path: Path, inner: str = "") -> Table:
    """A scipy sparse matrix, or one of the arrays inside, with ``sample_names`` and ``feature_names`` beside it."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise ValueError("it is a single array: give it the ending .npy")
            return _from_archive(archive, path, inner)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError, ValueError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(f"{path} is not a .npz file that can be read: {error}") from error


def _from_archive(archive: Any, path: Path, inner: str) -> Table:
    labels: dict[str, Any] = {k: as_names(archive[k]) for k in ("sample_names", "feature_names") if k in archive.files}
    if "format" in archive.files and "shape" in archive.files:
        sparse: Any = sp.load_npz(path)
        X = sparse if sparse.format in ("csr", "csc") else sparse.tocsr()
        return Table(X, "scipy sparse .npz", str(path), **labels)
    found = [key for key in archive.files if key not in labels and key != "part_shape"]
    X, shape = flattened(numeric(archive[the_one(found, inner, str(path), "array")], str(path)))
    if "part_shape" in archive.files:
        shape = tuple(archive["part_shape"].tolist())
    return Table(X, ".npz array", str(path), part_shape=shape, **labels)


def read_mat(path: Path, inner: str = "") -> Table:
    """A matrix of a MATLAB file; those of version 7.3 are HDF5, and left on disk."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in (head := file.read(128)) or head.startswith(b"\x89HDF"):
            return _read_mat_73(path, inner)
    try:
        variables = {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    except Exception as error:  # whatever SciPy trips over in a damaged file
        raise ValueError(f"{path} is not a MATLAB file that can be read: {error}") from error
    found = [k for k, v in variables.items() if getattr(v, "ndim", 0) == 2 and v.dtype.kind in "buif" and v.size > 1]
    return Table(variables[the_one(found, inner, str(path), "matrix")], "MATLAB matrix", str(path))


def _read_mat_73(path: Path, inner: str) -> Table:
    """MATLAB stores columns one after the other, so that HDF5 sees the transpose."""
    h5py = extra("h5py", "stored", "a MATLAB 7.3 file")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is not a MATLAB file that can be read: {error}") from error

    def usable(item: Any) -> bool:
        return "MATLAB_sparse" in item.attrs or (
            isinstance(item, h5py.Dataset) and item.ndim == 2 and item.dtype.kind in "buif" and item.size > 1
        )

    name = the_one([k for k in file if not k.startswith("#") and usable(file[k])], inner, str(path), "matrix")
    item = file[name]
    if isinstance(item, h5py.Dataset):
        return Table(turned(item), "MATLAB 7.3 matrix", str(path))
    pointers = item["jc"][()]
    values: Any
    rows: Any
    values, rows = (item[k][()] if k in item else np.zeros(0, dtype=int) for k in ("data", "ir"))
    shape = (int(item.attrs["MATLAB_sparse"]), len(pointers) - 1)
    return Table(sp.csc_array((values, rows, pointers), shape=shape).tocsr(), "MATLAB 7.3 sparse matrix", str(path))

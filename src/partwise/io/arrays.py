"""NumPy, SciPy and MATLAB arrays: .npy (memory-mapped), .npz, .mat."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.stored import Stored
from .table import Table, as_names, chosen, extra, flattened, numeric, reading, transposed


def read_npy(path: Path, inner: str = "") -> Table:
    """Memory-map an array: (samples, features), or (samples, height, width) for images."""
    with reading(path, ".npy file", ValueError, EOFError, OSError):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        array.close()
        raise ValueError(f"{path} is not a .npy file but an archive: rename it to .npz")
    X, shape = flattened(array)
    numeric(X, str(path))
    if X.ndim == 2 and X.size:
        Stored(X).check()
    return Table(X, ".npy array", str(path), part_shape=shape)


def read_npz(path: Path, inner: str = "") -> Table:
    """Read a scipy sparse matrix or one array, with ``sample_names`` and ``feature_names`` if the file has them."""
    errors = (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError, ValueError)
    with reading(path, ".npz file", *errors), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single array; rename it to .npy")
        return _from_archive(archive, path, inner)


def _from_archive(archive: Any, path: Path, inner: str) -> Table:
    labels: dict[str, Any] = {k: as_names(archive[k]) for k in ("sample_names", "feature_names") if k in archive.files}
    if "format" in archive.files and "shape" in archive.files:
        sparse: Any = sp.load_npz(path)
        X = sparse if sparse.format in ("csr", "csc") else sparse.tocsr()
        return Table(X, "scipy sparse .npz", str(path), **labels)
    found = [key for key in archive.files if key not in labels and key != "part_shape"]
    X, shape = flattened(numeric(archive[chosen(found, inner, str(path), "array")], str(path)))
    if "part_shape" in archive.files:
        shape = tuple(archive["part_shape"].tolist())
    return Table(X, ".npz array", str(path), part_shape=shape, **labels)


def read_mat(path: Path, inner: str = "") -> Table:
    """Read a matrix from a MATLAB file. Files of version 7.3 are HDF5; their matrices stay on disk."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in (head := file.read(128)) or head.startswith(b"\x89HDF"):
            return _read_mat_73(path, inner)
    with reading(path, "MATLAB file", Exception):  # SciPy raises many types of errors for damaged files
        variables = {k: v for k, v in loadmat(path).items() if not k.startswith("__")}
    found = [k for k, v in variables.items() if getattr(v, "ndim", 0) == 2 and v.dtype.kind in "buif" and v.size > 1]
    return Table(variables[chosen(found, inner, str(path), "matrix")], "MATLAB matrix", str(path))


def _read_mat_73(path: Path, inner: str) -> Table:
    """Read an HDF5-based file. MATLAB stores matrices by columns, so HDF5 has the transpose."""
    h5py = extra("h5py", "stored", "a MATLAB 7.3 file")
    with reading(path, "MATLAB file", OSError):
        file = h5py.File(path, "r")

    def usable(item: Any) -> bool:
        return "MATLAB_sparse" in item.attrs or (
            isinstance(item, h5py.Dataset) and item.ndim == 2 and item.dtype.kind in "buif" and item.size > 1
        )

    name = chosen([k for k in file if not k.startswith("#") and usable(file[k])], inner, str(path), "matrix")
    item = file[name]
    if isinstance(item, h5py.Dataset):
        return Table(transposed(item), "MATLAB 7.3 matrix", str(path))
    pointers = item["jc"][()]
    values: Any
    rows: Any
    values, rows = (item[k][()] if k in item else np.zeros(0, dtype=int) for k in ("data", "ir"))
    shape = (int(item.attrs["MATLAB_sparse"]), len(pointers) - 1)
    return Table(sp.csc_array((values, rows, pointers), shape=shape).tocsr(), "MATLAB 7.3 sparse matrix", str(path))

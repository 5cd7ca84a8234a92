"""NumPy, SciPy and MATLAB arrays: .npy (memory-mapped), .npz, .mat."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.npy import MAGIC, mapped, read_member
from ..runtime.untrusted import UnreadableError, allow
from .hdf5 import open_hdf5
from .sparse import checked_sparse, compressed, from_scipy
from .table import Table, as_names, chosen, flattened, is_sparse, numeric, transposed

ZIP = b"PK\3\4"
NUMBERS = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def read_npy(path: Path, inner: str = "") -> Table:
    """Memory-map an array: (samples, features), or (samples, height, width) for images."""
    if _starts_with(path, ZIP):
        raise UnreadableError(f"{path} is not a .npy file but an archive: rename it to .npz")
    X, shape = flattened(numeric(mapped(path), str(path)))
    return Table(X, ".npy array", str(path), part_shape=shape)


def read_npz(path: Path, inner: str = "") -> Table:
    """Read a scipy sparse matrix or one array, with ``sample_names`` and ``feature_names`` if the file has them."""
    if _starts_with(path, MAGIC):
        raise UnreadableError(f"{path} is not a .npz archive but a single array: rename it to .npy")
    with zipfile.ZipFile(path) as archive:
        sizes = {m.filename[:-4]: m.file_size for m in archive.infolist() if m.filename.endswith(".npy")}
        beside = {"sample_names", "feature_names", "part_shape"} & sizes.keys()
        sparse = {"format", "shape"} <= sizes.keys()
        own = [name for name in sizes if name not in beside]
        wanted = own if sparse else [chosen(own, inner, str(path), "array")]
        allow(path, sum(sizes[name] for name in (*wanted, *beside)))
        arrays = {name: read_member(archive, f"{name}.npy") for name in (*wanted, *beside)}
    labels: Any = {name: as_names(arrays[name]) for name in ("sample_names", "feature_names") if name in beside}
    if sparse:
        return Table(numeric(from_scipy(arrays, path), str(path)), "scipy sparse .npz", str(path), **labels)
    X, shape = flattened(numeric(arrays[wanted[0]], str(path)))
    if "part_shape" in beside:
        shape = tuple(map(int, arrays["part_shape"].ravel().tolist()))
    return Table(X, ".npz array", str(path), part_shape=shape, **labels)


def _starts_with(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start


def read_mat(path: Path, inner: str = "") -> Table:
    """Read a matrix from a MATLAB file. Files of version 7.3 are HDF5; their matrices stay on disk."""
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in (head := file.read(128)) or head.startswith(b"\x89HDF"):
            return _read_mat_73(path, inner)
    shapes = {
        name: (shape, kind)
        for name, shape, kind in whosmat(path)
        if kind in (*NUMBERS, "sparse") and len(shape) == 2 and np.prod(shape, dtype=object) > 1
    }
    name = chosen(list(shapes), inner, str(path), "matrix")
    shape, kind = shapes[name]
    stored = kind in (
        "sparse",
        "logical",
    )  # a sparse logical matrix is called logical; a dense one has a byte per entry
    allow(path, 8 * int(sum(shape) if stored else np.prod(shape, dtype=object)))
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

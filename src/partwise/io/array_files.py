"""NumPy and SciPy arrays: .npy (memory-mapped), .npz."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from ..runtime.npy import MAGIC, mapped, read_member
from ..runtime.untrusted import UnreadableError, allow
from .hdf5 import OBJECT
from .indices import from_scipy
from .table import Table, as_names, chosen, flattened, numeric

ZIP = b"PK\3\4"


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
    allow(path, sum(OBJECT * arrays[name].size for name in beside))
    labels: Any = {name: as_names(arrays[name]) for name in ("sample_names", "feature_names") if name in beside}
    if sparse:
        return Table(numeric(from_scipy(arrays, path), str(path)), "scipy sparse .npz", str(path), **labels)
    X, shape = flattened(numeric(arrays[wanted[0]], str(path)))
    if "part_shape" in beside:
        if arrays["part_shape"].dtype.kind not in "ui":
            raise ValueError(f"its part_shape has dtype {arrays['part_shape'].dtype}: integers are needed")
        shape = tuple(arrays["part_shape"].ravel().tolist())
    return Table(X, ".npz array", str(path), part_shape=shape, **labels)


def _starts_with(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start

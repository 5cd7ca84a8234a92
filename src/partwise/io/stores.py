"""HDF5 and zarr, read in chunks from disk. ``file.h5:/path`` selects one of several arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.untrusted import UnreadableError, allow
from .codecs import check_codecs
from .hdf5 import open_hdf5
from .table import Table, chosen, extra, flattened, numeric


def read_hdf5(path: Path, inner: str = "") -> Table:
    """Read the dataset ``inner``, or the only matrix in the file; a 10x file is read as cells × genes."""
    file = open_hdf5(path, "stored", "an HDF5 file")
    if not inner and "matrix/indptr" in file:
        from .h5ad import from_10x

        return from_10x(file["matrix"], path)
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "ndim") and _usable(item, inner == ""):
            found.append(f"/{name}")

    file.visititems(visit)
    name = chosen(found, inner, str(path), "dataset")
    X, shape = flattened(numeric(file[name], str(path)))
    return Table(X, f"HDF5 dataset {name}", str(path), part_shape=shape)


def read_zarr(path: Path, inner: str = "", layer: str | None = None, mask_var: str | None = None) -> Table:
    """Read an array, or the array ``inner`` of a group; a group written by AnnData is read as by `read_h5ad`."""
    zarr = extra("zarr", "stored", "a zarr store")
    check_codecs(path)
    store = zarr.open(str(path), mode="r")
    cells = store.attrs.get("encoding-type") == "anndata"
    if not cells and (layer or mask_var):
        raise UnreadableError(f"{path} is not AnnData: layer and mask_var do not apply")
    if isinstance(store, zarr.Array):
        return _array(store, "zarr array", path)
    if cells:
        from .h5ad import read_zarr_cells

        allow(path, sum(item.nbytes for _, item in store.members(max_depth=None) if isinstance(item, zarr.Array)))
        return read_zarr_cells(path, inner, layer, mask_var)
    found = [f"/{name}" for name, item in store.arrays() if _usable(item, inner == "")]
    if inner.strip("/") in store and isinstance(store[inner.strip("/")], zarr.Array):
        found.append(f"/{inner.strip('/')}")
    name = chosen(found if not inner else sorted(set(found)), inner, str(path), "array")
    return _array(store[name.strip("/")], f"zarr array {name}", path)


def _array(array: Any, kind: str, path: Path) -> Table:
    """An array of a zarr store, unless one of its chunks takes too much memory."""
    X, shape = flattened(numeric(array, str(path)))
    allow(path, math.prod(array.chunks) * np.dtype(array.dtype).itemsize)
    return Table(X, kind, str(path), part_shape=shape)


def _usable(item: Any, matrices_only: bool) -> bool:
    """Whether an array holds numbers and has two dimensions, or more if it was selected by name."""
    return item.ndim >= 2 and item.dtype.kind in "buif" and (item.ndim == 2 or not matrices_only)

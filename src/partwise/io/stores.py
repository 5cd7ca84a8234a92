"""HDF5 and zarr, read in chunks from disk. ``file.h5:/path`` selects one of several arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .table import Table, chosen, extra, flattened, numeric, reading


def read_hdf5(path: Path, inner: str = "") -> Table:
    """Read the dataset ``inner``, or the only matrix in the file; a 10x file is read as cells × genes."""
    h5py = extra("h5py", "stored", "an HDF5 file")
    with reading(path, "HDF5 file", OSError):
        file = h5py.File(path, "r")
    if not inner and "matrix/indptr" in file:
        from .h5ad import from_10x

        return from_10x(file["matrix"], path)
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and _usable(item, inner == ""):
            found.append(f"/{name}")

    file.visititems(visit)
    name = chosen(found, inner, str(path), "dataset")
    X, shape = flattened(numeric(file[name], str(path)))
    return Table(X, f"HDF5 dataset {name}", str(path), part_shape=shape)


def read_zarr(path: Path, inner: str = "") -> Table:
    """Read an array, or the array ``inner`` of a group; a group written by AnnData is read as such."""
    zarr = extra("zarr", "stored", "a zarr store")
    with reading(path, "zarr store", Exception):  # zarr's errors have no common class
        store = zarr.open(str(path), mode="r")
    if isinstance(store, zarr.Array):
        X, shape = flattened(numeric(store, str(path)))
        return Table(X, "zarr array", str(path), part_shape=shape)
    if store.attrs.get("encoding-type") == "anndata":
        from .h5ad import read_zarr_cells

        return read_zarr_cells(path, inner)
    found = [f"/{name}" for name, item in store.arrays() if _usable(item, inner == "")]
    if inner.strip("/") in store and isinstance(store[inner.strip("/")], zarr.Array):
        found.append(f"/{inner.strip('/')}")
    name = chosen(found if not inner else sorted(set(found)), inner, str(path), "array")
    X, shape = flattened(numeric(store[name.strip("/")], str(path)))
    return Table(X, f"zarr array {name}", str(path), part_shape=shape)


def _usable(item: Any, matrices_only: bool) -> bool:
    """Whether an array holds numbers and has two dimensions, or more if it was selected by name."""
    return item.ndim >= 2 and item.dtype.kind in "buif" and (item.ndim == 2 or not matrices_only)

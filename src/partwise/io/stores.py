"""Stores of many arrays, left on disk: HDF5 and zarr. ``file.h5:/path`` names one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .table import Table, extra, flattened, numeric, the_one


def read_hdf5(path: Path, inner: str = "") -> Table:
    """The dataset named, or the only one that can be a matrix; 10x's own (``matrix``) as cells × genes."""
    h5py = extra("h5py", "stored", "an HDF5 file")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is not an HDF5 file that can be read: {error}") from error
    if not inner and "matrix/indptr" in file:
        from .h5ad import from_10x

        return from_10x(file["matrix"], path)
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and _usable(item, inner == ""):
            found.append(f"/{name}")

    file.visititems(visit)
    name = the_one(found, inner, str(path), "dataset")
    X, shape = flattened(numeric(file[name], str(path)))
    return Table(X, f"HDF5 dataset {name}", str(path), part_shape=shape)


def read_zarr(path: Path, inner: str = "") -> Table:
    """The array, or the one named of a group; a group that AnnData wrote is read as such."""
    zarr = extra("zarr", "stored", "a zarr store")
    try:
        store = zarr.open(str(path), mode="r")
    except Exception as error:  # zarr's own errors have no common class
        raise ValueError(
            f"{path} is not a zarr store that can be read: {str(error) or type(error).__name__}"
        ) from error
    if isinstance(store, zarr.Array):
        X, shape = flattened(numeric(store, str(path)))
        return Table(X, "zarr array", str(path), part_shape=shape)
    if store.attrs.get("encoding-type") == "anndata":
        from .h5ad import read_zarr_cells

        return read_zarr_cells(path, inner)
    found = [f"/{name}" for name, item in store.arrays() if _usable(item, inner == "")]
    if inner.strip("/") in store and isinstance(store[inner.strip("/")], zarr.Array):
        found.append(f"/{inner.strip('/')}")
    name = the_one(found if not inner else sorted(set(found)), inner, str(path), "array")
    X, shape = flattened(numeric(store[name.strip("/")], str(path)))
    return Table(X, f"zarr array {name}", str(path), part_shape=shape)


def _usable(item: Any, matrices_only: bool) -> bool:
    """Whether an array may be meant: if none is named, only matrices of numbers are."""
    return item.ndim >= 2 and item.dtype.kind in "buif" and (item.ndim == 2 or not matrices_only)

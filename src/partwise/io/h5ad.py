"""Single-cell files: .h5ad, AnnData in zarr, Matrix Market (.mtx), and 10x folders."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data.stored import LIMIT
from ..runtime.untrusted import UnreadableError, allow, reading
from ..statistics import Array
from .delimited import LINE, opened, scanned
from .hdf5 import OBJECT, claimed, open_hdf5
from .indices import checked_sparse, compressed
from .table import LazyRows, Table, as_names, extra, is_sparse, numeric, part_names, with_columns

NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
BESIDE = ("barcodes.tsv", "features.tsv", "genes.tsv")  # genes.tsv: 10x files before 2018


def read_h5ad(
    path: Path, inner: str = "", layer: str | None = None, mask_var: str | None = None, whole: bool = False
) -> Table:
    """Read X, cells × genes, or a layer, also as ``file.h5ad:layers/counts``. Large ones stay on disk unless ``whole``.

    ``mask_var`` is a boolean column of ``var``: the genes to read. ``file.h5ad:varm/NMFs`` reads the components that
    Partwise wrote, genes × components.
    """
    backed = not whole and path.stat().st_size > LIMIT
    with open_hdf5(path, "cells", "an .h5ad file") as file:
        stays = [file[name] for name in ("X", "raw/X") if backed and name in file]
        allow(path, claimed(file) - sum(map(claimed, stays)))
        named = all(hasattr(file.get(name), "keys") for name in ("obs", "var"))  # compound data before AnnData 0.7
        if named and not backed:
            return _table(Cells(file), path, inner, layer, mask_var, home=path)
    adata = extra("anndata", "cells", "an .h5ad file").read_h5ad(path, backed="r" if backed else None)
    return _table(adata, path, inner, layer, mask_var, home=path)


class Cells:
    """An .h5ad file with the attributes of AnnData, each of which is read when it is asked for.

    AnnData itself takes 60 MB to import. It reads what is neither a dense, CSR or CSC matrix nor a list of names.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        self.layers, self.varm = (Elements(file.get(place, {})) for place in ("layers", "varm"))

    @property
    def X(self) -> Any:  # noqa: N802 (AnnData's name)
        """The matrix, or None."""
        return Elements(self.file)["X"] if "X" in self.file else None

    @property
    def var(self) -> Any:
        """The data frame of the genes."""
        return Elements(self.file)["var"]

    @property
    def obs_names(self) -> Any:
        """The names of the cells."""
        return index_of(self.file["obs"])

    @property
    def var_names(self) -> Any:
        """The names of the genes."""
        return index_of(self.file["var"])


class Elements(dict[str, Any]):
    """The elements of a group of AnnData, each of which is read when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        item = super().__getitem__(name)
        kind = item.attrs.get("encoding-type")
        if kind == "array":
            return item[()]
        if kind not in ("csr_matrix", "csc_matrix"):
            return extra("anndata", "cells", "an .h5ad file").io.read_elem(item)
        rows, columns = map(int, item.attrs["shape"])
        values, indices, indptr = (item[part][()] for part in ("data", "indices", "indptr"))
        return compressed(kind[:3], values, indices, indptr, (rows, columns))


def index_of(frame: Any) -> Any:
    """The names in the index of a data frame of AnnData."""
    names = frame.get(frame.attrs.get("_index", ""))
    if names is not None and names.attrs.get("encoding-type") == "string-array":
        return names.asstr()[()]
    return extra("anndata", "cells", "an .h5ad file").io.read_elem(frame).index


def read_zarr_cells(path: Path, inner: str = "", layer: str | None = None, mask_var: str | None = None) -> Table:
    """As `read_h5ad`, from a zarr store written by AnnData."""
    anndata = extra("anndata", "cells", "AnnData in zarr")
    return _table(anndata.read_zarr(path), path, inner, layer, mask_var)


def _table(
    adata: Any, path: Path, inner: str, layer: str | None, mask_var: str | None, home: Path | None = None
) -> Table:
    if inner and layer:
        raise UnreadableError(f"{path}:{inner} and layer={layer!r} both select a matrix: give one of them")
    inner = f"layers/{layer}" if layer else inner
    place, _, key = inner.strip("/").partition("/")
    if place == "varm" and key in adata.varm:
        if mask_var is not None:
            raise UnreadableError(f"{path}:{inner} has no cells: mask_var={mask_var!r} applies to X and to layers")
        parts = numeric(np.asarray(adata.varm[key]), f"{path}:{inner}")
        return Table(parts, f"AnnData varm {key}", str(path), as_names(adata.var_names), part_names(parts.shape[1]))
    name = inner.strip("/").removeprefix("layers/")
    if name not in ("", "X") and name not in adata.layers:
        raise UnreadableError(f"{path} has no layer {name!r}; it has {', '.join(['X', *adata.layers])}")
    X = adata.X if name in ("", "X") else adata.layers[name]
    if X is None:
        raise UnreadableError(
            f"{path} has no X: select a layer, as in {path}:layers/{next(iter(adata.layers), 'counts')}"
        )
    try:
        genes = None if mask_var is None else gene_mask(adata.var, mask_var)
    except ValueError as error:
        raise UnreadableError(f"{path}: {error}") from error
    kind = "AnnData" if name in ("", "X") else f"AnnData layer {name}"
    return Table(
        as_rows(numeric(X, str(path)), genes),
        kind if mask_var is None else f"{kind}, genes {mask_var}",
        str(path),
        as_names(adata.obs_names),
        as_names(adata.var_names if genes is None else adata.var_names[genes]),
        home=home,
        home_features=genes,
    )


def gene_mask(var: Any, mask_var: Any) -> Array | None:
    """The genes to use, by an array of bool or the name of a boolean column of ``var``; None for all."""
    if mask_var is None:
        return None
    if isinstance(mask_var, str):
        columns = var.select_dtypes(["bool", "boolean"])  # "boolean" may have missing values
        if mask_var not in columns:
            listed = ", ".join(columns) or "none"
            raise ValueError(f"mask_var={mask_var!r} is not a boolean column of var; boolean columns are: {listed}")
        mask_var = columns[mask_var].to_numpy(bool, na_value=False)
    mask = np.asarray(mask_var)
    if mask.shape != (len(var),) or mask.dtype != bool:
        raise ValueError(f"mask_var has shape {mask.shape} and dtype {mask.dtype}: give one bool per gene")
    if not mask.any():
        raise ValueError("mask_var selects no genes")
    return mask


def as_rows(X: Any, columns: Any = None, limit: int = LIMIT) -> Any:
    """AnnData's matrix, or some of its columns, in a form that can be fitted.

    A sparse matrix on disk is loaded if it fits the limit; otherwise its rows are read when needed.
    """
    if hasattr(X, "to_memory"):  # a sparse matrix on disk
        entries, stored = X.group["data"].size, X  # each entry takes a value and an index
        if entries * (np.dtype(X.dtype).itemsize + 8) <= limit:
            X = checked_sparse(X.to_memory())
        else:
            X = LazyRows(X.shape, np.dtype(X.dtype), lambda rows: checked_sparse(stored[rows]).toarray())
    return X if columns is None else with_columns(X, columns)


def read_mtx(path: Path, inner: str = "") -> Table:
    """Read a Matrix Market file, samples × features. With 10x name files beside it, it is genes × cells: transpose."""
    from scipy.io import mmread

    _check_mtx(path)
    X = mmread(path)
    X = numeric(sp.csr_array(X) if is_sparse(X) else np.asarray(X), str(path))
    names = beside(path)
    genes = names.get("features.tsv") or names.get("genes.tsv")
    if "barcodes.tsv" not in names or genes is None:
        return Table(X, "Matrix Market", str(path))
    columns = [line.rstrip("\r\n").split("\t") for line in _lines(genes)]
    features = _unique([line[1] if len(line) > 1 else line[0] for line in columns], [line[0] for line in columns])
    cells = tuple(line.strip() for line in _lines(names["barcodes.tsv"]))
    return Table(X.T.tocsr() if is_sparse(X) else X.T, "10x cells × genes", str(path), cells, features)


def _check_mtx(path: Path) -> None:
    """Raise an error if a file takes too much memory, or if SciPy's reader would run past its end."""
    end = scanned(path)[2]
    with opened(path) as file:
        about = file.readline(LINE).lower().split()
        line = next((line for line in iter(lambda: file.readline(LINE), "") if line.strip() and line[0] != "%"), "")
    sizes, dense = [int(size) for size in line.split()], "array" in about
    if len(sizes) != (2 if dense else 3) or min(sizes) < 0:
        raise ValueError(f"{line.strip()[:60]!r} is not a line of sizes")
    allow(path, 8 * (math.prod(sizes) if dense else sizes[0] + sizes[1] + 6 * sizes[2]))
    words = end.rpartition(b"\n")[2].split(b" ")  # of the last line, if no line feed ends it
    count = (0 if dense else 2) + (2 if "complex" in about else 0 if "pattern" in about else 1)
    if words != [b""] and (len(words) != count or not all(map(NUMBER.fullmatch, words))):
        raise ValueError("it is truncated, or its last line is wrong")


def beside(path: Path) -> dict[str, Path]:
    """The 10x name files in the folder of a matrix."""
    return {name: file for name in BESIDE for end in ("", ".gz") if (file := path.parent / (name + end)).is_file()}


def from_10x(group: Any, path: Path) -> Table:
    """Read the HDF5 format of 10x Cell Ranger: genes × cells, stored by columns."""
    allow(path, claimed(group))
    values, indices, indptr = (group[name][()] for name in ("data", "indices", "indptr"))
    names, ids = (as_names(group["features"][name][()]) for name in ("name", "id"))
    genes, cells = map(int, group["shape"][()])
    X = numeric(compressed("csr", values, indices, indptr, (cells, genes)), str(path))
    return Table(X, "10x cells × genes", str(path), as_names(group["barcodes"][()]), _unique(names, ids))


def _unique(symbols: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Gene names: the symbols if they are unique, otherwise the ids."""
    return tuple(symbols if len(set(symbols)) == len(symbols) else ids)


def _lines(path: Path) -> list[str]:
    with reading(path), opened(path) as file:
        size, lines, _ = scanned(path)
        allow(path, size + OBJECT * lines)
        return [line for line in file if line.strip()]

"""Write .h5ad files."""

from __future__ import annotations

import numbers
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..statistics import Array
from .table import Table, extra, is_sparse


def new_h5ad(path: Path, table: Table, X: Any = None) -> None:
    """Write a file of AnnData with the names of ``table``, and with X if given."""
    h5py = extra("h5py", "cells", "an .h5ad file")
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        mark(file, "anndata", "0.1.0")
        for place in ("layers", "obsm", "obsp", "uns", "varm", "varp"):
            mark(file.create_group(place), "dict", "0.1.0")
        for place, names in (("obs", table.samples), ("var", table.features)):
            frame = mark(file.create_group(place), "dataframe", "0.2.0")
            frame.attrs["_index"], frame.attrs["column-order"] = "_index", np.array([], dtype=text)
            mark(frame.create_dataset("_index", data=list(names), dtype=text), "string-array", "0.2.0")
        if is_sparse(X):
            X = X if X.format in ("csr", "csc") else X.tocsr()
            matrix = mark(file.create_group("X"), f"{X.format}_matrix", "0.1.0")
            matrix.attrs["shape"] = X.shape
            for name in ("data", "indices", "indptr"):
                matrix.create_dataset(name, data=getattr(X, name))
        elif X is not None:
            mark(file.create_dataset("X", data=X), "array", "0.2.0")


def mark(item: Any, kind: str, version: str) -> Any:
    """The item, with the attributes by which AnnData knows how to read it."""
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, version
    return item


def all_genes(components: Array, genes: Array | None) -> Array:
    """Components as columns over all genes, as scanpy stores them: 0 outside of the mask ``genes``."""
    if genes is None:
        return np.ascontiguousarray(components.T)
    programs = np.zeros((len(genes), len(components)), dtype=components.dtype)
    programs[genes] = components.T
    return programs


def usage_columns(activations: Any, name: str = "nmf") -> dict[str, Any]:
    """A column of ``obs`` for the usage of each program: nmf_0, nmf_1, …"""
    return {f"{name}_{j}": column for j, column in enumerate(np.asarray(activations).T)}


def add_to_h5ad(
    path: Path,
    source: Path | None,
    table: Table,
    obs: dict[str, Any],
    obsm: dict[str, Any],
    varm: dict[str, Any],
    uns: dict[str, Any],
) -> None:
    """Write a copy of ``source`` (or a new file with only the names) with added entries in obs, obsm, varm and uns.

    The source is copied as bytes, because it may be larger than memory.
    """
    h5py = extra("h5py", "cells", "an .h5ad file")
    anndata = extra("anndata", "cells", "an .h5ad file")
    if source is None:
        new_h5ad(path, table)
    else:
        shutil.copyfile(source, path)
    with h5py.File(path, "r+") as file:
        if obs:
            anndata.io.write_elem(file, "obs", anndata.io.read_elem(file["obs"]).assign(**obs))
        for place, items in (("obsm", obsm), ("varm", varm), ("uns", uns)):
            if place not in file:
                anndata.io.write_elem(file, place, {})
            for name, value in items.items():
                anndata.io.write_elem(file[place], name, np.asarray(value) if place != "uns" else value)


def fit_record(model: Any, where: dict[str, Any] | None = None) -> dict[str, Any]:
    """Parameters and results of a fit for ``uns``: numbers, strings and arrays."""
    params = model.get_params(deep=False) | (where or {})
    plain = {n: v if isinstance(v, str | numbers.Number) else repr(v) for n, v in params.items() if v is not None}
    return {
        "params": plain,
        "sparsity": model.sparsity_,
        "explained": model.explained_,
        "reconstruction_err": float(model.reconstruction_err_),
        "loss_curve": np.asarray(model.loss_curve_),
        "n_iter": int(model.n_iter_),
        "stop_reason": model.stop_reason_,
    }

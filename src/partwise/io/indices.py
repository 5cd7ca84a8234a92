"""Sparse matrices from the arrays of a file. Indices are checked before SciPy's compiled code follows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.untrusted import allow
from ..statistics import Array


def check_indices(indptr: Array, indices: Array, count: int, major: int, minor: int) -> None:
    """Raise ValueError unless these are the indices of ``count`` entries in ``major`` rows of length ``minor``."""
    if any(a.ndim != 1 or a.dtype.kind not in "ui" for a in (indptr, indices)):
        raise ValueError("the indices of its sparse matrix are not lists of integers")
    if len(indptr) != major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"the pointers of its sparse matrix do not describe {major} rows or columns")
    if not indptr[-1] == len(indices) == count:
        raise ValueError(f"its sparse matrix has {count} values and {len(indices)} indices, not {indptr[-1]} each")
    check_within(indices, 0, minor)


def check_within(indices: Array, low: int, end: int) -> None:
    """Raise ValueError if an index is not in ``range(low, end)``."""
    if len(indices) and not (low <= int(indices.min()) and int(indices.max()) < end):
        raise ValueError(f"its sparse matrix has indices outside {low} to {end - 1}")


def compressed(form: str, data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    """A CSR or CSC array, as ``form`` says."""
    check_indices(indptr, indices, len(data), *(shape if form == "csr" else shape[::-1]))
    return (sp.csr_array if form == "csr" else sp.csc_array)((data, indices, indptr), shape=shape)


def checked_sparse(X: Any) -> Any:
    """X, a sparse matrix that a library has read, if its indices are valid."""
    if X.format in ("csr", "csc"):
        check_indices(X.indptr, X.indices, len(X.data), *(X.shape if X.format == "csr" else X.shape[::-1]))
    return X


def from_scipy(arrays: Mapping[str, Array], path: Path) -> Any:
    """The sparse matrix that ``scipy.sparse.save_npz`` wrote as these arrays, as CSR or CSC."""
    name = arrays["format"].item()
    form = name.decode() if isinstance(name, bytes) else str(name)
    rows, columns = map(int, arrays["shape"].tolist())
    shape = rows, columns
    if min(shape) < 0:
        raise ValueError(f"its sparse matrix has shape {shape}")
    data: Any = arrays["data"]
    allow(path, 8 * (rows + columns) + 3 * data.nbytes)
    if form in ("csr", "csc"):
        return compressed(form, data, arrays["indices"], arrays["indptr"], (rows, columns))
    if form == "bsr":
        _, height, width = data.shape
        if not height * width or rows % height or columns % width:
            raise ValueError(f"blocks of {height} × {width} do not divide its shape {shape}")
        check_indices(arrays["indptr"], arrays["indices"], len(data), rows // height, columns // width)
        return sp.bsr_array((data, arrays["indices"], arrays["indptr"]), shape=shape).tocsr()
    if form == "coo":
        for indices, size in ((arrays["row"], rows), (arrays["col"], columns)):
            check_indices(np.array([0, len(data)]), indices, len(data), 1, size)
        return sp.coo_array((data, (arrays["row"], arrays["col"])), shape=shape).tocsr()
    if form == "dia":
        check_indices(np.array([0, len(data)]), arrays["offsets"] + rows, len(data), 1, rows + columns)
        return sp.dia_array((data, arrays["offsets"]), shape=shape).tocsr()
    raise ValueError(f"its sparse matrix has the unknown format {form!r}")

"""Whatever holds X, and the only code that touches it.

Each kind of data answers the same few questions (`Data`); `as_data` finds the kind. X is samples × features,
everywhere: ``factors[0]`` are the activations (samples × r), ``factors[1]`` the parts (features × r), and
X ≈ factors[0] factors[1]ᵀ.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from .chunks import Chunked, Held, named, released_on_error
from .coordinates import COO, SparseTensor
from .dense import DenseData
from .divergence import DivergenceData
from .matrix import Data, Form, Matrix, Sliced, Whole, Wrapped
from .missing import Missing, MissingDense, check_seen
from .observed import as_observed
from .sparse import SparseData
from .stored import LIMIT, StoredData, as_stored
from .tensor import DenseTensor, Tensor
from .values import check_unmasked

__all__ = [
    "COO",
    "Chunked",
    "Data",
    "DenseData",
    "DenseTensor",
    "DivergenceData",
    "Form",
    "Held",
    "Matrix",
    "Missing",
    "Sliced",
    "SparseData",
    "SparseTensor",
    "StoredData",
    "Tensor",
    "Whole",
    "Wrapped",
    "as_data",
    "as_tensor",
    "check_seen",
    "check_unmasked",
    "is_lazy",
    "named",
    "released_on_error",
]


def is_lazy(X: Any) -> bool:
    """Whether X is something to be read in chunks: a .npy path, a memory map, zarr, HDF5, Dask, or data already."""
    if isinstance(X, Matrix | Chunked | np.memmap | str | os.PathLike):
        return True
    if isinstance(X, np.ndarray | np.generic) or sp.issparse(X) or not hasattr(X, "__getitem__"):
        return False
    try:
        return len(X.shape) >= 0 and np.dtype(X.dtype).itemsize > 0
    except (AttributeError, TypeError):
        return False


def as_data(X: Any, memory_limit: int | None = None, missing: bool = False, observed: Any = None) -> Matrix | Chunked:
    """X as data: arrays (float32 and float64 kept, other numbers as float64) or scipy sparse, checked.

    A Dask array stays where it is. What else `is_lazy` is read whole if it takes at most ``memory_limit`` bytes (1 GiB
    by default), else chunk by chunk, its values being checked by the first pass. Raises ValueError for what no
    factorization can use: not two-dimensional, empty, NaN, infinite or negative. With ``missing`` NaN means a missing
    entry (in a dense X), and so does whatever stands where ``observed`` is false.
    """
    if isinstance(X, Matrix | Chunked):
        return X
    check_unmasked(X)
    if observed is not None:
        if is_lazy(X):
            raise ValueError("observed= needs X in memory: load X, or write NaN where it is missing, with missing='em'")
        return as_observed(X if sp.issparse(X) else np.asarray(X), observed, missing)
    if sp.issparse(X):
        return SparseData(X)
    if not is_lazy(X):
        return as_dense(X, missing)
    if type(X).__module__.split(".")[0] == "dask":
        from .cluster import DaskData  # whoever has a Dask array has Dask

        return DaskData(X, missing)
    limit, stored = LIMIT if memory_limit is None else memory_limit, as_stored(X)
    return StoredData(stored, limit, missing) if stored.nbytes > limit else as_dense(stored.whole(), missing)


def as_dense(X: Any, missing: bool) -> DenseData:
    """An array as data, some of which may be ``missing``; if nothing is, as if nobody had asked."""
    if not missing:
        return DenseData(X)
    data = DenseData(X, check=False)
    if np.isnan(data.matrix.min()):
        return MissingDense(data.matrix)
    return DenseData(data.matrix)


def as_tensor(X: Any) -> Tensor:
    """X as a tensor of any order ≥ 2: arrays (float32 and float64 kept), `COO`, pydata's sparse and scipy's; checked.

    Raises ValueError for what no factorization can use: fewer than two modes, empty, NaN, infinite or negative.
    """
    if isinstance(X, Tensor):
        return X
    if hasattr(X, "tocoo"):  # scipy's, and pydata's compressed ones
        X = X.tocoo()
    scipys = bool(sp.issparse(X))
    if scipys or (hasattr(X, "coords") and hasattr(X, "fill_value")):
        if getattr(X, "fill_value", 0) != 0:
            raise ValueError(f"X is {X.fill_value} where nothing is stored: give a sparse array that is zero there")
        X = COO(np.array(X.coords if hasattr(X, "coords") else (X.row, X.col)), X.data, X.shape)
    return SparseTensor(X) if isinstance(X, COO) else DenseTensor(X)

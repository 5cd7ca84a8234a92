"""The kinds of data that can hold X. No other code reads X.

All kinds share one interface (`Data`), and `as_data` chooses the kind. X is always samples × features:
``factors[0]`` are the activations (samples × r), ``factors[1]`` the components (features × r), and
X ≈ factors[0] factors[1]ᵀ.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..runtime.arrays import ArrayLike
from .chunks import Chunked, Held, Pass
from .coordinates import COO, SparseTensor
from .dense import DenseData
from .divergence import DivergenceData
from .divergence_chunks import with_divergence
from .lowrank import LowRank
from .matrix import Matrix, Statistics, Wrapped
from .missing import Missing, MissingDense, check_seen
from .observed import as_observed
from .protocols import Data, Form, Sliced, Whole
from .sparse import SparseData, check_indices
from .steps import ChunkSums, SharingStep
from .stored import LIMIT, as_stored
from .stored_chunks import StoredData
from .tensor import DenseTensor, Tensor
from .values import check_kind, checksum, frame_values, naming_columns
from .weighted import WeightedDense, as_scales, as_weighted

__all__ = [
    "COO",
    "LIMIT",
    "ChunkSums",
    "Chunked",
    "Data",
    "DenseData",
    "DenseTensor",
    "DivergenceData",
    "Form",
    "Held",
    "LowRank",
    "Matrix",
    "Missing",
    "Pass",
    "SharingStep",
    "Sliced",
    "SparseData",
    "SparseTensor",
    "Statistics",
    "StoredData",
    "Tensor",
    "WeightedDense",
    "Whole",
    "Wrapped",
    "as_data",
    "as_tensor",
    "at_once",
    "check_kind",
    "check_seen",
    "checksum",
    "frame_values",
    "is_lazy",
    "naming_columns",
    "with_divergence",
]

IN_MEMORY = "negative='allow' needs X in memory: load X, or shift or clip the data"
MEMORY = 2**28  # bytes for the factors of all fits that run side by side
COPIES = 8  # of a fit's factors: themselves, shifted, spare, past, in a product, the product; two for a low-rank X


def at_once(data: Data, r: int) -> int:
    """How many fits of ``r`` components to this X run side by side; one if they cannot share a pass over it."""
    if not (isinstance(data, Matrix | Chunked) and data.shared):
        return 1
    return max(1, MEMORY // (COPIES * sum(data.shape) * r * data.dtype.itemsize))


def is_lazy(X: Any) -> bool:
    """Whether X may be read in chunks: a .npy path, memory map, zarr, HDF5 or Dask array, or an instance of `Data`."""
    if isinstance(X, Matrix | Chunked | np.memmap | str | os.PathLike):
        return True
    if isinstance(X, np.ndarray | np.generic) or sp.issparse(X) or not hasattr(X, "__getitem__"):
        return False
    try:
        return len(X.shape) >= 0 and np.dtype(X.dtype).itemsize > 0
    except (AttributeError, TypeError):
        return False


def as_data(
    X: Any,
    memory_limit: int | None = None,
    missing: bool = False,
    observed: ArrayLike | None = None,
    signed: bool = False,
    weights: Sequence[Any] = (None, None, None),
) -> Matrix | Chunked:
    """Validate X and wrap it as data. float32 and float64 are kept; other numbers become float64.

    Dask arrays are not loaded. Other inputs that are `is_lazy` are loaded if they take at most ``memory_limit`` bytes
    (1 GiB by default). Larger ones are read in chunks, and the first pass validates their values. Raises ValueError if
    X is not two-dimensional, is empty, or has NaN, infinite or negative values. With ``missing``, NaN marks a missing
    entry of a dense X. Entries where ``observed`` is false are missing, too. With ``signed``, X in memory may have
    negative values. ``weights`` are those of the entries, of the samples and of the features.
    """
    if isinstance(X, Matrix | Chunked):
        return X
    check_kind(X)
    if hasattr(X, "select_dtypes"):
        X = frame_values(X)
    limit = LIMIT if memory_limit is None else memory_limit
    remote = type(X).__module__.split(".")[0] == "dask"
    stored = as_stored(X, limit) if is_lazy(X) and not remote else None
    if stored is not None and stored.nbytes <= limit:
        X, stored = stored.whole(), None
    chunked = remote or stored is not None
    scales, (entries, samples, features) = Matrix.scales, weights
    if any(one is not None for one in weights):
        if observed is not None:
            raise ValueError("weights need no observed mask: give missing entries weight 0")
        if not chunked and not sp.issparse(X):
            return as_weighted(X, entries, samples, features, signed)
        scales = as_scales(X if stored is None else stored, entries, samples, features)
    if observed is not None:
        if chunked:
            raise ValueError("observed= needs X in memory: load X, or mark missing entries by NaN and set missing='em'")
        return as_observed(X if sp.issparse(X) else np.asarray(X), observed, missing, signed)
    if sp.issparse(X):
        data = SparseData(X, signed=signed)
        return data.scaled(scales) if scales else data
    if not chunked:
        return as_dense(X, missing, signed)
    if signed:
        raise ValueError(IN_MEMORY)
    if stored is not None:
        return StoredData(stored, limit, missing, scales)
    from .cluster import DaskData  # Dask is optional

    return DaskData(X, missing, scales)


def as_dense(X: npt.ArrayLike, missing: bool, signed: bool = False) -> DenseData:
    """Wrap an array as data. With ``missing``, NaN marks a missing entry; without any NaN this is plain dense data."""
    if not missing:
        return DenseData(X, signed=signed)
    data = DenseData(X, check=False)
    if np.isnan(data.matrix.min()):
        return MissingDense(data.matrix, signed=signed)
    return DenseData(data.matrix, signed=signed)


def as_tensor(X: Any) -> Tensor:
    """Validate X and wrap it as a tensor of order ≥ 2: an array, a `COO`, or a sparse array of pydata or SciPy.

    float32 and float64 are kept. Raises ValueError if X has fewer than two modes, is empty, or has NaN, infinite or
    negative values.
    """
    if isinstance(X, Tensor):
        return X
    if getattr(X, "format", "") in ("csr", "csc"):
        check_indices(X)
    if hasattr(X, "tocoo"):  # SciPy's arrays, and pydata's compressed ones
        X = X.tocoo()
    scipys = bool(sp.issparse(X))
    if scipys or (hasattr(X, "coords") and hasattr(X, "fill_value")):
        if getattr(X, "fill_value", 0) != 0:
            raise ValueError(f"X has fill_value={X.fill_value}: give a sparse array whose fill value is 0")
        X = COO(np.array(X.coords if hasattr(X, "coords") else (X.row, X.col)), X.data, X.shape)
    return SparseTensor(X) if isinstance(X, COO) else DenseTensor(X)

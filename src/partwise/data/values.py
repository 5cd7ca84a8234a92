"""What values X may have: conversion, checks, and checksums."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import DType, Sparse
from ..statistics import Array
from .protocols import Data


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise ValueError if X is not samples × features, or is empty."""
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"X has shape {shape}: X must be samples × features, with at least one of each")


def precision(dtype: DType, what: str = "X") -> DType:
    """The dtype for computations: float32 and float64 are kept, other real numbers become float64."""
    if dtype.kind not in "buif":
        reason = "Complex data not supported" if dtype.kind == "c" else "Convert it to numbers first"
        raise ValueError(f"{what} has dtype {dtype}: {what} must contain real numbers. {reason}")
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def as_floats(X: npt.ArrayLike) -> Array:
    """Return X as an array of the dtype for computations. Objects are converted to float64."""
    check_kind(X)
    array = np.asarray(X)
    array = array.astype(float if array.dtype.kind == "O" else precision(array.dtype), copy=False)
    return np.require(array, requirements="A")  # arrays from Dask may be unaligned, and NumPy would copy them for BLAS


def frame_values(X: Any) -> Array | Sparse:
    """The values of a pandas DataFrame, sparse if all columns are. Missing ones are NaN, also in nullable columns."""
    check_kind(X)
    if len(X.dtypes) and all(map(is_sparse, X.dtypes)):
        return X.sparse.to_coo().tocsr()  # type: ignore[no-any-return]
    array = np.asarray(X)
    if array.dtype.kind != "O":
        return array
    with naming_columns(X):
        return np.asarray(X.to_numpy(float, na_value=np.nan))


def is_sparse(dtype: Any) -> bool:
    """Whether a column of a DataFrame is sparse."""
    return hasattr(dtype, "fill_value") and hasattr(dtype, "subtype") and dtype.fill_value == 0


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Say in errors which columns of a DataFrame are no numbers."""
    try:
        yield
    except (TypeError, ValueError):
        check_columns(X, "buif")
        raise


def check_columns(X: Any, kinds: str) -> None:
    """Raise ValueError, with the columns of a DataFrame that are no numbers, if one is not of these kinds."""
    if hasattr(X, "select_dtypes") and any(dtype.kind not in kinds for dtype in X.dtypes):
        others = [name for name, dtype in X.dtypes.items() if dtype.kind not in "buif"]
        listed = ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else "")
        raise ValueError(f"X has columns that are not numbers: {listed}. Drop or encode them")


def check_kind(X: object) -> None:
    """Raise TypeError if X is nothing that holds a matrix; ValueError if it is masked, or holds dates or words.

    The mask would be lost, and NumPy would convert dates and words to numbers.
    """
    check_columns(X, "buifcO")  # objects may be numbers
    if hasattr(X, "obsm"):
        raise TypeError("X is an AnnData: give its X or a layer, use partwise.cells, or transform with align='names'")
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array, and its mask would be ignored: fill or remove the masked entries")
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        precision(X.dtype)
    listed = isinstance(X, Sequence | os.PathLike) and not isinstance(X, bytes | bytearray)
    if isinstance(X, type) or not (listed or hasattr(X, "shape") or hasattr(X, "__array__")):
        raise TypeError(
            f"X is of type {type(X).__name__}: give an array, a list of rows, a DataFrame, a sparse matrix, a Dask, "
            "zarr or HDF5 array, or the path of a .npy file"
        )


def scale_limit(dtype: DType) -> float:
    """The largest safe entry in ``dtype``: its fourth power does not overflow, nor that of its inverse underflow."""
    return float(np.finfo(dtype).max) ** 0.25


def check_scale(largest: float, dtype: DType, least: float = 0.0) -> None:
    """Raise ValueError if the largest entry of X is so large or small that its products over- or underflow."""
    limit = scale_limit(dtype)
    if largest > limit or least < largest < 1 / limit:
        raise ValueError(
            f"the largest value of X is {largest:g}, outside the range {1 / limit:.0e} to {limit:.0e} that is safe in "
            f"{dtype}: rescale X"
        )


def check_values(least: float, largest: float, find: Callable[[], tuple[float, ...]], signed: bool = False) -> None:
    """Raise ValueError for NaN, infinite and, unless ``signed``, negative values. ``find`` returns the first one."""
    if np.isfinite(least) and np.isfinite(largest) and (signed or least >= 0):
        return
    *index, value = find()
    listed = ", ".join(map(str, index))
    place = "row {}, column {}".format(*index) if len(index) == 2 else f"[{listed}]"
    if np.isnan(value):
        way = "set missing='em' to fit the observed entries, or " if len(index) == 2 else ""  # not for tensors
        raise ValueError(f"Input X contains NaN, first at {place}: {way}remove or impute missing values")
    if np.isinf(value):
        raise ValueError(f"Input X contains infinity, first at {place}: replace or remove it")
    raise ValueError(
        f"Negative values in data passed to partwise: X[{listed}] is {value:g}, but X must be nonnegative; "
        + ("set negative='allow' to fit them by the squared loss, or " if len(index) == 2 else "")  # not for tensors
        + "shift or clip the data"
    )


def checksum(data: Data) -> str:
    """A checksum of X, to recognise it in a later process. A CRC, because reading X should take most of the time."""
    found = crc32(repr((data.shape, data.dtype.name)).encode())
    for piece in data.pieces():
        found = crc32(np.ascontiguousarray(piece).data, found)
    return f"{found:08x}"


def digest(data: Data) -> str:
    """The SHA-256 of the shape, the type and the values of X, to name it in a report."""
    found = sha256(repr((data.shape, data.dtype.name)).encode())
    for piece in data.pieces():
        found.update(np.ascontiguousarray(piece).data)
    return found.hexdigest()

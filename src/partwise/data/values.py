"""Validation of the values of X."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..statistics import Array


def precision(dtype: np.dtype[Any], what: str = "X") -> np.dtype[Any]:
    """The dtype for computations: float32 and float64 are kept, other real numbers become float64."""
    if dtype.kind not in "buif":
        reason = "Complex data not supported" if dtype.kind == "c" else "convert it to numbers first"
        raise ValueError(f"{what} has dtype {dtype}: {what} must contain real numbers. {reason}")
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def as_floats(X: Any) -> Array:
    """Return X as an array of the dtype for computations. Objects are converted to float64."""
    check_kind(X)
    array = np.asarray(X)
    array = array.astype(float if array.dtype.kind == "O" else precision(array.dtype), copy=False)
    return np.require(array, requirements="A")  # arrays from Dask may be unaligned, and NumPy would copy them for BLAS


def check_kind(X: Any) -> None:
    """Raise TypeError if X is nothing that holds a matrix; ValueError for a masked array, which would lose its mask."""
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array, and its mask would be ignored: fill or remove the masked entries")
    listed = isinstance(X, Sequence | os.PathLike) and not isinstance(X, bytes | bytearray)
    if isinstance(X, type) or not (listed or hasattr(X, "shape") or hasattr(X, "__array__")):
        raise TypeError(
            f"X is of type {type(X).__name__}: give an array, a list of rows, a DataFrame, a sparse matrix, a Dask, "
            "zarr or HDF5 array, or the path of a .npy file"
        )


def check_scale(largest: float, dtype: np.dtype[Any], least: float = 0.0) -> None:
    """Raise ValueError if products of four entries of the size of the largest would over- or underflow in ``dtype``."""
    limit = float(np.finfo(dtype).max) ** 0.4
    if largest > limit or least < largest < 1 / limit:
        raise ValueError(
            f"the largest value of X is {largest:g}, outside the range {1 / limit:.0e} to {limit:.0e} that is safe in "
            f"{dtype}: rescale X"
        )


def check_values(least: float, largest: float, find: Any) -> None:
    """Raise ValueError for NaN, infinite and negative values. ``find`` returns the indices and value of the first."""
    if np.isfinite(least) and np.isfinite(largest) and least >= 0:
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
        "shift or clip the data"
    )

"""What the values of X may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..statistics import Array


def precision(dtype: np.dtype[Any], what: str = "X has") -> np.dtype[Any]:
    """The dtype to work in: float32 and float64 as they are, double precision for other real numbers."""
    if dtype.kind not in "buif":
        raise ValueError(f"{what} dtype {dtype}: give real numbers. Complex data not supported")
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def as_floats(X: Any) -> Array:
    """X as an array in the precision to work in; objects are taken for numbers."""
    check_unmasked(X)
    array = np.asarray(X)
    array = array.astype(float if array.dtype.kind == "O" else precision(array.dtype), copy=False)
    return np.require(array, requirements="A")  # Dask puts what it receives at any address, NumPy reorders it for BLAS


def check_unmasked(X: Any) -> None:
    """Refuse a masked array, which would become a plain one on its way."""
    if np.ma.isMaskedArray(X):
        raise ValueError("X is a masked array, whose mask would be lost: fill or remove what is masked")


def check_scale(largest: float, dtype: np.dtype[Any], least: float = 0.0) -> None:
    """Refuse a scale at which products of four entries leave the range of ``dtype``: X's largest entry tells."""
    limit = float(np.finfo(dtype).max) ** 0.4
    if largest > limit or least < largest < 1 / limit:
        raise ValueError(
            f"the largest value of X is {largest:g}, and {dtype} can work with {1 / limit:.0e} to {limit:.0e}: "
            "rescale X"
        )


def check_values(least: float, largest: float, find: Any) -> None:
    """Refuse NaN, infinite and negative values, naming the first (``find`` gives its indices and its value)."""
    if np.isfinite(least) and np.isfinite(largest) and least >= 0:
        return
    *index, value = find()
    listed = ", ".join(map(str, index))
    place = "row {}, column {}".format(*index) if len(index) == 2 else f"[{listed}]"
    if np.isnan(value):
        way = "give missing='em' to fit what is observed, or " if len(index) == 2 else ""  # tensors have no such way
        raise ValueError(f"Input X contains NaN, first at {place}: {way}remove or impute missing values")
    if np.isinf(value):
        raise ValueError(f"Input X contains infinity, first at {place}: replace or remove it")
    raise ValueError(
        f"Negative values in data passed to partwise: X[{listed}] is {value:g}, and a sum of nonnegative parts "
        "cannot be negative; shift or clip the data"
    )

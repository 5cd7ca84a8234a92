"""Checks and norms of single vectors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Vector
from .fast import positive_sums


def as_vector(b: npt.ArrayLike, name: str = "b") -> Vector:
    """``b`` as a contiguous, finite, nonempty vector of float32 or float64."""
    if np.ma.isMaskedArray(b):
        raise ValueError(f"{name} is a masked array, and its mask would be lost: fill or remove the masked entries")
    array = np.asarray(b)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}: give one vector with at least one entry")
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers")
    array = np.require(array, np.float32 if array.dtype == np.float32 else np.float64, ["C", "W"])
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{where}] is {array[where]}: every entry must be finite; replace or remove it")
    return array


def as_other(other: npt.ArrayLike | None, name: str, b: Vector) -> Vector | None:
    """``other`` as a vector like ``b``, or None."""
    if other is None:
        return None
    vector = as_vector(other, name).astype(b.dtype, copy=False)
    if vector.size != b.size:
        raise ValueError(f"{name} has {vector.size} entries but b has {b.size}: they must be equally long")
    return vector


def norm(x: Vector) -> float:
    """‖x‖₂, without overflow or underflow."""
    top = float(np.abs(x).max())
    return top * float(np.linalg.norm(x.astype(float) / top)) if top > 0 else 0.0


def norm_ratio(b: Vector) -> float:
    """‖b₊‖₁ / ‖b₊‖₂, without overflow or underflow; 1 if no entry is positive."""
    s1, s2 = map(float, positive_sums(b, 0.0))
    if not 1e-270 < s2 < 1e290 and b.max() > 0:
        s1, s2 = map(float, positive_sums(np.maximum(b, 0) / b.max(), 0.0))
    return s1 / math.sqrt(s2) if s2 > 0 else 1.0


def divide_positive(b: Vector, h: Vector, out: Vector) -> None:
    """out ← b₊ / h, and 0 where h is 0."""
    out[:] = np.divide(np.maximum(b, 0), h, out=np.zeros(b.size), where=h > 0)

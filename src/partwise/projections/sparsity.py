"""Hoyer's sparsity: how to measure it, and the vectors that have it.

The sparsity of a vector of length m is (√m − ‖y‖₁/‖y‖₂) / (√m − 1): 0 for a flat vector, 1 for a single nonzero. A unit
vector of sparsity s has ‖y‖₁ = k = √m − s(√m − 1) and at least k² nonzeros; k² is called its effective size.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Vector
from .alternating import sparse_opt_alternating
from .careful import ROUNDING
from .fast import sparse_opt_fast
from .sorted import sparse_opt_sorted
from .vectors import as_vector

Method = Literal["fast", "sorted", "hoyer"]
METHODS = {"fast": sparse_opt_fast, "sorted": sparse_opt_sorted, "hoyer": sparse_opt_alternating}


def hoyer_sparsity(x: npt.ArrayLike, axis: int | None = None) -> Any:
    """Hoyer's sparsity (√m − ‖x‖₁/‖x‖₂) / (√m − 1): 0 for a flat vector, 1 for a single nonzero.

    It is invariant to scale and sign. The sparsity of a zero vector is NaN; that of a vector of length 1 is 1.

    Parameters
    ----------
    x : array
    axis : int, optional
        The axis along which to compute it; by default ``x`` is treated as one vector.

    Examples
    --------
    >>> float(hoyer_sparsity([1, 1, 1, 1])), float(hoyer_sparsity([0, 5, 0, 0]))
    (0.0, 1.0)
    >>> hoyer_sparsity([[1, 0, 0, 0], [1, 1, 1, 1]], axis=1)
    array([1., 0.])
    """
    array = np.abs(np.asarray(x, dtype=float))
    if axis is None:
        array, axis = array.ravel(), 0
    m = array.shape[axis]
    if not m:
        raise ValueError("x is empty: sparsity needs at least one entry")
    top = array.max(axis=axis, keepdims=True)
    if not np.isfinite(top).all():
        value = array[~np.isfinite(array)][0]
        raise ValueError(f"x has an entry of magnitude {value}: every entry must be finite; replace or remove it")
    with np.errstate(invalid="ignore"):
        array /= top  # keeps the norms from overflowing; a zero vector becomes NaN
    ratio = array.sum(axis=axis) / np.sqrt(np.square(array).sum(axis=axis))
    if m == 1:
        return np.where(np.isnan(ratio), np.nan, 1.0)[()]
    return np.clip((math.sqrt(m) - ratio) / (math.sqrt(m) - 1), 0, 1)


def sparse_opt(b: npt.ArrayLike, k: float, *, method: Method = "fast") -> Vector:
    """Maximise bᵀy subject to y ≥ 0, ‖y‖₁ = k and ‖y‖₂ = 1: the paper's Algorithm 2, exactly and in linear time.

    All feasible y have the same norm, so the solution is also the projection of b onto the feasible set.

    Parameters
    ----------
    b : array of shape (m,)
    k : float in [1, √m]
        1 is a single nonzero, √m is flat; ``k = √m − s(√m − 1)`` gives Hoyer sparsity s.
    method : {"fast", "sorted", "hoyer"}
        As for `Hoyer`.

    References
    ----------
    Potluru et al., "Block Coordinate Descent for Sparse NMF", Algorithm 2.

    Examples
    --------
    >>> y = sparse_opt([3.0, 2.0, 1.0, 0.0], 1.2)
    >>> y.round(3), round(float(y.sum()), 6)
    (array([0.974, 0.226, 0.   , 0.   ]), 1.2)
    """
    vector = as_vector(b)
    check_method(method)
    most = math.sqrt(vector.size)
    if not isinstance(k, numbers.Real) or not 1 - 1e-12 <= k <= most * (1 + 1e-12):
        raise ValueError(f"k={k} is outside [1, √m] = [1, {most:g}]: 1 is a single nonzero, √m is flat")
    k = min(max(float(k), 1.0), most)
    out = np.empty_like(vector)
    write_sparse(vector, k, None, out, method)
    return out


def write_sparse(b: Vector, k: float, near: Vector | None, out: Vector, method: Method) -> None:
    """Write to ``out`` the y ≥ 0 with ‖y‖₁ = k, ‖y‖₂ = 1 that maximises bᵀy; for k = √m there is only one."""
    if k * k >= b.size * (1 - ROUNDING):
        out[:] = 1 / math.sqrt(b.size)
    else:
        METHODS[method](b, k, near, out)


def l1_norm(sparsity: float, m: int) -> float:
    """k = ‖y‖₁ of a unit vector of length ``m`` with the given Hoyer sparsity."""
    return min(1 + (1 - sparsity) * (math.sqrt(m) - 1), math.sqrt(m))


def as_sparsity(value: object, name: str = "sparsity") -> float:
    """``value`` as a float in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name}={value!r} is not a number: give one in [0, 1]")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"{name}={value} is outside [0, 1]: 0 is flat, 1 is a single nonzero")
    return float(value)


def check_method(method: object, name: str = "method") -> None:
    """Raise an error if ``method`` is not in `METHODS`."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"{name}={method!r} is not one of {', '.join(map(repr, METHODS))}")

"""Grouped sparsity: project a matrix onto unit-norm columns with a given mean sparsity.

The unit-norm columns y_i nearest to x_i with mean sparsity s maximise Σ x_iᵀy_i subject to a fixed Σ β_i‖y_i‖₁, where
β_i = 1/(√m − 1). The solution is y_i = (x_i − μβ_i)₊, normalised, with the same μ for all columns.

Reference: R. Ohib, N. Gillis, N. Dalmasso, S. Shah, V. K. Potluru and S. Plis, "Explicit group sparse projection with
applications to deep learning and NMF", TMLR 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Array, Vector
from .fast import positive_sums
from .sparsity import as_sparsity, l1_norm, sparse_opt


@dataclass(frozen=True)
class Grouped:
    """{Y ≥ 0 with columns of unit norm whose Hoyer sparsities have the mean ``sparsity``}.

    Examples
    --------
    >>> from partwise import hoyer_sparsity
    >>> Y = Grouped(0.5)(np.array([[9.0, 1.0], [1.0, 1.0], [1.0, 1.2], [1.0, 0.9]]))
    >>> hoyer_sparsity(Y, axis=0).round(3), round(float(hoyer_sparsity(Y, axis=0).mean()), 6)
    (array([0.895, 0.105]), 0.5)
    """

    sparsity: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sparsity", as_sparsity(self.sparsity))

    def relaxed(self, share: float) -> Grouped:
        """The set with the sparsity multiplied by ``share``."""
        return replace(self, sparsity=self.sparsity * share)

    def __call__(self, b: npt.ArrayLike) -> Array:
        """The matrix in the set nearest to ``b``."""
        matrix = np.asarray(b)
        if matrix.ndim != 2 or not matrix.size:
            raise ValueError(f"b has shape {matrix.shape}: give a matrix with at least one row and one column")
        if matrix.dtype.kind not in "buif":
            raise ValueError(f"b has dtype {matrix.dtype}: give real numbers")
        matrix = matrix.astype(np.float32 if matrix.dtype == np.float32 else np.float64, order="F", copy=False)
        if not np.isfinite(matrix).all():
            raise ValueError("b contains NaN or infinity: replace or remove these values")
        m = len(matrix)
        if m == 1 or self.sparsity == 0:
            return np.full_like(matrix, 1 / math.sqrt(m), order="F")
        exponent = int(np.frexp(np.abs(matrix).max())[1])  # scale, so that squares neither overflow nor underflow
        columns = [np.ldexp(column.astype(float), -exponent) for column in matrix.T]
        out = np.empty_like(matrix, order="F")
        for j, k in enumerate(shared_norms(columns, l1_norm(self.sparsity, m))):
            out[:, j] = sparse_opt(matrix[:, j], k)
        return out


def shared_norms(columns: list[Vector], want: float) -> Vector:
    """The ℓ1 norms k_j, with mean ``want``, of the unit vectors nearest to ``columns``.

    k_j(a), the ℓ1 norm of (x_j − a)₊ normalised, decreases with a. Brent's method brackets the threshold with mean
    ``want`` between two neighbouring floats. If the mean jumps between them (ties), every mixture is equally near.
    """
    from scipy.optimize import brentq  # takes 20 MB and is needed only here

    m = columns[0].size
    low = min(float(c.min()) for c in columns)
    high = max(float(c.max()) for c in columns)
    span = max(high - low, 1e-300)

    def norms(a: float) -> Vector:
        return np.array([norm_above(c, a) for c in columns])

    below, above = norms(low), norms(high)
    for _ in range(60):  # beyond that, all columns are flat to rounding
        if below.mean() >= want:
            break
        span *= 2
        low -= span
        below = norms(low)
    else:
        return np.full(len(columns), want)
    ends = [(low, below), (high, above)]  # the bracket: the closest thresholds so far on either side

    def excess(a: float) -> float:
        here = norms(a)
        side = 0 if here.mean() >= want else 1
        if (a >= ends[0][0]) if side == 0 else (a <= ends[1][0]):
            ends[side] = (a, here)
        return float(here.mean() - want)

    brentq(excess, low, high, xtol=1e-15 * max(abs(low), abs(high), 1e-300), rtol=1e-15)
    (_, below), (_, above) = ends
    gap = below.mean() - above.mean()
    share = (below.mean() - want) / gap if gap > 0 else 0.0
    return np.asarray(np.clip(below + min(max(share, 0.0), 1.0) * (above - below), 1, math.sqrt(m)))


def norm_above(x: Vector, a: float) -> float:
    """‖(x − a)₊‖₁ / ‖(x − a)₊‖₂, or 1 (a single nonzero) if no entry is above a."""
    s1, s2 = positive_sums(x, a)
    return min(max(s1 / math.sqrt(s2), 1.0), math.sqrt(x.size)) if s2 > 0 else 1.0

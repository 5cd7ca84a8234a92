"""Whatever holds X, and the only code that touches it.

Each kind of data answers the same few questions (`Data`); `as_data` finds the kind. X is samples × features,
everywhere: ``factors[0]`` are the activations (samples × r), ``factors[1]`` the parts (features × r), and
X ≈ factors[0] factors[1]ᵀ.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from .dense import DenseData
from .divergence import DivergenceData
from .matrix import Data, Matrix, Wrapped, check_values
from .sparse import SparseData

__all__ = ["Data", "DenseData", "DivergenceData", "Matrix", "SparseData", "Wrapped", "as_data", "check_values"]


def as_data(X: Any) -> Matrix:
    """X as data: arrays (float32 and float64 kept, other numbers as float64) or scipy sparse, checked.

    Raises ValueError for what no factorization can use: not two-dimensional, empty, NaN, infinite or negative.
    """
    if isinstance(X, Matrix):
        return X
    return SparseData(X) if sp.issparse(X) else DenseData(X)

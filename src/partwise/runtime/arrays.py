"""Names for the types of arrays. Type checkers do not know their number of dimensions; the names say it."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array = npt.NDArray[Any]
Vector = npt.NDArray[Any]  # one-dimensional
DType = np.dtype[Any]
Sparse: TypeAlias = Any  # a SciPy sparse matrix or array; their stubs have no common type with data, indices and indptr
ArrayLike = npt.ArrayLike | sp.sparray | sp.spmatrix | os.PathLike[str]  # what users give for X

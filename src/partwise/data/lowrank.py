"""A product of two thin matrices in place of X. Its statistics cost (samples + features)·l·r operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.threads import product, summed_product
from ..statistics import Array, gram
from .dense import DenseData
from .matrix import Matrix


class Product:
    """left·rightᵀ, of which only the requested entries are computed."""

    def __init__(self, left: Array, right: Array) -> None:
        self.left, self.right, self.shape = left, right, (len(left), len(right))

    @property
    def T(self) -> Product:  # noqa: N802
        """The transpose."""
        return Product(self.right, self.left)

    def __getitem__(self, which: Any) -> Array:
        rows, columns = which if isinstance(which, tuple) else (which, slice(None))
        return np.asarray(self.left[rows] @ self.right[columns].T)

    def __matmul__(self, other: Array) -> Array:
        return np.asarray(self.left @ (self.right.T @ other))


class LowRank(DenseData):
    """left·rightᵀ (samples × l, features × l) as X. Entries may be negative, as those of a truncated SVD are."""

    matrix: Any

    def __init__(self, left: Array, right: Array) -> None:
        self.left, self.right = left, right
        self.matrix, self.shape, self.dtype = Product(left, right), (len(left), len(right)), left.dtype
        Matrix.__init__(self)

    @property
    def size(self) -> int:
        return self.left.size + self.right.size

    def multiply(self, rest: Array, mode: int, out: Array) -> None:
        own, other = (self.right, self.left) if mode else (self.left, self.right)
        product(summed_product(rest, other), own.T, out.T)

    def summed_squares(self, mode: int) -> Array:
        own, other = (self.right, self.left) if mode else (self.left, self.right)
        wide = own.astype(float)
        return np.einsum("ij,ij->i", wide @ gram(other), wide)

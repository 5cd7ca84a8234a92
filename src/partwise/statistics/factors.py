"""Gram matrices and sums of factors, the one layout that all factors have, and what is summed over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Array
from ..runtime.compiled import kernel
from ..runtime.threads import LEAST, in_parts

ROWS = 8192  # rows of a factor that stay in cache
NOTHING = 1e-24  # a component is dead if its ‖·‖² is at most this times the largest one


@dataclass(frozen=True)
class Additive:
    """The base class of what is known about some samples and adds up over samples: field by field."""

    def __add__(self, other: Self) -> Self:
        return replace(self, **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __iadd__(self, other: Self) -> Self:
        """The same, in the arrays of this one."""
        return replace(self, **{f.name: added(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)})


def added(total: Any, more: Any) -> Any:
    """``total`` plus ``more``, in the arrays of ``total``."""
    total += more
    return total


def as_factor(array: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """Return an array in the layout of all factors: contiguous columns, aligned, writable.

    BLAS and compiled kernels round differently for other layouts, which arrays that were unpickled, memory-mapped or
    received from Dask may have.
    """
    return np.require(array, dtype, ["F", "A", "W", "E"])


class HasGram(Protocol):
    """A factor that is not an array but knows its Gram matrix: activations that stay with their chunks."""

    def gram(self) -> Array: ...


def gram(factor: Array | HasGram) -> Array:
    """FᵀF as a double precision array, multiplied in the precision of ``factor``."""
    if not isinstance(factor, np.ndarray):
        return factor.gram()
    return sum_over_rows(lambda first, end: (factor[first:end].T @ factor[first:end]).astype(float), len(factor))


def sum_over_rows(term: Callable[[int, int], Array], rows: int) -> Array:
    """Σ term(first, end) over ranges of rows that fit into the cache; each thread takes some of them."""

    def part(first: int, end: int) -> Array:
        return reduce(np.add, (term(i, min(i + ROWS, end)) for i in range(first, max(end, 1), ROWS)))

    return reduce(np.add, in_parts(part, rows, LEAST))


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩, summed in double precision."""
    return float(_inner(a.T.ravel(), b.T.ravel()))


@kernel
def _inner(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += np.float64(a[i]) * np.float64(b[i])  # in compiled code float() would keep float32
    return total


def dead_components(grams: Sequence[Array], share: float = NOTHING, kept: Sequence[int] = ()) -> Array:
    """Components, except ``kept`` ones, that are negligible relative to the largest one.

    The ‖·‖² of a component is the product over the factors.
    """
    sizes = reduce(np.multiply, (g.diagonal() for g in grams))
    dead = sizes <= share * sizes.max()
    dead[list(kept)] = False
    return np.flatnonzero(dead)

"""The sets that a factor is kept in: one for each column, one for all rows, or one for the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeGuard

import numpy as np

from ..projections import AtMost, Grouped, Hoyer, HoyerBetween, Nonnegative, Projection, hoyer_sparsity
from ..projections.largest import keep_largest
from ..projections.sets import Checked
from ..statistics import Array


class Sets(Protocol):
    """What updates, starts and the loop may ask of a factor's sets."""

    @property
    def nonnegative(self) -> bool:
        """Whether nothing but y ≥ 0 is asked for, so that rows are independent of each other."""
        ...

    @property
    def unit_norm(self) -> bool:
        """Whether every column has norm 1 (so that no scale can escape through this factor)."""
        ...

    @property
    def scale_free(self) -> bool:
        """Whether every column may be multiplied by any positive number."""
        ...

    @property
    def by_rows(self) -> bool:
        """Whether each row has a set of its own, so that samples can be solved one by one."""
        ...

    @property
    def kept(self) -> tuple[int, ...]:
        """Columns that stay as they are: what is said of the sets is said of the others."""
        ...

    def __getitem__(self, j: int) -> Projection:
        """A set for column j while the other columns stay."""
        ...

    def __len__(self) -> int: ...

    def l1_ranges(self, m: int) -> Array:
        """The least and the largest ‖y‖₁ of each column of length ``m`` that the kernel can solve; nan: it cannot."""
        ...

    def relaxed(self, share: float) -> Any:
        """The sets with that share of their sparsity."""
        ...

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Move ``factor`` to the nearest point, in place; ``near`` decides among equally near ones."""
        ...


def solved_fast(projection: Projection) -> TypeGuard[Hoyer | HoyerBetween]:
    """Whether `fast.write_solution` finds the nearest point."""
    return isinstance(projection, Hoyer | HoyerBetween) and projection.method == "fast"


def write_nearest(projection: Projection, b: Array, near: Array | None, out: Array, checked: bool = True) -> None:
    """Write to ``out`` (which may be ``near``) the point nearest to ``b``; what is not ``checked`` may be refused."""
    if checked and isinstance(projection, Checked):
        projection.write(b, near, out)
    else:
        out[:] = projection(b, near=near)


@dataclass(frozen=True)
class Columns:
    """One set for each column of a factor.

    >>> Columns.same(Nonnegative(), 3).nonnegative
    True
    """

    sets: tuple[Projection, ...]

    @classmethod
    def same(cls, projection: Projection, r: int) -> Columns:
        """The same set for all ``r`` columns."""
        return cls((projection,) * r)

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[Projection]:
        return iter(self.sets)

    def __getitem__(self, j: int) -> Projection:
        return self.sets[j]

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Columns that stay as they are."""
        return tuple(j for j, s in enumerate(self.sets) if isinstance(s, Kept))

    @cached_property
    def nonnegative(self) -> bool:
        """Whether nothing but y ≥ 0 is asked for, so that rows are independent of each other."""
        return all(isinstance(s, Nonnegative | Kept) for s in self.sets)

    @cached_property
    def unit_norm(self) -> bool:
        """Whether every column has norm 1 (so that no scale can escape through this factor)."""
        return all(getattr(s, "unit_norm", False) for s in self.sets)

    @cached_property
    def scale_free(self) -> bool:
        """Whether every column may be multiplied by any positive number."""
        return not any(getattr(s, "unit_norm", True) for s in self.sets if not isinstance(s, Kept))

    @property
    def by_rows(self) -> bool:
        """Whether each row has a set of its own."""
        return self.nonnegative

    def l1_ranges(self, m: int) -> Array:
        """The least and the largest ‖y‖₁ of each column of length ``m`` that the kernel can solve; nan: it cannot."""
        if m not in self._ranges:
            self._ranges[m] = np.array([s.l1_range(m) if solved_fast(s) else (np.nan, np.nan) for s in self.sets])
        return self._ranges[m]

    @cached_property
    def _ranges(self) -> dict[int, Array]:
        return {}

    def relaxed(self, share: float) -> Columns:
        """The sets with that share of their sparsity; those that have no weaker kin stay as they are."""
        return Columns(tuple(s.relaxed(share) if hasattr(s, "relaxed") else s for s in self.sets))

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Move every column of ``factor`` to the nearest point of its set, in place."""
        if self.nonnegative:
            return np.maximum(factor, 0, out=factor)
        checked = bool(np.isfinite(factor).all())
        for j, s in enumerate(self.sets):
            write_nearest(s, factor[:, j].copy(), None if near is None else near[:, j], factor[:, j], checked)
        return factor


@dataclass(frozen=True)
class Rows:
    """The same set for each row of a factor with ``r`` columns: so many nonzeros for each sample, for example.

    >>> from partwise.projections import AtMost
    >>> Rows(AtMost(1), 3).project(np.array([[3.0, 2, 1], [0, 0, 5]]))
    array([[3., 0., 0.],
           [0., 0., 5.]])
    """

    row: Projection
    r: int
    nonnegative = False
    unit_norm = False
    scale_free = True
    by_rows = True
    kept = ()

    def __len__(self) -> int:
        return self.r

    def __getitem__(self, j: int) -> Projection:
        """What one column may be while the zeros of the others stay: its own zeros stay too."""
        return Support()

    def l1_ranges(self, m: int) -> Array:
        """None that the kernel can solve."""
        return np.full((self.r, 2), np.nan)

    def relaxed(self, share: float) -> Rows:
        """The same sets: they have no weaker kin."""
        return self

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Move every row of ``factor`` to the nearest point of the set, in place."""
        if isinstance(self.row, AtMost):
            keep_largest(factor, self.row.nonzeros, factor[:0] if near is None else near.astype(factor.dtype))
            return factor
        for i, row in enumerate(factor):
            factor[i] = self.row(row, near=None if near is None else near[i])
        return factor


@dataclass(frozen=True)
class Kept:
    """{``near``}: a column that stays as it is, whatever b is; without ``near`` b is taken to be the column."""

    unit_norm = True  # it has a norm to keep: no scale can escape through it

    def __call__(self, b: Any, near: Any = None) -> Array:
        """The only point."""
        return np.array(b if near is None else near)


@dataclass(frozen=True)
class Support:
    """{y ≥ 0, zero where ``near`` is}; without ``near`` {y ≥ 0}."""

    def __call__(self, b: Any, near: Any = None) -> Array:
        """The nearest point to ``b``."""
        y = np.maximum(b, 0)
        return y if near is None else np.where(near > 0, y, 0)


@dataclass(frozen=True)
class Present:
    """{y ≥ 0 of unit norm, as sparse as ``near``}; without ``near`` of sparsity ``mean``."""

    mean: float
    unit_norm = True

    def __call__(self, b: Any, near: Any = None) -> Array:
        """The nearest point to ``b``."""
        return Hoyer(self.mean if near is None else float(hoyer_sparsity(near)))(b, near)


@dataclass(frozen=True)
class WholeFactor:
    """One set for a whole factor with ``r`` columns: a mean sparsity that its columns share."""

    group: Grouped
    r: int
    nonnegative = False
    unit_norm = True
    scale_free = False
    by_rows = False
    kept = ()

    def __len__(self) -> int:
        return self.r

    def __getitem__(self, j: int) -> Projection:
        """The sparsity that a column has while the others keep theirs."""
        return Present(self.group.sparsity)

    def l1_ranges(self, m: int) -> Array:
        """None that the kernel can solve."""
        return np.full((self.r, 2), np.nan)

    def relaxed(self, share: float) -> WholeFactor:
        """The set with that share of the mean sparsity."""
        return WholeFactor(self.group.relaxed(share), self.r)

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Move ``factor`` to the nearest point, in place."""
        factor[...] = self.group(factor)
        return factor

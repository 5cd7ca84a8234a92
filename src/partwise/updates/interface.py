"""The interface of updates, and the constraint sets of a factor: by columns, by rows, or for the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..projections import (
    AtMost,
    Bounded,
    Grouped,
    Hoyer,
    HoyerBetween,
    Nonnegative,
    Projection,
    Simplex,
    hoyer_sparsity,
)
from ..projections.interface import Checked
from ..projections.largest import keep_largest
from ..statistics import Array, Rates, Stats

State = dict[str, Any]
SCALED = Bounded, Simplex  # sets whose points cannot be multiplied by any positive number


class Sets(Protocol):
    """The interface of a factor's sets."""

    @property
    def nonnegative(self) -> bool:
        """Whether the only constraint is y ≥ 0, so that rows are independent of each other."""
        ...

    @property
    def unit_norm(self) -> bool:
        """Whether every column has norm 1, so that the other factor carries the scale."""
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
        """Columns that are kept fixed. The other properties describe the remaining columns."""
        ...

    def __getitem__(self, j: int) -> Projection:
        """The set of column j while the other columns are fixed."""
        ...

    def __len__(self) -> int: ...

    def l1_ranges(self, m: int) -> Array:
        """The bounds of ‖y‖₁ for each column of length ``m``; nan for sets that the kernel cannot solve."""
        ...

    def relaxed(self, share: float) -> Sets:
        """The sets with their sparsity multiplied by ``share``."""
        ...

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Project ``factor`` in place. ``near`` breaks ties among equally near points."""
        ...


class Update(Protocol):
    """An immutable object that improves a factor.

    The factor (rows × r, columns contiguous) may be overwritten. The state is empty at first and holds only numbers and
    arrays, so that a fit can be saved at any iteration.
    """

    @property
    def separable(self) -> bool:
        """Whether rows with sets of their own are updated independently of each other and of the state.

        Chunks of rows can then be updated separately.
        """
        return False

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Return a factor in ``sets`` whose loss is no larger, and the state for the next call."""
        ...


def require_nonnegative(sets: Sets, who: str) -> None:
    """Raise ValueError for sets other than y ≥ 0."""
    if not sets.nonnegative:
        other = next(s for s in (sets[j] for j in range(len(sets))) if not isinstance(s, Nonnegative))
        raise ValueError(f"{who} supports y ≥ 0 only, not {other!r}: use Sequential, Gradient or Multiplicative")


def as_rates(stats: Stats | Rates, update: Update) -> Rates:
    """Return the statistics of the Kullback–Leibler divergence. Raises ValueError for those of the squared loss."""
    if isinstance(stats, Stats):
        raise ValueError(
            f"{type(update).__name__} needs data with the Kullback–Leibler divergence as its loss: use DivergenceData"
        )
    return stats


def write_nearest(projection: Projection, b: Array, near: Array | None, out: Array, checked: bool = True) -> None:
    """Write the projection of ``b`` to ``out``, which may be ``near``. Without ``checked``, ``b`` is validated."""
    if checked and isinstance(projection, Checked):
        projection.write(b, near, out)
    else:
        out[:] = nearest_in(projection, b, near)


def nearest_in(projection: Projection, b: Array, near: Array | None = None) -> Array:
    """The projection of ``b``. Raises ValueError for what a user's own set must not return."""
    found = np.asarray(projection(b, near=near))
    if found.shape != b.shape or found.dtype.kind not in "buif" or not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(
            f"the set {projection!r} returned shape {found.shape} and dtype {found.dtype} for {len(b)} numbers: it "
            f"must return {len(b)} finite numbers of at least 0, the nearest point of the set"
        )
    return found


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
        return tuple(j for j, s in enumerate(self.sets) if isinstance(s, Kept))

    @cached_property
    def nonnegative(self) -> bool:
        return all(isinstance(s, Nonnegative | Kept) for s in self.sets)

    @cached_property
    def unit_norm(self) -> bool:
        return all(getattr(s, "unit_norm", False) for s in self.sets)

    @cached_property
    def scale_free(self) -> bool:
        free = [s for s in self.sets if not isinstance(s, Kept)]
        return not any(getattr(s, "unit_norm", True) or isinstance(s, SCALED) for s in free)

    @cached_property
    def by_rows(self) -> bool:
        return all(isinstance(s, Nonnegative | Bounded | Kept) for s in self.sets)

    def l1_ranges(self, m: int) -> Array:
        if m not in self._ranges:
            ranges = self._ranges[m] = np.full((len(self), 2), np.nan)
            for j, s in enumerate(self.sets):
                if isinstance(s, Hoyer | HoyerBetween) and s.method == "fast":
                    ranges[j] = s.l1_range(m)
        return self._ranges[m]

    @cached_property
    def _ranges(self) -> dict[int, Array]:
        return {}

    def relaxed(self, share: float) -> Columns:
        """The sets with their sparsity multiplied by ``share``. Sets without a relaxed form are unchanged."""
        return Columns(tuple(s.relaxed(share) if hasattr(s, "relaxed") else s for s in self.sets))

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Project every column of ``factor`` to its set, in place."""
        if self.nonnegative:
            return np.maximum(factor, 0, out=factor)
        checked = bool(np.isfinite(factor).all())
        for j, s in enumerate(self.sets):
            write_nearest(s, factor[:, j].copy(), None if near is None else near[:, j], factor[:, j], checked)
        return factor


class Joint:
    """The base class of sets that join the columns of a factor, which the kernel of `Sequential` cannot solve."""

    r: int
    nonnegative = False
    kept = ()

    def __len__(self) -> int:
        return self.r

    def l1_ranges(self, m: int) -> Array:
        """All nan: the kernel cannot solve these sets."""
        return np.full((self.r, 2), np.nan)


@dataclass(frozen=True)
class Rows(Joint):
    """The same set for each row of a factor with ``r`` columns: for example a number of nonzeros for each sample.

    >>> from partwise.projections import AtMost
    >>> Rows(AtMost(1), 3).project(np.array([[3.0, 2, 1], [0, 0, 5]]))
    array([[3., 0., 0.],
           [0., 0., 5.]])
    """

    row: Projection
    r: int
    unit_norm = False
    by_rows = True

    @property
    def scale_free(self) -> bool:
        return not isinstance(self.row, SCALED)

    def __getitem__(self, j: int) -> Projection:
        """The set of one column while the others are fixed: its zeros stay zero."""
        return Support()

    def relaxed(self, share: float) -> Rows:
        """Return the same sets: they have no relaxed form."""
        return self

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Project every row of ``factor`` to the set, in place."""
        if isinstance(self.row, AtMost):
            keep_largest(factor, self.row.nonzeros, factor[:0] if near is None else near.astype(factor.dtype))
            return factor
        for i, row in enumerate(factor):
            factor[i] = self.row(row, near=None if near is None else near[i])
        return factor


@dataclass(frozen=True)
class Kept:
    """{``near``}: a column that is kept fixed. Without ``near``, the projection of b is b."""

    unit_norm = True  # its norm is fixed, so the other factor carries the scale

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Array:
        """Return the only point of the set."""
        return np.array(b if near is None else near)


@dataclass(frozen=True)
class Support:
    """{y ≥ 0, zero where ``near`` is zero}; without ``near`` {y ≥ 0}."""

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Array:
        """Return the point of the set nearest to ``b``."""
        y = np.maximum(b, 0)
        return y if near is None else np.where(np.asarray(near) > 0, y, 0)


@dataclass(frozen=True)
class SameSparsity:
    """{y ≥ 0 of unit norm with the sparsity of ``near``}; without ``near``, with sparsity ``mean``."""

    mean: float
    unit_norm = True

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Array:
        """Return the point of the set nearest to ``b``."""
        return Hoyer(self.mean if near is None else float(hoyer_sparsity(near)))(b, near)


@dataclass(frozen=True)
class WholeFactor(Joint):
    """One set for a whole factor with ``r`` columns, whose mean sparsity is fixed."""

    group: Grouped
    r: int
    unit_norm = True
    scale_free = False
    by_rows = False

    def __getitem__(self, j: int) -> Projection:
        """The set of one column while the others are fixed: its own sparsity."""
        return SameSparsity(self.group.sparsity)

    def relaxed(self, share: float) -> WholeFactor:
        """The set with its mean sparsity multiplied by ``share``."""
        return WholeFactor(self.group.relaxed(share), self.r)

    def project(self, factor: Array, near: Array | None = None) -> Array:
        """Project ``factor`` in place."""
        factor[...] = self.group(factor)
        return factor

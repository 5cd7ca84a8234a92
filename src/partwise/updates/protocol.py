"""What an update is, and the sets that it keeps a factor's columns in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..projections import Nonnegative, Projection
from ..statistics import Array, Stats

State = dict[str, Any]


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
    def nonnegative(self) -> bool:
        """Whether nothing but y ≥ 0 is asked for, so that rows are independent of each other."""
        return all(isinstance(s, Nonnegative) for s in self.sets)

    @cached_property
    def unit_norm(self) -> bool:
        """Whether every column has norm 1 (so that no scale can escape through this factor)."""
        return all(getattr(s, "unit_norm", False) for s in self.sets)

    @cached_property
    def scale_free(self) -> bool:
        """Whether every column may be multiplied by any positive number."""
        return not any(getattr(s, "unit_norm", True) for s in self.sets)

    def encoded(self, m: int) -> Array | None:
        """What compiled code needs to know of the sets, for columns of length ``m``; None if some set has no code."""
        if m not in self._tables:
            known = all(hasattr(s, "encoded") for s in self.sets)
            self._tables[m] = np.array([s.encoded(m) for s in self.sets]) if known else None  # type: ignore[attr-defined]
        return self._tables[m]

    @cached_property
    def _tables(self) -> dict[int, Array | None]:
        return {}

    def relaxed(self, share: float) -> Columns:
        """The sets with that share of their sparsity; those that have no weaker kin stay as they are."""
        return Columns(tuple(s.relaxed(share) if hasattr(s, "relaxed") else s for s in self.sets))

    def project(self, factor: Array) -> Array:
        """Move every column of ``factor`` to the nearest point of its set, in place."""
        for j, s in enumerate(self.sets):
            factor[:, j] = s(factor[:, j])
        return factor


class Update(Protocol):
    """A frozen value that improves a factor.

    The factor (rows × r, columns contiguous) may be overwritten. The state starts empty and holds numbers and arrays
    only, so that a fit can be saved in the middle.
    """

    def __call__(self, factor: Array, stats: Stats, sets: Columns, state: State) -> tuple[Array, State]:
        """A factor in ``sets`` whose loss is no larger, and the state for the next call."""
        ...


def require_nonnegative(sets: Columns, who: str) -> None:
    """Refuse sets that couple the rows of a factor."""
    if not sets.nonnegative:
        other = next(s for s in sets if not isinstance(s, Nonnegative))
        raise ValueError(f"{who} solves for y ≥ 0 only, not for {other!r}: use Sequential, Gradient or Multiplicative")

"""What an update is."""

from __future__ import annotations

from typing import Any, Protocol

from ..projections import Nonnegative
from ..statistics import Array, Stats
from .sets import Sets

State = dict[str, Any]


class Update(Protocol):
    """A frozen value that improves a factor.

    The factor (rows × r, columns contiguous) may be overwritten. The state starts empty and holds numbers and arrays
    only, so that a fit can be saved in the middle.
    """

    @property
    def separable(self) -> bool:
        """Whether rows that have sets of their own are updated independently of each other and of the state.

        Chunks of rows can then be updated apart.
        """
        return False

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """A factor in ``sets`` whose loss is no larger, and the state for the next call."""
        ...


def require_nonnegative(sets: Sets, who: str) -> None:
    """Refuse sets that couple the rows of a factor."""
    if not sets.nonnegative:
        other = next(s for s in (sets[j] for j in range(len(sets))) if not isinstance(s, Nonnegative))
        raise ValueError(f"{who} solves for y ≥ 0 only, not for {other!r}: use Sequential, Gradient or Multiplicative")

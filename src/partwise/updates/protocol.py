"""The interface of updates."""

from __future__ import annotations

from typing import Any, Protocol

from ..projections import Nonnegative
from ..statistics import Array, Stats
from .sets import Sets

State = dict[str, Any]


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

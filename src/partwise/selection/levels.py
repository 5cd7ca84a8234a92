"""The same model at many sparsities: each fit starts from its neighbours, outward from the fit without a constraint.

A sparse column changes its support with difficulty, a dense one easily. The unconstrained fit is therefore the best
common start: sparser levels follow from it upwards, denser ones downwards. What a sparser level misses is lost for
those beyond it, so sparser levels are fitted one after the other, and for longer. Denser levels are fitted in strides.
Those within a stride start between the fits at its ends, and need few iterations.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol, cast

import numpy as np

from ..engine.metrics import match_parts
from ..engine.natural import no_advice
from ..engine.result import Result
from ..engine.running import give_unit_norm
from ..engine.starts import Factors
from ..engine.stopping import Callback, Iteration
from ..engine.validation import as_columns
from ..projections import Hoyer
from ..runtime.interrupts import interrupts
from ..statistics import gram

LAST = 3  # a level has settled if this many iterations lower the error by at most
FREE, SPARSER, DENSER, WITHIN = 5e-4, 4e-5, 7e-4, 1.5e-3  # this share; within a stride, whose ends are fitted before
STRIDE = 0.15  # of the sparsity


class FitAt(Protocol):
    """Fits one level: a sparsity (None: no constraint), the start, and a callback."""

    def __call__(self, sparsity: float | None, init: Any, callback: Callback | None) -> Result: ...


class ErrorSettled:
    """A callback that stops a fit when the last iterations have hardly lowered the relative error.

    A path has many fits, and each starts close to its minimum. The components of its levels are comparable with each
    other long before each of them has settled by itself, which is what ``tol`` waits for.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.errors: list[float] = []

    def __call__(self, iteration: Iteration) -> bool:
        self.errors.append(iteration.relative_error)
        before = self.errors[-1 - LAST] if len(self.errors) > LAST else np.inf
        return before - self.errors[-1] <= self.share * self.errors[-1]


@dataclass(frozen=True)
class LevelFits:
    """The fits of a path: ``free`` without a constraint, and one for each of ``sparsities``, from low to high.

    Component j of one fit is matched with component j of its neighbours.
    """

    sparsities: tuple[float, ...]
    results: tuple[Result, ...]
    free: Result

    @property
    def natural(self) -> float:
        """The median sparsity of the components without a constraint; nan if all are zero."""
        found = self.free.sparsity[~np.isnan(self.free.sparsity)]
        return float(np.median(found)) if found.size else np.nan

    def in_order(self) -> list[tuple[float | None, Result]]:
        """All fits from low to high sparsity; the one without a constraint, None, where it lies."""
        fits: list[tuple[float | None, Result]] = list(zip(self.sparsities, self.results, strict=True))
        fits.insert(sum(s <= self.natural for s in self.sparsities), (None, self.free))
        return fits


def fit_levels(
    fit: FitAt,
    sparsities: Sequence[float],
    *,
    init: Any = "auto",
    n_init: int = 1,
    callback: Callback | None = None,
    settle: bool = True,
    match: bool = True,
    advance: Callable[[], None] = lambda: None,
) -> LevelFits:
    """Fit without a constraint, then all ``sparsities`` (from low to high), each from its neighbours.

    ``init`` is the start of the fit without a constraint, of ``n_init`` of which the best is kept. If ``settle``, fits
    stop when their error has settled; otherwise they have their own tolerance. Components that changed places during a
    fit are put back if ``match``; the sets of the activations must be alike for this.
    """

    def run(sparsity: float | None, start: Any, share: float = FREE, near: Result | None = None) -> Result:
        also = [c for c in (callback, ErrorSettled(share) if settle else None) if c is not None]
        with interrupts() as interrupted, no_advice():  # the curves show what a sparsity costs
            found = fit(sparsity, start, (lambda now: max(bool(c(now)) for c in also)) if also else None)
            if interrupted:  # a path with an unfinished fit is misleading
                raise KeyboardInterrupt
        advance()
        return matched(found, near) if match and near is not None else found

    free = min((run(None, init) for _ in range(n_init)), key=lambda one: float(one.losses[-1]))
    path = LevelFits(tuple(sparsities), (), free)
    sparser = [s for s in sparsities if s > path.natural]
    denser = [s for s in reversed(sparsities) if s not in sparser]
    strides = [list(levels) for _, levels in groupby(denser, lambda s: s // STRIDE)]
    found: dict[float, Result] = {}
    for branch, share in (([[s] for s in sparser], SPARSER), (strides, DENSER)):
        near = free
        for *within, end in branch:
            found[end] = far = run(end, [near.activations, near.components], share, near)
            for k, sparsity in enumerate(within, 1):
                found[sparsity] = run(sparsity, between(near, far, k / (len(within) + 1)), WITHIN, near)
            near = far
    return replace(path, results=tuple(found[s] for s in sparsities))


def between(one: Result, other: Result, share: float) -> Factors:
    """Activations and components on the way from one fit to the other, once components have norm 1."""
    ends = [[f.copy(order="F") for f in fit.factors] for fit in (one, other)]
    for factors in ends:
        give_unit_norm(factors, [gram(f) for f in factors])
    activations, parts = ((1 - share) * a + share * b for a, b in zip(*ends, strict=True))
    return [activations, parts.T]


def matched(result: Result, before: Result) -> Result:
    """The result with its components in the order of those ``before``. Known columns, which are equal, stay."""
    known = np.any([(a == b).all(axis=0) for a, b in zip(result.factors, before.factors, strict=True)], axis=0)
    order, free = np.arange(len(known)), np.flatnonzero(~known)
    if free.size:
        order[free] = free[match_parts(before.components[free], result.components[free]).second]
    if (order == np.arange(len(order))).all():
        return result
    middle = None if result.middle is None else result.middle[np.ix_(order, order)]
    return replace(result, factors=[np.asfortranarray(f[:, order]) for f in result.factors], middle=middle, states=[])


def as_sparsities(values: float | Iterable[float], name: str = "sparsities") -> tuple[float, ...]:
    """Validate sparsities, and return them from low to high, each once."""
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    found = sorted({round(as_number(value, name), 12) for value in listed})  # np.linspace gives 0.44999999999999996
    if not found:
        raise ValueError(f"{name} is empty: give at least one number between 0 and 1")
    return tuple(found)


def as_number(value: Any, name: str) -> float:
    """Validate one sparsity, which must be a number."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ValueError(f"{name}={value!r}: give numbers between 0 and 1; the fit without a constraint is included")
    (level,) = as_columns(float(value), 1, name=name)
    return float(cast(Hoyer, level).sparsity)

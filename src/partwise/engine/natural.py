"""The sparsity that components have without a constraint, and what a requested sparsity costs beside it.

A short fit to an excerpt of X answers both: first without the constraint, then with it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ..data import Chunked, Data, Matrix
from ..projections import FreeNorm, Hoyer, HoyerBetween, Nonnegative, Projection
from ..statistics import Array
from ..updates import Columns, Sequential, Sets
from .blocks import Block
from .loop import factorize
from .result import Result
from .starts import samples, scale_to
from .validation import warn_user

SAMPLES, FEATURES = 500, 2000  # an excerpt has at most so many
ITERATIONS, BOUND_ITERATIONS = 20, 10  # without the constraint, and then with it
ROUGHLY = 0.5  # the tolerance of these fits
DENSER = 1.03  # a sparsity is too low if the relative error is this many times that of "at least this sparsity"
SPARSER = 0.75  # it is too high if the components explain less than this share of what they explain without it

ADVISING = ContextVar("ADVISING", default=True)
Requests = set[tuple[Projection, ...]]
ADVISED: WeakKeyDictionary[Data, Requests] = WeakKeyDictionary()  # restarts and searches fit the same data again
ADVISED_IN_FOLDS: set[tuple[tuple[Projection, ...], int]] = set()  # folds are fits to other data


class CapacityWarning(UserWarning):
    """The requested sparsity is far from that of components without a constraint, and costs much accuracy."""


@contextmanager
def no_advice() -> Iterator[None]:
    """Give no `CapacityWarning` in this thread; `warnings.catch_warnings` would change the filters of all threads."""
    token = ADVISING.set(False)
    try:
        yield
    finally:
        ADVISING.reset(token)


@dataclass(frozen=True)
class Natural:
    """A fit to an excerpt of X without a sparsity constraint. ``sparsity``: of its components that are not zero."""

    excerpt: Matrix
    fit: Result

    @property
    def sparsity(self) -> Array:
        """The Hoyer sparsity of each component that is not zero."""
        found = self.fit.sparsity
        return found[np.isfinite(found)]

    def under(self, sets: Sequence[Projection]) -> float:
        """The relative error if the components have to be in ``sets``."""
        columns = Columns(tuple(sets))
        activations, parts = (factor.copy(order="F") for factor in self.fit.factors)
        return short_fit(self.excerpt, [activations, columns.project(parts)], columns, BOUND_ITERATIONS).relative_error


def natural_fit(data: Matrix | Chunked, r: int, seed: int = 0) -> Natural | None:
    """Fit ``r`` components without a sparsity constraint to an excerpt of X; None if that is zero."""
    some = excerpt(data)
    if some is None:
        return None
    free = Columns.same(Nonnegative(), r)
    factors = samples(some, r, [free, free], np.random.default_rng(seed))
    scale_to(some, factors, 0)
    return Natural(some, short_fit(some, factors, free, ITERATIONS))


def short_fit(data: Matrix, factors: list[Array], components: Sets, max_iter: int) -> Result:
    """A few iterations, with a set for each component."""
    blocks = [Block(Sequential(2), s) for s in (Columns.same(Nonnegative(), len(components)), components)]
    return factorize(data, factors, blocks, before=(0,), max_iter=max_iter, tol=ROUGHLY, accelerate=data.complete)


def excerpt(data: Matrix | Chunked) -> Matrix | None:
    """Some samples and features of X, evenly spaced and not all zero; None if there are none.

    They are the same for any kind of data, unless samples are zero: data in chunks does not know these beforehand.
    """
    if isinstance(data, Chunked):
        chunked, data = data, data.subset(evenly(np.arange(data.shape[0]), SAMPLES))
        if not np.isfinite(data.sqnorms(0)).all():
            chunked.check()  # names the first value that is not a number
    rows = evenly(np.flatnonzero(data.sqnorms(0)), SAMPLES)
    if not rows.size:
        return None
    some = data.subset(rows)
    features = evenly(np.flatnonzero(some.sqnorms(1)), FEATURES)
    return some.subset(slice(None), features) if len(features) < some.shape[1] else some


def evenly(which: Array, most: int) -> Array:
    """At most ``most`` of ``which``, evenly spaced."""
    return which[np.linspace(0, len(which) - 1, min(len(which), most)).round().astype(int)]


def advise(data: Data, sets: Sets) -> None:
    """Warn if the sparsity of the components costs much, and say what to do; once for the same data and sets."""
    if not isinstance(data, Matrix | Chunked) or not isinstance(sets, Columns) or muted():
        return
    asked = [s for s in (s.unit if isinstance(s, FreeNorm) else s for s in sets) if isinstance(s, Hoyer | HoyerBetween)]
    if len(asked) < len(sets) or tuple(asked) in ADVISED.setdefault(data, set()):
        return
    ADVISED[data].add(tuple(asked))
    if in_cross_validation():
        request = tuple(asked), data.shape[1]
        if request in ADVISED_IN_FOLDS:
            return
        ADVISED_IN_FOLDS.add(request)
    natural = natural_fit(data, len(asked))
    if natural is None:
        return
    error = natural.under(asked)
    if error <= DENSER * natural.fit.relative_error:
        return
    middle = float(np.median(natural.sparsity))
    usual = f"without a constraint (about {middle:.2f})"
    open_ended = [HoyerBetween(s.sparsity if isinstance(s, Hoyer) else s.lo, None) for s in asked]
    least = natural.under(open_ended)
    explained, free = 1 - error**2, 1 - natural.fit.relative_error**2
    highest = max(s.sparsity if isinstance(s, Hoyer) else 1.0 if s.hi is None else s.hi for s in asked)
    if error > DENSER * least and highest < middle:
        rise = f"by about {error / least - 1:.0%}" if error < 10 * least else "more than tenfold"
        way = "intervals (lo, None)" if len({*open_ended}) > 1 else f"sparsity=({open_ended[0].lo or 0:g}, None)"
        warn_user(
            f"{as_asked(asked)} makes the components denser than they are {usual}: the relative error rises {rise}. "
            f"For components of at least this sparsity, use {way}",
            CapacityWarning,
        )
    elif explained < SPARSER * free and too_few_to_cover(data, asked):
        warn_user(
            f"{as_asked(asked)} makes the components much sparser than they are {usual}: they explain about "
            f"{explained:.0%} of X instead of {free:.0%}. Use a lower sparsity, or more components",
            CapacityWarning,
        )


def too_few_to_cover(data: Matrix | Chunked, asked: Sequence[Hoyer | HoyerBetween]) -> bool:
    """Whether the components together have fewer nonzeros than X has nonzero features.

    A unit vector of this sparsity has ‖y‖₁ = k and covers k² features evenly. Where that is enough, a fit may find what
    a short one has not.
    """
    covered = sum(s.l1_range(data.shape[1])[1] ** 2 for s in asked)
    return bool(covered < np.count_nonzero(data.sqnorms(1)))


def in_cross_validation() -> bool:
    """Whether scikit-learn fits one of several folds at the moment."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_name != "_fit_and_score":
        frame = frame.f_back
    return frame.f_code.co_name == "_fit_and_score"


def muted() -> bool:
    """Whether nobody would see a `CapacityWarning`, so that the short fits can be saved."""
    kinds = (f[0] for f in warnings.filters if issubclass(CapacityWarning, f[2]) and f[1] is None and f[3] is None)
    return not ADVISING.get() or next(kinds, "default") == "ignore"


def as_asked(asked: Sequence[Hoyer | HoyerBetween]) -> str:
    """The requested sparsity as the user wrote it."""
    if len({*asked}) > 1:
        return "this list of sparsities"
    one = asked[0]
    return f"sparsity={one.sparsity:g}" if isinstance(one, Hoyer) else f"sparsity=({one.lo}, {one.hi})"

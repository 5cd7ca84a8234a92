"""Constraint sets: small frozen objects; calling one projects a vector onto it.

==================== ==========================================================
`Nonnegative`        y ≥ 0
`Hoyer`              y ≥ 0, ‖y‖₂ = 1, sparsity(y) = s
`HoyerBetween`       y ≥ 0, ‖y‖₂ = 1, lo ≤ sparsity(y) ≤ hi
`AtMost`             y ≥ 0, at most L entries nonzero
`Bounded`            0 ≤ y ≤ u
`Simplex`            y ≥ 0, Σy = 1
`FreeNorm`           all multiples of the points of a unit-norm set
==================== ==========================================================

Sparsity is Hoyer's (√m − ‖y‖₁/‖y‖₂) / (√m − 1): 0 for a flat vector, 1 for a single nonzero. A unit vector of sparsity
s has ‖y‖₁ = k = √m − s(√m − 1) and at least k² nonzeros; k² is called its effective size.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Vector
from .alternating import sparse_opt_alternating
from .careful import ROUNDING
from .fast import positive_sums, sparse_opt_fast
from .largest import keep_largest
from .metric import write_in_metric
from .sorted import sparse_opt_sorted

Method = Literal["fast", "sorted", "hoyer"]
METHODS = {"fast": sparse_opt_fast, "sorted": sparse_opt_sorted, "hoyer": sparse_opt_alternating}


@runtime_checkable
class Projection(Protocol):
    """A constraint set for the columns of a factor: any object with this ``__call__``."""

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Vector:
        """The point of the set nearest to ``b``; ``near`` breaks ties."""
        ...


@runtime_checkable
class Normed(Protocol):
    """A set that says whether all of its points have norm 1. Optional for a user's own set."""

    @property
    def unit_norm(self) -> bool:
        """Whether all points have norm 1; False if every point may be multiplied by any positive number."""
        ...


@runtime_checkable
class Relaxable(Protocol):
    """A set with a less sparse form, for the gradual start. Optional for a user's own set."""

    def relaxed(self, share: float) -> Projection:
        """The set with the sparsity multiplied by ``share``."""
        ...


def as_vector(b: npt.ArrayLike, name: str = "b") -> Vector:
    """``b`` as a contiguous, finite, nonempty vector of float32 or float64."""
    if np.ma.isMaskedArray(b):
        raise ValueError(f"{name} is a masked array, and its mask would be lost: fill or remove the masked entries")
    array = np.asarray(b)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}: give one vector with at least one entry")
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers")
    array = np.require(array, np.float32 if array.dtype == np.float32 else np.float64, ["C", "W"])
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{where}] is {array[where]}: every entry must be finite; replace or remove it")
    return array


def as_other(other: npt.ArrayLike | None, name: str, b: Vector) -> Vector | None:
    """``other`` as a vector like ``b``, or None."""
    if other is None:
        return None
    vector = as_vector(other, name).astype(b.dtype, copy=False)
    if vector.size != b.size:
        raise ValueError(f"{name} has {vector.size} entries but b has {b.size}: they must be equally long")
    return vector


def as_sparsity(value: object, name: str = "sparsity") -> float:
    """``value`` as a float in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name}={value!r} is not a number: give one in [0, 1]")
    if not 0 <= float(value) <= 1:
        raise ValueError(f"{name}={value} is outside [0, 1]: 0 is flat, 1 is a single nonzero")
    return float(value)


def l1_norm(sparsity: float, m: int) -> float:
    """k = ‖y‖₁ of a unit vector of length ``m`` with the given Hoyer sparsity."""
    return min(1 + (1 - sparsity) * (math.sqrt(m) - 1), math.sqrt(m))


def write_sparse(b: Vector, k: float, near: Vector | None, out: Vector, method: Method) -> None:
    """Write to ``out`` the y ≥ 0 with ‖y‖₁ = k, ‖y‖₂ = 1 that maximises bᵀy; for k = √m there is only one."""
    if k * k >= b.size * (1 - ROUNDING):
        out[:] = 1 / math.sqrt(b.size)
    else:
        METHODS[method](b, k, near, out)


class Checked:
    """Base class of the sets: validate the input, then `write` the projection."""

    unit_norm: ClassVar[bool] = False

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        """Write the point nearest to ``b`` to ``out``, which may be ``near``."""
        raise NotImplementedError

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Vector:
        """The point of the set nearest to ``b``; ``near`` breaks ties."""
        vector = as_vector(b)
        out = np.empty_like(vector)
        self.write(vector, as_other(near, "near", vector), out)
        return out


class Metric(Checked):
    """Base class of the sets that also solve the column problem in a diagonal metric."""

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        """Write the w that minimises ½Σhw² − Σbw to ``out``, which may be ``near``; return whether it is certified."""
        raise NotImplementedError

    def __call__(
        self, b: npt.ArrayLike, near: npt.ArrayLike | None = None, metric: npt.ArrayLike | None = None
    ) -> Vector:
        """The point of the set nearest to ``b``; ``near`` breaks ties.

        With ``metric``, the point w that minimises ½Σhw² − Σbw, where h is the metric; see `solve_in_metric`.
        """
        return super().__call__(b, near) if metric is None else solve_in_metric(self, b, metric, near)[0]


@dataclass(frozen=True)
class Nonnegative(Metric):
    """{y ≥ 0}.

    >>> Nonnegative()([3.0, -1.0, 2.0])
    array([3., 0., 2.])
    """

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        np.maximum(b, 0, out=out)

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        divide_positive(b, h, out)
        return True


@dataclass(frozen=True)
class Hoyer(Metric):
    """{y ≥ 0, ‖y‖₂ = 1, Hoyer sparsity of y = ``sparsity``}.

    Parameters
    ----------
    sparsity : float in [0, 1]
        0 is flat, 1 is a single nonzero.
    method : {"fast", "sorted", "hoyer"}
        The algorithm; all give the same result. "fast": a few vectorised passes, linear time. "sorted": Algorithm 2 of
        the paper. "hoyer": Projection-Hoyer (Hoyer 2004).

    Examples
    --------
    >>> y = Hoyer(0.5)([3.0, 2.0, 1.0, 0.0])
    >>> y.round(3), round(float(hoyer_sparsity(y)), 6)
    (array([0.854, 0.5  , 0.146, 0.   ]), 0.5)
    """

    sparsity: float
    method: Method = "fast"
    unit_norm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sparsity", as_sparsity(self.sparsity))
        check_method(self.method)

    def l1_range(self, m: int) -> tuple[float, float]:
        """The smallest and largest ‖y‖₁ of the vectors of length ``m`` in the set."""
        k = l1_norm(self.sparsity, m)
        return k, k

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        write_sparse(b, l1_norm(self.sparsity, b.size), near, out, self.method)

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        return write_in_metric(b, h, *self.l1_range(b.size), near, out, self.write)

    def relaxed(self, share: float) -> Hoyer:
        """The set with the sparsity multiplied by ``share``."""
        return replace(self, sparsity=self.sparsity * share)


@dataclass(frozen=True)
class HoyerBetween(Metric):
    """{y ≥ 0, ‖y‖₂ = 1, ``lo`` ≤ Hoyer sparsity of y ≤ ``hi``}; None leaves an end open.

    Reference: M. Heiler and C. Schnörr, "Learning sparse representations by non-negative matrix factorization and
    sequential cone programming", JMLR 7 (2006).

    Examples
    --------
    >>> between = HoyerBetween(0.2, 0.4)
    >>> round(float(hoyer_sparsity(between([9.0, 1.0, 1.0, 1.0]))), 6)
    0.4
    """

    lo: float | None = None
    hi: float | None = None
    method: Method = "fast"
    unit_norm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        lo = 0.0 if self.lo is None else as_sparsity(self.lo, "lo")
        hi = 1.0 if self.hi is None else as_sparsity(self.hi, "hi")
        if lo > hi:
            raise ValueError(f"sparsity interval ({lo:g}, {hi:g}) is the wrong way round: give ({hi:g}, {lo:g})")
        check_method(self.method)

    def l1_range(self, m: int) -> tuple[float, float]:
        """The smallest and largest ‖y‖₁ of the vectors of length ``m`` in the set."""
        return l1_norm(1.0 if self.hi is None else self.hi, m), l1_norm(0.0 if self.lo is None else self.lo, m)

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        """Project at ‖y‖₁ = k, where k is ‖b₊‖₁ / ‖b₊‖₂ clipped to the allowed range."""
        low, high = self.l1_range(b.size)
        if near is not None and b.max() == 0:  # every y on the zeros of b is optimal: near decides
            ratio = norm_ratio(np.where(b == 0, near, 0))
        else:
            ratio = norm_ratio(b)
        k = min(max(ratio, low), high)
        write_sparse(b, k, near, out, self.method)

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        return write_in_metric(b, h, *self.l1_range(b.size), near, out, self.write)

    def relaxed(self, share: float) -> HoyerBetween:
        """The interval with its lower end multiplied by ``share``."""
        return replace(self, lo=None if self.lo is None else self.lo * share)


@dataclass(frozen=True)
class AtMost(Metric):
    """{y ≥ 0, at most ``nonzeros`` entries nonzero}.

    Examples
    --------
    >>> AtMost(2)([1.0, 3.0, -5.0, 2.0])
    array([0., 3., 0., 2.])
    """

    nonzeros: int

    def __post_init__(self) -> None:
        if isinstance(self.nonzeros, bool) or not isinstance(self.nonzeros, numbers.Integral) or self.nonzeros < 1:
            raise ValueError(f"nonzeros={self.nonzeros!r}: give a whole number of at least 1")
        object.__setattr__(self, "nonzeros", int(self.nonzeros))

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        rows = b[None].copy()
        keep_largest(rows, self.nonzeros, rows[:0] if near is None else near[None])
        out[:] = rows[0]

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        """Keep the entries that lower the objective most, by b₊²/(2h) each."""
        gains = np.empty_like(b, dtype=float)
        divide_positive(b, np.sqrt(h, dtype=float), gains)
        self.write(gains, near, gains)
        divide_positive(np.where(gains > 0, b, 0), h, out)
        return True


@dataclass(frozen=True)
class Bounded(Metric):
    """{0 ≤ y ≤ ``upper``}.

    Examples
    --------
    >>> Bounded(2.0)([3.0, -1.0, 1.5])
    array([2. , 0. , 1.5])
    """

    upper: float

    def __post_init__(self) -> None:
        number = isinstance(self.upper, numbers.Real) and not isinstance(self.upper, bool)
        if not number or not 0 < self.upper < math.inf:
            raise ValueError(f"upper={self.upper!r}: give a finite number above 0")
        object.__setattr__(self, "upper", float(self.upper))

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        np.clip(b, 0, self.upper, out=out)

    def write_metric(self, b: Vector, h: Vector, near: Vector | None, out: Vector) -> bool:
        divide_positive(b, h, out)
        np.minimum(out, self.upper, out=out)
        return True


@dataclass(frozen=True)
class Simplex(Checked):
    """{y ≥ 0, Σy = 1}.

    The nearest point is (b − a)₊ for the threshold a at which it sums to 1.

    Examples
    --------
    >>> Simplex()([1.0, 0.5, -2.0])
    array([0.75, 0.25, 0.  ])
    """

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        with np.errstate(over="ignore"):
            x = np.maximum(b.astype(float) - float(b.max()), -2.0)  # entries further below the largest one are zero
        down = np.sort(x)[::-1]
        thresholds = (np.cumsum(down) - 1) / np.arange(1, x.size + 1)
        y = np.maximum(x - thresholds[np.count_nonzero(down > thresholds) - 1], 0)
        out[:] = y / y.sum()


@dataclass(frozen=True)
class FreeNorm(Checked):
    """{t·y: t > 0, y in ``unit``}: a sparsity constraint that leaves the norm free.

    A column that is best at zero gets a norm too small to matter, because zeros have no sparsity.

    Parameters
    ----------
    unit : Hoyer or HoyerBetween
    keep : bool
        Keep the norm of b, as Hoyer's NMFSC does, instead of choosing the norm that brings the result nearest to b.

    Examples
    --------
    >>> FreeNorm(Hoyer(0.5))([3.0, 2.0, 1.0, 0.0]).round(3)
    array([3.164, 1.854, 0.543, 0.   ])
    """

    unit: Any  # Hoyer or HoyerBetween, as checked below
    keep: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Hoyer | HoyerBetween):
            raise ValueError(f"unit={self.unit!r}: give a Hoyer or HoyerBetween set, whose points have unit norm")

    def write(self, b: Vector, near: Vector | None, out: Vector) -> None:
        size = 0.0 if near is None else norm(near)
        self.unit.write(b, near / size if near is not None and size > 0 else None, out)
        kind, largest = np.finfo(out.dtype), norm(b)
        wanted = largest if self.keep else float(np.dot(out.astype(float), b))
        out *= max(wanted, float(kind.eps) * largest, float(kind.tiny / kind.eps))

    def nearest(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Vector:
        """The nearest point of the set, even if ``keep`` is set."""
        return replace(self, keep=False)(b, near)

    def relaxed(self, share: float) -> FreeNorm:
        """The set with the sparsity multiplied by ``share``."""
        return replace(self, unit=self.unit.relaxed(share))


def divide_positive(b: Vector, h: Vector, out: Vector) -> None:
    """out ← b₊ / h, and 0 where h is 0."""
    out[:] = np.divide(np.maximum(b, 0), h, out=np.zeros(b.size), where=h > 0)


def solve_in_metric(
    projection: Metric, b: npt.ArrayLike, metric: npt.ArrayLike, near: npt.ArrayLike | None = None
) -> tuple[Vector, bool]:
    """Minimise ½Σhw² − Σbw over a set, and say whether the result is known to be the global minimum.

    This is the problem of one column where each entry has its own curvature h: weighted least squares, or a Newton step
    for another loss. With constant h it is the projection of b/h. `Hoyer` sets are not convex. Their solutions are
    w = (b − λ)₊ / (h + μ); if h + μ ≥ 0 for all entries, w is certified: it is the global minimum. Such multipliers
    nearly always exist. Otherwise w is a stationary point, no worse than the point of the set nearest to ``near``.

    Parameters
    ----------
    projection : Hoyer, HoyerBetween, AtMost or Nonnegative
    b : array of shape (m,)
    metric : array of shape (m,)
        h ≥ 0; it may be 0 only where b is 0, for an entry without weight.
    near : array of shape (m,), optional
        Breaks ties, and is where the descent starts without a certificate.

    Returns
    -------
    w : array of shape (m,)
    certified : bool

    Examples
    --------
    >>> w, certified = solve_in_metric(Hoyer(0.5), [3.0, 2.0, 1.0, 0.0], [9.0, 1.0, 1.0, 1.0])
    >>> w.round(3), certified
    (array([0.264, 0.907, 0.329, 0.   ]), True)
    """
    if not isinstance(projection, Metric):
        raise ValueError(f"{projection!r} has no solution in a metric: use Hoyer, HoyerBetween, AtMost or Nonnegative")
    vector = as_vector(b)
    h, other = as_other(metric, "metric", vector), as_other(near, "near", vector)
    assert h is not None
    wrong = np.flatnonzero((h < 0) | ((h == 0) & (vector != 0)))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"metric[{i}] is {h[i]:g} and b[{i}] is {vector[i]:g}: the metric must be positive, or 0 where b is 0"
        )
    out = np.empty_like(vector)
    return out, projection.write_metric(vector, h, other, out)


def norm(x: Vector) -> float:
    """‖x‖₂, without overflow or underflow."""
    top = float(np.abs(x).max())
    return top * float(np.linalg.norm(x.astype(float) / top)) if top > 0 else 0.0


def norm_ratio(b: Vector) -> float:
    """‖b₊‖₁ / ‖b₊‖₂, without overflow or underflow; 1 if no entry is positive."""
    s1, s2 = map(float, positive_sums(b, 0.0))
    if not 1e-270 < s2 < 1e290 and b.max() > 0:
        s1, s2 = map(float, positive_sums(np.maximum(b, 0) / b.max(), 0.0))
    return s1 / math.sqrt(s2) if s2 > 0 else 1.0


def check_method(method: object, name: str = "method") -> None:
    """Raise an error if ``method`` is not in `METHODS`."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"{name}={method!r} is not one of {', '.join(map(repr, METHODS))}")


def sparse_opt(b: npt.ArrayLike, k: float, *, method: Method = "fast") -> Vector:
    """Maximise bᵀy subject to y ≥ 0, ‖y‖₁ = k and ‖y‖₂ = 1: the paper's Algorithm 2, exactly and in linear time.

    All feasible y have the same norm, so the solution is also the projection of b onto the feasible set.

    Parameters
    ----------
    b : array of shape (m,)
    k : float in [1, √m]
        1 is a single nonzero, √m is flat; ``k = √m − s(√m − 1)`` gives Hoyer sparsity s.
    method : {"fast", "sorted", "hoyer"}
        As for `Hoyer`.

    References
    ----------
    Potluru et al., "Block Coordinate Descent for Sparse NMF", Algorithm 2.

    Examples
    --------
    >>> y = sparse_opt([3.0, 2.0, 1.0, 0.0], 1.2)
    >>> y.round(3), round(float(y.sum()), 6)
    (array([0.974, 0.226, 0.   , 0.   ]), 1.2)
    """
    vector = as_vector(b)
    check_method(method)
    most = math.sqrt(vector.size)
    if not isinstance(k, numbers.Real) or not 1 - 1e-12 <= k <= most * (1 + 1e-12):
        raise ValueError(f"k={k} is outside [1, √m] = [1, {most:g}]: 1 is a single nonzero, √m is flat")
    k = min(max(float(k), 1.0), most)
    out = np.empty_like(vector)
    write_sparse(vector, k, None, out, method)
    return out


def hoyer_sparsity(x: npt.ArrayLike, axis: int | None = None) -> Any:
    """Hoyer's sparsity (√m − ‖x‖₁/‖x‖₂) / (√m − 1): 0 for a flat vector, 1 for a single nonzero.

    It is invariant to scale and sign. The sparsity of a zero vector is NaN; that of a vector of length 1 is 1.

    Parameters
    ----------
    x : array
    axis : int, optional
        The axis along which to compute it; by default ``x`` is treated as one vector.

    Examples
    --------
    >>> float(hoyer_sparsity([1, 1, 1, 1])), float(hoyer_sparsity([0, 5, 0, 0]))
    (0.0, 1.0)
    >>> hoyer_sparsity([[1, 0, 0, 0], [1, 1, 1, 1]], axis=1)
    array([1., 0.])
    """
    array = np.abs(np.asarray(x, dtype=float))
    if axis is None:
        array, axis = array.ravel(), 0
    m = array.shape[axis]
    if not m:
        raise ValueError("x is empty: sparsity needs at least one entry")
    top = array.max(axis=axis, keepdims=True)
    if not np.isfinite(top).all():
        value = array[~np.isfinite(array)][0]
        raise ValueError(f"x has an entry of magnitude {value}: every entry must be finite; replace or remove it")
    with np.errstate(invalid="ignore"):
        array /= top  # keeps the norms from overflowing; a zero vector becomes NaN
    ratio = array.sum(axis=axis) / np.sqrt(np.square(array).sum(axis=axis))
    if m == 1:
        return np.where(np.isnan(ratio), np.nan, 1.0)[()]
    return np.clip((math.sqrt(m) - ratio) / (math.sqrt(m) - 1), 0, 1)

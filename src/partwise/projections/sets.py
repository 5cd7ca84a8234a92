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

Sparsity is Hoyer's, see `sparsity`.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Vector
from .interface import Checked, Metric
from .largest import keep_largest
from .metric import write_in_metric
from .sparsity import Method, as_sparsity, check_method, l1_norm, write_sparse
from .vectors import divide_positive, norm, norm_ratio


@dataclass(frozen=True)
class Nonnegative(Metric):
    """{y ≥ 0}.

    Examples
    --------
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
    >>> from partwise import hoyer_sparsity
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
    >>> from partwise import hoyer_sparsity
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

    Where the nearest point would be zero, the result has a negligible norm instead, because the sparsity of a zero
    vector is not defined.

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

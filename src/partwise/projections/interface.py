"""What a set is: the protocol for users' own sets, and the base classes of those in `sets`."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..runtime.arrays import Vector
from .vectors import as_other, as_vector


@runtime_checkable
class Projection(Protocol):
    """A constraint set for the columns of a factor: any object with this ``__call__``.

    A user's own set may also have an attribute ``unit_norm``, which says whether all of its points have norm 1 (True)
    or every point may be multiplied by any positive number (False); and a method ``relaxed(share)``, which returns the
    set with the sparsity multiplied by ``share``, for starts that need a less sparse form.
    """

    def __call__(self, b: npt.ArrayLike, near: npt.ArrayLike | None = None) -> Vector:
        """The point of the set nearest to ``b``; ``near`` breaks ties."""
        ...


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
        Breaks ties. Without a certificate, it is also the start of a local descent.

    Returns
    -------
    w : array of shape (m,)
    certified : bool

    Examples
    --------
    >>> from partwise import Hoyer
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

"""Intervals of sparsity as second-order cones: the tangent-plane constraint algorithm.

For x ≥ 0 of length m let c(s) = √m − s(√m − 1). Then sparsity(x) ≤ hi means ‖x‖ ≤ 1ᵀx / c(hi), a convex cone, and
sparsity(x) ≥ lo means ‖x‖ ≥ 1ᵀx / c(lo), the reverse of a cone. The reverse cone is replaced by the half-space nᵀx ≥ 0
that touches it along the current column w: n = w/‖w‖ − 1/c(lo). Every point of the half-space has
‖x‖ ≥ wᵀx/‖w‖ ≥ 1ᵀx/c(lo) and is sparse enough, so the next factor is feasible. w lies in the half-space, so the loss
cannot rise.

References
----------
M. Heiler and C. Schnörr, "Learning sparse representations by non-negative matrix factorization and sequential cone
programming", JMLR 7 (2006): TPC.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import scipy.sparse as sp

from ..projections import FreeNorm, Projection
from ..statistics import Array, Stats
from .interface import Sets, State, Update


@dataclass(frozen=True)
class Cone(Update):
    """Solve for the whole factor with all constraints at once, and repeat with new tangent planes.

    The sets must be `FreeNorm` of Hoyer sets. The first call solves without the lower bounds, projects the solution,
    and starts from it if it is better than the given factor. Solutions are projected, because the solver has a
    tolerance. A solution that is worse than the current factor is discarded.

    Parameters
    ----------
    rounds : int
        The largest number of tangent planes for the same statistics.
    tol : float
        Stop when a new plane lowers the loss by less than tol · ½‖X‖².
    """

    rounds: int = 5
    tol: float = 1e-6

    def __call__(self, factor: Array, stats: Stats, sets: Sets, state: State) -> tuple[Array, State]:
        """Improve ``factor``."""
        solver = load_clarabel()
        ends = np.array([norm_ends(sets[j], len(factor)) for j in range(len(sets))])
        unit = np.sqrt(np.maximum(stats.gram.diagonal(), 0))
        unit[unit == 0] = 1
        loss = stats.loss(factor)
        if not state.get("started", False):
            free = projected(solve_cone(solver, factor, stats, ends, unit, planes=False), factor, sets)
            if stats.loss(free) < loss:
                factor, loss = free, stats.loss(free)
        for _ in range(self.rounds):
            touching = np.array([f if f.any() else sets[j](stats.cross[:, j]) for j, f in enumerate(factor.T)]).T
            moved = projected(solve_cone(solver, touching, stats, ends, unit, planes=True), factor, sets)
            better = stats.loss(moved)
            if not better < loss:
                break
            factor, gain, loss = moved, loss - better, better
            if gain < self.tol * 0.5 * stats.sqnorm:
                break
        return factor, {"started": True}


def load_clarabel() -> ModuleType:
    """Import the solver. Raises ImportError with the command that installs it."""
    try:
        import clarabel  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ImportError("tpc needs the solver Clarabel: pip install 'partwise[cone]'") from None
    return clarabel


def norm_ends(s: Projection, m: int) -> tuple[float, float]:
    """(c(hi), c(lo)), the bounds of ‖x‖₁/‖x‖₂."""
    if not isinstance(s, FreeNorm):
        raise ValueError(f"Cone does not support the set {s!r}: use FreeNorm(Hoyer(…)) or FreeNorm(HoyerBetween(…))")
    return s.unit.l1_range(m)


def projected(solution: Array | None, factor: Array, sets: Sets) -> Array:
    """Project a solution to the sets, in the factor's precision. Without a solution, return the factor."""
    if solution is None:
        return factor
    moved = np.asfortranarray(np.maximum(solution, 0), dtype=factor.dtype)
    moved = sets.project(moved, near=factor)
    return np.asfortranarray(moved)


def solve_cone(
    clarabel: ModuleType, factor: Array, stats: Stats, ends: Array, unit: Array, planes: bool
) -> Array | None:
    """min ½⟨FᵀF, gram⟩ − ⟨F, cross⟩ over the cones (and the half-spaces at ``factor``); None if the solver fails.

    Columns are scaled by √G_jj and by the size of cross, so that the solver's tolerances are appropriate.
    """
    m, r = factor.shape
    cross = stats.cross / unit
    size = float(np.abs(cross).max()) or 1.0
    P = sp.kron(sp.csc_array(np.triu(stats.gram / np.outer(unit, unit))), sp.eye_array(m), format="csc")
    q = -np.asarray(cross, dtype=float).T.ravel() / size
    rows = [-sp.eye_array(m * r, format="csc")]
    cones = [clarabel.NonnegativeConeT(m * r)]
    if planes:
        norms = np.linalg.norm(factor, axis=0)
        binding = (norms > 0) & (ends[:, 1] < np.sqrt(m) * (1 - 1e-12))
        normals = [
            sp.csc_array(-(factor[:, j] / norms[j] - 1 / ends[j, 1])[None]) if binding[j] else sp.csc_array((0, m))
            for j in range(r)
        ]
        if binding.any():
            rows.append(sp.block_diag(normals, format="csc"))
            cones.append(clarabel.NonnegativeConeT(int(binding.sum())))
    for j in np.flatnonzero(ends[:, 0] > 1 + 1e-12):
        block = sp.vstack([sp.csc_array(np.full((1, m), -1 / ends[j, 0])), -sp.eye_array(m)])
        before, after = sp.csc_array((m + 1, j * m)), sp.csc_array((m + 1, (r - 1 - j) * m))
        rows.append(sp.hstack([before, block, after], format="csc"))
        cones.append(clarabel.SecondOrderConeT(m + 1))
    A = sp.csc_matrix(sp.vstack(rows, format="csc"))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(sp.csc_matrix(P), q, A, np.zeros(A.shape[0]), cones, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    return np.asarray(answer.x).reshape(r, m).T * size / unit

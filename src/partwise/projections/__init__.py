"""Constraint sets and the projections onto them: one vector at a time, or a matrix whose columns share a constraint."""

from .grouped import Grouped
from .sets import (
    AtMost,
    FreeNorm,
    Hoyer,
    HoyerBetween,
    Method,
    Nonnegative,
    Projection,
    Simplex,
    hoyer_sparsity,
    solve_in_metric,
    sparse_opt,
)

__all__ = [
    "AtMost",
    "FreeNorm",
    "Grouped",
    "Hoyer",
    "HoyerBetween",
    "Method",
    "Nonnegative",
    "Projection",
    "Simplex",
    "hoyer_sparsity",
    "solve_in_metric",
    "sparse_opt",
]

"""Constraint sets and the projections onto them: one vector at a time, or a matrix whose columns share a constraint."""

from .grouped import Grouped
from .interface import Projection, solve_in_metric
from .sets import AtMost, Bounded, FreeNorm, Hoyer, HoyerBetween, Nonnegative, Simplex
from .sparsity import Method, hoyer_sparsity, sparse_opt

__all__ = [
    "AtMost",
    "Bounded",
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

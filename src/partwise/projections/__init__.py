"""Sets, and the nearest point of each. Sees one vector at a time, or one matrix where its columns share a set."""

from .grouped import Grouped
from .sets import AtMost, FreeNorm, Hoyer, HoyerBetween, Method, Nonnegative, Projection, hoyer_sparsity, sparse_opt

__all__ = [
    "AtMost",
    "FreeNorm",
    "Grouped",
    "Hoyer",
    "HoyerBetween",
    "Method",
    "Nonnegative",
    "Projection",
    "hoyer_sparsity",
    "sparse_opt",
]

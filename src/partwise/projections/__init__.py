"""Sets, and the nearest point of each. Sees one vector at a time."""

from .sets import AtMost, Hoyer, HoyerBetween, Method, Nonnegative, Projection, hoyer_sparsity, sparse_opt

__all__ = ["AtMost", "Hoyer", "HoyerBetween", "Method", "Nonnegative", "Projection", "hoyer_sparsity", "sparse_opt"]

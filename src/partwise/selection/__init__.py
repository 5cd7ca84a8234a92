"""Model selection: compare ranks and sparsities on held-out entries of X."""

from .result import Selection
from .search import select

__all__ = ["Selection", "select"]

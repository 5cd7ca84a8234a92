"""Which rank, which sparsity: models compared on entries that they have not seen, and shown in a table."""

from .result import Selection
from .search import select

__all__ = ["Selection", "select"]

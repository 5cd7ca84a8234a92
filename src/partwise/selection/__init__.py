"""Which rank, which sparsity: models compared on entries that they have not seen, and shown in a table."""

from .search import select
from .table import Selection

__all__ = ["Selection", "select"]

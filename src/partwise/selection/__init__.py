"""Model selection: compare ranks and sparsities on held-out entries of X."""

from .result import Selection as Selection
from .search import select as select

"""Single cells, in the style of scanpy: gene programs of exact sparsity, and programs that recur (as in cNMF).

``pip install 'partwise[cells]'`` installs AnnData.
"""

from .cnmf import cNMF
from .consensus import CellConsensus, CellPrograms, consensus
from .donors import programs
from .sparse import sparse_nmf

__all__ = ["CellConsensus", "CellPrograms", "cNMF", "consensus", "programs", "sparse_nmf"]

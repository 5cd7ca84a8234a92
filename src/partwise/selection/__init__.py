"""Model selection: ranks and sparsities compared on held-out entries of X, and components that recur over runs."""

from .consensus import Consensus as Consensus
from .consensus import consensus as consensus
from .programs import Programs as Programs
from .result import Selection as Selection
from .search import select as select

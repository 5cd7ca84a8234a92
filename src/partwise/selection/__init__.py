"""Model selection: ranks and sparsities compared on held-out entries of X, and components that recur over runs."""

from .connectivity import Connectivity as Connectivity
from .consensus import consensus as consensus
from .families import Families as Families
from .families import match as match
from .programs import Programs as Programs
from .result import Selection as Selection
from .search import select as select
from .stability import Consensus as Consensus

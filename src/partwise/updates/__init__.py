"""Updates: algorithms that improve one factor given its statistics, without access to X."""

from .bounded import WithinBounds
from .coding import Coding
from .cone import Cone
from .gradient import Gradient
from .greedy import Greedy
from .halving import Halving
from .interface import Columns, Kept, Rows, Sets, State, Update, WholeFactor
from .kl_multiplicative import Divergence
from .multiplicative import Multiplicative
from .newton import Newton, bolder, shier
from .partly import Known, Partly
from .path import Path
from .pivot import Pivot
from .pruned import Pruned
from .sequential import Sequential
from .shared import Shared
from .simplex import SumToOne
from .weighted import Weighted

__all__ = [
    "Coding",
    "Columns",
    "Cone",
    "Divergence",
    "Gradient",
    "Greedy",
    "Halving",
    "Kept",
    "Known",
    "Multiplicative",
    "Newton",
    "Partly",
    "Path",
    "Pivot",
    "Pruned",
    "Rows",
    "Sequential",
    "Sets",
    "Shared",
    "State",
    "SumToOne",
    "Update",
    "Weighted",
    "WholeFactor",
    "WithinBounds",
    "bolder",
    "shier",
]

"""Ways to improve one factor from its statistics. None of them sees X."""

from .extrapolated import Extrapolated
from .gradient import Gradient
from .greedy import Greedy
from .multiplicative import Multiplicative
from .pivot import Pivot
from .protocol import Columns, State, Update
from .sequential import Sequential

__all__ = ["Columns", "Extrapolated", "Gradient", "Greedy", "Multiplicative", "Pivot", "Sequential", "State", "Update"]

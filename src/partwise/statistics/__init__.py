"""The statistics of X that updates use in place of X, for each loss."""

from ..runtime.arrays import Array as Array
from .divergence import Quadratic as Quadratic
from .divergence import Rates as Rates
from .divergence import Slopes as Slopes
from .divergence import Unpenalised as Unpenalised
from .divergence import refuse_penalties as refuse_penalties
from .factors import NOTHING as NOTHING
from .factors import Additive as Additive
from .factors import added as added
from .factors import as_factor as as_factor
from .factors import dead_components as dead_components
from .factors import gram as gram
from .factors import inner as inner
from .factors import sum_over_rows as sum_over_rows
from .least_squares import Stats as Stats
from .least_squares import relative_error as relative_error
from .weighted import WeightedStats as WeightedStats

"""Self-contained web pages: the report of a fit, and the explorer of many sparsities."""

from .explore import Exploration as Exploration
from .explore import explore as explore
from .report import report as report

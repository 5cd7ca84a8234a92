"""Self-contained web pages: the report of a fit or a consensus, and the explorer of many sparsities."""

from .consensus import consensus_page as consensus_page
from .explore import Exploration as Exploration
from .explore import explore as explore
from .report import report as report

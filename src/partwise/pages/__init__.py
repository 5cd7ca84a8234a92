"""Report a fit or a consensus as one self-contained HTML file."""

from .consensus import consensus_page as consensus_page
from .report import report as report

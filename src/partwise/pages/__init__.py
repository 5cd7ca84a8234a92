"""Report a fit as one self-contained HTML file."""

from .report import report as report

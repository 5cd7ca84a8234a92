"""A fit as one web page that needs nothing else: no network, no server, no Python."""

from .report import report

__all__ = ["report"]

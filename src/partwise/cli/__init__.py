"""The command line: one command a file. The only code that prints."""

from .main import main, parser

__all__ = ["main", "parser"]

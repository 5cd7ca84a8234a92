"""Interfaces for single fields of research, public as ``partwise.brain`` and ``partwise.cells``."""

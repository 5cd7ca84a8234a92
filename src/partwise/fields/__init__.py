"""Interfaces for single fields of research, public as ``partwise.brain``, ``partwise.cells`` and ``partwise.sound``."""

"""What one field of research needs; each file is a public module: ``partwise.brain``, ``partwise.cells``."""

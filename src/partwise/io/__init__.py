"""Read data with `read` and write results. The file extension selects the format; rows of X are samples."""

from .formats import FORMATS, read
from .table import Table
from .write import check_target, convert, write_activations, write_components

__all__ = ["FORMATS", "Table", "check_target", "convert", "read", "write_activations", "write_components"]

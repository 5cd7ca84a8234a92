"""Files of each field in and out: one entrance, `read`, and writers that go by the ending of the name.

Whatever it comes from, X is samples × features: rows are samples.
"""

from .formats import FORMATS, read
from .table import Table
from .write import check_target, convert, write_activations, write_components

__all__ = ["FORMATS", "Table", "check_target", "convert", "read", "write_activations", "write_components"]

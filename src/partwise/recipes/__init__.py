"""Published methods, each defined as a list of blocks. The loop is shared."""

from .bisparse import bisparse
from .cp import cp, encode
from .grouped import grouped
from .l0 import l0, l0_path
from .nmfsc import nmfsc
from .nsnmf import nsnmf
from .penalised import nnsc, snmf
from .ssnmf import SOLVERS, ssnmf
from .task import RECIPES, Task
from .tpc import tpc

__all__ = [
    "RECIPES",
    "SOLVERS",
    "Task",
    "bisparse",
    "cp",
    "encode",
    "grouped",
    "l0",
    "l0_path",
    "nmfsc",
    "nnsc",
    "nsnmf",
    "snmf",
    "ssnmf",
    "tpc",
]

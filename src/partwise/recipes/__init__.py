"""Published methods, each defined as a list of blocks. The loop is shared."""

from .bisparse import bisparse as bisparse
from .cp import cp as cp
from .cp import encode as encode
from .grouped import grouped as grouped
from .l0 import l0 as l0
from .l0 import l0_path as l0_path
from .nmfsc import nmfsc as nmfsc
from .nsnmf import nsnmf as nsnmf
from .penalised import nnsc as nnsc
from .penalised import snmf as snmf
from .registry import RECIPES as RECIPES
from .ssnmf import SOLVERS as SOLVERS
from .ssnmf import ssnmf as ssnmf
from .task import Task as Task
from .tpc import tpc as tpc

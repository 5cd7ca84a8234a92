"""Sparse nonnegative matrix factorization: you set the sparsity of each component, and get exactly that.

The sparsity is Hoyer's L1/L2 measure: one value for all components, one for each, or intervals.

>>> import partwise as pw
>>> from sklearn.datasets import load_digits
>>> model = pw.SparseNMF(n_components=16, sparsity=0.7, random_state=0).fit(load_digits().data)
>>> model.components_.shape
(16, 64)
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .data import COO as COO
    from .engine.checkpoint import CheckpointWarning as CheckpointWarning
    from .engine.metrics import match_parts as match_parts, specificity as specificity
    from .runtime.untrusted import UnreadableError as UnreadableError
    from .engine.result import Result as Result
    from .engine.stopping import Iteration as Iteration
    from .engine.natural import CapacityWarning as CapacityWarning
    from .estimators import MiniBatchSparseNMF as MiniBatchSparseNMF, SparseCP as SparseCP, SparseNMF as SparseNMF
    from .estimators import load as load
    from .fields import brain as brain, cells as cells, sound as sound
    from .pages import Exploration as Exploration, explore as explore, report as report
    from .projections import AtMost as AtMost, FreeNorm as FreeNorm, Grouped as Grouped, Hoyer as Hoyer
    from .projections import Bounded as Bounded, HoyerBetween as HoyerBetween, Nonnegative as Nonnegative
    from .projections import hoyer_sparsity as hoyer_sparsity, solve_in_metric as solve_in_metric
    from .projections import Simplex as Simplex, sparse_opt as sparse_opt
    from .recipes import bisparse as bisparse, cp as cp, grouped as grouped, l0 as l0, l0_path as l0_path
    from .recipes import nmfsc as nmfsc, nnsc as nnsc, nsnmf as nsnmf, snmf as snmf, ssnmf as ssnmf, tpc as tpc
    from .selection import Connectivity as Connectivity, Consensus as Consensus, Families as Families
    from .selection import Programs as Programs, Selection as Selection, consensus as consensus, match as match
    from .selection import select as select

_PUBLIC = {  # where each public name comes from; imported when it is first used, so that ``import partwise`` is fast
    "data": ("COO",),
    "engine.checkpoint": ("CheckpointWarning",),
    "engine.metrics": ("match_parts", "specificity"),
    "engine.natural": ("CapacityWarning",),
    "engine.result": ("Result",),
    "engine.stopping": ("Iteration",),
    "estimators": ("MiniBatchSparseNMF", "SparseCP", "SparseNMF", "load"),
    "pages": ("Exploration", "explore", "report"),
    "projections": (
        "AtMost",
        "Bounded",
        "FreeNorm",
        "Grouped",
        "Hoyer",
        "HoyerBetween",
        "Nonnegative",
        "Simplex",
        "hoyer_sparsity",
        "solve_in_metric",
        "sparse_opt",
    ),
    "runtime.untrusted": ("UnreadableError",),
    "recipes": ("bisparse", "cp", "grouped", "l0", "l0_path", "nmfsc", "nnsc", "nsnmf", "snmf", "ssnmf", "tpc"),
    "selection": ("Connectivity", "Consensus", "Families", "Programs", "Selection", "consensus", "match", "select"),
}
_ROOMS = ("brain", "cells", "datasets", "io", "plotting", "sound")
_HOMES = {name: home for home, names in _PUBLIC.items() for name in names}

__all__ = [*sorted(_HOMES), *_ROOMS, "__version__"]
__path__.append(str(Path(__file__).parent / "fields"))  # partwise.brain, cells and sound are modules


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

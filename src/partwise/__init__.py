"""Partwise: you say how sparse each part must be, and it finds the parts.

Sparse nonnegative matrix factorization with exact L1/L2 (Hoyer) sparsity, per part or in an interval.

>>> import partwise as pw
>>> from sklearn.datasets import load_digits
>>> model = pw.SparseNMF(n_components=16, sparsity=0.7, random_state=0).fit(load_digits().data)
>>> model.components_.shape
(16, 64)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .ask import CapacityWarning
    from .data import COO
    from .estimators import MiniBatchSparseNMF, SparseCP, SparseNMF, load
    from .factorize import Iteration, Result
    from .projections import AtMost, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity, sparse_opt
    from .recipes import bisparse, cp, grouped, l0, l0_path, nmfsc, nnsc, nsnmf, snmf, ssnmf, tpc
    from .selection import Selection, select

_HOMES = {
    "AtMost": "projections",
    "COO": "data",
    "CapacityWarning": "ask",
    "FreeNorm": "projections",
    "Grouped": "projections",
    "Hoyer": "projections",
    "HoyerBetween": "projections",
    "Iteration": "factorize",
    "MiniBatchSparseNMF": "estimators",
    "Nonnegative": "projections",
    "Result": "factorize",
    "Selection": "selection",
    "SparseCP": "estimators",
    "SparseNMF": "estimators",
    "bisparse": "recipes",
    "cp": "recipes",
    "grouped": "recipes",
    "hoyer_sparsity": "projections",
    "l0": "recipes",
    "l0_path": "recipes",
    "load": "estimators",
    "nmfsc": "recipes",
    "nnsc": "recipes",
    "nsnmf": "recipes",
    "select": "selection",
    "snmf": "recipes",
    "sparse_opt": "projections",
    "ssnmf": "recipes",
    "tpc": "recipes",
}

__all__ = [
    "COO",
    "AtMost",
    "CapacityWarning",
    "FreeNorm",
    "Grouped",
    "Hoyer",
    "HoyerBetween",
    "Iteration",
    "MiniBatchSparseNMF",
    "Nonnegative",
    "Result",
    "Selection",
    "SparseCP",
    "SparseNMF",
    "__version__",
    "bisparse",
    "cp",
    "grouped",
    "hoyer_sparsity",
    "l0",
    "l0_path",
    "load",
    "nmfsc",
    "nnsc",
    "nsnmf",
    "select",
    "snmf",
    "sparse_opt",
    "ssnmf",
    "tpc",
]

_ROOMS = ("brain", "cells", "datasets", "io", "plotting", "report")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import partwise`` is immediate."""
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

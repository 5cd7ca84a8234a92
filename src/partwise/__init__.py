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
    from .estimators import SparseNMF
    from .factorize import Iteration, Result
    from .projections import AtMost, Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity, sparse_opt
    from .recipes import ssnmf

_HOMES = {
    "AtMost": "projections",
    "CapacityWarning": "ask",
    "Hoyer": "projections",
    "HoyerBetween": "projections",
    "Iteration": "factorize",
    "Nonnegative": "projections",
    "Result": "factorize",
    "SparseNMF": "estimators",
    "hoyer_sparsity": "projections",
    "sparse_opt": "projections",
    "ssnmf": "recipes",
}

__all__ = [
    "AtMost",
    "CapacityWarning",
    "Hoyer",
    "HoyerBetween",
    "Iteration",
    "Nonnegative",
    "Result",
    "SparseNMF",
    "__version__",
    "hoyer_sparsity",
    "sparse_opt",
    "ssnmf",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import partwise`` is immediate."""
    if name not in _HOMES:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""The paper's experiments, one file per figure, run by ``make reproduce``. Not part of the installed package.

Each file defines an ``EXPERIMENT``: how to run, draw and judge it, in full size and in a quick version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .experiment import Experiment

NAMES = (
    "figure1_left",
    "figure1_right",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "figure6",
    "figure7",
    "appendix",
)


def find(name: str) -> Experiment:
    """Return the experiment of that name.

    >>> find("figure4").title
    'ORL: error against time'
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} is not one of the figures {', '.join(NAMES)}")
    found: Experiment = import_module(f".{name}", __name__).EXPERIMENT
    return found

"""What all plots share: figures, colours, axes, and the description of common parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..engine.options import full_docstring
from ..statistics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Canvas: TypeAlias = "Figure | SubFigure"
Function = TypeVar("Function", bound=Callable[..., Any])

# Okabe & Ito (2008): eight colours that are distinct for all types of colour vision
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
INK = COLOURS[0]
OUTSIDE = "0.9"  # grey of the area outside the mask
STYLES = ("-", "--", "-.", ":")
SHARED = {
    "title": "title : str, optional",
    "figure": "figure : Figure or SubFigure, optional\n    Draw into this figure; by default a new one.",
}


def documented(function: Function) -> Function:
    """Add the title, the figure and the returned figure to the docstring of a plotting function."""
    function.__doc__ = full_docstring(function.__doc__, {}, SHARED, "Figure or SubFigure")
    return function


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; ``width`` and ``height`` in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def line_style(k: int) -> dict[str, Any]:
    """Colour and style of the ``k``-th line."""
    return {"color": COLOURS[k % 8], "linestyle": STYLES[k // 8 % 4]}


def full_scale(values: Array) -> float:
    """The largest value, for the scale of colours; 1 if all are zero."""
    return float(values.max()) or 1.0


def open_frame(axis: Axes, grid: bool = False) -> None:
    """Remove the frame on top and on the right; draw a faint horizontal grid if asked."""
    axis.spines[["top", "right"]].set_visible(False)
    if grid:
        axis.grid(axis="y", color="0.5", alpha=0.25, linewidth=0.6)

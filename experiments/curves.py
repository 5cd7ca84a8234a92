"""Curves with error bands, in panels that share one legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from partwise.plotting import new_figure

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe & Ito: safe for colour-blind readers
MARKERS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True)
class Line:
    """A curve with a band from ``low`` to ``high`` and named points."""

    label: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    points: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """Lines that share a pair of axes."""

    title: str
    lines: Sequence[Line]


def curves(
    panels: Sequence[Panel],
    *,
    title: str,
    x: str,
    y: str,
    log: str = "xy",
    columns: int = 4,
    caption: str = "",
) -> Any:
    """Draw all panels, with one legend below them.

    Parameters
    ----------
    panels : sequence of Panel
    title, caption : str
        Above the panels, and above the legend.
    x, y : str
        Labels of the axes, with units.
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    columns : int
        Panels per row.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = curves([Panel("left", [Line("a", [1, 2], [3, 4])])], title="t", x="time (s)", y="error")
    >>> figure.get_axes()[0].get_xlabel()
    'time (s)'
    """
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
    names = list(dict.fromkeys(name for panel in panels for line in panel.lines for name in line.points))
    width = max(3.4 * columns, 7.2)
    across = max(int(width / (0.08 * max(map(len, [*labels, *names])) + 0.5)), 1)  # legend entries per row
    figure = new_figure(width, 2.7 * rows + 0.7 + 0.22 * math.ceil(len([*labels, *names]) / across))
    axes = figure.subplots(rows, columns, squeeze=False)
    for place, axis in enumerate(axes.ravel()):
        if place >= len(panels):
            axis.set_axis_off()
            continue
        for line in panels[place].lines:
            draw_line(axis, line, COLOURS[labels.index(line.label) % len(COLOURS)], names)
        axis.set_title(panels[place].title, fontsize=9)
        scale(axis, log)
        axis.grid(alpha=0.3, linewidth=0.6)
        axis.tick_params(labelsize=8)
        if place + columns >= len(panels):
            axis.set_xlabel(x, fontsize=9)
        if place % columns == 0:
            axis.set_ylabel(y, fontsize=9)
    figure.suptitle(title, fontsize=12)
    legend(figure, axes[0, 0], labels, names, across, caption)
    return figure


def scale(axis: Any, log: str) -> None:
    """Set logarithmic axes with plain numbers, and with more ticks if they span few decades."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for name in log:
        axis.set(**{f"{name}scale": "log"})
        low, high = axis.get_xlim() if name == "x" else axis.get_ylim()
        own = axis.xaxis if name == "x" else axis.yaxis
        own.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 20 * low else (1, 3) if high < 300 * low else (1,)))
        own.set_major_formatter("{x:g}")
        own.set_minor_formatter(NullFormatter())


def draw_line(axis: Any, line: Line, colour: str, names: Sequence[str]) -> None:
    """Draw a curve, its band and its points."""
    alone = np.ptp(np.asarray(line.x)) == 0  # a single point has no line
    axis.plot(line.x, line.y, color=colour, linewidth=1.5, marker="o" if alone else None, markersize=4)
    if line.low is not None and line.high is not None:
        axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    for name, point in line.points.items():
        marker = MARKERS[names.index(name) % len(MARKERS)]
        axis.plot(*point, marker=marker, color=colour, markersize=5, markeredgecolor="white", markeredgewidth=0.6)


def legend(figure: Any, axis: Any, labels: Sequence[str], names: Sequence[str], across: int, caption: str) -> None:
    """Draw one legend below all panels: colours for lines, grey marks for points."""
    handles = [axis.plot([], [], color=COLOURS[i % len(COLOURS)], label=name)[0] for i, name in enumerate(labels)]
    handles += [
        axis.plot([], [], color="0.4", marker=MARKERS[i % len(MARKERS)], linestyle="none", label=name)[0]
        for i, name in enumerate(names)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), across),
        fontsize=9,
        title=caption,
        title_fontsize=8,
    )

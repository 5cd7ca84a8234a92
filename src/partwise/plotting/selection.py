"""Plot held-out error and stability over ranks and sparsities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..selection import Selection
from ..selection.result import sparsity_in_words
from .figures import Canvas, documented, line_style, new_figure, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP*X"  # distinct without colour too
PANELS = {  # column, axis label, upper bound
    "heldout": ("heldout_error", "held-out error\n(relative)", np.inf),
    "stability": ("stability", "stability\n(cosine between starts)", 1.0),
}
ZEROS = 1.0  # the held-out error of predicting zeros


@documented
def selection(found: Selection, *, title: str | None = None, figure: Canvas | None = None) -> Any:
    """Plot the result of `partwise.select`: held-out error and stability over the rank, one line per sparsity.

    Both panels share the axis of the ranks, so that they can be read together. Error bars are standard deviations over
    the splits. A dashed line marks the error of predicting zeros, if the errors come near it. No model is marked.

    Parameters
    ----------
    found : Selection

    Examples
    --------
    >>> import partwise as pw
    >>> found = pw.select(np.eye(6) + 1, ranks=[1, 2], n_splits=2, n_init=1, random_state=0)
    >>> [axis.get_xlabel() for axis in selection(found).axes]
    ['', 'rank']
    """
    if not isinstance(found, Selection):
        raise ValueError(f"found has type {type(found).__name__}: give the Selection that partwise.select returns")
    figure = figure or new_figure(6.4, 5.2)
    axes = figure.subplots(2, 1, sharex=True)
    for axis, name in zip(axes, PANELS, strict=True):
        draw_panel(axis, found, name)
    axes[1].set_xlabel("rank", fontsize=9)
    figure.align_ylabels(axes)
    if max(row["heldout_error"] for row in found.rows) > 0.9 * ZEROS:
        mark_zeros(axes[0])
    least = axes[1].get_ylim()[0]
    axes[1].set_ylim(min(least, 0.9), 1 + 0.04 * (1 - min(least, 0.9)))
    if not np.isfinite([row["stability"] for row in found.rows]).any():
        axes[1].set_ylim(0, 1.02)
        axes[1].text(0.5, 0.5, "needs n_init of at least 2", ha="center", va="center", transform=axes[1].transAxes)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        title="sparsity" if found.side == "components" else "activation\nsparsity",
        loc="outside right upper",
        frameon=False,
        fontsize=8,
        title_fontsize=8,
    )
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def mark_zeros(axis: Axes) -> None:
    """Draw a line at the error of predicting zeros."""
    axis.axhline(ZEROS, color="0.35", linestyle="--", linewidth=0.9, zorder=1)
    axis.annotate(
        "predicting zeros",
        (1, ZEROS),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7.5,
        color="0.35",
    )


def draw_panel(axis: Axes, found: Selection, name: str) -> None:
    """Draw one measurement over the ranks, one line with error bars per sparsity."""
    from matplotlib.ticker import MaxNLocator

    column, label, most = PANELS[name]
    asked = list(dict.fromkeys(row["sparsity"] for row in found.rows))
    ranks = sorted({row["rank"] for row in found.rows})
    gap = min(np.diff(ranks), default=1)
    for k, sparsity in enumerate(asked):
        rows = [row for row in found.rows if row["sparsity"] == sparsity]
        values, spreads = (np.array([row[c] for row in rows]) for c in (column, f"{name}_std"))
        aside = 0.05 * gap * (k - (len(asked) - 1) / 2)  # keeps error bars from overlapping
        axis.errorbar(
            np.array([row["rank"] for row in rows]) + aside,
            values,
            yerr=(np.nan_to_num(spreads), np.nan_to_num(np.clip(most - values, 0, spreads))),
            marker=MARKERS[k % 8],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.9,
            capsize=2,
            label=sparsity_in_words(sparsity),
            **line_style(k),
        )
    axis.set_ylabel(label, fontsize=9)
    if len(ranks) <= 12:
        axis.set_xticks(ranks)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.tick_params(labelsize=8)
    open_frame(axis, grid=True)

"""Plot the loss during a fit, and the sparsity of the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.summary import Summary, asked_intervals, summary
from ..engine.validation import as_choice
from ..statistics import Array
from .gallery import new_figure
from .looks import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

# Okabe & Ito (2008): eight colours that are distinct for all types of colour vision
COLOURS = (INK, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
STYLES = ("-", "--", "-.", ":")
BAR = 0.02  # bin width of the histogram


def convergence(
    models: Any,
    labels: Sequence[str] | None = None,
    *,
    against: str = "iterations",
    title: str | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Plot the loss over the iterations of one or several fits.

    Parameters
    ----------
    models : Result, fitted estimator, a sequence of them, or a dict {label: model}
    labels : sequence of str, optional
        One per model.
    against : {"iterations", "seconds"}
        The x-axis.
    title : str, optional
    figure : Figure or SubFigure, optional
        Draw into this figure; by default a new one.

    Returns
    -------
    Figure or SubFigure

    Examples
    --------
    >>> import partwise as pw
    >>> fits = {s: pw.ssnmf(np.eye(9), 3, sparsity=s, max_iter=5, tol=0) for s in (0.1, 0.2)}
    >>> convergence(fits).axes[0].get_xlabel()
    'iteration'
    """
    as_choice(against, "against", ("iterations", "seconds"))
    named = as_named(models, labels)
    figure = figure or new_figure(5.2, 3.0)
    axis = figure.subplots()
    positive = True
    for k, (label, known) in enumerate(named):
        x, losses = curve(known, against)
        positive &= bool((losses > 0).all())
        axis.plot(x, losses, color=COLOURS[k % 8], linestyle=STYLES[k // 8 % 4], linewidth=1.5, label=label)
        axis.plot(x[-1:], losses[-1:], "o", color=COLOURS[k % 8], markersize=3.5)
    if positive:
        axis.set_yscale("log")
        add_ticks(axis)
    axis.set_xlabel("iteration" if against == "iterations" else "time (s)")
    axis.set_ylabel("loss  ½‖X − model‖²")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.5", alpha=0.25, linewidth=0.6)
    if len(named) > 1 or named[0][0]:
        for text in axis.legend(frameon=False, fontsize=8).get_texts():
            text.set_parse_math(False)
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def as_named(models: Any, labels: Sequence[str] | None) -> list[tuple[str, Summary]]:
    """(label, summary) pairs, one per model."""
    if isinstance(models, Mapping):
        models, labels = list(models.values()), [*models] if labels is None else labels
    models = list(models) if isinstance(models, list | tuple) else [models]
    if labels is None:
        labels = [""] if len(models) == 1 else [f"fit {k}" for k in range(len(models))]
    if not models or len(labels) != len(models):
        raise ValueError(f"{len(labels)} labels for {len(models)} models: give one per model, and at least one model")
    return [(str(label), summary(model)) for label, model in zip(labels, models, strict=True)]


def curve(known: Summary, against: str) -> tuple[Array, Array]:
    """x and y of a loss curve."""
    if known.losses is None or not len(known.losses):
        raise ValueError("there is no loss history: give a Result or a fitted estimator")
    losses = np.asarray(known.losses, dtype=float)
    if against == "seconds":
        if known.times is None:
            raise ValueError("this fit has no recorded times: use against='iterations'")
        return np.asarray(known.times), losses
    first = 0 if known.n_iter is None else known.n_iter + 1 - len(losses)  # a mini-batch fit has no initial loss
    return np.arange(first, first + len(losses)), losses


def add_ticks(axis: Any) -> None:
    """Add ticks between the powers of ten if a logarithmic axis spans less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_ylim()
    if high < 50 * low:
        few = MaxNLocator(5) if high < 2 * low else LogLocator(base=10, subs=(1, 2, 3, 5, 7))
        axis.yaxis.set_major_locator(few)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: in_powers(x)))
        axis.yaxis.set_minor_formatter(NullFormatter())


def in_powers(x: float) -> str:
    """Format a number with a power of ten instead of an exponent.

    >>> in_powers(30.0), in_powers(250000.0), in_powers(1e-7)
    ('30', '2.5×10⁵', '10⁻⁷')
    """
    digits, _, power = f"{x:.4g}".partition("e")
    if not power:
        return digits
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"


def sparsity_histogram(
    model: Any, asked: Any = None, *, title: str | None = None, figure: Figure | SubFigure | None = None
) -> Any:
    """Plot a histogram of the parts' Hoyer sparsity, and the requested sparsity.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    asked : like ``sparsity`` of `partwise.SparseNMF`
        The requested sparsity: a number, a tuple (lo, hi), or a list with one per part; by default that of the model.
        Numbers are drawn as lines, intervals as bands.
    title : str, optional
        By default the largest deviation from the requested sparsity; "" for none.
    figure : Figure or SubFigure, optional

    Returns
    -------
    Figure or SubFigure

    Examples
    --------
    >>> figure = sparsity_histogram([[3.0, 0.0, 4.0, 0.0], [0.0, 1.0, 0.0, 0.0]], asked=0.6)
    >>> figure.axes[0].get_title()
    'largest deviation from the requested sparsity: 0.4'
    """
    figure = figure or new_figure(5.2, 3.0)
    from matplotlib.ticker import MaxNLocator

    known = summary(model)
    intervals = known.asked if asked is None else asked_intervals(asked, known.n_components)
    axis = figure.subplots()
    achieved = known.sparsity[~np.isnan(known.sparsity)].round(
        9
    )  # keep equal values in one bin despite rounding errors
    middle = 0.0 if intervals is None else float(np.nanmin(intervals))  # centre a bin on the requested sparsity
    edges = (middle + BAR * (np.arange(-51, 52) - 0.5)).tolist()
    axis.hist(achieved, bins=edges, color=INK, alpha=0.85, edgecolor="none", label="achieved")
    if intervals is not None:
        draw_asked(axis, intervals)
        distance = float(np.nanmax(distances(known.sparsity, intervals), initial=0.0))
        deviation = "rounding only" if distance < 1e-9 else f"{distance:.1g}"
        title = f"largest deviation from the requested sparsity: {deviation}" if title is None else title
        axis.legend(frameon=False, fontsize=8)
    axis.set_xlim(-BAR / 2, 1 + BAR / 2)
    axis.set_xlabel("Hoyer sparsity  (0 flat, 1 a single feature)")
    axis.set_ylabel("parts")
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.spines[["top", "right"]].set_visible(False)
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def draw_asked(axis: Any, intervals: Array) -> None:
    """Draw a line for each requested number, a band for each interval."""
    asked = sorted({(lo, hi) for lo, hi in intervals.tolist() if lo == lo})
    for k, (lo, hi) in enumerate(asked):
        label = "requested" if not k else None
        if lo == hi:
            axis.axvline(lo, color=COLOURS[1], linestyle="--", linewidth=1.2, label=label)
        else:
            axis.axvspan(lo, hi, color=COLOURS[1], alpha=0.18, linewidth=0, label=label)


def distances(sparsity: Array, intervals: Array) -> Array:
    """Distance of each sparsity from its interval; NaN for unconstrained and for zero parts."""
    return np.maximum(np.maximum(intervals[:, 0] - sparsity, sparsity - intervals[:, 1]), 0.0)

"""How a fit went, and how sparse its parts became."""

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

# Okabe & Ito (2008): eight colours that people with any kind of colour vision tell apart
COLOURS = (INK, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
STYLES = ("-", "--", "-.", ":")
BAR = 0.02  # of sparsity, for each bar of the histogram


def convergence(
    models: Any,
    labels: Sequence[str] | None = None,
    *,
    against: str = "iterations",
    title: str | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Draw the loss over the iterations, of one fit or of several.

    Parameters
    ----------
    models : Result, fitted estimator, a sequence of them, or a dict {label: model}
    labels : sequence of str, optional
        One for each model.
    against : {"iterations", "seconds"}
    title : str, optional
    figure : Figure or SubFigure, optional
        Where to draw; by default a new figure.

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
        tame_ticks(axis)
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
    """(label, what is known) of each model."""
    if isinstance(models, Mapping):
        models, labels = list(models.values()), [*models] if labels is None else labels
    alone = not isinstance(models, list | tuple)
    models = [models] if alone else list(models)
    if labels is None:
        labels = [""] if len(models) == 1 else [f"fit {k}" for k in range(len(models))]
    if not models or len(labels) != len(models):
        raise ValueError(f"{len(labels)} labels for {len(models)} models: give one for each, and at least one model")
    return [(str(label), summary(model)) for label, model in zip(labels, models, strict=True)]


def curve(known: Summary, against: str) -> tuple[Array, Array]:
    """Where a loss curve goes: x and y."""
    if known.losses is None or not len(known.losses):
        raise ValueError("nothing is known of how these parts were reached: give a result or a fitted model")
    losses = np.asarray(known.losses, dtype=float)
    if against == "seconds":
        if known.times is None:
            raise ValueError("no times are known of this fit: give against='iterations'")
        return np.asarray(known.times), losses
    first = 0 if known.n_iter is None else known.n_iter + 1 - len(losses)  # a mini-batch fit has no loss at its start
    return np.arange(first, first + len(losses)), losses


def tame_ticks(axis: Any) -> None:
    """More ticks on a logarithmic axis of less than a decade or two, where powers of ten would be too few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_ylim()
    if high < 50 * low:
        few = MaxNLocator(5) if high < 2 * low else LogLocator(base=10, subs=(1, 2, 3, 5, 7))
        axis.yaxis.set_major_locator(few)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda x, _: in_powers(x)))
        axis.yaxis.set_minor_formatter(NullFormatter())


def in_powers(x: float) -> str:
    """A number with its power of ten as people write it.

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
    """Draw how many parts have which Hoyer sparsity, and what was asked.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    asked : like ``sparsity`` of `partwise.SparseNMF`
        A number, a tuple (lo, hi), or a list with one for each part; by default what the model was asked for. Drawn as
        lines and as bands.
    title : str, optional
        By default how far the parts are from what was asked; "" for none.
    figure : Figure or SubFigure, optional

    Returns
    -------
    Figure or SubFigure

    Examples
    --------
    >>> figure = sparsity_histogram([[3.0, 0.0, 4.0, 0.0], [0.0, 1.0, 0.0, 0.0]], asked=0.6)
    >>> figure.axes[0].get_title()
    'largest distance from what was asked: 0.4'
    """
    figure = figure or new_figure(5.2, 3.0)
    from matplotlib.ticker import MaxNLocator

    known = summary(model)
    intervals = known.asked if asked is None else asked_intervals(asked, known.n_components)
    axis = figure.subplots()
    achieved = known.sparsity[~np.isnan(known.sparsity)].round(9)  # rounding must not part what is equal
    middle = 0.0 if intervals is None else float(np.nanmin(intervals))  # what was asked is the middle of a bar
    edges = (middle + BAR * (np.arange(-51, 52) - 0.5)).tolist()
    axis.hist(achieved, bins=edges, color=INK, alpha=0.85, edgecolor="none", label="achieved")
    if intervals is not None:
        draw_asked(axis, intervals)
        distance = float(np.nanmax(distances(known.sparsity, intervals), initial=0.0))
        said = "rounding alone" if distance < 1e-9 else f"{distance:.1g}"
        title = f"largest distance from what was asked: {said}" if title is None else title
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
    """A line for each number asked, a band for each interval."""
    asked = sorted({(lo, hi) for lo, hi in intervals.tolist() if lo == lo})
    for k, (lo, hi) in enumerate(asked):
        label = "asked" if not k else None
        if lo == hi:
            axis.axvline(lo, color=COLOURS[1], linestyle="--", linewidth=1.2, label=label)
        else:
            axis.axvspan(lo, hi, color=COLOURS[1], alpha=0.18, linewidth=0, label=label)


def distances(sparsity: Array, intervals: Array) -> Array:
    """How far each part's sparsity is outside of its interval; nan where nothing is asked, or the part is zero."""
    return np.maximum(np.maximum(intervals[:, 0] - sparsity, sparsity - intervals[:, 1]), 0.0)

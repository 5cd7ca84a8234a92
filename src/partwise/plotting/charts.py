"""Plot the loss during a fit, the sparsity of the parts, and the activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.origins import Origin, Sound
from ..engine.summary import Model, Names, Summary, as_matrix, asked_intervals, summary
from ..engine.validation import Sparsity, as_choice
from ..statistics import Array
from .figures import COLOURS, INK, Canvas, documented, full_scale, line_style, new_figure, open_frame
from .gallery import as_labels
from .looks import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.02  # bin width of the histogram
WIDE = 5  # losses that fall by more than this factor have a logarithmic scale
NAMED = 40  # sample names are shown for at most this many samples


@documented
def convergence(
    models: Model | Sequence[Model] | Mapping[Any, Model],
    labels: Sequence[str] | None = None,
    *,
    against: str = "iterations",
    title: str | None = None,
    figure: Canvas | None = None,
) -> Any:
    """Plot the loss over the iterations of one or several fits.

    Parameters
    ----------
    models : Result, fitted estimator, a sequence of them, or a dict {label: model}
    labels : sequence of str, optional
        One per model.
    against : {"iterations", "seconds"}
        The x-axis.

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
    lowest, highest = np.inf, 0.0
    for k, (label, known) in enumerate(named):
        x, losses = curve(known, against)
        lowest, highest = min(lowest, float(losses.min())), max(highest, float(losses.max()))
        axis.plot(x, losses, **line_style(k), linewidth=1.5, label=label)
        axis.plot(x[-1:], losses[-1:], "o", color=COLOURS[k % 8], markersize=3.5)
    if highest > WIDE * lowest > 0:
        axis.set_yscale("log")
    else:
        axis.ticklabel_format(axis="y", scilimits=(-3, 5))
    axis.set_xlabel("iteration" if against == "iterations" else "time (s)")
    axis.locator_params(axis="x", integer=against == "iterations")
    words = {known.loss_in_words for _, known in named}
    axis.set_ylabel(f"loss  {words.pop()}" if len(words) == 1 else "loss")
    open_frame(axis, grid=True)
    if len(named) > 1 or named[0][0]:
        for text in axis.legend(frameon=False, fontsize=8).get_texts():
            text.set_parse_math(False)
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def as_named(models: object, labels: Sequence[str] | None) -> list[tuple[str, Summary]]:
    """(label, summary) pairs, one per model."""
    if isinstance(models, Mapping):
        models, labels = list(models.values()), [*models] if labels is None else labels
    models = list(models) if isinstance(models, list | tuple) else [models]
    if labels is None:
        labels = [""] if len(models) == 1 else [f"fit {k}" for k in range(len(models))]
    if not models:
        raise ValueError("there is no model: give at least one")
    if len(labels) != len(models):
        raise ValueError(f"{len(labels)} labels for {len(models)} models: give one per model")
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


@documented
def sparsity_histogram(
    model: Model, asked: Sparsity = None, *, title: str | None = None, figure: Canvas | None = None
) -> Any:
    """Plot a histogram of the components' Hoyer sparsity, and the requested sparsity.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    asked : like ``sparsity`` of `partwise.SparseNMF`
        The requested sparsity: a number, a tuple (lo, hi), or a list with one per component; by default that of the
        model. Numbers are drawn as lines, intervals as bands.
    title : str, optional
        By default the largest deviation from the requested sparsity; "" for none.

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
    achieved = known.sparsity[~np.isnan(known.sparsity)].round(9)  # equal up to rounding: in one bin
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
    open_frame(axis)
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def draw_asked(axis: Axes, intervals: Array) -> None:
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


@documented
def activations(
    model: Model,
    *,
    ordered: bool = False,
    sample_names: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    figure: Canvas | None = None,
) -> Any:
    """Plot the activations as a heat map: one row per sample, one column per component; over time for sound.

    Parameters
    ----------
    model : Result, fitted estimator that stores its activations, or array of shape (samples, r)
    ordered : bool
        Group the samples by their strongest component, the largest activation first.
    sample_names : sequence of str, optional
        By default the names stored in the model; shown for up to 40 samples.
    labels : sequence of str, optional
        Labels of the components; by default their numbers.

    Examples
    --------
    >>> activations([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]], ordered=True).axes[0].images[0].get_array().data
    array([[3., 0.], [1., 0.], [0., 2.]])
    """
    values, names, origin = activations_of(model)
    names = names if sample_names is None else list(sample_names)
    if names is not None and len(names) != len(values):
        raise ValueError(f"{len(names)} sample names for {len(values)} samples: give one per sample")
    n, r = values.shape
    words = [str(j) for j in range(r)] if labels is None else as_labels(labels, r)
    if isinstance(origin, Sound) and not ordered:
        return over_time(values, origin, words, title, figure)
    order = by_strongest_part(values) if ordered else np.arange(n)
    figure = figure or new_figure(max(3.2, min(1.6 + 0.24 * r, 8.0)), 4.2)
    axis = figure.subplots()
    image = axis.imshow(
        values[order], cmap="viridis", aspect="auto", interpolation="nearest", vmin=0, vmax=full_scale(values)
    )
    figure.colorbar(image, ax=axis, label="activation", shrink=0.8)
    step = -(-r // (12 if labels is None else 30))
    axis.set_xticks(range(0, r, step), [shortened(w) for w in words[::step]], parse_math=False)
    axis.tick_params(axis="x", rotation=0 if labels is None else 90)
    axis.locator_params(axis="y", integer=True)
    if names is not None and n <= NAMED:
        axis.set_yticks(range(n), [shortened(str(names[i])) for i in order.tolist()], fontsize=7, parse_math=False)
    axis.set_xlabel("part")
    axis.set_ylabel("sample, by strongest part" if ordered else "sample")
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def over_time(values: Array, sound: Sound, words: Sequence[str], title: str | None, figure: Canvas | None) -> Canvas:
    """Plot the activations of sound: one row per part, over seconds."""
    n, r = values.shape
    figure = figure or new_figure(6.4, min(1.4 + 0.24 * r, 8.0))
    axis = figure.subplots()
    half = sound.hop / sound.rate / 2  # a frame is drawn around its centre
    ends = (-half, sound.times(n)[-1] + half, r - 0.5, -0.5)
    colours: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": full_scale(values)}
    image = axis.imshow(values.T, extent=ends, aspect="auto", interpolation="nearest", **colours)
    figure.colorbar(image, ax=axis, label="activation", shrink=0.8)
    step = -(-r // 30)
    axis.set_yticks(range(0, r, step), [shortened(w) for w in words[::step]], parse_math=False)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("part")
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def activations_of(model: Model) -> tuple[Array, Names | None, Origin | None]:
    """Activations (samples × r), and the sample names and their origin if the model has them."""
    if not any(hasattr(model, name) for name in ("fit", "factors", "components")):
        return as_matrix(model, "activations", "samples × parts"), None, None
    known = summary(model)
    if known.activations is None:
        raise ValueError("this model stores no activations: use activations(model.transform(X))")
    return as_matrix(known.activations, "activations", "samples × parts"), known.sample_names, known.origin


def by_strongest_part(values: Array) -> Array:
    """Sample indices sorted by strongest part, then by decreasing activation; all-zero samples come last."""
    best, part = values.max(axis=1), values.argmax(axis=1)
    return np.lexsort((-best, np.where(best > 0, part, values.shape[1])))

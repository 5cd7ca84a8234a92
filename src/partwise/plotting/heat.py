"""Plot the activations as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.origins import Origin, Sound
from ..engine.summary import summary
from ..statistics import Array
from .gallery import as_labels, new_figure
from .looks import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

NAMED = 40  # sample names are shown for at most this many samples


def activations(
    model: Any,
    *,
    ordered: bool = False,
    sample_names: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Plot the activations as a heat map: one row per sample, one column per part; for sound, parts over time.

    Parameters
    ----------
    model : Result, fitted estimator that stores its activations, or array of shape (samples, r)
    ordered : bool
        Group the samples by their strongest part, the largest activation first.
    sample_names : sequence of str, optional
        By default the names stored in the model; shown for up to 40 samples.
    labels : sequence of str, optional
        Labels of the parts; by default their numbers.
    title : str, optional
    figure : Figure or SubFigure, optional

    Returns
    -------
    Figure or SubFigure

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
    top = float(values.max())
    limits: dict[str, Any] = {"vmin": 0, "vmax": top if top > 0 else 1}
    image = axis.imshow(values[order], cmap="viridis", aspect="auto", interpolation="nearest", **limits)
    figure.colorbar(image, ax=axis, label="activation", shrink=0.8)
    step = -(-r // (12 if labels is None else 30))
    axis.set_xticks(range(0, r, step), [shortened(w) for w in words[::step]], parse_math=False)
    axis.tick_params(axis="x", rotation=0 if labels is None else 90)
    if names is not None and n <= NAMED:
        axis.set_yticks(range(n), [shortened(str(names[i])) for i in order.tolist()], fontsize=7, parse_math=False)
    axis.set_xlabel("part")
    axis.set_ylabel("sample, by strongest part" if ordered else "sample")
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def over_time(values: Array, sound: Sound, words: Sequence[str], title: str | None, figure: Any) -> Any:
    """Plot the activations of sound: one row per part, over seconds."""
    n, r = values.shape
    figure = figure or new_figure(6.4, min(1.4 + 0.24 * r, 8.0))
    axis = figure.subplots()
    half = sound.hop / sound.rate / 2  # a frame is drawn around its centre
    ends = (-half, sound.times(n)[-1] + half, r - 0.5, -0.5)
    colours: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": float(values.max()) or 1.0}
    image = axis.imshow(values.T, extent=ends, aspect="auto", interpolation="nearest", **colours)
    figure.colorbar(image, ax=axis, label="activation", shrink=0.8)
    step = -(-r // 30)
    axis.set_yticks(range(0, r, step), [shortened(w) for w in words[::step]], parse_math=False)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("part")
    if title:
        axis.set_title(title, fontsize=10, parse_math=False)
    return figure


def activations_of(model: Any) -> tuple[Array, Sequence[Any] | None, Origin | None]:
    """Activations (samples × r), and the sample names and their origin if the model has them."""
    if hasattr(model, "fit") or hasattr(model, "factors") or hasattr(model, "components"):
        known = summary(model)
        if known.activations is None:
            raise ValueError("this model stores no activations: use activations(model.transform(X))")
        values, names, origin = np.asarray(known.activations), known.sample_names, known.origin
    else:
        values, names, origin = np.asarray(model), None, None
    if values.ndim != 2 or not values.size or values.dtype.kind not in "buif":
        raise ValueError(
            f"activations have shape {values.shape} and dtype {values.dtype}: give a samples × parts array of numbers"
        )
    if not np.isfinite(values).all() or values.min() < 0:
        raise ValueError("activations contain NaN, infinity or negative numbers: they must be finite and nonnegative")
    return values, names, origin


def by_strongest_part(values: Array) -> Array:
    """Sample indices sorted by strongest part, then by decreasing activation; all-zero samples come last."""
    best, part = values.max(axis=1), values.argmax(axis=1)
    return np.lexsort((-best, np.where(best > 0, part, values.shape[1])))

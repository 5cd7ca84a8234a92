"""Plot the parts of a model in a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.summary import summary
from ..engine.validation import as_count
from ..statistics import Array
from .looks import Look, look_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; ``width`` and ``height`` in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'partwise[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def gallery(
    model: Any,
    shape: Sequence[int] | None = None,
    *,
    kind: str | None = None,
    mask: Any = None,
    feature_names: Sequence[Any] | None = None,
    x: Any = None,
    x_label: str | None = None,
    top: int = 10,
    labels: bool | Sequence[str] = True,
    title: str | None = None,
    columns: int | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Plot each part as an image, a slice of a volume, a line, or bars of its strongest features.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    shape : (height, width), (x, y, z) or None
        Shape of a part. (height, width): an image, white for zero and black for the maximum of the part. (x, y, z): the
        axial slice of the volume through its peak. None or a 1-tuple: a line. By default ``part_shape_`` of the model.
    kind : {"images", "volumes", "lines", "bars"}, optional
        By default chosen by ``shape``; bars if ``shape`` is None and the features have names; lines over frequency for
        sound.
    mask : array of bool, of shape ``shape``
        True at the features, if they do not fill the image or volume; by default the mask of the model.
    feature_names : sequence of str, optional
        By default ``feature_names_in_`` of the model.
    x, x_label
        For lines: the positions of the features on the x-axis, and its label. By default the frequencies of sound, or
        the numbers of the features.
    top : int
        Number of bars per part.
    labels : bool or sequence of str
        Labels above the parts; True: their numbers.
    title : str, optional
    columns : int, optional
        Number of parts per row.
    figure : Figure or SubFigure, optional
        Draw into this figure; by default a new one.

    Returns
    -------
    Figure or SubFigure

    Examples
    --------
    >>> figure = gallery(np.eye(6), (2, 3), title="single pixels")
    >>> len(figure.axes)
    6
    """
    known = summary(model)
    if feature_names is not None:
        known = replace(known, feature_names=list(feature_names))
    look = look_of(known, shape, kind=kind, mask=mask, x=x, x_label=x_label, top=top)
    words = as_labels(labels, known.n_components)
    r = known.n_components
    across = look.across or math.ceil(math.sqrt(r))
    columns = min(across, r) if columns is None else as_count(columns, "columns")
    figure, axes = grid(look, r, columns, bool(words), title, figure)
    for j, part in enumerate(known.components):
        draw_part(axes[j], look, part, words[j] if words else "", j % columns == 0, j + columns >= r)
    return figure


def as_labels(labels: bool | Sequence[str], r: int) -> list[str]:
    """Labels of ``r`` parts; an empty list for False."""
    if isinstance(labels, bool):
        return [f"part {j}" for j in range(r)] if labels else []
    if len(labels) != r:
        raise ValueError(f"{len(labels)} labels for {r} parts: give one per part")
    return [str(label) for label in labels]


def grid(look: Look, count: int, columns: int, labelled: bool, title: str | None, figure: Any) -> tuple[Any, Array]:
    """A figure and its axes, one per part; surplus axes are hidden."""
    rows = math.ceil(count / columns)
    width, height = look.size
    figure = figure or new_figure(
        max(width * columns, 2.0), rows * (height + (0.2 if labelled else 0)) + (0.4 if title else 0)
    )
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    return figure, axes


def draw_part(axis: Any, look: Look, part: Array, label: str, left: bool = True, bottom: bool = True) -> None:
    """Draw one part with its label."""
    note = look.draw(axis, np.asarray(part))
    look.finish(axis, left, bottom)
    if label:
        axis.set_title(", ".join(filter(None, [label, note])), fontsize=8, pad=3, parse_math=False)

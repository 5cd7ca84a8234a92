"""Plot the components of a model in a grid, or next to the matching components of another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..engine.metrics import match_parts
from ..engine.summary import Model, summary
from ..engine.validation import as_count
from ..statistics import Array
from .figures import Canvas, documented, new_figure
from .looks import Look, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@documented
def gallery(
    model: Model,
    shape: Sequence[int] | None = None,
    *,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    x: npt.ArrayLike | None = None,
    x_label: str | None = None,
    top: int = 10,
    labels: bool | Sequence[str] = True,
    title: str | None = None,
    columns: int | None = None,
    figure: Canvas | None = None,
) -> Any:
    """Plot each component as an image, slices of a volume, a line, or bars of its strongest features.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    shape : (height, width), (height, width, 3), (x, y, z) or None
        Shape of a component. (height, width): an image, white for zero and black for the maximum of the component.
        (height, width, 3): the same in colour, black for zero. (x, y, z): the slice of the volume at the z of its peak,
        x to the right and y up; if the model knows the affine (``origin_``), three slices in standard orientation. None
        or a 1-tuple: a line. By default ``part_shape_`` of the model.
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
        Number of bars per component.
    labels : bool or sequence of str
        Labels above the components; True: their numbers.
    columns : int, optional
        Number of components per row.

    Examples
    --------
    >>> import numpy as np
    >>> figure = gallery(np.eye(6), (2, 3), title="single pixels")
    >>> len(figure.axes)
    6
    """
    known = summary(model)
    if feature_names is not None:
        known = replace(known, feature_names=list(feature_names))
    look = look_of(known, shape, kind=kind, mask=mask, x=x, x_label=x_label, top=top)
    r = known.n_components
    words = as_labels(labels, r)
    across = min(look.across or math.ceil(math.sqrt(r)), r) if columns is None else as_count(columns, "columns")
    rows = math.ceil(r / across)
    width, height = look.size
    figure = figure or new_figure(
        max(width * across, 2.0), rows * (height + (0.2 if words else 0)) + (0.4 if title else 0)
    )
    axes = figure.subplots(rows, across, squeeze=False).ravel()
    for axis in axes[r:]:
        axis.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    for j, part in enumerate(known.components):
        draw_part(axes[j], look, part, words[j] if words else "", j % across == 0, j + across >= r)
    return figure


@documented
def compare(
    a: Model,
    b: Model,
    shape: Sequence[int] | None = None,
    *,
    labels: tuple[str, str] = ("a", "b"),
    title: str | None = None,
    figure: Canvas | None = None,
    **look: Any,
) -> Any:
    """Plot the components of one model above the matching components of another, best match first.

    `partwise.match_parts` matches the components one to one, maximising the sum of their cosines.

    Parameters
    ----------
    a, b : Result, fitted estimator, or array of shape (r, features)
    shape, kind, mask, x, x_label, top
        How to plot a component, as in `gallery`; by default taken from ``a`` or ``b``.
    labels : pair of str
        Names of the two models.
    title : str, optional
        By default the mean cosine and the number of unmatched components.

    Examples
    --------
    >>> import numpy as np
    >>> figure = compare(np.eye(3), 2 * np.eye(3)[::-1], (1, 3))
    >>> figure.axes[3].get_title().split(chr(10))
    ['b: part 2', 'cosine 1']
    """
    if len(labels) != 2:
        raise ValueError(f"labels={labels!r}: give a pair of names, one per model")
    first, second = summary(a), summary(b)
    matching = match_parts(first.components, second.components)
    shape = shape or first.shape or second.shape
    looks = [look_of(known, shape, **look) for known in (first, second)]
    pairs = sorted(zip(*matching, strict=True), key=lambda pair: -pair[2])
    width, height = looks[0].size
    across = min(looks[0].across or 8, len(pairs))
    rows = -(-len(pairs) // across)
    figure = figure or new_figure(max((width + 0.25) * across, 3.0), 2 * rows * (height + 0.35) + 0.4)
    axes = figure.subplots(2 * rows, across, squeeze=False)
    for axis in axes[-2:, (len(pairs) - 1) % across + 1 :].ravel():
        axis.set_axis_off()
    for k, (i, j, cosine) in enumerate(pairs):
        row, column = divmod(k, across)
        left, bottom = column == 0, k + across >= len(pairs)
        label = f"{labels[1]}: part {j}\ncosine {cosine:.3g}"
        draw_part(axes[2 * row, column], looks[0], first.components[i], f"{labels[0]}: part {i}", left, False)
        draw_part(axes[2 * row + 1, column], looks[1], second.components[j], label, left, bottom)
    alone = abs(first.n_components - second.n_components)
    words = f"mean cosine {matching.cosines.mean():.3g}" + (f", {alone} parts without a match" if alone else "")
    figure.suptitle(title or words, fontsize=10, parse_math=False)
    return figure


def as_labels(labels: bool | Sequence[str], r: int) -> list[str]:
    """Labels of ``r`` parts; an empty list for False."""
    if isinstance(labels, bool):
        return [f"part {j}" for j in range(r)] if labels else []
    if len(labels) != r:
        raise ValueError(f"{len(labels)} labels for {r} parts: give one per part")
    return [str(label) for label in labels]


def draw_part(axis: Axes, look: Look, part: Array, label: str, left: bool, bottom: bool) -> None:
    """Draw one part with its label."""
    note = look.draw(axis, part, left, bottom)
    if label:
        axis.set_title(", ".join(filter(None, [label, note])), fontsize=8, pad=3, parse_math=False)

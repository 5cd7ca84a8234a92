"""Compare two models part by part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.metrics import match_parts
from ..engine.summary import Model, summary
from .figures import Canvas, new_figure, plot
from .gallery import draw_part
from .looks import look_of


@plot
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
    """Plot the parts of one model above the matching parts of another, best match first.

    `partwise.match_parts` matches the parts one to one, maximising the sum of their cosines.

    Parameters
    ----------
    a, b : Result, fitted estimator, or array of shape (r, features)
    shape, kind, mask, x, x_label, top
        How to plot a part, as in `gallery`; by default taken from ``a`` or ``b``.
    labels : pair of str
        Names of the two models.
    title : str, optional
        By default the mean cosine and the number of unmatched parts.

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

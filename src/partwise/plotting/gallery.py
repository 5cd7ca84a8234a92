"""Parts as pictures, one beside the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'partwise[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def gallery(
    components: npt.ArrayLike,
    shape: tuple[int, int],
    *,
    title: str | None = None,
    columns: int | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Draw each part as an image: white is zero, each part's own maximum is black.

    Parameters
    ----------
    components : array of shape (r, height · width)
    shape : (height, width)
    title : str, optional
    columns : int, optional
        Images in a row; by default about as many as there are rows.
    figure : Figure or SubFigure, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Figure or SubFigure
    """
    parts = np.asarray(components)
    if parts.ndim != 2 or not len(parts) or parts.shape[1] != math.prod(shape):
        raise ValueError(f"components of shape {parts.shape} do not fit images of {shape[0]} × {shape[1]} pixels")
    columns = columns or math.ceil(math.sqrt(len(parts)))
    rows = math.ceil(len(parts) / columns)
    figure = figure or new_figure(1.0 * columns, 1.0 * rows * shape[0] / shape[1] + (0.4 if title else 0))
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for axis in axes:
        axis.set_axis_off()
    for axis, part in zip(axes, parts, strict=False):
        top = part.max()
        axis.imshow(part.reshape(shape), cmap="gray_r", vmin=0, vmax=top if top > 0 else 1, interpolation="nearest")
        axis.add_patch(_frame(shape))
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _frame(shape: tuple[int, int]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((-0.5, -0.5), shape[1], shape[0], fill=False, edgecolor="0.75", linewidth=0.8, clip_on=False)

"""Sets of components side by side, each drawn as one mosaic of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partwise.plotting import new_figure
from partwise.statistics import Array


def mosaics(
    sets: Sequence[tuple[str, npt.ArrayLike]], shape: tuple[int, int], *, title: str, columns: int | None = None
) -> Any:
    """Draw each (name, components) as one mosaic: white is 0, black the component's maximum, red is negative.

    Parameters
    ----------
    sets : sequence of (str, array of shape (r, height · width))
    shape : (height, width)
    title : str
    columns : int, optional
        Mosaics per row (default: all in one row).

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = mosaics([("left", np.eye(6)), ("right", np.eye(6))], (2, 3), title="parts")
    >>> [axis.get_title() for axis in figure.get_axes()]
    ['left', 'right']
    """
    columns = columns or len(sets)
    rows = math.ceil(len(sets) / columns)
    wide = [np.asarray(parts) for _, parts in sets]
    tall = mosaic(wide[0], shape).shape
    figure = new_figure(2.6 * columns, (2.6 * tall[0] / tall[1] + 0.4) * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes:
        axis.set_axis_off()
    for axis, (name, _), parts in zip(axes, sets, wide, strict=False):
        draw_mosaic(axis, name, parts, shape)
    figure.suptitle(title, fontsize=12)
    return figure


def draw_mosaic(axis: Any, name: str, parts: Array, shape: tuple[int, int]) -> None:
    """Draw one mosaic. In the colour map RdGy, positive values are grey, as in gray_r."""
    colours = {"cmap": "RdGy", "vmin": -1, "vmax": 1} if parts.min() < 0 else {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    axis.imshow(mosaic(parts, shape), interpolation="nearest", **colours)
    axis.set_title(name, fontsize=9)
    axis.set_axis_off()


def mosaic(parts: Array, shape: tuple[int, int]) -> Array:
    """The components in a square, each divided by its maximum, with grey lines between them."""
    if parts.ndim != 2 or not len(parts) or parts.shape[1] != math.prod(shape):
        raise ValueError(f"components of shape {parts.shape} do not fit images of {shape[0]} × {shape[1]} pixels")
    columns = math.ceil(math.sqrt(len(parts)))
    rows = math.ceil(len(parts) / columns)
    height, width = shape
    gap = max(1, width // 30)
    picture = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap), 0.3)
    for place in range(rows * columns):
        top, left = gap + place // columns * (height + gap), gap + place % columns * (width + gap)
        tile = parts[place].reshape(shape) if place < len(parts) else np.zeros(shape)
        picture[top : top + height, left : left + width] = tile / (np.abs(tile).max() or 1.0)
    return picture

"""Images: each is a sample, its grey values in [0, 1] are the features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..statistics import Array
from .table import Table, extra

BITS_16 = ("I;16", "I;16B", "I;16L", "I")  # modes that Pillow gives images of 16 bits


def read_images(paths: Sequence[Path], inner: str = "") -> Table:
    """Images of one size, in the order given; colours become grey."""
    pillow = extra("PIL.Image", "images", "an image")
    X = np.empty((0, 0))
    shape: tuple[int, ...] = ()
    for i, path in enumerate(paths):
        grey = _grey(pillow, path)
        if not i:
            shape, X = grey.shape, np.empty((len(paths), grey.size))
        if grey.shape != shape:
            raise ValueError(
                f"{path} is {grey.shape[1]} × {grey.shape[0]} pixels, and {paths[0].name} is {shape[1]} × {shape[0]}: "
                "all images must have one size"
            )
        X[i] = grey.ravel()
    source = str(paths[0] if len(paths) == 1 else paths[0].parent)
    kind = f"images of {shape[1]} × {shape[0]} pixels"
    return Table(X, kind, source, tuple(p.name for p in paths), part_shape=shape)


def _grey(pillow: Any, path: Path) -> Array:
    try:
        with pillow.open(path) as image:
            if image.mode in BITS_16:
                return np.asarray(image, dtype=float) / 65535
            return np.asarray(image.convert("L"), dtype=float) / 255
    except Exception as error:  # whatever Pillow trips over in a damaged file
        raise ValueError(f"{path} is not an image that can be read: {error}") from error

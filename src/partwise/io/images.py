"""Images: each image is a sample; the features are its grey values, in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..runtime.untrusted import UnreadableError, allow, reading
from ..statistics import Array
from .table import Table

BITS_16 = ("I;16", "I;16B", "I;16L", "I")  # Pillow's modes of 16-bit images
FORMATS = ("PNG", "PPM", "JPEG", "TIFF", "BMP")  # Pillow looks at the contents, and starts Ghostscript for EPS


def read_images(paths: Sequence[Path], inner: str = "") -> Table:
    """Read images of equal size, in the given order; colours are converted to grey."""
    X = np.empty((0, 0))
    shape: tuple[int, ...] = ()
    for i, path in enumerate(paths):
        grey = _grey(path)
        if not i:
            allow(path, 8 * len(paths) * grey.size, *paths)
            shape, X = grey.shape, np.empty((len(paths), grey.size))
        if grey.shape != shape:
            raise UnreadableError(
                f"{path} has {grey.shape[1]} × {grey.shape[0]} pixels but {paths[0].name} has {shape[1]} × {shape[0]}: "
                "all images must have the same size"
            )
        X[i] = grey.ravel()
    source = str(paths[0] if len(paths) == 1 else paths[0].parent)
    kind = f"images of {shape[1]} × {shape[0]} pixels"
    return Table(X, kind, source, tuple(p.name for p in paths), part_shape=shape)


def _grey(path: Path) -> Array:
    from PIL import Image

    with reading(path), Image.open(path, formats=FORMATS) as image:
        allow(path, 16 * image.width * image.height)  # the image, its grey values, and these as floats
        if image.mode in BITS_16:
            return np.asarray(image, dtype=float) / 65535
        return np.asarray(image.convert("L"), dtype=float) / 255

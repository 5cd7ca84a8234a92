"""Sets that need no file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..statistics import Array
from .archive import arrays_in
from .swimmer import swimmer


def load_digits() -> tuple[Array, tuple[int, int]]:
    """The handwritten digits inside scikit-learn, grey values 0 to 16.

    Terms: CC BY 4.0, E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI.

    Returns
    -------
    X : array of shape (1797, 64)
    shape : (8, 8)
        Of a picture.

    Examples
    --------
    >>> X, shape = load_digits()
    >>> X.shape, shape
    ((1797, 64), (8, 8))
    """
    from sklearn import datasets

    images = datasets.load_digits().images
    return images.reshape(len(images), -1), images.shape[1:]


def load_swimmer(path: str | os.PathLike[str] | None = None) -> tuple[Array, tuple[int, int]]:
    """The Swimmer set as it is passed around: 256 binary pictures of 20 × 11, 17 parts.

    They are `swimmer` figures with a torso of 10 pixels and limbs of 4, in the same order, so that they are drawn
    rather than downloaded: ``swimmer((20, 11), torso=10, limb=4)`` knows the parts, too.

    Terms: CC0.

    Parameters
    ----------
    path : path, optional
        An .npz file with `X` (220 pixels, column by column, × 256), to be read instead.

    Returns
    -------
    X : array of shape (256, 220)
    shape : (20, 11)
        Of a picture.

    Examples
    --------
    >>> X, shape = load_swimmer()
    >>> X.shape, shape
    ((256, 220), (20, 11))
    """
    if path is None:
        return swimmer((20, 11), torso=10, limb=4).X, (20, 11)
    (stored,) = arrays_in(Path(path), "X")
    if stored.shape != (220, 256) or not np.isin(stored, (0, 1)).all():
        raise ValueError(f"{path} has X of shape {stored.shape}: the Swimmer set has (220, 256), of zeros and ones")
    return stored.reshape(11, 20, 256).transpose(2, 1, 0).reshape(256, 220).astype(float), (20, 11)

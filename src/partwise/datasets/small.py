"""Datasets that need no download."""

from __future__ import annotations

from ..statistics import Array
from .synthetic import swimmer


def load_digits() -> tuple[Array, tuple[int, int]]:
    """Load scikit-learn's handwritten digits, grey values 0 to 16: X and the shape of an image.

    Terms: CC BY 4.0, E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI.

    Examples
    --------
    >>> X, shape = load_digits()
    >>> X.shape, shape
    ((1797, 64), (8, 8))
    """
    from sklearn import datasets

    images = datasets.load_digits().images
    return images.reshape(len(images), -1), images.shape[1:]


def load_swimmer() -> tuple[Array, tuple[int, int]]:
    """Load the commonly used version of the Swimmer dataset, 256 binary images: X and the shape of an image.

    ``swimmer((20, 11), torso=10, limb=4)`` gives the same images in the same order, with their 17 parts. Terms: CC0.

    Examples
    --------
    >>> X, shape = load_swimmer()
    >>> X.shape, shape
    ((256, 220), (20, 11))
    """
    return swimmer((20, 11), torso=10, limb=4).X, (20, 11)

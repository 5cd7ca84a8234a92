"""Datasets that need no download."""

from __future__ import annotations

from ..statistics import Array
from .swimmer import swimmer


def load_digits() -> tuple[Array, tuple[int, int]]:
    """Load scikit-learn's handwritten digits, grey values 0 to 16.

    Terms: CC BY 4.0, E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI.

    Returns
    -------
    X : array of shape (1797, 64)
    shape : (8, 8)
        Shape of an image.

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
    """Load the commonly used version of the Swimmer dataset: 256 binary images of 20 × 11 pixels, 17 parts.

    The images are generated, not downloaded. ``swimmer((20, 11), torso=10, limb=4)`` gives the same images in the same
    order, with their parts.

    Terms: CC0.

    Returns
    -------
    X : array of shape (256, 220)
    shape : (20, 11)
        Shape of an image.

    Examples
    --------
    >>> X, shape = load_swimmer()
    >>> X.shape, shape
    ((256, 220), (20, 11))
    """
    return swimmer((20, 11), torso=10, limb=4).X, (20, 11)

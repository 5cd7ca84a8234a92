"""Sets that need no file."""

from __future__ import annotations

from ..statistics import Array
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


def load_swimmer() -> tuple[Array, tuple[int, int]]:
    """The Swimmer set as it is passed around: 256 binary pictures of 20 × 11, 17 parts.

    They are `swimmer` figures with a torso of 10 pixels and limbs of 4, in the same order, so that they are drawn
    rather than downloaded: ``swimmer((20, 11), torso=10, limb=4)`` knows the parts, too.

    Terms: CC0.

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
    return swimmer((20, 11), torso=10, limb=4).X, (20, 11)

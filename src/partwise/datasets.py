"""Data to try things on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from .statistics import Array


def find(name: str) -> Path:
    """The file of a benchmark data set: in the folder that PARTWISE_DATA names, else in ../shared/data.

    Raises FileNotFoundError, with both places, where there is none.
    """
    folders = [Path(os.environ["PARTWISE_DATA"])] if "PARTWISE_DATA" in os.environ else []
    folders.append(Path("..") / "shared" / "data")
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name} is not in {' or '.join(map(str, folders))}: set PARTWISE_DATA to its folder")


def load_orl() -> tuple[Array, tuple[int, int]]:
    """The ORL faces, grey values in [0, 1]: (400 × 10304 array, shape of an image).

    Credit: Olivetti Research Laboratory (Samaria & Harter 1994).
    """
    images = np.load(find("orl_faces.npz"))["images"]
    return images.reshape(len(images), -1) / 255.0, images.shape[1:]


def load_cbcl() -> tuple[Array, tuple[int, int]]:
    """The MIT CBCL faces #1 as Hoyer (2004) prepares them: (2429 × 361 array, shape of an image).

    Grey values minus their mean, divided by their root mean square, ×.25 + .25, clipped to [0, 1].
    """
    images = np.load(find("cbcl_faces.npz"))["images"].astype(float)
    images -= images.mean()
    images /= np.sqrt(np.square(images).mean())
    return np.clip(images * 0.25 + 0.25, 0, 1).reshape(len(images), -1), images.shape[1:]


def load_digits() -> tuple[Array, tuple[int, int]]:
    """The handwritten digits inside scikit-learn: (1797 × 64 array, shape of an image)."""
    from sklearn import datasets

    images = datasets.load_digits().images
    return images.reshape(len(images), -1), images.shape[1:]

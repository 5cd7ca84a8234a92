"""Data that `partwise.datasets` does not have yet, under the names that it will have there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..datasets import find
from ..statistics import Array


@dataclass(frozen=True)
class Known:
    """Generated data: X, and the shape of a sample."""

    X: Array
    shape: tuple[int, ...]


def nine_by_nine(samples: int = 200, random_state: int = 0) -> Known:
    """Images of 9 × 9 pixels, each the sum of five blurred bars and blobs in random strengths, and a little noise.

    Heiler & Schnörr's set of that shape is not public any more. A part is a Gaussian blob about a random centre, twice
    as wide as high or the other way round; strengths are exponential, and a third of them is zero; the noise is uniform
    up to 2 % of the largest value.
    """
    rng = np.random.default_rng(random_state)
    row, column = np.indices((9, 9))
    parts = []
    for widths in ((1.0, 2.0), (2.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.4, 1.4)):
        centre = rng.uniform(1, 7, size=2)
        distance = ((row - centre[0]) / widths[0]) ** 2 + ((column - centre[1]) / widths[1]) ** 2
        parts.append(np.exp(-0.5 * distance).ravel())
    strengths = rng.exponential(size=(samples, 5)) * (rng.random((samples, 5)) > 1 / 3)
    X = strengths @ np.array(parts)
    return Known(X + 0.02 * X.max() * rng.random(X.shape), (9, 9))


def load_smri() -> tuple[Array, Array]:
    """Grey-matter density of 185 IXI subjects: (185 × voxels float32, largest value 1; mask of those voxels)."""
    with np.load(find("smri_ixi_gm185.npz")) as file:
        X, mask = np.ascontiguousarray(file["X"].T, dtype=np.float32), file["mask"]
    X /= X.max()
    return X, mask


def brain_volume(samples: int = 269, shape: tuple[int, int, int] = (105, 127, 46), random_state: int = 0) -> Known:
    """Smooth generated volumes, float32: 60 Gaussian blobs in strengths that differ by sample, and noise."""
    rng = np.random.default_rng(random_state)
    parts = np.empty((60, *shape), dtype=np.float32)
    for part in parts:
        along = [
            np.exp(-0.5 * ((np.arange(n) - rng.uniform(0, n)) / (n * rng.uniform(0.04, 0.12))) ** 2) for n in shape
        ]
        part[:] = along[0][:, None, None] * along[1][:, None] * along[2]
    strengths = rng.gamma(4.0, 0.25, size=(samples, len(parts))).astype(np.float32)
    X = np.empty((samples, int(np.prod(shape))), dtype=np.float32)
    for row, strength in zip(X, strengths, strict=True):  # one sample at a time: there is no room for two copies
        np.matmul(strength, parts.reshape(len(parts), -1), out=row)
        row += rng.random(row.shape, dtype=np.float32) * np.float32(0.05)
    return Known(X, shape)

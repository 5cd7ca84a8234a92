"""Synthetic volumes with the size of the paper's brain scans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.validation import as_count, as_generator
from ..statistics import Array
from .ground_truth import GroundTruth, noisy


def brain_volume(
    samples: int = 269,
    shape: tuple[int, int, int] = (105, 127, 46),
    *,
    parts: int = 40,
    noise: float = 0.1,
    dtype: npt.DTypeLike = np.float32,
    random_state: Any = 0,
) -> GroundTruth:
    """Smooth blobs in an ellipsoid: a stand-in for the 269 private scans of the SSNMF paper.

    X has one column per voxel of the box: 105·127·46 = 613,410, as in the paper. Voxels outside the ellipsoid that
    fills the box are zero in every sample. Each part is a smooth blob (1 − d²)₊² around a random voxel of the
    ellipsoid, where d is the distance from its centre in half axes of .2 to .6 times those of the ellipsoid.
    Activations are Gamma-distributed with mean 1 and standard deviation ½. Noise is normal; negative values are set to
    zero.

    At full size in float32, X takes .66 GB and the parts .1 GB; generating them needs only a few volumes more.

    Parameters
    ----------
    samples : int
    shape : three ints
        Voxels of the box along each axis. A smaller box has the same content at a lower resolution.
    parts : int
    noise : float
        Standard deviation of the noise, relative to the root mean square of activations · components.
    dtype : float32 or float64
        The data are the same up to rounding.
    random_state : int, generator or None

    Examples
    --------
    >>> data = brain_volume(samples=4, shape=(11, 13, 5), parts=3)
    >>> data.X.shape, data.X.dtype
    ((4, 715), dtype('float32'))
    """
    samples, parts, rng = as_count(samples, "samples"), as_count(parts, "parts"), as_generator(random_state)
    if not isinstance(shape, tuple | list) or len(shape) != 3:
        raise ValueError(f"shape={shape!r}: give three ints, the voxels along each axis")
    box = tuple(as_count(side, "shape") for side in shape)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: give float32 or float64")
    inside = _distances([0.0] * 3, [1.0] * 3, box) < 1
    components = np.empty((parts, math.prod(box)), dtype)
    voxels = np.flatnonzero(inside)
    for part in components:
        centre = [(2 * i + 1) / n - 1 for i, n in zip(np.unravel_index(rng.choice(voxels), box), box, strict=True)]
        part[:] = (np.maximum(1 - _distances(centre, rng.uniform(0.2, 0.6, 3), box), 0) ** 2 * inside).ravel()
    activations = rng.gamma(4, 1 / 4, (samples, parts)).astype(dtype)
    return noisy(activations, components, box, noise, rng, where=inside.ravel())


def _distances(centre: npt.ArrayLike, half_axes: npt.ArrayLike, box: tuple[int, ...]) -> Array:
    """d², in half axes, of every voxel's distance from ``centre``; the box spans −1 to 1 in each direction."""
    squares = [
        (((2 * np.arange(n) + 1) / n - 1 - c) / w) ** 2
        for n, c, w in zip(box, np.asarray(centre), np.asarray(half_axes), strict=True)
    ]
    return squares[0][:, None, None] + squares[1][:, None] + squares[2]

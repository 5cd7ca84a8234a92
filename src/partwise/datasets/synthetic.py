"""Synthetic data with known parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..engine.validation import Seed, Sparsity, as_amount, as_columns, as_count, as_generator
from ..statistics import Array

SPOTS = [(2, 2), (2, 6), (6, 2), (6, 6), (4, 4)]


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Data with known factors: X = activations · components, plus noise for some generators.

    Attributes
    ----------
    X : array of shape (samples, features)
    activations : array of shape (samples, parts)
    components : array of shape (parts, features)
    shape : tuple of int
        Shape of one sample as an image or a volume, otherwise ``(features,)``.
    """

    X: Array
    activations: Array
    components: Array
    shape: tuple[int, ...]


def as_shape(shape: Sequence[int], axes: int) -> tuple[int, ...]:
    """Validate the shape of an image or a volume."""
    if not isinstance(shape, tuple | list) or len(shape) != axes:
        raise ValueError(f"shape={shape!r}: give {axes} ints, one for each axis")
    return tuple(as_count(side, "shape") for side in shape)


def noisy(
    activations: Array,
    components: Array,
    shape: tuple[int, ...],
    noise: float,
    rng: np.random.Generator,
    where: Array | None = None,
) -> GroundTruth:
    """X = max(activations · components + noise, 0).

    The noise is normal, with standard deviation ``noise`` times the root mean square of activations · components. It is
    added sample by sample, to avoid a second array of the size of X. ``where`` selects the features that get noise.
    """
    X = activations @ components
    if level := as_amount(noise, "noise"):
        deviation = level * math.sqrt(sum(float(sample @ sample) for sample in X) / X.size)
        for sample in X:
            draw = deviation * rng.standard_normal(sample.size)
            sample += draw if where is None else draw * where
            np.maximum(sample, 0, out=sample)
    return GroundTruth(X, activations, components, shape)


def bars(samples: int = 500, size: int = 8, *, probability: float | None = None, random_state: Seed = 0) -> GroundTruth:
    """Images of horizontal and vertical bars, each present independently with the same probability (Földiák 1990).

    Every image is a sum of bars, so X = activations · components holds exactly, and a pixel where two bars cross has
    the value 2. ``np.minimum(X, 1)`` gives the binary images of the paper. Some images contain no bar.

    Parameters
    ----------
    samples : int
    size : int
        Images have ``size`` × ``size`` pixels, and there are 2·``size`` bars: first the rows, then the columns.
    probability : float in [0, 1], optional
        Probability of each bar; 1/``size`` by default, as in the paper: two bars per image on average.
    random_state : int, generator or None

    References
    ----------
    Peter Földiák (1990). Forming sparse representations by local anti-Hebbian learning. Biological Cybernetics 64.

    Examples
    --------
    >>> data = bars(samples=3, size=4)
    >>> data.X.shape, data.components.shape
    ((3, 16), (8, 16))
    >>> data.components[0].reshape(data.shape)[0]
    array([1., 1., 1., 1.])
    """
    samples, size = as_count(samples, "samples"), as_count(size, "size")
    chance = 1 / size if probability is None else as_amount(probability, "probability", 1)
    present = as_generator(random_state).random((samples, 2 * size)) < chance
    lines, across = np.eye(size), np.ones((1, size))
    components = np.vstack([np.kron(lines, across), np.kron(across, lines)])
    activations = present.astype(float)
    return GroundTruth(activations @ components, activations, components, (size, size))


def swimmer(shape: tuple[int, int] = (32, 32), *, torso: int = 12, limb: int = 6) -> GroundTruth:
    """All 256 poses of a stick figure with a torso and four limbs, each limb in one of four positions.

    As in Donoho & Stodden (2004), the images are binary, show every combination of positions once, and have 17 parts.
    Nothing is random. Parts 4·l to 4·l + 3 are the positions of limb l (upper left, upper right, lower left, lower
    right), starting along the body and turning away from it in steps of 45°. The last part is the torso. All positions
    of a limb share its joint, the pixel next to the torso.

    The torso is in every image, so X does not determine which part it belongs to, and plain NMF spreads it over the
    limbs.

    Parameters
    ----------
    shape : (rows, columns)
        Shape of an image; the figure stands upright in the middle.
    torso, limb : int
        Lengths in pixels. ``torso`` must be at least 2·``limb``, so that limbs do not overlap.

    References
    ----------
    D. Donoho, V. Stodden (2004). When does non-negative matrix factorization give a correct decomposition into parts?
    NIPS 16.

    Examples
    --------
    >>> data = swimmer()
    >>> data.X.shape, data.components.shape
    ((256, 1024), (17, 1024))
    >>> bool((data.X == data.activations @ data.components).all())
    True
    """
    rows, columns = as_shape(shape, 2)
    torso, limb = as_count(torso, "torso"), as_count(limb, "limb")
    if torso < 2 * limb:
        raise ValueError(f"torso={torso} is less than 2·limb={2 * limb}, so limbs would overlap: give at least that")
    if rows < torso + 2 * (limb - 1) or columns < 2 * limb + 1:
        least = (torso + 2 * (limb - 1), 2 * limb + 1)
        raise ValueError(f"shape={(rows, columns)} is too small for the figure: give at least {least}")
    images = np.zeros((17, rows, columns))
    top, middle, steps = (rows - torso) // 2, (columns - 1) // 2, np.arange(limb)
    bottom = top + torso - 1
    images[16, top : bottom + 1, middle] = 1
    joints = itertools.product([(top, -1), (bottom, 1)], (-1, 1))
    for limbs, ((row, out), side) in zip(images[:16].reshape(4, 4, rows, columns), joints, strict=True):
        ways = [(out, 0), (out, side), (0, side), (-out, side)]
        for image, (down, right) in zip(limbs, ways, strict=True):
            image[row + down * steps, middle + side + right * steps] = 1
    positions = np.array(list(itertools.product(range(4), repeat=4)))
    activations = np.hstack([np.eye(4)[positions].reshape(256, 16), np.ones((256, 1))])
    components = images.reshape(17, -1)
    return GroundTruth(activations @ components, activations, components, (rows, columns))


def planted(
    samples: int = 200,
    features: int = 100,
    parts: int = 5,
    *,
    sparsity: Sparsity = 0.7,
    noise: float = 0.01,
    random_state: Seed = 0,
) -> GroundTruth:
    """Random nonnegative data whose parts have a given Hoyer sparsity, up to rounding.

    X = max(activations · components + noise, 0). The parts are random vectors projected onto the given sparsity; the
    activations are exponential.

    Parameters
    ----------
    samples, features, parts : int
    sparsity : float, tuple, list or None
        As in `partwise.SparseNMF`: one value or interval for all parts, or one per part. None does not constrain them.
    noise : float
        Standard deviation of the noise, relative to the root mean square of activations · components.
    random_state : int, generator or None

    Examples
    --------
    >>> from partwise import hoyer_sparsity
    >>> data = planted(parts=2, sparsity=[0.5, 0.8])
    >>> hoyer_sparsity(data.components, axis=1).round(9)
    array([0.5, 0.8])
    """
    samples, features, parts = as_count(samples, "samples"), as_count(features, "features"), as_count(parts, "parts")
    sets, rng = as_columns(sparsity, parts), as_generator(random_state)
    columns = sets.project(np.asfortranarray(rng.random((features, parts)) ** 4))
    activations = rng.exponential(size=(samples, parts))
    return noisy(activations, np.ascontiguousarray(columns.T), (features,), noise, rng)


def nine_by_nine(samples: int = 200, *, noise: float = 0.01, random_state: Seed = 0) -> GroundTruth:
    """200 images of 9 × 9 pixels, sums of five round spots.

    A stand-in of the same size for the dataset of Heiler & Schnörr (2006), which the SSNMF paper uses and which is no
    longer public. There is one spot in each quadrant, and one in the middle that overlaps the others. A spot decreases
    as 1 − (distance/3)² to zero at a distance of 3 pixels. Activations are exponential. Normal noise, relative to the
    root mean square of the images, is added, and negative values are set to zero.

    Examples
    --------
    >>> data = nine_by_nine()
    >>> data.X.shape, data.components.shape, data.shape
    ((200, 81), (5, 81), (9, 9))
    """
    rng = as_generator(random_state)
    row, column = np.mgrid[:9, :9]
    spots = [np.maximum(1 - ((row - i) ** 2 + (column - j) ** 2) / 9, 0) for i, j in SPOTS]
    activations = rng.exponential(size=(as_count(samples, "samples"), len(SPOTS)))
    return noisy(activations, np.array(spots).reshape(len(SPOTS), -1), (9, 9), noise, rng)


def brain_volume(
    samples: int = 269,
    shape: tuple[int, int, int] = (105, 127, 46),
    *,
    parts: int = 40,
    noise: float = 0.1,
    dtype: npt.DTypeLike = "float32",
    random_state: Seed = 0,
) -> GroundTruth:
    """Smooth blobs in an ellipsoid: a stand-in for the 269 private scans of the SSNMF paper.

    X has one column per voxel of the box: 105·127·46 = 613,410, as in the paper (.66 GB in float32). Voxels outside the
    ellipsoid that fills the box are zero. Each part is a smooth blob (1 − d²)₊² around a random voxel of the ellipsoid,
    where d is the distance from its centre in half axes of .2 to .6 times those of the ellipsoid. Activations are
    Gamma-distributed with mean 1 and standard deviation ½. Noise is normal; negative values are set to zero.

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
    box = as_shape(shape, 3)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r}: give float32 or float64")
    grid = np.meshgrid(*((2 * np.arange(n) + 1) / n - 1 for n in box), indexing="ij", sparse=True)
    inside = np.asarray(sum(axis**2 for axis in grid) < 1)  # the box spans −1 to 1 in each direction
    components = np.empty((parts, math.prod(box)), dtype)
    voxels = np.flatnonzero(inside)
    for part in components:
        centre = [axis.flat[i] for axis, i in zip(grid, np.unravel_index(rng.choice(voxels), box), strict=True)]
        scaled = zip(grid, centre, rng.uniform(0.2, 0.6, 3), strict=True)
        distances = sum(((axis - c) / half_axis) ** 2 for axis, c, half_axis in scaled)
        part[:] = (np.maximum(1 - distances, 0) ** 2 * inside).ravel()
    activations = rng.gamma(4, 1 / 4, (samples, parts)).astype(dtype)
    return noisy(activations, components, box, noise, rng, where=inside.ravel())

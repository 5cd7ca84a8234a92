"""The Swimmer dataset of Donoho & Stodden."""

from __future__ import annotations

import itertools

import numpy as np

from ..engine.validation import as_count
from .ground_truth import GroundTruth


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
    rows, columns = (as_count(side, "shape") for side in _two(shape))
    torso, limb = as_count(torso, "torso"), as_count(limb, "limb")
    if torso < 2 * limb:
        raise ValueError(f"torso={torso} is less than 2·limb={2 * limb}, so limbs would overlap: give at least that")
    if rows < torso + 2 * (limb - 1) or columns < 2 * limb + 1:
        least = (torso + 2 * (limb - 1), 2 * limb + 1)
        raise ValueError(f"shape={(rows, columns)} is too small for the figure: give at least {least}")
    images = np.zeros((17, rows, columns))
    top, middle = (rows - torso) // 2, (columns - 1) // 2
    bottom = top + torso - 1
    images[16, top : bottom + 1, middle] = 1
    joints = itertools.product([(top, -1), (bottom, 1)], (-1, 1))
    for which, ((row, out), side) in enumerate(joints):
        ways = [(out, 0), (out, side), (0, side), (-out, side)]
        for position, (down, right) in enumerate(ways):
            for step in range(limb):
                images[4 * which + position, row + down * step, middle + side + right * step] = 1
    activations = np.zeros((256, 17))
    for pose, positions in enumerate(itertools.product(range(4), repeat=4)):
        activations[pose, [4 * which + position for which, position in enumerate(positions)] + [16]] = 1
    components = images.reshape(17, -1)
    return GroundTruth(activations @ components, activations, components, (rows, columns))


def _two(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ValueError(f"shape={shape!r}: give a pair (rows, columns)")
    return shape[0], shape[1]

"""Small pictures, of the size that the paper's synthetic set has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.validation import as_count, as_generator
from .ground_truth import GroundTruth, noisy

SPOTS = [(2, 2), (2, 6), (6, 2), (6, 6), (4, 4)]


def nine_by_nine(samples: int = 200, *, noise: float = 0.01, random_state: Any = 0) -> GroundTruth:
    """200 pictures of 9 × 9 pixels, made of five round spots.

    They stand in for the synthetic set of Heiler & Schnörr (2006), which the SSNMF paper uses (200 pictures of 9 × 9,
    five parts) and which is not public any more: the size is the same, the pictures are not. Here each picture is a sum
    of five spots, one in each quadrant and one in the middle that overlaps with the others; a spot falls off as 1 −
    (distance/3)², down to zero at a distance of 3 pixels. The activations are exponential, then there is normal noise
    (relative to the root mean square of the pictures), and what falls below zero is set to zero.

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

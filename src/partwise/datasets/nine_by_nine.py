"""Small images with the size of the paper's synthetic dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.validation import as_count, as_generator
from .ground_truth import GroundTruth, noisy

SPOTS = [(2, 2), (2, 6), (6, 2), (6, 6), (4, 4)]


def nine_by_nine(samples: int = 200, *, noise: float = 0.01, random_state: Any = 0) -> GroundTruth:
    """200 images of 9 × 9 pixels, sums of five round spots.

    A stand-in for the synthetic dataset of Heiler & Schnörr (2006), which the SSNMF paper uses and which is no longer
    public: 200 images of 9 × 9 pixels with five parts. The size is the same, the images are not. There is one spot in
    each quadrant, and one in the middle that overlaps the others. A spot decreases as 1 − (distance/3)² to zero at a
    distance of 3 pixels. Activations are exponential. Normal noise, relative to the root mean square of the images, is
    added, and negative values are set to zero.

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

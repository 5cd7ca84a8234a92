"""The bars problem of Földiák."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.validation import as_amount, as_count, as_generator
from .ground_truth import GroundTruth


def bars(samples: int = 500, size: int = 8, *, probability: float | None = None, random_state: Any = 0) -> GroundTruth:
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
    P. Földiák (1990). Forming sparse representations by local anti-Hebbian learning. Biological Cybernetics 64.

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

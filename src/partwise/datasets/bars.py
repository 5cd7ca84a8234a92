"""The bars problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.validation import as_amount, as_count, as_generator
from .ground_truth import GroundTruth


def bars(samples: int = 500, size: int = 8, *, probability: float | None = None, random_state: Any = 0) -> GroundTruth:
    """Pictures of horizontal and vertical bars, each there or not, independently of the others (Földiák 1990).

    Every picture is a sum of bars, so that a pixel where two of them cross has the value 2, and X = activations ·
    components holds exactly. ``np.minimum(X, 1)`` gives Földiák's own pictures, where bars hide each other. Pictures
    without any bar do occur.

    Parameters
    ----------
    samples : int
    size : int
        Pictures are ``size`` × ``size``, and there are 2·``size`` bars: the rows first, then the columns.
    probability : float in [0, 1], optional
        Of each bar; 1/``size`` by default, as in the paper: two bars in a picture, on average.
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
    there = as_generator(random_state).random((samples, 2 * size)) < chance
    lines, across = np.eye(size), np.ones((1, size))
    components = np.vstack([np.kron(lines, across), np.kron(across, lines)])
    activations = there.astype(float)
    return GroundTruth(activations @ components, activations, components, (size, size))

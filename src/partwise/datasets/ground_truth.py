"""`Known`, the result of every generator: data and its true factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..engine.validation import as_amount
from ..statistics import Array


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

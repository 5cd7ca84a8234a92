"""What every generator gives: data, and the factors that it was made from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..engine.validation import as_amount
from ..statistics import Array


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Data whose parts are known: X = activations · components, plus noise where there is any.

    Attributes
    ----------
    X : array of shape (samples, features)
    activations : array of shape (samples, parts)
    components : array of shape (parts, features)
    shape : tuple of int
        Of one sample as a picture or a volume; ``(features,)`` where it is neither.
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

    The noise is normal, its standard deviation ``noise`` times the root mean square of what it is added to. It is added
    sample by sample, so that nothing else as large as X is ever made; ``where`` says which features take it.
    """
    X = activations @ components
    if level := as_amount(noise, "noise"):
        deviation = level * math.sqrt(sum(float(sample @ sample) for sample in X) / X.size)
        for sample in X:
            draw = deviation * rng.standard_normal(sample.size)
            sample += draw if where is None else draw * where
            np.maximum(sample, 0, out=sample)
    return GroundTruth(X, activations, components, shape)

"""Random data with parts of known sparsity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.validation import as_columns, as_count, as_generator
from .ground_truth import GroundTruth, noisy


def planted(
    samples: int = 200,
    features: int = 100,
    parts: int = 5,
    *,
    sparsity: Any = 0.7,
    noise: float = 0.01,
    random_state: Any = 0,
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

"""Numbers about factors: how good, how sparse, how near to a fixed point."""

from __future__ import annotations

import numpy as np

from .statistics import Array, Stats, gram
from .updates import Columns


def fixed_point_residual(factor: Array, stats: Stats, sets: Columns) -> float:
    """How far each column is from the best one while the others stay, relative to its size; the largest of them.

    max over j of ‖F_j − P(b_j/g_j)‖ / max(‖F_j‖, ‖P(b_j/g_j)‖), with b and g as in the sequential pass. It is zero
    exactly where no column alone can improve, and for y ≥ 0 exactly at the KKT points.
    """
    worst = 0.0
    gram_ = stats.gram.astype(factor.dtype)
    for j in np.flatnonzero(stats.gram.diagonal() > 0).tolist():
        g = gram_[j, j]
        b = (stats.cross[:, j] - factor @ gram_[:, j]) / g + factor[:, j]
        best = sets[j](b, near=factor[:, j])
        size = max(np.linalg.norm(factor[:, j]), np.linalg.norm(best))
        if size > 0:
            worst = max(worst, float(np.linalg.norm(best - factor[:, j]) / size))
    return worst


def explained(factors: list[Array], sqnorm: float) -> Array:
    """Each part's share of the fit: ⟨activations_j · part_j, model⟩ / ‖X‖².

    The shares are nonnegative, and where the activations are the best ones for the parts they add up to what the model
    explains of X, 1 − relative_error².
    """
    a, p = (gram(f) for f in factors)
    return np.asarray(np.einsum("jk,jk->j", a, p)) / sqnorm if sqnorm > 0 else np.zeros(len(a))

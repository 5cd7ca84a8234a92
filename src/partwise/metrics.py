"""Numbers about factors: how good, how sparse, how near to a fixed point."""

from __future__ import annotations

import numpy as np

from .statistics import Array, Stats, gram
from .updates import Sets


def fixed_point_residual(factor: Array, stats: Stats, sets: Sets) -> float:
    """How far each column is from the best one while the others stay, relative to its size; the largest of them.

    max over j of ‖F_j − P(b_j/g_j)‖ / max(‖F_j‖, ‖P(b_j/g_j)‖), with b and g as in the sequential pass. It is zero
    exactly where no column alone can improve, and for y ≥ 0 exactly at the KKT points.
    """
    worst = 0.0
    gram_ = stats.gram.astype(factor.dtype)
    for j in np.flatnonzero(stats.gram.diagonal() > 0).tolist():
        g = gram_[j, j]
        b = (stats.cross[:, j] - factor @ gram_[:, j]) / g + factor[:, j]
        best = getattr(sets[j], "nearest", sets[j])(b, near=factor[:, j])
        size = max(np.linalg.norm(factor[:, j]), np.linalg.norm(best))
        if size > 0:
            worst = max(worst, float(np.linalg.norm(best - factor[:, j]) / size))
    return worst


def explained(activations: Array, stats: Stats) -> Array:
    """Each part's share of the fit: ⟨activations_j · part_j, 2X − model⟩ / ‖X‖².

    They add up to what the model explains of X, 1 − relative_error², and are nonnegative where the activations are the
    best ones for the parts.
    """
    if stats.sqnorm == 0:
        return np.zeros(activations.shape[1])
    fits = np.einsum("ij,ij->j", activations, stats.cross, dtype=float)
    overlaps = np.einsum("jk,jk->j", gram(activations), stats.gram)
    return np.asarray(2 * fits - overlaps) / stats.sqnorm

"""Numbers about factors: how good, how sparse, how near to a fixed point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ..statistics import Array, Stats, gram
from ..updates import Sets


def column_moves(factor: Array, stats: Stats, sets: Sets) -> Array:
    """‖F_j − P(b_j/g_j)‖², ‖F_j‖² and ‖P(b_j/g_j)‖² of each column: three rows, which for y ≥ 0 add up over samples."""
    moves = np.zeros((3, factor.shape[1]))
    gram_ = stats.gram.astype(factor.dtype)
    for j in np.flatnonzero(stats.gram.diagonal() > 0).tolist():
        g = gram_[j, j]
        b = (stats.cross[:, j] - factor @ gram_[:, j]) / g + factor[:, j]
        best = getattr(sets[j], "nearest", sets[j])(b, near=factor[:, j])
        moves[:, j] = [float(np.linalg.norm(x)) ** 2 for x in (best - factor[:, j], factor[:, j], best)]
    return moves


def largest_move(moves: Array) -> float:
    """The fixed-point residual, from `column_moves`: the largest move of a column beside its size.

    It is zero exactly where no column alone can improve, and for y ≥ 0 exactly at the KKT points.
    """
    move, old, new = np.sqrt(moves)
    size = np.maximum(old, new)
    return float(np.divide(move, size, out=np.zeros_like(size), where=size > 0).max())


def fits(factor: Array, stats: Stats) -> Array:
    """⟨activations_j · part_j, 2X − model⟩ of each part, which adds up over samples.

    The sum over the parts is what the model explains of ‖X‖². Each is nonnegative where the activations are the best.
    """
    overlaps = np.einsum("jk,jk->j", gram(factor), stats.gram)
    return np.asarray(2 * np.einsum("ij,ij->j", factor, stats.cross, dtype=float) - overlaps)


def shares(fits: Array, sqnorm: float) -> Array:
    """What each part fits, as a share of ‖X‖²; nothing of an all-zero X."""
    return fits / sqnorm if sqnorm else np.zeros_like(fits)


def relative_error(sqnorm: float, loss: float) -> float:
    """‖X − model‖ / ‖X‖ from ½‖X − model‖²; 0 for an all-zero X."""
    return float(np.sqrt(max(2 * loss, 0.0) / sqnorm)) if sqnorm > 0 else 0.0


class Matching(NamedTuple):
    """Pairs of parts: ``first[i]`` belongs to ``second[i]``, and their cosine is ``cosines[i]``."""

    first: Array
    second: Array
    cosines: Array


def match_parts(first: npt.ArrayLike, second: npt.ArrayLike) -> Matching:
    """Pair the parts of two models, so that the sum of the pairs' cosines is as large as can be.

    max over one-to-one pairings π of Σᵢ ⟨aᵢ, b_π(i)⟩ / (‖aᵢ‖ ‖b_π(i)‖), solved exactly as a linear assignment. Of the
    model with more parts, the worst-fitting ones stay alone. A zero part has the cosine 0 with everything.

    Parameters
    ----------
    first, second : arrays of shape (r, features) and (s, features)
        Parts, one a row. Their scale does not matter.

    Returns
    -------
    Matching
        ``first``, ``second``: rows, min(r, s) of each, in the order of ``first``; ``cosines``.

    Examples
    --------
    >>> match_parts([[1, 0, 0], [0, 1, 1]], [[0, 2, 2], [0, 0, 1], [3, 0, 0]])
    Matching(first=array([0, 1]), second=array([2, 0]), cosines=array([1., 1.]))
    """
    a, b = (np.asarray(parts, dtype=float) for parts in (first, second))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not (a.size and b.size):
        raise ValueError(f"parts of shapes {a.shape} and {b.shape}: give one part a row, of as many features in both")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("parts contain nan or infinity: they must be finite")
    cosines = np.clip(_unit(a) @ _unit(b).T, -1, 1)
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return Matching(rows, columns, cosines[rows, columns])


def _unit(parts: Array) -> Array:
    """Rows of unit norm; zero rows stay zero. Dividing by the maximum first keeps the norm from overflowing."""
    for size in (np.abs(parts).max(axis=1, keepdims=True), None):
        scale = np.linalg.norm(parts, axis=1, keepdims=True) if size is None else size
        parts = np.divide(parts, scale, out=np.zeros_like(parts), where=scale > 0)
    return parts

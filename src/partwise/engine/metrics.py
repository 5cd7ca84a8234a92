"""Metrics of factors: how far columns have moved, the fixed-point residual, matching, and specific features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..projections import FreeNorm
from ..runtime.compiled import kernel
from ..statistics import Array, Stats, gram
from ..updates import Sets

ALIKE = 1e-4  # squared sine of an angle: components that are closer than this count as equal


def column_moves(factor: Array, stats: Stats, sets: Sets) -> Array:
    """Three rows: ‖F_j − P(b_j/g_j)‖², ‖F_j‖² and ‖P(b_j/g_j)‖² of each column j, with b and g as in `Sequential`.

    P(b_j/g_j) is the best column while the others are fixed. For y ≥ 0 the rows add up over samples.
    """
    moves = np.zeros((3, factor.shape[1]))
    gram_ = stats.divisors(factor.dtype)
    for j in np.flatnonzero(gram_.diagonal() > 0).tolist():
        g = gram_[j, j]
        b = (stats.cross[:, j] - factor @ gram_[:, j]) / g + factor[:, j]
        project = sets[j]
        best = (project.nearest if isinstance(project, FreeNorm) else project)(b, near=factor[:, j])
        moves[:, j] = [float(np.linalg.norm(x)) ** 2 for x in (best - factor[:, j], factor[:, j], best)]
    return moves


def largest_move(moves: Array) -> float:
    """The fixed-point residual, given `column_moves`: the largest move of a column, relative to its norm.

    It is zero if and only if no single column can be improved; for y ≥ 0 these are the KKT points.
    """
    move, old, new = np.sqrt(moves)
    size = np.maximum(old, new)
    return float(np.divide(move, size, out=np.zeros_like(size), where=size > 0).max())


def largest_turn(before: Sequence[Array], now: Sequence[Array]) -> float:
    """How far a component has moved at most, relative to how different it is from the others.

    Components are columns, scaled to norm 1, of one or several factors. A component that is much like another one has
    moved far when it has moved by a part of the distance to it. Zero columns stay as they are.
    """
    turns = np.max([_squared_turns(a.T, b.T) for a, b in zip(before, now, strict=True)], axis=0)
    return math.sqrt(float(np.max(turns / squared_distances(now))))


def squared_distances(factors: Sequence[Array]) -> Array:
    """1 − c² for the largest cosine c of each component with another one, but at least `ALIKE`."""
    cosines = reduce(np.multiply, (_cosines(gram(f)) for f in factors))
    np.fill_diagonal(cosines, 0)
    return np.maximum(1 - np.max(np.abs(cosines), axis=0) ** 2, ALIKE)


def _cosines(products: Array) -> Array:
    norms = np.sqrt(products.diagonal())
    norms[norms == 0] = 1
    return products / np.outer(norms, norms)


@kernel
def _squared_turns(before: Array, now: Array) -> Array:
    turns = np.zeros(len(now))
    for j in range(len(now)):
        a, b = before[j], now[j]
        old, new = 0.0, 0.0
        for i in range(len(b)):
            old += np.float64(a[i]) * np.float64(a[i])
            new += np.float64(b[i]) * np.float64(b[i])
        x, y = 1 / math.sqrt(old) if old > 0 else 1.0, 1 / math.sqrt(new) if new > 0 else 1.0
        for i in range(len(b)):
            turns[j] += (y * b[i] - x * a[i]) ** 2
    return turns


class Matching(NamedTuple):
    """Pairs of components: ``first[i]`` is matched with ``second[i]``, and their cosine is ``cosines[i]``."""

    first: Array
    second: Array
    cosines: Array


def match_parts(first: npt.ArrayLike, second: npt.ArrayLike) -> Matching:
    """Match the components of two models one-to-one, such that the sum of their cosines is maximal.

    max over one-to-one matchings π of Σᵢ ⟨aᵢ, b_π(i)⟩ / (‖aᵢ‖ ‖b_π(i)‖), solved exactly as a linear assignment. If one
    model has more components, some of them stay unmatched. The cosine of a zero component is 0.

    Parameters
    ----------
    first, second : arrays of shape (r, features) and (s, features)
        Components, one per row. Their scale does not matter.

    Returns
    -------
    Matching
        ``first`` and ``second`` are the row indices of the min(r, s) pairs, in the order of ``first``.

    Examples
    --------
    >>> match_parts([[1, 0, 0], [0, 1, 1]], [[0, 2, 2], [0, 0, 1], [3, 0, 0]])
    Matching(first=array([0, 1]), second=array([2, 0]), cosines=array([1., 1.]))
    """
    from scipy.optimize import linear_sum_assignment  # takes 20 MB and is needed only here

    a, b = (np.asarray(parts, dtype=float) for parts in (first, second))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not (a.size and b.size):
        raise ValueError(f"components have shapes {a.shape} and {b.shape}: give one per row, with equal features")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("components contain nan or infinity: they must be finite")
    cosines = np.clip(_unit(a) @ _unit(b).T, -1, 1)
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return Matching(rows, columns, cosines[rows, columns])


def _unit(parts: Array) -> Array:
    """Scale rows to unit norm. Zero rows stay zero. Dividing by the maximum first avoids overflow of the norm."""
    for size in (np.abs(parts).max(axis=1, keepdims=True), None):
        scale = np.linalg.norm(parts, axis=1, keepdims=True) if size is None else size
        parts = np.divide(parts, scale, out=np.zeros_like(parts), where=scale > 0)
    return parts


def specificity(components: npt.ArrayLike) -> Array:
    """How specific each feature is to each component: large if the component has it and the others do not.

    s_jf = u_jf · log₂(u_jf / mean_k u_kf), at least 0, where u_j is component j scaled to unit norm. Features that all
    components share, such as ubiquitous genes or common words, have 0, however large their weights. It is the term
    score of Blei and Lafferty with an arithmetic mean, so that zeros are allowed. A single component has nothing to be
    compared with: its specificity is u.

    Parameters
    ----------
    components : array of shape (r, features)
        Nonnegative. Their scale does not matter.

    Returns
    -------
    array of shape (r, features)

    References
    ----------
    David M. Blei and John D. Lafferty, "Topic Models", in Text Mining: Classification, Clustering, and Applications,
    2009.

    Examples
    --------
    >>> specificity([[4.0, 3.0, 0.0], [4.0, 0.0, 3.0]])
    array([[0. , 0.6, 0. ],
           [0. , 0. , 0.6]])
    """
    parts = np.asarray(components, dtype=float)
    if parts.ndim != 2 or not parts.size or not np.isfinite(parts).all() or parts.min() < 0:
        raise ValueError(f"components have shape {parts.shape}: give nonnegative, finite rows, one for each component")
    unit = _unit(parts)
    if len(unit) == 1:
        return unit
    mean = unit.mean(axis=0)
    ratio = np.divide(unit, mean, out=np.ones_like(unit), where=unit > mean)
    return np.asarray(unit * np.log2(ratio))

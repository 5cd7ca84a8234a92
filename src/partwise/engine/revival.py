"""Restart dead components from the slices of X that are fitted worst.

A component is dead if it adds nothing to the model, so that its columns can be replaced at no loss. It takes a rank-one
share of what is left of a badly fitted slice (of a matrix: the positive residual of a sample or feature), and in the
slices' own mode the y ≥ 0 that fits best to it. The loss can therefore only fall. All that is asked of the data is how
badly each slice is fitted, what is left of one, and what is left of X along given vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..data import Form, Sliced
from ..statistics import Array, Stats, gram
from ..updates import Sets
from .starts import Factors

SWEEPS = 5  # of the power method
LEAST = 1e-12  # of ‖X‖² / slices: a slice whose squared error is no more than this leaves nothing to fit


def revive(
    data: Sliced,
    factors: Factors,
    stats: Stats,
    mode: int,
    sets: Sequence[Sets],
    dead: Array,
    least: float | None = None,
) -> list[int]:
    """Restart ``dead`` components from the worst-fitted slices. Returns those that were restarted.

    ``mode`` names a factor whose columns may have any norm; ``stats`` are its statistics, and the slices are those of
    this mode. For a middle factor the slices are those of mode 0, and its weights stay zero until their own update.
    Slices with a squared error of at most ``least`` restart no component.
    """
    factors[mode][:, dead] = 0
    order = len(data.shape)
    weighted = mode == order
    at = 0 if weighted else mode
    if weighted:
        stats = data.statistics(factors, [gram(f) for f in factors], at)
    errors = data.row_errors(factors, stats, at)
    least = LEAST * data.sqnorm / len(errors) if least is None else least
    others = [m for m in range(order) if m != at]
    alive = []
    for j, i in zip(dead.tolist(), np.argsort(-errors, kind="stable").tolist(), strict=False):
        share = rank_one(
            data.slice_residual(factors, at, i), [data.shape[m] for m in others], [sets[m][j] for m in others]
        )
        if errors[i] <= least or share is None:
            break
        for m, vector in zip(others, share, strict=True):
            factors[m][:, j] = vector
        share = [factors[m][:, j] for m in others]  # in the data's precision
        fit = fitted_amounts(data.residual_times(share, factors, at), share)
        factors[at][:, j] = sets[at][j](fit) if weighted else fit
        alive.append(j)
    return alive


def rank_one(left: Form, shape: Sequence[int], sets: Sequence[Callable[[Array], Array]]) -> list[Array] | None:
    """Vectors in the given sets whose outer product approximates the slice ``left``.

    Computed by the power method for tensors; for a vector it is the positive part. None if no entry is positive.
    """
    vectors = [np.full(n, n**-0.5) for n in shape]
    for _ in range(SWEEPS if len(vectors) > 1 else 1):
        for mode, project in enumerate(sets):
            vector = np.maximum(left(vectors, mode), 0)
            size = float(np.linalg.norm(vector))
            if size == 0:
                return None
            vectors[mode] = np.asarray(project(vector / size), dtype=float)
    return vectors


def fitted_amounts(product: Array, vectors: Sequence[Array]) -> Array:
    """For each slice, the best multiple y ≥ 0 of the vectors' outer product, given residual·vectors."""
    return np.asarray(np.maximum(product, 0) / math.prod(float(v @ v) for v in vectors))

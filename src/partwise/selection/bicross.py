"""Held-out error by bi-cross-validation: samples and features are held out together, and X stays sparse.

Reference: A. B. Owen and P. O. Perry, "Bi-cross-validation of the SVD and the nonnegative matrix factorization", Annals
of Applied Statistics 3 (2009).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import Chunked, Matrix, Missing, as_data
from ..engine.result import Result
from ..engine.solving import solve_activations
from ..statistics import Array, as_factor
from .runs import fit_each


def heldout_error(data: Matrix | Chunked, rank: int, share: float, seed: int, options: dict[str, Any]) -> float:
    """‖X − model‖ / ‖X‖ on a block of samples and features that were both held out.

    The other samples and features are fitted. The components at the held-out features come from the fitted samples, and
    the activations of the held-out samples from the fitted features, both by nonnegative least squares.
    """
    check_block(data, share)
    X = data.matrix.tocsr() if hasattr(data.matrix, "tocsr") else data.matrix
    rng = np.random.default_rng([seed, 0])  # one block for all ranks
    rows, columns = (split(n, share, rng) for n in data.shape)
    seen = as_data(X[rows[1]][:, columns[1]], signed=data.signed)
    found: list[Result] = []
    run = {"n_components": rank, "random_state": np.random.default_rng([seed, rank])}
    fit_each(seen, [run], options, lambda _, result: found.append(result))
    (fit,) = found
    below = solve_activations(as_data(X[rows[0]][:, columns[1]], signed=data.signed), fit.factors[1])
    beside = solve_activations(as_data(X[rows[1]][:, columns[0]].T, signed=data.signed), fit.factors[0])
    block = as_data(X[rows[0]][:, columns[0]], signed=data.signed)
    factors = [as_factor(below.activations), as_factor(beside.activations)]
    return float(np.sqrt(block.squared_error(factors) / block.sqnorm)) if block.sqnorm else float("nan")


def check_block(data: Matrix | Chunked, share: float) -> None:
    """Refuse data of which no block can be held out."""
    if isinstance(data, Chunked | Missing):
        raise ValueError("holdout= needs X in memory and without missing entries: leave it out, or give a subset of X")
    if min(data.shape) < 2:
        raise ValueError(f"holdout={share:g} holds out samples and features, but X has only 1 of one: leave it out")


def split(n: int, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Indices that are held out, and the others: at least one of each."""
    order = rng.permutation(n)
    held = min(max(round(share * n), 1), n - 1)
    return np.sort(order[:held]), np.sort(order[held:])

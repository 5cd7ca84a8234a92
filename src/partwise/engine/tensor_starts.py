"""Initial factors of a tensor, from its slices.

A slice of X at one index of one mode is a tensor whose order is lower by one. A component is initialised by a rank-one
approximation of a slice (`revival.rank_one`). A slice of a matrix is a vector, so that for order 2 this is the same as
in `starts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data import Tensor
from ..updates import Sets
from .revival import rank_one
from .starts import Factors, Generator, Init, random


def samples(data: Tensor, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Rank-one approximations of slices that are far apart. The factor of the slices' own mode is uniform.

    As in `starts.samples`, each slice is drawn with a probability proportional to its squared distance from the span of
    those already drawn. The slices are those of the first unconstrained mode, or of mode 0 if there is none.
    """
    factors = random(data, r, sets, rng)
    mode = next((m for m, s in enumerate(sets) if s.nonnegative), 0)
    others = [m for m in range(len(sets)) if m != mode]
    left = data.sqnorms(mode).copy()
    span = np.zeros((len(left), r))  # Cholesky factor of the slices' inner products
    for j in range(min(r, len(left))):
        if left.max() <= 1e-12 * data.sqnorm / len(left):
            break
        i = int(rng.choice(len(left), p=left / left.sum()))
        span[:, j] = (data.slice_products(mode, i) - span @ span[i]) / np.sqrt(left[i])
        left = np.maximum(left - span[:, j] ** 2, 0)
        left[i] = 0
        part = data.slice(mode, i)
        found = rank_one(part.times, part.shape, [sets[m][j] for m in others])
        for m, vector in zip(others, found or [], strict=False):
            factors[m][:, j] = vector
    return factors


STARTS: dict[str, Callable[[Tensor, int, Sequence[Sets], Generator], Factors]] = {"samples": samples, "random": random}


def starting_tensor_factors(init: Init, data: Tensor, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Return initial factors. ``init`` is a name of `STARTS`, a list of factors, or tensorly's (weights, factors)."""
    if isinstance(init, str):
        if init not in STARTS:
            names = ", ".join(map(repr, (*STARTS, "gradual")))
            raise ValueError(f"init={init!r} is not one of {names}; or give a factor for each mode")
        factors = STARTS[init](data, r, sets, rng)
    else:
        factors = given_factors(init, data.shape, r)
    pairs = zip(sets, factors, strict=True)
    return [np.asfortranarray(s.project(np.asfortranarray(f)), dtype=data.dtype) for s, f in pairs]


def given_factors(init: Any, shape: Sequence[int], r: int) -> Factors:
    """Validate factors given by the user. Weights are multiplied into the first factor; the fit rescales it."""
    try:
        weights, factors = None, list(init.factors) if hasattr(init, "factors") else list(init)
        if hasattr(init, "factors"):
            weights = init.weights
        elif len(factors) == 2 and (factors[0] is None or np.ndim(factors[0]) == 1):
            weights, factors = factors[0], list(factors[1])
        arrays = [np.array(f, dtype=float, order="F") for f in factors]
    except (TypeError, ValueError):
        raise ValueError(f"init has type {type(init).__name__}: give a name, or a factor for each mode") from None
    wanted = [(n, r) for n in shape]
    if [a.shape for a in arrays] != wanted:
        raise ValueError(f"the factors in init have shapes {[a.shape for a in arrays]}: shapes {wanted} are needed")
    scale = np.ones(r) if weights is None else np.asarray(weights, dtype=float)
    if scale.shape != (r,):
        raise ValueError(f"init has {scale.size} weights for n_components={r}: give one for each component")
    for name, array in [("weights", scale), *((f"values in the factor of mode {m}", a) for m, a in enumerate(arrays))]:
        if not np.isfinite(array).all() or array.min() < 0:
            raise ValueError(f"init has negative or non-finite {name}: values must be finite and nonnegative")
    arrays[0] *= scale
    return arrays

"""Where a fit of a tensor starts, and where a dead component starts again: in its slices.

A slice of X at one index of one mode is a tensor of an order less, in which every component has a rank-one share. The
nearest such share is found by the power method for tensors, with each vector kept in its set. A slice of a matrix is a
vector, its own best share: for order 2 all of this is what `start` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data import Tensor, row_errors
from ..statistics import Array, Stats, gram
from ..updates import Sets
from .starts import Factors, Generator, random

SWEEPS = 5  # of the power method


def rank_one(data: Any, factors: Sequence[Array], weights: Array, sets: Sequence[Sets], j: int) -> list[Array] | None:
    """A vector for each mode, in the sets of component j, whose outer product is near to X minus a model.

    The model is Σ weights_j · factors[0][:, j] ∘ …; None where nothing positive is left of X beside it.
    """
    vectors = [np.full(n, n**-0.5) for n in data.shape]
    for _ in range(SWEEPS if len(vectors) > 1 else 1):
        for mode in range(len(vectors)):
            vector = np.maximum(unfitted(data, factors, weights, vectors, mode), 0)
            size = float(np.linalg.norm(vector))
            if size == 0:
                return None
            vectors[mode] = np.asarray(sets[mode][j](vector / size), dtype=float)
    return vectors


def unfitted(data: Any, factors: Sequence[Array], weights: Array, vectors: Sequence[Array], mode: int) -> Array:
    """X minus the model, times one vector for every mode but one."""
    shares = [f.T @ v for m, (f, v) in enumerate(zip(factors, vectors, strict=True)) if m != mode]
    return np.asarray(data.times(vectors, mode) - factors[mode] @ math.prod(shares, start=weights))


def without(items: Sequence[Any], mode: int) -> list[Any]:
    """All but one."""
    return [item for m, item in enumerate(items) if m != mode]


def samples(data: Any, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Rank-one shares of slices that lie far from each other; the factor of their own mode uniform.

    As in `start.samples`, each slice is drawn with a chance proportional to its squared distance from the span of those
    already drawn. Their mode is the first whose factor is free, and mode 0 if none is.
    """
    factors = random(data, r, sets, rng)
    mode = next((m for m, s in enumerate(sets) if s.nonnegative), 0)
    others, none = without(range(len(sets)), mode), np.zeros(r)
    left = data.sqnorms(mode).copy()
    span = np.zeros((len(left), r))  # Cholesky factor of the slices' inner products
    for j in range(min(r, len(left))):
        if left.max() <= 1e-12 * data.sqnorm / len(left):
            break
        i = int(rng.choice(len(left), p=left / left.sum()))
        span[:, j] = (data.slice_products(mode, i) - span @ span[i]) / np.sqrt(left[i])
        left = np.maximum(left - span[:, j] ** 2, 0)
        left[i] = 0
        found = rank_one(data.slice(mode, i), without(factors, mode), none, without(sets, mode), j)
        for m, vector in zip(others, found or [], strict=False):
            factors[m][:, j] = vector
    return factors


STARTS: dict[str, Callable[[Any, int, Sequence[Sets], Generator], Factors]] = {"samples": samples, "random": random}


def starting_factors(init: Any, data: Tensor, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Factors by a name of `STARTS`, or given: one for each mode, or (weights, factors) as tensorly has them."""
    if isinstance(init, str):
        if init not in STARTS:
            names = ", ".join(map(repr, (*STARTS, "gradual")))
            raise ValueError(f"init={init!r} is not one of {names}, or a list with a factor for each mode")
        factors = STARTS[init](data, r, sets, rng)
    else:
        factors = given_factors(init, data.shape, r)
    pairs = zip(sets, factors, strict=True)
    return [np.asfortranarray(s.project(np.asfortranarray(f)), dtype=data.dtype) for s, f in pairs]


def given_factors(init: Any, shape: Sequence[int], r: int) -> Factors:
    """The user's own factors, checked; weights go to the first mode, from where the fit moves them on."""
    try:
        weights, factors = None, list(init.factors) if hasattr(init, "factors") else list(init)
        if hasattr(init, "factors"):
            weights = init.weights
        elif len(factors) == 2 and (factors[0] is None or np.ndim(factors[0]) == 1):
            weights, factors = factors[0], list(factors[1])
        arrays = [np.array(f, dtype=float, order="F") for f in factors]
    except (TypeError, ValueError):
        raise ValueError(f"init of type {type(init).__name__}: give a name, or a factor for each mode") from None
    wanted = [(n, r) for n in shape]
    if [a.shape for a in arrays] != wanted:
        raise ValueError(f"init's factors have the shapes {[a.shape for a in arrays]}, and {wanted} are needed")
    scale = np.ones(r) if weights is None else np.asarray(weights, dtype=float)
    if scale.shape != (r,):
        raise ValueError(f"init has {scale.size} weights, and {r} are needed")
    for name, array in [("weights", scale), *((f"factor of mode {m}", a) for m, a in enumerate(arrays))]:
        if not np.isfinite(array).all() or array.min() < 0:
            raise ValueError(f"init's {name} holds negative or non-finite values: give nonnegative ones")
    arrays[0] *= scale
    return arrays


def revive(data: Any, factors: Factors, stats: Stats, mode: int, sets: Sequence[Sets], dead: Array) -> list[int]:
    """Start ``dead`` components again in the slices that are fitted worst; those that found something to fit.

    Each takes a rank-one share of what is left of such a slice, and in the slices' own mode what fits best to it.
    ``mode`` is one whose factor is free, or that of the components' weights: then the slices are those of mode 0, and
    the weight, which stays zero, is left to its own update.
    """
    weighted = mode == len(data.shape)
    at, weights = (0, factors[mode][0].astype(float)) if weighted else (mode, np.ones(len(sets[0])))
    own = factors[at]
    if weighted:
        dead = dead[weights[dead] == 0]
        stats = data.statistics(factors, [gram(f) for f in factors], at)
    else:
        own[:, dead] = 0
    errors = row_errors(data.sqnorms(at), own, stats)
    modes = range(len(data.shape))
    rest, rest_sets, alive = without(factors[: len(modes)], at), without(sets[: len(modes)], at), []
    for j, row in zip(dead.tolist(), np.argsort(-errors, kind="stable"), strict=False):
        found = rank_one(data.slice(at, int(row)), rest, weights * own[row], rest_sets, j)
        if errors[row] <= 1e-12 * data.sqnorm / len(errors) or found is None:
            break
        for f, vector in zip(rest, found, strict=True):
            f[:, j] = vector
        vectors = [*found[:at], own[:, j], *found[at:]]
        fit = np.maximum(unfitted(data, factors[: len(modes)], weights, vectors, at), 0)
        own[:, j] = sets[at][j](fit) if weighted else fit / math.prod(float(v @ v) for v in found)
        alive.append(j)
    return alive

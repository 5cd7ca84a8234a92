"""Where a fit starts, and where a dead component starts again. Sees data and sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .data import Data
from .statistics import Array, Stats, gram
from .updates import Columns, Sets

Generator = np.random.Generator
Factors = list[Array]


def random(data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """The paper's: one projected random vector and its permutations for each constrained factor, else uniform."""
    return [_random_factor(data, mode, r, sets[mode], rng) for mode in (0, 1)]


def _random_factor(data: Data, mode: int, r: int, sets: Sets, rng: Generator) -> Array:
    factor = np.empty((data.shape[mode], r), dtype=data.dtype, order="F")
    vector = rng.random(len(factor))
    for j in range(r):
        factor[:, j] = rng.random(len(factor)) if sets.nonnegative else rng.permutation(sets[j](vector))
    return factor


def samples(data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Parts from samples of X that lie far from each other, activations uniform.

    As in k-means++, each sample is drawn with a chance proportional to its squared distance from the span of those
    already drawn, so that near copies are not drawn twice. Where activations are constrained and parts are not, the
    same is done with features.
    """
    mode = 0 if sets[1].unit_norm or not sets[0].unit_norm else 1  # vectors of this mode become the other's columns
    left = data.sqnorms(mode).copy()
    factors = random(data, r, sets, rng)
    basis = np.zeros((data.shape[1 - mode], r), order="F")
    chosen: list[int] = []
    while len(chosen) < min(r, data.shape[mode]) and left.max() > 1e-12 * data.sqnorm / len(left):
        chosen.append(int(rng.choice(len(left), p=left / left.sum())))
        j = len(chosen) - 1
        vector = data.vectors(mode, np.array(chosen[-1:]))[:, 0].astype(float)
        factors[1 - mode][:, j] = sets[1 - mode][j](vector)
        vector -= basis[:, :j] @ (basis[:, :j].T @ vector)
        vector /= max(np.linalg.norm(vector), 1e-300)
        basis[:, j] = vector
        left = np.maximum(left - data.times(vector, mode) ** 2, 0)
        left[chosen] = 0
    return factors


def nndsvd(data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """From a truncated SVD: of each singular pair its stronger signed half, then projected; zeros filled with the mean.

    Reference: C. Boutsidis and E. Gallopoulos, "SVD based initialization: a head start for nonnegative matrix
    factorization", Pattern Recognition 41 (2008). Components beyond the rank of the SVD start at random.
    """
    from sklearn.utils.extmath import randomized_svd  # a second to import, and needed here alone

    factors = random(data, r, sets, rng)
    rank = min(r, *data.shape)
    left, values, right = randomized_svd(data.matrix, rank, random_state=int(rng.integers(2**31)))
    for j in range(rank):
        u, v = left[:, j], right[j]
        if np.linalg.norm(np.maximum(u, 0)) * np.linalg.norm(np.maximum(v, 0)) < (
            np.linalg.norm(np.minimum(u, 0)) * np.linalg.norm(np.minimum(v, 0))
        ):
            u, v = -u, -v
        for mode, vector in ((0, np.maximum(u, 0)), (1, np.maximum(v, 0))):
            vector = vector.astype(float) * np.sqrt(values[j])
            vector[vector == 0] = vector.mean()
            factors[mode][:, j] = sets[mode][j](vector)
    return factors


STARTS: dict[str, Callable[[Data, int, Sequence[Sets], Generator], Factors]] = {
    "random": random,
    "samples": samples,
    "nndsvd": nndsvd,
}


def starting_factors(init: Any, data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Factors by a name of `STARTS`, or given as (activations, components), in the sets and in the data's precision."""
    if isinstance(init, str):
        if init not in STARTS:
            names = ", ".join(map(repr, (*STARTS, "gradual")))
            raise ValueError(f"init={init!r} is not one of {names}, or (activations, components)")
        factors = STARTS[init](data, r, sets, rng)
        factors = [f if isinstance(s, Columns) else s.project(f) for f, s in zip(factors, sets, strict=True)]
    else:
        factors = [
            sets[mode].project(_given(name, array, (data.shape[mode], r)))
            for mode, (name, array) in enumerate(zip(("activations", "components"), _pair(init), strict=True))
        ]
    return [np.asfortranarray(f, dtype=data.dtype) for f in factors]


def _pair(init: Any) -> tuple[Array, Array]:
    try:
        activations, components = init
    except (TypeError, ValueError):
        raise ValueError(f"init of type {type(init).__name__}: give a name, or (activations, components)") from None
    return np.asarray(activations), np.asarray(components).T


def _given(name: str, array: Array, shape: tuple[int, int]) -> Array:
    if array.shape != shape:
        want, got = (s if name == "activations" else s[::-1] for s in (shape, array.shape))
        raise ValueError(f"init's {name} have shape {got}, and {want} is needed")
    array = np.array(array, dtype=float, order="F")
    if not np.isfinite(array).all() or array.min() < 0:
        raise ValueError(f"init's {name} hold negative or non-finite values: they must be nonnegative")
    return array


def scale_to(data: Data, factors: Factors, mode: int) -> None:
    """Multiply ``factors[mode]`` so that the model is as large as X."""
    size = float(np.vdot(gram(factors[0]), gram(factors[1])))
    if size > 0:
        factors[mode] *= factors[mode].dtype.type(np.sqrt(data.sqnorm / size))


def dead_components(grams: Sequence[Array]) -> Array:
    """Components that add nothing to the model: one of their columns has vanished beside the others."""
    dead = np.zeros(len(grams[0]), dtype=bool)
    for g in grams:
        dead |= g.diagonal() <= 1e-24 * g.diagonal().max()
    return np.flatnonzero(dead)


def row_errors(data: Data, factor: Array, stats: Stats, mode: int) -> Array:
    """‖·‖² of the residual of each sample (mode 0) or feature (mode 1), from its statistics."""
    own = factor.astype(float)
    errors = data.sqnorms(mode) - 2 * np.einsum("ij,ij->i", own, stats.cross, dtype=float)
    return np.asarray(errors + np.einsum("ij,jk,ik->i", own, stats.gram, own, optimize=True))


def revive(data: Data, factors: Factors, stats: Stats, mode: int, sets: Sequence[Sets], dead: Array) -> list[int]:
    """Start ``dead`` components again where the fit is worst; those that found something to fit.

    ``stats`` are those of ``factors[mode]``: they tell, for each of its rows, how badly it is fitted. Component j takes
    the positive residual of the worst row as its column in the other factor, and in this one what fits best to it, so
    that the loss falls; ``factors[mode]`` must therefore be one whose columns have no norm to keep.
    """
    other = 1 - mode
    factors[mode][:, dead] = 0
    errors = row_errors(data, factors[mode], stats, mode)
    alive = []
    for j, row in zip(dead, np.argsort(-errors, kind="stable"), strict=False):
        residual = data.vectors(mode, np.array([row]))[:, 0] - factors[other] @ factors[mode][row]
        if errors[row] <= 1e-12 * data.sqnorm / len(errors) or residual.max() <= 0:
            break
        factors[other][:, j] = column = sets[other][j](np.maximum(residual, 0))
        fit = data.times(column, mode) - factors[mode] @ (factors[other].T @ column)
        factors[mode][:, j] = np.maximum(fit, 0) / float(column @ column)
        alive.append(int(j))
    return alive

"""Where a fit starts, and where a dead component starts again. Sees data and sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .data import Chunked, Data, Held, Whole
from .statistics import Array, Stats, gram
from .updates import Columns, Sets

Generator = np.random.Generator
PIECE = 4096  # samples whose uniform activations are drawn together
CANDIDATES, CANDIDATE_ENTRIES = 2, 2**22  # a start looks at so many samples for each part, or at so many entries
Factors = list[Any]  # arrays, or activations that lie elsewhere


def random(data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """The paper's: one projected random vector and its permutations for each constrained factor, else uniform."""
    return [_random_factor(data, mode, r, sets[mode], rng) for mode in range(len(data.shape))]


def _random_factor(data: Data, mode: int, r: int, sets: Sets, rng: Generator) -> Any:
    if mode == 0 and sets.by_rows:
        uniform = Uniform(int(rng.integers(2**63)), data.dtype, sets)
        return data.hold(uniform, r) if isinstance(data, Chunked) else uniform(0, data.shape[0])
    factor = np.empty((data.shape[mode], r), dtype=data.dtype, order="F")
    vector = rng.random(len(factor))
    for j in range(r):
        factor[:, j] = rng.random(len(factor)) if sets.nonnegative else rng.permutation(sets[j](vector))
    return factor


@dataclass(frozen=True)
class Uniform:
    """Uniform activations of any samples, whichever chunk they come in: ``start(first, end)``."""

    seed: int
    dtype: np.dtype[Any]
    sets: Sets

    def __call__(self, first: int, end: int) -> Array:
        """Those of samples ``first`` up to ``end``."""
        r = len(self.sets)
        rows = np.empty((end - first, r), dtype=self.dtype, order="F")
        for piece in range(first // PIECE, -(-end // PIECE)):
            start, stop = max(first, piece * PIECE), min(end, (piece + 1) * PIECE)
            drawn = np.random.default_rng([self.seed, piece]).random((stop - piece * PIECE, r))
            rows[start - first : stop - first] = drawn[start - piece * PIECE :]
        return rows if self.sets.nonnegative else self.sets.project(rows)


@dataclass(frozen=True)
class Zeros:
    """No activations yet."""

    r: int
    dtype: np.dtype[Any]

    def __call__(self, first: int, end: int) -> Array:
        """Those of samples ``first`` up to ``end``."""
        return np.zeros((end - first, self.r), dtype=self.dtype, order="F")


@dataclass(frozen=True)
class Given:
    """The user's own activations."""

    activations: Array

    def __call__(self, first: int, end: int) -> Array:
        """Those of samples ``first`` up to ``end``."""
        return np.array(self.activations[first:end], order="F")


def samples(data: Data, r: int, sets: Sequence[Sets], rng: Generator) -> Factors:
    """Parts from samples of X that lie far from each other, activations uniform.

    As in k-means++, each sample is drawn with a chance proportional to its squared distance from the span of those
    already drawn, so that near copies are not drawn twice. Of many samples a random subset is looked at. Where
    activations are constrained and parts are not, the same is done with features.
    """
    factors = random(data, r, sets, rng)
    mode = 0 if sets[1].unit_norm or not sets[0].unit_norm else 1  # vectors of this mode become the other's columns
    data, which = candidates(data, mode, r, rng)
    left = data.sqnorms(mode)[which]
    basis = np.zeros((data.shape[1 - mode], r), order="F")
    chosen: list[int] = []
    while len(chosen) < min(r, len(left)) and left.max() > 1e-12 * data.sqnorm / len(left):
        chosen.append(int(rng.choice(len(left), p=left / left.sum())))
        j = len(chosen) - 1
        vector = data.vectors(mode, which[chosen[-1:]])[:, 0].astype(float)
        factors[1 - mode][:, j] = sets[1 - mode][j](vector)
        vector -= basis[:, :j] @ (basis[:, :j].T @ vector)
        vector /= max(np.linalg.norm(vector), 1e-300)
        basis[:, j] = vector
        left = np.maximum(left - data.times(vector, mode)[which] ** 2, 0)
        left[chosen] = 0
    return factors


def candidates(data: Any, mode: int, r: int, rng: Generator) -> tuple[Whole, Array]:
    """Data in memory, and those of its samples (or features) that a start looks at: the same for any kind of data."""
    which = np.arange(data.shape[mode])
    few = max(CANDIDATES * r, CANDIDATE_ENTRIES // data.shape[1])
    if mode == 0 and len(which) > few:
        which = np.sort(rng.choice(len(which), few, replace=False))
    if isinstance(data, Chunked):
        data.check()
    if isinstance(data, Chunked) or 4 * len(which) < data.shape[mode]:
        return data.subset(which), np.arange(len(which))
    return data, which


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
        factors = [
            f if isinstance(s, Columns) or isinstance(f, Held) else s.project(f)
            for f, s in zip(factors, sets, strict=True)
        ]
    else:
        factors = [
            sets[mode].project(_given(name, array, (data.shape[mode], r)))
            for mode, (name, array) in enumerate(zip(("activations", "components"), _pair(init), strict=True))
        ]
        if isinstance(data, Chunked):
            factors[0] = data.hold(Given(factors[0].astype(data.dtype)), r)
    return [f if isinstance(f, Held) else np.asfortranarray(f, dtype=data.dtype) for f in factors]


def starting_parts(init: Any, data: Whole, r: int, sets: Sequence[Sets], rng: Generator) -> Array:
    """Parts alone (features × r), by name, or given as components (r × features)."""
    if isinstance(init, str):
        return np.asarray(starting_factors(init, data, r, sets, rng)[1])
    parts = sets[1].project(_given("components", np.asarray(init).T, (data.shape[1], r)))
    return np.asfortranarray(parts, dtype=data.dtype)


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
    size = float(np.prod([gram(f) for f in factors], axis=0).sum())
    if size > 0:
        factors[mode] *= factors[mode].dtype.type(np.sqrt(data.sqnorm / size))


def dead_components(grams: Sequence[Array]) -> Array:
    """Components that add nothing to the model: one of their columns has vanished beside the others."""
    dead = np.zeros(len(grams[0]), dtype=bool)
    for g in grams:
        dead |= g.diagonal() <= 1e-24 * g.diagonal().max()
    return np.flatnonzero(dead)


def row_errors(data: Whole, factor: Array, stats: Stats, mode: int) -> Array:
    """‖·‖² of the residual of each sample (mode 0) or feature (mode 1), from its statistics."""
    own = factor.astype(float)
    errors = data.sqnorms(mode) - 2 * np.einsum("ij,ij->i", own, stats.cross, dtype=float)
    return np.asarray(errors + np.einsum("ij,jk,ik->i", own, stats.gram, own, optimize=True))


def revive(data: Whole, factors: Factors, stats: Stats, mode: int, sets: Sequence[Sets], dead: Array) -> list[int]:
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
        factors[mode][:, j] = best_fit(data.times(column, mode), factors[mode], factors[other], column)
        alive.append(int(j))
    return alive


def best_fit(product: Array, factor: Array, other: Array, column: Array) -> Array:
    """What of ``column`` each row takes best, y ≥ 0, where X·column is ``product`` and X ≈ factor·otherᵀ so far."""
    return np.asarray(np.maximum(product - factor @ (other.T @ column), 0) / float(column @ column))

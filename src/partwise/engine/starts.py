"""Initial factors of a fit, from the data and the sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Chunked, Data, Held, Whole
from ..runtime.arrays import DType
from ..statistics import Array, gram
from ..updates import Columns, Known, Sets
from ..updates.interface import nearest_in

Generator = np.random.Generator
PIECE = 4096  # samples whose uniform activations are drawn together
CANDIDATES, CANDIDATE_ENTRIES = 2, 2**22  # a start reads this many samples per component, or this many entries of X
Init = str | Sequence[npt.ArrayLike]  # the name of a start, or a factor for each mode
Factors = list[Any]  # arrays, or activations that stay with their chunks
Knowledge = Sequence[Known | None]  # known activations, known components
NOTHING: Knowledge = (None, None)


def random(data: Data, r: int, sets: Sequence[Sets], rng: Generator, known: Knowledge = NOTHING) -> Factors:
    """The paper's start: permutations of one projected random vector for constrained factors, uniform for others."""
    pairs = zip(sets, chain(known, repeat(None)), strict=False)
    return [_random_factor(data, mode, r, s, rng, of) for mode, (s, of) in enumerate(pairs)]


def _random_factor(data: Data, mode: int, r: int, sets: Sets, rng: Generator, known: Known | None) -> Array | Held:
    if mode == 0 and sets.by_rows:
        start: Uniform | Placed = Uniform(int(rng.integers(2**63)), data.dtype, sets)
        start = start if known is None else Placed(start, known)
        return data.hold(start, r) if isinstance(data, Chunked) else start(0, data.shape[0])
    factor = np.empty((data.shape[mode], r), dtype=data.dtype, order="F")
    vector = rng.random(len(factor))
    for j in range(r):
        factor[:, j] = rng.random(len(factor)) if sets.nonnegative else rng.permutation(nearest_in(sets[j], vector))
    return factor if known is None else known.put(factor)


@dataclass(frozen=True)
class Uniform:
    """Uniform activations: ``start(first, end)``. They do not depend on the chunks."""

    seed: int
    dtype: DType
    sets: Sets

    def __call__(self, first: int, end: int) -> Array:
        """Return the activations of samples ``first`` to ``end``."""
        r = len(self.sets)
        rows = np.empty((end - first, r), dtype=self.dtype, order="F")
        for piece in range(first // PIECE, -(-end // PIECE)):
            start, stop = max(first, piece * PIECE), min(end, (piece + 1) * PIECE)
            drawn = np.random.default_rng([self.seed, piece]).random((stop - piece * PIECE, r))
            rows[start - first : stop - first] = drawn[start - piece * PIECE :]
        return rows if self.sets.nonnegative else self.sets.project(rows)


@dataclass(frozen=True)
class Zeros:
    """Activations of zero."""

    r: int
    dtype: DType

    def __call__(self, first: int, end: int) -> Array:
        """Return the activations of samples ``first`` to ``end``."""
        return np.zeros((end - first, self.r), dtype=self.dtype, order="F")


@dataclass(frozen=True)
class Given:
    """Activations given by the user."""

    activations: Array

    def __call__(self, first: int, end: int) -> Array:
        """Return the activations of samples ``first`` to ``end``."""
        return np.array(self.activations[first:end], order="F")


@dataclass(frozen=True)
class Placed:
    """Another start, with the known activations put in place."""

    start: Callable[[int, int], Array]
    known: Known

    def __call__(self, first: int, end: int) -> Array:
        """Return the activations of samples ``first`` to ``end``."""
        return self.known.put(self.start(first, end), first)


def samples(data: Whole | Chunked, r: int, sets: Sequence[Sets], rng: Generator, known: Knowledge = NOTHING) -> Factors:
    """Components from samples of X that are far apart, and uniform activations.

    As in k-means++, each sample is drawn with a probability proportional to its squared distance from the span of those
    already drawn, so that near duplicates are not drawn twice. If there are many samples, only a random subset is
    considered. If activations are constrained and components are not, features are drawn instead of samples. Known
    components count as drawn.
    """
    factors = random(data, r, sets, rng, known)
    mode = 0 if sets[1].unit_norm or not sets[0].unit_norm else 1  # its vectors become columns of the other factor
    data, which = candidates(data, mode, r, rng)
    left = data.sqnorms(mode)[which]
    basis = np.zeros((data.shape[1 - mode], r), order="F")
    chosen: list[int] = []
    kept = sets[1 - mode].kept
    for size, j in enumerate(sorted(range(r), key=lambda j: j not in kept)):
        if j in kept:
            vector = factors[1 - mode][:, j].astype(float)
        elif len(chosen) == len(left) or not left.max() > 1e-12 * data.sqnorm / len(left):
            break
        else:
            chosen.append(int(rng.choice(len(left), p=left / left.sum())))
            vector = data.vectors(mode, which[chosen[-1:]])[:, 0].astype(float)
            factors[1 - mode][:, j] = sets[1 - mode][j](vector)
        vector -= basis[:, :size] @ (basis[:, :size].T @ vector)
        vector /= max(np.linalg.norm(vector), 1e-300)
        basis[:, size] = vector
        left = np.maximum(left - data.times(vector, mode)[which] ** 2, 0)
        left[chosen] = 0
    return factors


def candidates(data: Whole | Chunked, mode: int, r: int, rng: Generator) -> tuple[Whole, Array]:
    """Return data in memory and the candidates among its samples or features: the same for any kind of data."""
    which = np.arange(data.shape[mode])
    few = max(CANDIDATES * r, CANDIDATE_ENTRIES // data.shape[1])
    if mode == 0 and len(which) > few:
        which = np.sort(rng.choice(len(which), few, replace=False))
    if isinstance(data, Chunked):
        data.check()
    if isinstance(data, Chunked) or 4 * len(which) < data.shape[mode]:
        return data.subset(which), np.arange(len(which))
    return data, which


def nndsvd(data: Data, r: int, sets: Sequence[Sets], rng: Generator, known: Knowledge = NOTHING) -> Factors:
    """NNDSVD: the larger of the positive and the negative part of each singular pair of a truncated SVD.

    Zeros are replaced by the mean, and the vectors are projected. Components beyond the rank of X are random.

    Reference: C. Boutsidis and E. Gallopoulos, "SVD based initialization: a head start for nonnegative matrix
    factorization", Pattern Recognition 41 (2008).
    """
    from sklearn.utils.extmath import randomized_svd  # takes a second to import and is needed only here

    factors = random(data, r, sets, rng, known)
    left, values, right = randomized_svd(data.matrix, min(r, *data.shape), random_state=int(rng.integers(2**31)))
    rounding = max(data.shape) * np.finfo(data.dtype).eps
    rank = np.count_nonzero(values > rounding * values[0])
    free = [j for j in range(r) if not any(j in s.kept for s in sets)]
    for p, j in enumerate(free[:rank]):
        u, v = left[:, p], right[p]
        if np.linalg.norm(np.maximum(u, 0)) * np.linalg.norm(np.maximum(v, 0)) < (
            np.linalg.norm(np.minimum(u, 0)) * np.linalg.norm(np.minimum(v, 0))
        ):
            u, v = -u, -v
        for mode, vector in ((0, np.maximum(u, 0)), (1, np.maximum(v, 0))):
            vector = vector.astype(float) * np.sqrt(values[p])
            vector[vector <= rounding * vector.max()] = vector.mean()  # rounding depends on the kind of data
            factors[mode][:, j] = sets[mode][j](vector)
    return factors


STARTS: dict[str, Callable[[Whole | Chunked, int, Sequence[Sets], Generator, Knowledge], Factors]] = {
    "random": random,
    "samples": samples,
    "nndsvd": nndsvd,
}


def starting_factors(
    init: Init, data: Whole | Chunked, r: int, sets: Sequence[Sets], rng: Generator, known: Knowledge = NOTHING
) -> Factors:
    """Return initial factors in the sets and in the data's precision, with ``known`` columns put in place.

    ``init`` is a name of `STARTS`, or (activations, components).
    """
    if isinstance(init, str):
        if init not in STARTS:
            names = ", ".join(map(repr, (*STARTS, "gradual", "auto")))
            raise ValueError(f"init={init!r} is not one of {names}; or give (activations, components)")
        factors = STARTS[init](data, r, sets, rng, known)
        factors = [
            f if isinstance(s, Columns) or isinstance(f, Held) else s.project(f)
            for f, s in zip(factors, sets, strict=True)
        ]
    else:
        factors = [
            sets[mode].project(_given(name, array, (data.shape[mode], r)))
            for mode, (name, array) in enumerate(zip(("activations", "components"), _pair(init), strict=True))
        ]
        factors = [f if k is None else k.put(f) for f, k in zip(factors, known, strict=True)]
        activations, parts = data.scales.times(factors)
        if isinstance(data, Chunked):
            factors = [data.hold(Given(activations.astype(data.dtype)), r), parts]
        else:
            factors = [activations, parts]
    return [f if isinstance(f, Held) else np.asfortranarray(f, dtype=data.dtype) for f in factors]


def starting_parts(
    init: str | npt.ArrayLike, data: Whole, r: int, sets: Sequence[Sets], rng: Generator, known: Known | None = None
) -> Array:
    """Return initial components (features × r). ``init`` is a name of `STARTS`, or components (r × features)."""
    if isinstance(init, str):
        return np.asarray(starting_factors(init, data, r, sets, rng, (None, known))[1])
    parts = sets[1].project(_given("components", np.asarray(init).T, (data.shape[1], r)))
    return np.asfortranarray(parts if known is None else known.put(parts), dtype=data.dtype)


def _pair(init: Sequence[npt.ArrayLike]) -> tuple[Array, Array]:
    try:
        activations, components = init
    except (TypeError, ValueError):
        raise ValueError(f"init has type {type(init).__name__}: give a name, or (activations, components)") from None
    return np.asarray(activations), np.asarray(components).T


def _given(name: str, array: Array, shape: tuple[int, int]) -> Array:
    if array.shape != shape:
        want, got = (s if name == "activations" else s[::-1] for s in (shape, array.shape))
        raise ValueError(f"the {name} in init have shape {got}: shape {want} is needed")
    array = np.array(array, dtype=float, order="F")
    if not np.isfinite(array).all() or array.min() < 0:
        raise ValueError(f"the {name} in init have negative or non-finite values: they must be finite and nonnegative")
    return array


def scale_to(data: Data, factors: Factors, mode: int, kept: Sequence[Sequence[int]] = ()) -> None:
    """Scale ``factors[mode]`` so that the model has the norm of X.

    ``kept`` columns are not scaled. Columns that belong to a kept column of another factor are scaled as if it had
    norm 1.
    """
    grams = [gram(f) for f in factors]
    rest = np.prod([g for other, g in enumerate(grams) if other != mode], axis=0)
    own = list(kept[mode]) if kept else []
    others = sorted({j for other, columns in enumerate(kept) if other != mode for j in columns})
    scale = np.ones(len(rest))
    scale[others] = 1 / np.sqrt(rest.diagonal()[others])
    scale[own] = 1
    size = float(np.vdot(grams[mode] * np.outer(scale, scale), rest))
    if size > 0:
        scale *= np.sqrt(data.sqnorm / size)
        scale[own] = 1
        factors[mode] *= scale.astype(factors[mode].dtype)

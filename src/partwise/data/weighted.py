"""Dense arrays with a weight for every entry: the loss is ½Σ v·(x − model)².

With everything else fixed, each row of a factor then has a Gram matrix of its own, so that the statistics are
`WeightedStats`. Entries of weight zero, and NaN, are not fitted at all. If all other weights are equal, X is data with
missing entries, without weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import DType
from ..statistics import Array, Stats, WeightedStats, gram
from .dense import DenseData
from .matrix import Matrix, square_sums
from .missing import MissingDense, alike, check_seen
from .observed import as_observed
from .protocols import Which
from .scales import Scales
from .values import precision, scale_limit


class Weights(Protocol):
    """The weights V of all entries."""

    def rows(self, which: Which) -> Array:
        """The weights of some samples (samples × features)."""
        ...

    def times(self, rest: Array, mode: int) -> Array:
        """V·rest (mode 0) or Vᵀ·rest (mode 1). The next call for the same mode may overwrite it."""
        ...

    @property
    def equal(self) -> bool:
        """Whether all that are not zero are equal."""
        ...


class EntryWeights:
    """An array of weights."""

    def __init__(self, array: Array) -> None:
        self.data = DenseData(array, check=False)

    def rows(self, which: Which) -> Array:
        return np.asarray(self.data.matrix[which])

    def times(self, rest: Array, mode: int) -> Array:
        return self.data.cross(np.asfortranarray(rest), mode)

    @property
    def equal(self) -> bool:
        return equal(self.data.matrix)


@dataclass(frozen=True)
class OuterWeights:
    """A weight for each sample times a weight for each feature."""

    samples: Array
    features: Array

    @classmethod
    def of(cls, X: Any, *given: Any) -> OuterWeights:
        """Validate the weights of the samples and of the features; those that are not given are 1."""
        kind, names = precision(np.dtype(X.dtype)), ("sample_weight", "feature_weight")
        samples, features = (
            np.ones(n, dtype=kind) if one is None else checked_weights(one, (n,), name, kind)
            for one, n, name in zip(given, X.shape, names, strict=True)
        )
        return cls(samples, features)

    @cached_property
    def scales(self) -> Scales:
        """The scales that stand for these weights; none if all are equal."""
        check_seen(self.features, "have weight 0 or are")
        if np.ptp(self.features) > 0:
            unequal = np.ptp(self.samples) > 0 or self.samples[0] != 1
            return Scales(np.sqrt(self.samples) if unequal else None, np.sqrt(self.features))
        return Scales(np.sqrt(self.samples * self.features[0])) if np.ptp(self.samples) > 0 else Scales()

    @property
    def equal(self) -> bool:
        return equal(self.samples) and equal(self.features)

    def rows(self, which: Which) -> Array:
        return np.outer(self.samples[which], self.features)

    def times(self, rest: Array, mode: int) -> Array:
        own, other = (self.features, self.samples) if mode else (self.samples, self.features)
        return np.asfortranarray(np.outer(own, other @ rest))


class WeightedDense(MissingDense):
    """An array and the weights of its entries. Starts and excerpts see only which entries have a weight.

    If some have none, the array is a copy with zeros in their place.
    """

    def __init__(self, X: Array, weights: Weights, mask: Array, signed: bool = False) -> None:
        self.weights = weights
        super().__init__(X if mask.all() else np.where(mask, X, X.dtype.type(0)), mask, signed=signed)

    def _filled(self, rows: Which) -> Array:
        return np.asarray(self.matrix[rows])

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Any:  # WeightedStats
        rest = factors[1 - mode]
        cross = self.product_array(mode, rest.shape[1])
        cross[...] = 0
        for rows in self._chunks():
            block = self._filled(rows) * self.weights.rows(rows)
            if mode:
                cross += block.T @ rest[rows]
            else:
                cross[rows] = block @ rest
        return WeightedStats(cross, self.grams(rest, mode))

    def grams(self, rest: Array, mode: int) -> Callable[[int], Array]:
        """Row j of the Gram matrix of every row of a factor, as a function of j: from one product if X is large."""
        r = rest.shape[1]
        first, second = np.triu_indices(r)
        if 4 * first.size > min(self.shape):  # these would take more than a quarter of the memory of X
            return lambda j: self.weights.times(rest * rest[:, j : j + 1], mode)
        places = np.empty((r, r), dtype=int)
        places[first, second] = places[second, first] = np.arange(first.size)
        products = self.weights.times(rest[:, first] * rest[:, second], mode)
        return lambda j: products[:, places[j]]

    def loss(self, stats: Any, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        return 0.5 * self.squared_error(factors)

    def squared_error(self, factors: Sequence[Array]) -> float:
        left, right = (np.asarray(f, dtype=self.dtype) for f in factors)
        total = 0.0
        for rows in self._chunks():
            errors = left[rows] @ right.T
            np.square(np.subtract(self.matrix[rows], errors, out=errors), out=errors)
            total += float(np.multiply(errors, self.weights.rows(rows), out=errors).sum(dtype=float))
        return total

    def row_errors(self, factors: Sequence[Array], stats: Any, mode: int) -> Array:
        left, right = (np.asarray(f, dtype=self.dtype) for f in factors)

        def errors(rows: slice) -> Array:
            squares = np.square(self.residual([left, right], rows), dtype=float)
            return np.multiply(squares, self.weights.rows(rows), out=squares)

        return self._totals(errors, mode)

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        """For each slice, the multiple of the vector that fits its residual best, times the vector's squared norm."""
        (vector,) = vectors
        along = self._summed(lambda rows: self.residual(factors, rows) * self.weights.rows(rows), vector, mode)
        sizes = self._summed(self.weights.rows, np.square(vector, dtype=float), mode)
        return np.divide(along, sizes, out=np.zeros_like(along), where=sizes > 1e-8 * sizes.max()) * float(
            vector @ vector
        )

    @cached_property
    def sqnorm(self) -> float:
        """Σ v·x²."""
        return sum(
            float((np.square(self._filled(rows), dtype=float) * self.weights.rows(rows)).sum())
            for rows in self._chunks()
        )

    def patterns(self, parts: Array) -> Iterator[tuple[Which, Stats]]:
        """Yield groups of samples with the same weights, and the statistics of their activations."""
        keys = (row.tobytes() for rows in self._chunks() for row in self.weights.rows(rows))
        for some in alike(keys, self.shape[1]):
            root = np.sqrt(self.weights.rows(some[:1])[0])
            scaled, values = np.asfortranarray(parts * root[:, None]), self._filled(some) * root
            yield some, Stats(np.asfortranarray(values @ scaled), gram(scaled), float(square_sums(values).sum()))

    def pieces(self) -> Iterator[Array]:
        yield from super().pieces()
        for rows in self._chunks():
            yield self.weights.rows(rows)


class ScaledDense(DenseData):
    """An array whose samples and features were multiplied by the roots of their weights: a copy."""

    def __init__(self, X: Array, weights: OuterWeights, signed: bool = False) -> None:
        super().__init__(weights.scales.rows(X), signed=signed)
        self.original, self.weights, self.scales = X, weights, weights.scales

    def entrywise(self) -> Matrix:
        """The array itself, with the same weights as those of all entries."""
        return with_entry_weights(self.original, self.weights, self.signed)


def as_weighted(X: Any, weights: Any, sample_weight: Any, feature_weight: Any, signed: bool) -> Matrix:
    """Return X with the given weights as data. Weights of 0 and one other value only say which entries are missing.

    Raises ValueError for weights that are NaN, infinite, negative, all zero, or of the wrong shape.
    """
    data = DenseData(X, check=False, signed=signed)
    if weights is None:
        return with_outer_weights(data.matrix, OuterWeights.of(data, sample_weight, feature_weight), signed)
    if sample_weight is not None or feature_weight is not None:
        raise ValueError("give either weights or sample_weight and feature_weight: multiply them into weights")
    entries = EntryWeights(checked_weights(weights, data.shape, "weights", data.dtype))
    return with_entry_weights(data.matrix, entries, signed)


def with_outer_weights(X: Array, weights: OuterWeights, signed: bool) -> Matrix:
    """An array with weights of its samples and features, as scales where that is possible."""
    least, largest = X.min(), X.max()
    valid = np.isfinite(least) and np.isfinite(largest) and (signed or least >= 0)
    if valid and not weights.equal:
        return ScaledDense(X, weights, signed)
    return with_entry_weights(X, weights, signed)


def with_entry_weights(X: Array, weights: Weights, signed: bool) -> Matrix:
    """An array with weights of its entries, which are zero for NaN. If the others are equal, entries are missing."""
    if np.isnan(X.min()):
        weights = EntryWeights(np.where(np.isnan(X), X.dtype.type(0), weights.rows(slice(None))))
    seen = np.empty(X.shape, dtype=bool)
    for rows in DenseData(X, check=False)._chunks():
        np.greater(weights.rows(rows), 0, out=seen[rows])
    check_seen(seen.sum(axis=0), "have weight 0 or are")
    return as_observed(X, seen, False, signed) if weights.equal else WeightedDense(X, weights, seen, signed)


def as_scales(X: Any, weights: Any, sample_weight: Any, feature_weight: Any) -> Scales:
    """Return the scales that stand for the weights of an X which is sparse or read in chunks; none if all are equal.

    Raises ValueError for weights of all entries, and as `as_weighted` does.
    """
    if weights is not None:
        raise ValueError(
            "weights of all entries need a dense X in memory: load X, or give sample_weight or feature_weight, which "
            "are available for every kind of X"
        )
    return OuterWeights.of(X, sample_weight, feature_weight).scales


def checked_weights(weights: Any, shape: tuple[int, ...], name: str, dtype: DType) -> Array:
    """``weights`` as an array of this shape and dtype."""
    if sp.issparse(weights):
        raise ValueError(f"{name} is a sparse matrix: give an array")
    array = np.asarray(weights)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}: shape {shape} is needed for this X")
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity: give 0 to entries without a weight")
    if array.min() < 0:
        raise ValueError(f"{name} contains {array.min():g}: weights must not be negative")
    if not array.any():
        raise ValueError(f"{name} is zero everywhere: nothing would be fitted")
    largest, limit = float(array.max()), scale_limit(dtype) ** 2
    if not 1 / limit <= largest <= limit:
        raise ValueError(
            f"the largest value of {name} is {largest:g}, outside the range {1 / limit:.0e} to {limit:.0e} that is "
            f"safe in {dtype}: only ratios of weights matter, so rescale them"
        )
    return np.require(array, dtype, ["A"])


def equal(weights: Array) -> bool:
    """Whether all weights that are not zero are equal."""
    return bool(weights.min(where=weights > 0, initial=np.inf) == weights.max())

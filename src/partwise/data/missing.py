"""Matrices with missing entries, by expectation–maximisation (EM): missing entries are replaced by the model.

The statistics of a factor F are those of X completed with the current model, so that any update for complete data can
be used. The loss of the completed matrix is an upper bound of the observed loss, and equals it at the current F. An
update that lowers the bound therefore lowers the observed loss. One pass computes the loss together with the statistics
of one factor, so that an iteration needs one pass for each factor.

A dense X is copied and completed in blocks of a few lines, which are samples or features. With few missing entries, the
model is computed for these entries only, which costs little more than a fit without missing entries. With many, a
matrix product of all entries is faster. A sparse X needs only R, the observed residual, zero where X is missing:

    cross = R·rest + F·gram,      ‖completed X‖² = ‖R‖² + 2⟨F, R·rest⟩ + ⟨FᵀF, gram⟩.

Reference: S. Zhang, W. Wang, J. Ford and F. Makedon, "Learning from incomplete ratings using non-negative matrix
factorization", SIAM Data Mining 2006.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.compiled import kernel
from ..runtime.threads import in_parts
from ..statistics import Array, Stats, gram
from .dense import DenseData
from .matrix import CHUNK_ENTRIES, Matrix, square_sums
from .protocols import Which
from .values import check_values

FEW = 0.25  # share of missing entries up to which computing them one by one is faster than a product of all entries

LINES = 64  # minimum number of lines per block, if possible, and per thread


class Visit(NamedTuple):
    """The results of a pass: the statistics of one factor, and the observed loss."""

    grams: tuple[Array, ...]
    mode: int
    stats: Stats
    loss: float

    def at(self, grams: Sequence[Array]) -> bool:
        """Whether the factors are unchanged. A Gram matrix is a new array whenever its factor has changed."""
        return all(mine is yours for mine, yours in zip(self.grams, grams, strict=True))


class Missing(Matrix):
    """The base class of dense and sparse matrices with missing entries."""

    complete = False
    _last: Visit | None = None

    @abstractmethod
    def completed(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> tuple[Stats, float]:
        """Return the statistics of X completed with the model, and the observed loss."""

    @abstractmethod
    def observed(self, which: Array) -> Array:
        """The observed mask of some samples (samples × features)."""

    @abstractmethod
    def digests(self) -> list[bytes]:
        """A digest of the observed mask of each sample."""

    @abstractmethod
    def observed_values(self, which: Array, features: Array) -> Array:
        """The values of samples with the same observed ``features`` (samples × features)."""

    def statistics(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> Stats:
        """Return the statistics of X completed with the model. The same pass computes the loss."""
        if self._last is None or self._last.mode != mode or not self._last.at(grams):
            self._last = Visit(tuple(grams), mode, *self.completed(factors, grams, mode))
        return self._last.stats

    def loss(self, stats: Stats, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> float:
        """Return the observed loss, from the pass that the next update needs anyway."""
        if self._last is None or not self._last.at(grams):
            self.statistics(factors, grams, 1 - mode)
        assert self._last is not None
        return self._last.loss

    def sums(self, factors: Sequence[Array], grams: Sequence[Array | None], mode: int) -> Stats:
        return self.statistics(
            factors, [gram(f) if g is None else g for f, g in zip(factors, grams, strict=True)], mode
        )

    def patterns(self, parts: Array) -> Iterator[tuple[Which, Stats]]:
        for some in alike(self.digests(), self.shape[1]):
            features = np.flatnonzero(self.observed(some[:1])[0])
            few, values = parts[features], self.observed_values(some, features)
            yield some, Stats(np.asfortranarray(values @ few), gram(few), float(square_sums(values).sum()))

    @cached_property
    def unseen(self) -> Array:
        return np.flatnonzero(self.counts(0) == 0)

    @cached_property
    def means(self) -> Array:
        """The mean of the observed entries of each feature."""
        return np.asarray(self.times(np.ones(self.shape[0]), 1) / np.maximum(self.counts(1), 1), dtype=self.dtype)


class MissingDense(Missing, DenseData):
    """An array whose entries are missing where ``mask`` is false or, without a mask, where they are NaN."""

    def __init__(self, X: npt.ArrayLike, mask: Array | None = None, check: bool = True, signed: bool = False) -> None:
        self.mask = mask
        DenseData.__init__(self, X, check, signed)

    def subset(self, which: Which, features: Which = slice(None)) -> MissingDense:
        mask = None if self.mask is None else self.mask[which][:, features]
        return MissingDense(self.matrix[which][:, features], mask, check=False, signed=self.signed)

    def observed(self, which: Which, features: Which = slice(None)) -> Array:
        if self.mask is None:
            return ~np.isnan(self.matrix[which][:, features])
        return self.mask[which][:, features]

    def _with(self, fill: Any, which: Which, features: Which = slice(None)) -> Array:
        """Return some samples and features, with ``fill`` for missing entries."""
        return np.where(self.observed(which, features), self.matrix[which][:, features], fill)

    def _filled(self, rows: Which) -> Array:
        """Return some samples, with zeros for missing entries."""
        return self._with(self.dtype.type(0), rows)

    def residual(self, factors: Sequence[Array], rows: Which) -> Array:
        """Return R for some samples."""
        residual = factors[0][rows] @ factors[1].T
        np.subtract(self.matrix[rows], residual, out=residual)
        np.copyto(residual, 0, where=~self.observed(rows))
        return residual

    @cached_property
    def along(self) -> int:
        """The mode of the lines: 0 if they are samples, 1 if they are features.

        Lines are contiguous in memory, unless they are the longer side and only a few of them fit into a block: each
        block adds to the sums of the other mode, which are as long as a line.
        """
        mode = int(not self.matrix.flags.c_contiguous)
        length = self.shape[1 - mode]
        return mode if length <= self.shape[mode] or length * LINES <= CHUNK_ENTRIES else 1 - mode

    def _lines(self, array: Array, lines: slice) -> Array:
        """Return some lines of X or of the mask, as rows."""
        return array[:, lines].T if self.along else array[lines]

    def _missing(self, lines: slice) -> Array:
        """Return where some lines are missing, in the memory layout of X."""
        X = self._lines(self.matrix, lines)
        out = np.empty_like(X, dtype=bool)
        return np.isnan(X, out=out) if self.mask is None else np.logical_not(self._lines(self.mask, lines), out=out)

    @cached_property
    def listed(self) -> tuple[Array, Array] | None:
        """(starts, places): line i lacks its entries ``places[starts[i]:starts[i + 1]]``. None if many are missing."""
        size, width = self.shape[self.along], self.shape[1 - self.along]
        starts = np.concatenate([[0], np.cumsum(width - self.counts(self.along))])
        if starts[-1] > FEW * self.size:
            return None
        places = np.empty(starts[-1], dtype=np.int32)
        for lines in slices(0, size, width):
            places[starts[lines.start] : starts[lines.stop]] = np.flatnonzero(self._missing(lines)) % width
        return starts, places

    def _filled_lines(self, own: Array, other: Array, lines: slice) -> tuple[Array, float]:
        """Return a copy of some lines, completed with the model own·otherᵀ, and Σ model² over their missing entries."""
        block = self._lines(self.matrix, lines).copy(order="K")
        if self.listed is None:
            model = np.matmul(own, other.T, out=np.empty_like(block))
            flat = [array.ravel(order="K") for array in (block, self._missing(lines), model)]
            return block, fill_marked(*flat)
        starts, places = self.listed
        return block, fill_listed(block, starts[lines.start : lines.stop + 1], places, np.ascontiguousarray(own), other)

    def completed(self, factors: Sequence[Array], grams: Sequence[Array], mode: int) -> tuple[Stats, float]:
        own, rest = factors[mode], factors[1 - mode]
        cross = self.product_array(mode, own.shape[1])
        size, width = self.shape[self.along], self.shape[1 - self.along]
        others = np.ascontiguousarray(factors[1 - self.along])

        def multiply(first: int, end: int) -> tuple[float, Array]:
            squares, total = 0.0, np.zeros((own.shape[1], width), dtype=self.dtype)
            for lines in slices(first, end, width):
                block, more = self._filled_lines(factors[self.along][lines], others, lines)
                squares += more
                if mode == self.along:
                    np.matmul(rest.T, block.T, out=cross.T[:, lines])
                else:
                    total += rest[lines].T @ block
            return squares, total

        _ = self.listed  # before the threads start
        squares, totals = zip(*in_parts(multiply, size, LINES), strict=True)
        if mode != self.along:
            cross.T[...] = sum(totals)
        stats = Stats(cross, grams[1 - mode], self.sqnorm + sum(squares))
        return stats, stats.loss(own, grams[mode])

    def check(self) -> None:
        least = min(float(self._filled(rows).min()) for rows in self._chunks())
        check_values(least, self.peak, self._offenders, self.signed)

    @cached_property
    def peak(self) -> float:
        size = np.abs if self.signed else np.asarray
        return max(float(size(self._filled(rows)).max()) for rows in self._chunks())

    def digests(self) -> list[bytes]:
        packed = (np.packbits(self.observed(rows), axis=1) for rows in self._chunks())
        return [blake2b(row.tobytes(), digest_size=16).digest() for rows in packed for row in rows]

    def counts(self, mode: int) -> Array:
        return self._totals(self.observed, mode)

    def observed_values(self, which: Array, features: Array) -> Array:
        return np.asarray(self.matrix[which][:, features])

    def squared_error(self, factors: Sequence[Array]) -> float:
        left, right = (np.asarray(f, dtype=self.dtype) for f in factors)
        return sum(float(square_sums(self.residual([left, right], rows)).sum()) for rows in self._chunks())

    def row_errors(self, factors: Sequence[Array], stats: Stats, mode: int) -> Array:
        return self._totals(lambda rows: np.square(self.residual(factors, rows), dtype=float), mode)

    def residuals(self, factors: Sequence[Array], mode: int, which: Array) -> Array:
        if mode == 0:
            return self.residual(factors, which).T
        return np.vstack([self.residual(factors, rows)[:, which] for rows in self._chunks()])

    def residual_times(self, vectors: Sequence[Array], factors: Sequence[Array], mode: int) -> Array:
        return self._summed(lambda rows: self.residual(factors, rows), vectors[0], mode)

    def times(self, vector: Array, mode: int) -> Array:
        return self._summed(self._filled, vector, mode)

    def _summed(self, read: Callable[[slice], Array], vector: Array, mode: int) -> Array:
        vector = vector.astype(self.dtype)
        if mode:
            return np.asarray(sum(vector[rows] @ read(rows) for rows in self._chunks()), dtype=float)
        return np.concatenate([read(rows) @ vector for rows in self._chunks()]).astype(float)

    def vectors(self, mode: int, which: Array) -> Array:
        """Return samples or features as columns, with missing entries replaced by the feature's mean."""
        if mode == 0:
            return np.asfortranarray(self._with(self.means, which).T)
        return np.asfortranarray(self._with(self.means[which], slice(None), which))

    def pieces(self) -> Iterator[Array]:
        return (self.raw(rows) for rows in self._chunks())

    def tile(self, mode: int, which: slice) -> Array:
        return np.ascontiguousarray(self.raw(slice(None), which).T if mode else self.raw(which))

    def raw(self, which: Which, features: Which = slice(None)) -> Array:
        return self._with(self.dtype.type(np.nan), which, features)

    def summed_squares(self, mode: int) -> Array:
        return self._totals(lambda rows: np.square(self._filled(rows), dtype=float), mode)

    def _totals(self, read: Callable[[slice], Array], mode: int) -> Array:
        """The sums of what is read for some samples at a time, for each sample (mode 0) or feature (mode 1)."""
        totals = [read(rows).sum(axis=1 - mode) for rows in self._chunks()]
        return np.asarray(np.sum(totals, axis=0) if mode else np.concatenate(totals))


def alike(keys: Iterable[bytes], width: int) -> Iterator[Array]:
    """Yield groups of samples with equal keys, at most `CHUNK_ENTRIES` entries at a time."""
    groups: dict[bytes, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    step = max(1, CHUNK_ENTRIES // width)
    for group in groups.values():
        yield from np.split(np.array(group), range(step, len(group), step))


def check_seen(counts: Array, why: str = "are") -> None:
    """Raise ValueError if features are missing (``why``) in all samples, given the number of samples that have each."""
    unseen = np.flatnonzero(counts == 0)
    if unseen.size:
        some = ", ".join(map(str, unseen[:5])) + (", …" if unseen.size > 5 else "")
        raise ValueError(
            f"{unseen.size} of the features of X ({some}) {why} missing in all samples, so no component can be learned "
            "for them: remove them"
        )


def slices(first: int, end: int, width: int) -> list[slice]:
    """Cut a range of lines into slices of at most `CHUNK_ENTRIES` entries."""
    step = max(1, CHUNK_ENTRIES // width)
    return [slice(i, min(i + step, end)) for i in range(first, end, step)]


@kernel
def fill_listed(lines: Array, starts: Array, places: Array, own: Array, other: Array) -> float:
    """Fill the listed entries of ``lines`` by the model own·otherᵀ, and return the sum of their squares."""
    total = 0.0
    for i in range(lines.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            j = places[e]
            model = lines.dtype.type(0)
            for a in range(own.shape[1]):
                model += own[i, a] * other[j, a]
            lines[i, j] = model
            total += np.float64(model) * np.float64(model)
    return total


@kernel
def fill_marked(values: Array, missing: Array, model: Array) -> float:
    """Fill ``values`` by the model where they are missing, and return the sum of squares of what is filled in."""
    total = 0.0
    for e in range(values.size):
        filled = np.float64(model[e]) if missing[e] else 0.0
        values[e] = model[e] if missing[e] else values[e]
        total += filled * filled
    return total

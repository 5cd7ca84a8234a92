"""Entries of X that a fit does not see, and how well it guesses them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chunked, Matrix, Missing, SparseData, as_data
from ..data.missing import MissingDense, check_seen
from ..data.observed import MissingSparse
from ..engine.metrics import relative_error
from ..statistics import Array

DENSE_ENTRIES = 2**26  # a sparse X of at most so many entries, zeros included, is made dense
CHUNK = 2**16  # entries that are guessed at once


@dataclass(frozen=True)
class Observed:
    """X and where it is observed: an array and a mask (None: everywhere), or a CSR matrix that stores just that."""

    matrix: Any
    mask: Array | None = None

    @classmethod
    def of(cls, X: Any, missing: bool, observed: Any) -> Observed:
        """X, checked. A sparse X without ``observed`` is so everywhere, and made dense if that is not much."""
        data = as_data(X, None, missing, observed)
        if isinstance(data, Chunked):
            raise ValueError("select needs X in memory, and this X is read in chunks: give a random subset of samples")
        if isinstance(data, Missing):
            check_seen(data.counts(1))
            return cls(data.matrix, None if isinstance(data, MissingSparse) else data.observed(slice(None)))
        if not isinstance(data, SparseData):
            return cls(data.matrix)
        if data.shape[0] * data.shape[1] > DENSE_ENTRIES:
            raise ValueError(
                f"X is sparse and of shape {data.shape}: what it does not store is zero, so that the entries to "
                "hold out are among all of these, which is more than memory should take. Give a random subset of "
                "samples and features, or observed= as a sparse mask"
            )
        return cls(data.matrix.toarray())

    @property
    def sparse(self) -> bool:
        """Whether costs follow the observed entries."""
        return sp.issparse(self.matrix)

    @property
    def count(self) -> int:
        """How many entries are observed."""
        if self.sparse:
            return int(self.matrix.nnz)
        return int(self.matrix.size if self.mask is None else np.count_nonzero(self.mask))

    def places(self, entries: Array) -> tuple[Array, Array]:
        """Rows and columns of observed entries, which are counted row by row."""
        if self.sparse:
            return np.searchsorted(self.matrix.indptr, entries, side="right") - 1, self.matrix.indices[entries]
        flat = entries if self.mask is None else np.flatnonzero(self.mask)[entries]
        rows, columns = np.divmod(flat, self.matrix.shape[1])
        return rows, columns

    def without(self, entries: Array) -> Matrix:
        """X as data that lacks these entries."""
        if self.sparse:
            X, kept = self.matrix, np.ones(self.matrix.nnz, dtype=bool)
            kept[entries] = False
            starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
            rest = sp.csr_array((X.data[kept], X.indices[kept], starts), shape=X.shape)
            return MissingSparse(rest, check=False)
        mask = np.ones(self.matrix.shape, dtype=bool) if self.mask is None else self.mask.copy()
        mask[self.places(entries)] = False
        return MissingDense(self.matrix, mask, check=False)

    def digest(self) -> str:
        """A digest of what is observed and where, by which the same X is known again."""
        found = blake2b(repr((self.matrix.shape, str(self.matrix.dtype), self.sparse)).encode(), digest_size=16)
        if self.sparse:
            parts = [self.matrix.indptr, self.matrix.indices, self.matrix.data]
        else:
            parts = [self.matrix] if self.mask is None else [self.mask, self.matrix[self.mask]]
        for part in parts:
            found.update(np.ascontiguousarray(part).data)
        return found.hexdigest()


@dataclass(frozen=True)
class Split:
    """What a fit sees, and what it shall guess."""

    seen: Matrix
    rows: Array
    columns: Array
    values: Array

    def error(self, factors: Any) -> float:
        """‖X − model‖ / ‖X‖ over the entries held out."""
        left, right = factors
        total = 0.0
        for first in range(0, len(self.rows), CHUNK):
            some = slice(first, first + CHUNK)
            guess = np.einsum("ej,ej->e", left[self.rows[some]], right[self.columns[some]])
            total += float(np.square(guess - self.values[some], dtype=float).sum())
        return relative_error(float(np.square(self.values, dtype=float).sum()), total / 2)


def hold_out(observed: Observed, share: float, rng: np.random.Generator) -> Split:
    """Hold out a random ``share`` of the observed entries; each row and column keeps one at least."""
    entries = np.sort(rng.choice(observed.count, round(share * observed.count), replace=False, shuffle=False))
    for mode in (0, 1):
        entries = _give_back(entries, observed.places(entries)[mode], _counts(observed, mode), rng)
    rows, columns = observed.places(entries)
    values = np.asarray(observed.matrix.data[entries] if observed.sparse else observed.matrix[rows, columns])
    if not values.any():
        raise ValueError(
            f"holdout={share:g} holds out {len(entries)} entries of X, which tell nothing (none is above zero): "
            "hold out more, or give more data"
        )
    return Split(observed.without(entries), rows, columns, values)


def _counts(observed: Observed, mode: int) -> Array:
    """How many entries of each row, or column, are observed."""
    if observed.sparse:
        X = observed.matrix
        return np.bincount(X.indices, minlength=X.shape[1]) if mode else np.diff(X.indptr)
    if observed.mask is None:
        return np.full(observed.matrix.shape[mode], observed.matrix.shape[1 - mode])
    return np.asarray(observed.mask.sum(axis=1 - mode))


def _give_back(entries: Array, lines: Array, counts: Array, rng: np.random.Generator) -> Array:
    """``entries`` without one of each line (a row, or a column) that has lost all."""
    held = np.bincount(lines, minlength=len(counts))
    lost = np.flatnonzero((held == counts) & (counts > 0))
    back = [int(rng.choice(np.flatnonzero(lines == line))) for line in lost]
    return np.delete(entries, back)

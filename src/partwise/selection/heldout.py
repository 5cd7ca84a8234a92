"""Split X into training and held-out entries, and measure the held-out error."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Chunked, Matrix, Missing, SparseData, as_data
from ..data.missing import MissingDense, check_seen
from ..data.observed import MissingSparse
from ..statistics import Array, relative_error

DENSE_ENTRIES = 2**26  # a sparse X with at most this many entries, zeros included, is converted to dense
CHUNK = 2**16  # held-out entries predicted at a time


@dataclass(frozen=True)
class Observed:
    """X and its observed mask: a dense array with a mask (None: all observed), or a CSR matrix of observed entries."""

    matrix: Any
    mask: Array | None = None

    @classmethod
    def of(cls, X: Any, missing: bool, observed: Any) -> Observed:
        """Validate X. A sparse X without ``observed`` counts as fully observed and is converted to dense if small."""
        data = as_data(X, None, missing, observed)
        if isinstance(data, Chunked):
            raise ValueError("select needs X in memory, but this X is read in chunks: give a random subset of samples")
        if isinstance(data, Missing):
            check_seen(data.counts(1))
            return cls(data.matrix, data.observed(slice(None)) if isinstance(data, MissingDense) else None)
        if not isinstance(data, SparseData):
            return cls(data.matrix)
        if data.shape[0] * data.shape[1] > DENSE_ENTRIES:
            raise ValueError(
                f"X is sparse, of shape {data.shape}, and too large to convert to dense, which holding out entries "
                "needs, because its zeros count as observed. Give a random subset of samples and features, or "
                "observed= as a sparse mask"
            )
        return cls(data.matrix.toarray())

    @property
    def sparse(self) -> bool:
        """Whether only the observed entries are stored."""
        return sp.issparse(self.matrix)

    @property
    def count(self) -> int:
        """Number of observed entries."""
        if self.sparse:
            return int(self.matrix.nnz)
        return int(self.matrix.size if self.mask is None else np.count_nonzero(self.mask))

    def places(self, entries: Array) -> tuple[Array, Array]:
        """Row and column indices of observed entries, which are numbered in row-major order."""
        if self.sparse:
            return np.searchsorted(self.matrix.indptr, entries, side="right") - 1, self.matrix.indices[entries]
        flat = entries if self.mask is None else np.flatnonzero(self.mask)[entries]
        rows, columns = np.divmod(flat, self.matrix.shape[1])
        return rows, columns

    def without(self, entries: Array) -> Matrix:
        """X with these entries marked as missing."""
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
        """A digest of the observed entries and their positions, to recognise the same X in a later search."""
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
    """The training data, and the held-out entries with their values."""

    seen: Matrix
    rows: Array
    columns: Array
    values: Array

    def error(self, factors: Any) -> float:
        """‖X − model‖ / ‖X‖ over the held-out entries."""
        left, right = factors
        total = 0.0
        for first in range(0, len(self.rows), CHUNK):
            some = slice(first, first + CHUNK)
            predicted = np.einsum("ej,ej->e", left[self.rows[some]], right[self.columns[some]])
            total += float(np.square(predicted - self.values[some], dtype=float).sum())
        return relative_error(float(np.square(self.values, dtype=float).sum()), total / 2)


def hold_out(observed: Observed, share: float, rng: np.random.Generator) -> Split:
    """Hold out a random ``share`` of the observed entries, keeping at least one in each row and column."""
    entries = np.sort(rng.choice(observed.count, round(share * observed.count), replace=False, shuffle=False))
    for mode in (0, 1):
        entries = _give_back(entries, observed.places(entries)[mode], _counts(observed, mode), rng)
    rows, columns = observed.places(entries)
    values = np.asarray(observed.matrix.data[entries] if observed.sparse else observed.matrix[rows, columns])
    if not values.any():
        raise ValueError(
            f"holdout={share:g} holds out {len(entries)} entries of X, none of them above zero: raise holdout, or "
            "give more data"
        )
    return Split(observed.without(entries), rows, columns, values)


def _counts(observed: Observed, mode: int) -> Array:
    """Number of observed entries in each row (mode 0) or column (mode 1)."""
    if observed.sparse:
        X = observed.matrix
        return np.bincount(X.indices, minlength=X.shape[1]) if mode else np.diff(X.indptr)
    if observed.mask is None:
        return np.full(observed.matrix.shape[mode], observed.matrix.shape[1 - mode])
    return np.asarray(observed.mask.sum(axis=1 - mode))


def _give_back(entries: Array, lines: Array, counts: Array, rng: np.random.Generator) -> Array:
    """``entries`` minus one from each row (or column) that would otherwise have nothing left to train on."""
    held = np.bincount(lines, minlength=len(counts))
    lost = np.flatnonzero((held == counts) & (counts > 0))
    back = [int(rng.choice(np.flatnonzero(lines == line))) for line in lost]
    return np.delete(entries, back)

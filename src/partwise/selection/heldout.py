"""Split X into training and held-out entries, and measure the held-out error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import kl_div

from ..data import Chunked, Missing, SparseData, as_data
from ..data.missing import MissingDense, check_seen
from ..data.observed import MissingSparse
from ..statistics import Array, relative_error

DENSE_ENTRIES = 2**26  # a sparse X with at most this many entries, zeros included, is converted to dense
MIXED = 0.01  # share of the features' means in a prediction of counts
CHUNK = 2**16  # held-out entries predicted at a time


@dataclass(frozen=True)
class Observed:
    """X and its observed mask: a dense array with a mask (None: all observed), or a CSR matrix of observed entries."""

    matrix: Any
    mask: Array | None = None
    signed: bool = False

    @classmethod
    def of(cls, X: Any, missing: bool, observed: Any, signed: bool = False) -> Observed:
        """Validate X. A sparse X without ``observed`` counts as fully observed and is converted to dense if small."""
        data = as_data(X, None, missing, observed, signed)
        if isinstance(data, Chunked):
            raise ValueError("select needs X in memory, but this X is read in chunks: give a random subset of samples")
        if isinstance(data, Missing):
            check_seen(data.counts(1))
            mask = data.observed(slice(None)) if isinstance(data, MissingDense) else None
            return cls(data.matrix, mask, data.signed)
        if not isinstance(data, SparseData):
            return cls(data.matrix, None, data.signed)
        if data.shape[0] * data.shape[1] > DENSE_ENTRIES:
            raise ValueError(
                f"X is sparse, of shape {data.shape}, and too large to convert to dense, which holding out entries "
                "needs, because its zeros count as observed. Give a random subset of samples and features, or "
                "observed= as a sparse mask"
            )
        return cls(data.matrix.toarray(), None, data.signed)

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
        return np.divmod(flat, self.matrix.shape[1])

    def without(self, entries: Array) -> Missing:
        """X with these entries marked as missing."""
        if self.sparse:
            X, kept = self.matrix, np.ones(self.matrix.nnz, dtype=bool)
            kept[entries] = False
            starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
            rest = sp.csr_array((X.data[kept], X.indices[kept], starts), shape=X.shape)
            return MissingSparse(rest, check=False, signed=self.signed)
        mask = np.ones_like(self.matrix, dtype=bool) if self.mask is None else self.mask.copy(order="K")
        mask[self.places(entries)] = False
        return MissingDense(self.matrix, mask, check=False, signed=self.signed)

    def digest(self) -> str:
        """A digest of the observed entries and their positions, to recognise the same X in a later search."""
        import joblib

        X = self.matrix
        if self.sparse:
            parts = [X.indptr, X.indices, X.data]
        else:
            parts = [X] if self.mask is None else [self.mask, X[self.mask]]
        return str(joblib.hash([X.shape, *map(np.ascontiguousarray, parts)]))


@dataclass(frozen=True)
class Split:
    """The training data, and the held-out entries with their values."""

    seen: Missing
    rows: Array
    columns: Array
    values: Array

    def error(self, factors: Sequence[Array]) -> float:
        """‖X − model‖ / ‖X‖ over the held-out entries."""
        left, right = factors
        total = 0.0
        for first in range(0, len(self.rows), CHUNK):
            some = slice(first, first + CHUNK)
            predicted = np.einsum("ej,ej->e", left[self.rows[some]], right[self.columns[some]])
            total += float(np.square(predicted - self.values[some], dtype=float).sum())
        return relative_error(float(np.square(self.values, dtype=float).sum()), total / 2)

    def measured(self, factors: Sequence[Array], loss: str) -> float:
        """The relative error of the held-out entries, with the loss of this name."""
        return (self.error if loss == "squared" else self.divergence)(factors)

    def divergence(self, factors: Sequence[Array]) -> float:
        """√(divergence / divergence of the features' means) over the held-out entries.

        A single count where the model is zero would make it infinite. The model is therefore mixed with a little of
        the means, as for the perplexity of topic models.
        """
        left, right = factors
        means, total, trivial = self.seen.means.astype(float), 0.0, 0.0
        for first in range(0, len(self.rows), CHUNK):
            some = slice(first, first + CHUNK)
            usual = means[self.columns[some]]
            usual = np.maximum(usual, np.finfo(float).tiny)  # of a feature with one count, which is held out
            predicted = np.einsum("ej,ej->e", left[self.rows[some]], right[self.columns[some]], dtype=float)
            total += float(kl_div(self.values[some], (1 - MIXED) * predicted + MIXED * usual).sum())
            trivial += float(kl_div(self.values[some], usual).sum())
        return relative_error(2 * trivial, total)


def hold_out(observed: Observed, share: float, rng: np.random.Generator) -> Split:
    """Hold out a random ``share`` of the observed entries, keeping at least one in each row and column."""
    entries = np.sort(rng.choice(observed.count, round(share * observed.count), replace=False, shuffle=False))
    for mode in (0, 1):
        lines = observed.places(entries)[mode]
        empty = np.intersect1d(lines, np.flatnonzero(observed.without(entries).counts(mode) == 0))
        entries = np.delete(entries, [int(rng.choice(np.flatnonzero(lines == line))) for line in empty])
    rows, columns = observed.places(entries)
    values = np.asarray(observed.matrix.data[entries] if observed.sparse else observed.matrix[rows, columns])
    if not values.any():
        raise ValueError(
            f"holdout={share:g} holds out {len(entries)} entries of X, none of them above zero: raise holdout, or "
            "give more data"
        )
    return Split(observed.without(entries), rows, columns, values)

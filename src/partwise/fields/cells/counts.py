"""From raw counts to the matrix that is factorized: TPM, over-dispersed genes, unit variance. As in cNMF.

The counts stay sparse. TPM are the counts of a cell, scaled to a sum of a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from partwise.data import is_lazy
from partwise.engine.names import check_unique
from partwise.engine.validation import as_count
from partwise.statistics import Array

MILLION = 1e6
BLOCK = 2**18  # stored values in a block, so that temporary arrays are small
TOP = 20  # genes of highest mean, for the expected variance
UNIQUE = "for example by adata.var_names_make_unique()"


@dataclass(frozen=True)
class Prepared:
    """Counts that are ready to be factorized.

    ``matrix`` has the counts of the over-dispersed genes (``chosen``, indices of genes) divided by their standard
    deviation. ``tpm`` has all genes, ``mean`` and ``std`` (divisor n) are those of TPM.
    """

    matrix: Any
    tpm: Any
    chosen: Array
    mean: Array
    std: Array
    cells: Array
    genes: Array

    @property
    def chosen_genes(self) -> Array:
        """The names of the over-dispersed genes."""
        return np.asarray(self.genes[self.chosen])


def prepared(
    counts: Any, cells: Any, genes: Any, n_top_genes: int | None = 2000, only: Any = None, check_counts: bool = True
) -> Prepared:
    """Prepare raw ``counts`` (cells × genes). ``only``: names of the genes to factorize, instead of choosing them."""
    cells, genes = (np.array([str(name) for name in names], dtype=object) for names in (cells, genes))
    check_unique(genes, "the counts", UNIQUE)
    counts = as_counts(counts, check_counts)
    totals = np.asarray(counts.sum(axis=1, dtype=float)).ravel()
    check_filled(totals, cells, "cells", "cells")
    check_filled(np.asarray(counts.sum(axis=0, dtype=float)).ravel(), genes, "genes", "genes")
    tpm = scaled_rows(counts, totals / MILLION)
    mean, variance = moments(tpm)
    chosen = overdispersed(mean, variance, n_top_genes) if only is None else places(genes, only)
    some = counts[:, chosen].astype(float)
    matrix = scaled_columns(some, deviations(some))
    empty = np.asarray(matrix.sum(axis=1)).ravel() == 0
    if empty.any():
        raise ValueError(
            f"{np.count_nonzero(empty)} cells have no counts of the {len(chosen)} genes that are factorized, first "
            f"{cells[empty][0]!r}: remove these cells, or "
            + ("raise n_top_genes" if only is None else "use more genes")
        )
    return Prepared(matrix, tpm, chosen, mean, np.sqrt(variance), cells, genes)


def with_tpm(ready: Prepared, tpm: Any, genes: Any) -> Prepared:
    """The same with other TPM."""
    if list(map(str, genes)) != list(ready.genes) or tpm.shape != ready.tpm.shape:
        raise ValueError("tpm_fn has other cells or genes than the counts: give the same, in the same order")
    matrix = sp.csr_matrix(tpm)
    mean, variance = moments(matrix)
    return replace(ready, tpm=matrix, mean=mean, std=np.sqrt(variance))


def matrix_in(adata: Any, layer: str | None, otherwise: str = "partwise.consensus") -> Any:
    """The matrix of an AnnData object: ``X`` or a layer. ``otherwise`` is the function for other objects."""
    if not hasattr(adata, "obsm"):
        raise TypeError(f"adata is a {type(adata).__name__}, not an AnnData: use {otherwise} for arrays")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer={layer!r} does not exist; layers are: {', '.join(adata.layers) or 'none'}")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("adata.X is None: choose a layer")
    return X


def as_counts(counts: Any, check: bool) -> Any:
    """Counts as a CSR matrix. Raises an error if they are negative, not finite or, with ``check``, not whole."""
    if hasattr(counts, "to_memory"):  # a sparse matrix on disk
        counts = counts.to_memory()
    matrix = in_memory(counts) if is_lazy(counts) else sp.csr_matrix(counts)
    if matrix.dtype.kind not in "buif":
        raise ValueError(f"counts have dtype {matrix.dtype}: give numbers")
    values = matrix.data
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("counts contain nan or infinity: remove them")
    if values.size and values.min() < 0:
        raise ValueError(f"counts contain {values.min():g}: give raw counts, not scaled or centred data")
    if check and not whole(values):
        odd = values[values != np.floor(values)][0]
        raise ValueError(
            f"counts contain {odd:g}, which is not a whole number: give raw counts, for example layer='counts', or "
            "check_counts=False for counts that were corrected"
        )
    return matrix


def in_memory(counts: Any) -> Any:
    """Counts on disk as a CSR matrix in memory, read some cells at a time."""
    cells = max(1, BLOCK // counts.shape[1])
    return sp.vstack([sp.csr_matrix(counts[i : i + cells]) for i in range(0, counts.shape[0], cells)], format="csr")


def check_filled(sums: Array, names: Array, what: str, function: str) -> None:
    """Raise an error if a cell or a gene has no counts."""
    if not sums.all():
        raise ValueError(
            f"{np.count_nonzero(sums == 0)} {what} have no counts, first {names[sums == 0][0]!r}: remove them, for "
            f"example by scanpy.pp.filter_{function}(adata, min_counts=1)"
        )


def scaled_rows(matrix: Any, divisors: Array) -> Any:
    """Rows divided by numbers: new values, with the indices of ``matrix``. In single precision unless it is double."""
    dtype = np.float64 if matrix.dtype == np.float64 else np.float32
    values = np.repeat(divisors.astype(dtype), np.diff(matrix.indptr))
    np.divide(matrix.data, values, out=values)
    return sp.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def scaled_columns(matrix: Any, divisors: Array) -> Any:
    """Columns divided by numbers; those with 0 stay as they are."""
    factors = 1 / np.where(divisors > 0, divisors, 1.0)
    values = matrix.data * factors[matrix.indices].astype(matrix.dtype)
    return sp.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def moments(matrix: Any) -> tuple[Array, Array]:
    """Mean and variance (divisor n) of each column, in double precision."""
    n, m = matrix.shape
    mean, off, counted = np.zeros(m), np.zeros(m), np.zeros(m)
    for values, columns in blocks(matrix):
        mean += np.bincount(columns, values, m) / n
        counted += np.bincount(columns, minlength=m)
    for values, columns in blocks(matrix):
        off += np.bincount(columns, np.square(values - mean[columns]), m)
    return mean, (off + (n - counted) * np.square(mean)) / n


def blocks(matrix: Any) -> Iterator[tuple[Array, Array]]:
    """The stored values of a sparse matrix and their columns, some at a time."""
    for first in range(0, matrix.nnz, BLOCK):
        yield matrix.data[first : first + BLOCK], matrix.indices[first : first + BLOCK]


def whole(values: Array) -> bool:
    """Whether all values are whole numbers."""
    pieces = (values[first : first + BLOCK] for first in range(0, len(values), BLOCK))
    return values.dtype.kind != "f" or all(bool((piece == np.floor(piece)).all()) for piece in pieces)


def deviations(matrix: Any) -> Array:
    """Standard deviation (divisor n − 1) of each column."""
    n = matrix.shape[0]
    return np.sqrt(moments(matrix)[1] * (n / max(n - 1, 1)))


def overdispersed(mean: Array, variance: Array, count: int | None) -> Array:
    """Indices of the genes whose variance is largest relative to what their mean lets expect.

    The Fano factor F = variance / mean is expected to be A²·mean + B²: A is the least deviation/mean among the genes of
    highest mean, B² the median F of ordinary genes.
    """
    count = len(mean) if count is None else min(as_count(count, "n_top_genes"), len(mean))
    if not variance.any():
        raise ValueError("no gene is over-dispersed, because all cells have the same shares of counts: give more cells")
    fano = variance / mean
    top = largest(mean, TOP)
    least = float((np.sqrt(variance[top]) / mean[top]).min())
    inside = [(values > np.quantile(values, 0.1)) & (values < np.quantile(values, 0.9)) for values in (mean, fano)]
    ordinary = inside[0] & inside[1]
    usual = float(np.median(fano[ordinary] if ordinary.any() else fano))  # too few genes to leave any out
    return np.sort(largest(fano / (least**2 * mean + usual), count))


def largest(values: Array, count: int) -> Array:
    """Indices of the largest values, of which equal ones come in the order of pandas, as in cNMF."""
    return (len(values) - 1 - np.argsort(values[::-1]))[::-1][:count]


def places(genes: Array, only: Any) -> Array:
    """Indices of the genes that are named."""
    named = {gene: i for i, gene in enumerate(genes)}
    missing = [str(gene) for gene in only if str(gene) not in named]
    if missing:
        raise ValueError(f"{len(missing)} of the given genes are not in the counts, first {missing[0]!r}")
    return np.array([named[str(gene)] for gene in only])

"""Components that recur over runs: local density, clusters and medians, as in cNMF.

Everything is computed from the distances between the components of all runs.

Reference: D. Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with
single-cell RNA-Seq", eLife 8 (2019).
"""

from __future__ import annotations

import numpy as np

from ..engine.validation import as_amount
from ..statistics import Array
from .kmeans import k_means, membership

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)  # suggested where a threshold leaves too little


def unit_rows(spectra: Array) -> Array:
    """Rows scaled to unit norm. Zero rows stay zero."""
    sizes = np.sqrt(np.square(spectra).sum(axis=1, keepdims=True))
    return np.divide(spectra, sizes, out=np.zeros_like(spectra), where=sizes > 0)


def distances_between(rows: Array) -> Array:
    """Euclidean distances between all rows."""
    sizes = np.einsum("ij,ij->i", rows, rows)
    squares = -2 * (rows @ rows.T)
    squares += sizes[:, None]
    squares += sizes
    np.fill_diagonal(squares, 0)
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


def neighbours(size: float, rows: int, rank: int) -> int:
    """The number of nearest neighbours for the local density: a share of the runs, but at least one."""
    return min(max(int(size * rows / rank), 1), rows - 1)


def local_density(unit: Array, distances: Array, count: int) -> Array:
    """The mean distance of each row to its ``count`` nearest others; infinite for zero rows.

    A component that most runs find has close neighbours. The larger the value, the more isolated it is.
    """
    nearest = np.partition(distances, count, axis=1)[:, : count + 1]  # includes the distance 0 to itself
    return np.where(unit.any(axis=1), nearest.sum(axis=1) / max(count, 1), np.inf)


def clustered(unit: Array, distances: Array, rank: int) -> Array:
    """The cluster of each row, from 0, by k-means."""
    distinct, labels = len({hash(row.tobytes()) for row in unit}), np.zeros(0)
    if distinct >= rank:
        labels = k_means(np.square(distances), rank)
        distinct = len(np.unique(labels))  # components that differ by rounding are not different
    if distinct < rank:
        raise ValueError(
            f"the runs have {distinct} different components, too few for {rank} clusters: use a lower rank"
        )
    return labels


def silhouettes(distances: Array, labels: Array) -> Array:
    """The silhouette of each row, 0 if it is alone in its cluster; nan for one cluster, or one row per cluster.

    It compares the mean distance to the other rows of the cluster with that to the nearest other cluster.
    """
    member = membership(labels)
    sizes, rows = member.sum(axis=0), np.arange(len(labels))
    if not 1 < np.count_nonzero(sizes) < len(labels):
        return np.full(len(labels), np.nan)
    sums = distances @ member
    within = sums[rows, labels] / np.maximum(sizes[labels] - 1, 1)
    between = np.divide(sums, sizes, out=np.full_like(sums, np.inf), where=sizes > 0)
    between[rows, labels] = np.inf
    nearest = between.min(axis=1)
    larger = np.maximum(within, nearest)
    known = (sizes[labels] > 1) & (larger > 0)
    return np.divide(nearest - within, larger, out=np.zeros(len(labels)), where=known)


def medians(unit: Array, labels: Array, rank: int) -> Array:
    """The median of each cluster; if a cluster's median is zero everywhere, its mean."""
    found = np.array([np.median(unit[labels == j], axis=0) for j in range(rank)])
    for j in np.flatnonzero(~found.any(axis=1)):
        found[j] = unit[labels == j].mean(axis=0)
    return found


def as_threshold(value: object) -> float:
    """Validate ``density_threshold``, a positive number."""
    threshold = as_amount(value, "density_threshold")
    if not threshold:
        raise ValueError(f"density_threshold={value!r} leaves out all components: give a number from above 0 to 2")
    return threshold


def check_kept(density: Array, threshold: float, rank: int) -> None:
    """Raise an error that says which thresholds would leave how many, if fewer than ``rank`` are below."""
    left = int(np.count_nonzero(density < threshold))
    if left >= rank:
        return
    counts = {t: int(np.count_nonzero(density < t)) for t in THRESHOLDS}
    useful = [f"{t:g} leaves {count}" for t, count in counts.items() if t > threshold and count >= rank]
    raise ValueError(
        f"density_threshold={threshold:g} leaves {left} of {len(density)} components, and {rank} clusters need at "
        f"least {rank}: " + (", ".join(useful) if useful else "no threshold leaves enough; make more runs")
    )

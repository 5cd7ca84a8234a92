"""Components that recur over runs: local density, clusters and medians, as in cNMF.

Reference: D. Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with
single-cell RNA-Seq", eLife 8 (2019).
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import euclidean_distances

from ..engine.validation import as_amount
from ..runtime.threads import controller
from ..statistics import Array

STARTS, SEED = 10, 1  # of k-means, as in cNMF
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)  # suggested where a threshold leaves too little


def unit_rows(spectra: Array) -> Array:
    """Rows scaled to unit norm. Zero rows stay zero."""
    sizes = np.sqrt(np.square(spectra).sum(axis=1, keepdims=True))
    return np.divide(spectra, sizes, out=np.zeros_like(spectra), where=sizes > 0)


def neighbours(size: float, rows: int, rank: int) -> int:
    """The number of nearest neighbours for the local density: a share of the runs, but at least one."""
    return min(max(int(size * rows / rank), 1), rows - 1)


def local_density(unit: Array, count: int) -> Array:
    """The mean Euclidean distance of each row to its ``count`` nearest others; infinite for zero rows.

    A component that most runs find has close neighbours. The larger the value, the more isolated it is.
    """
    distances = euclidean_distances(unit)
    nearest = np.partition(distances, count, axis=1)[:, : count + 1]  # includes the distance 0 to itself
    return np.where(unit.any(axis=1), nearest.sum(axis=1) / count, np.inf)


def clustered(unit: Array, rank: int) -> Array:
    """The cluster of each row, from 0, by k-means."""
    distinct = len(np.unique(unit, axis=0))
    if distinct < rank:
        raise ValueError(
            f"the runs have {distinct} different components, too few for {rank} clusters: use a lower rank"
        )
    with controller().limit(limits=1):  # more threads wait for each other: there are few rows
        return np.asarray(KMeans(rank, n_init=STARTS, random_state=SEED).fit(unit).labels_)


def silhouette(unit: Array, labels: Array) -> float:
    """The mean silhouette of the clusters, nan if it is not defined: for one cluster, or one row per cluster."""
    if not 1 < len(np.unique(labels)) < len(labels):
        return float("nan")
    return float(silhouette_score(unit, labels, metric="euclidean"))


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

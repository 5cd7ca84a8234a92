"""Samples that fall into the same class over many runs: Brunet's consensus matrix.

Reference: J.-P. Brunet, P. Tamayo, T. R. Golub and J. P. Mesirov, "Metagenes and molecular pattern discovery using
matrix factorization", PNAS 101 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Chunked, Matrix
from ..engine.solving import solve_activations
from ..statistics import Array, as_factor

MOST = 10_000  # samples: the matrix then has 800 MB


@dataclass(frozen=True, repr=False)
class Connectivity:
    """How often two samples were in the same class, over the runs of one rank.

    Attributes
    ----------
    matrix : array of shape (samples, samples)
        Share of the runs in which two samples have their largest activation in the same component.
    cophenetic : float
        Correlation between 1 − matrix and the distances in its average-linkage tree: 1 if all runs agree; nan if all
        samples are in one class in all runs.
    classes : array of shape (samples,)
        The classes from 0 that the tree is cut into, at most as many as the rank.
    order : array of shape (samples,)
        Samples in the order of the tree, for drawing.
    """

    rank: int
    matrix: Array
    cophenetic: float
    classes: Array
    order: Array
    sample_names: Array | None = None

    def plot(self, **options: Any) -> Any:
        """Draw the matrix as a clustermap."""
        from ..plotting import clustermap

        return clustermap(self, **options)

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, np.bincount(self.classes)))
        return f"rank {self.rank}: cophenetic correlation {self.cophenetic:.4f}; classes of {sizes} samples"


def connectivity(data: Matrix | Chunked, spectra: Array, rank: int, names: Array | None) -> Connectivity:
    """The consensus matrix of samples, from the components of all runs of a rank."""
    from scipy.cluster.hierarchy import cophenet, fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    n, runs = data.shape[0], len(spectra) // rank
    if n > MOST:
        raise ValueError(f"X has {n} samples: a matrix of all pairs is only made for at most {MOST}; give a subset")
    if n < 3:
        raise ValueError(f"X has {n} samples: classes need at least 3")
    together = np.zeros((n, n), dtype=np.int32)
    for run in range(runs):
        solved = solve_activations(data, as_factor(spectra[run * rank : (run + 1) * rank].T))
        member = np.asarray(solved.activations).argmax(axis=1)
        for j in range(rank):
            which = np.flatnonzero(member == j)
            together[np.ix_(which, which)] += 1
    matrix = together / runs
    distances = squareform(1 - matrix, checks=False)
    tree = linkage(distances, "average")
    known = bool(np.ptp(distances))
    correlation = float(cophenet(tree, distances)[0]) if known else float("nan")
    classes = fcluster(tree, rank, "maxclust") - 1
    return Connectivity(rank, matrix, correlation, classes, leaves_list(tree), names)

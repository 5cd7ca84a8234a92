"""k-means from the distances between rows alone, with the starts and rules of scikit-learn's KMeans.

The squared distance of a row to the mean of others is the mean of its squared distances to them, less half of the mean
of the squared distances among them. Features are not needed, so that an iteration takes time in proportion to the
square of the number of rows. Clusters and their numbers are those of ``KMeans(k, n_init=10, random_state=1)``, which
cNMF uses, up to rounding. scikit-learn itself would take 90 MB of memory and a second to import.

Reference: D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.
"""

from __future__ import annotations

import numpy as np

from ..statistics import Array

STARTS, SEED = 10, 1  # as in cNMF
ROUNDS = 300  # at most, as in scikit-learn


def k_means(squares: Array, k: int) -> Array:
    """The cluster of each row, from 0, by ``squares``, the squared distances between rows: the best of ten starts."""
    rng = np.random.RandomState(SEED)
    best, least = settled(squares, scattered(squares, k, rng))
    for _ in range(1, STARTS):
        labels, inertia = settled(squares, scattered(squares, k, rng))
        if inertia < least and not refines(labels, best):
            best, least = labels, inertia
    return best


def refines(labels: Array, others: Array) -> bool:
    """Whether each cluster lies within one of the others: then a lower inertia is due to rounding."""
    return len(set(zip(labels.tolist(), others.tolist(), strict=True))) == len(set(labels.tolist()))


def scattered(squares: Array, k: int, rng: np.random.RandomState) -> Array:
    """Rows to start from: each is the best of a few, drawn in proportion to the squared distance to those before."""
    n, trials = len(squares), 2 + int(np.log(k))
    found = [int(rng.choice(n, p=np.full(n, 1 / n)))]
    nearest = squares[found[0]]
    for _ in range(1, k):
        drawn = np.searchsorted(np.cumsum(nearest), rng.uniform(size=trials) * nearest.sum())
        drawn = np.minimum(drawn, n - 1)
        closer = np.minimum(nearest, squares[drawn])
        best = int(np.argmin(closer.sum(axis=1)))
        found.append(int(drawn[best]))
        nearest = closer[best]
    return np.array(found)


def settled(squares: Array, start: Array) -> tuple[Array, float]:
    """Lloyd's iterations from the rows ``start``: the cluster of each row, and the sum of squares to the means."""
    rows, k = np.arange(len(squares)), len(start)
    weights = np.zeros((len(squares), k))
    weights[start, np.arange(k)] = 1
    before = None
    for _ in range(ROUNDS):
        sums = squares @ weights
        apart = sums - 0.5 * np.einsum("ij,ij->j", weights, sums)  # to the mean of each cluster
        labels = np.argmin(apart, axis=1)
        if before is not None and np.array_equal(labels, before):
            break
        before, weights = labels, averages(labels, apart[rows, labels], k)
    return labels, float(apart[rows, labels].sum())


def averages(labels: Array, apart: Array, k: int) -> Array:
    """The weights whose sums are the means of the clusters. An empty cluster takes the row furthest from its mean."""
    member = membership(labels, k)
    empty = np.flatnonzero(~member.any(axis=0))
    far = np.argsort(apart)[::-1][: len(empty)]
    member[far] = 0
    member[far, empty] = 1
    sizes = member.sum(axis=0)
    return np.where(sizes > 0, member / np.maximum(sizes, 1), 1 / len(labels))


def membership(labels: Array, k: int = 0) -> Array:
    """A column for each cluster: 1 for its rows, otherwise 0."""
    return (labels[:, None] == np.arange(k or labels.max() + 1)).astype(float)

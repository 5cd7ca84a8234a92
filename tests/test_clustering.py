"""Clusters and silhouettes, against scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples

from partwise.selection.clustering import clustered, distances_between, silhouettes, unit_rows
from partwise.selection.kmeans import averages, k_means


def runs(seed, k, n_runs, features, noise):
    """Components of runs: centres with noise."""
    rng = np.random.default_rng(seed)
    stacked = np.tile(rng.gamma(0.3, 1, (k, features)), (n_runs, 1))
    return unit_rows(stacked + noise * rng.gamma(0.3, 1, stacked.shape))


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1, 0.5, 3])
@pytest.mark.parametrize(("k", "n_runs", "features"), [(2, 3, 6), (5, 20, 40), (11, 12, 400)])
def test_clusters_and_silhouettes_are_those_of_scikit_learn(k, n_runs, features, noise):
    for seed in range(2):
        X = runs(seed, k, n_runs, features, noise)
        labels = KMeans(k, n_init=10, random_state=1).fit(X).labels_
        distances = distances_between(X)
        np.testing.assert_array_equal(k_means(np.square(distances), k), labels)
        np.testing.assert_allclose(silhouettes(distances, labels), silhouette_samples(X, labels), atol=1e-6)


def test_silhouettes_that_are_not_defined():
    distances = distances_between(np.random.default_rng(0).random((4, 3)))
    assert np.isnan(silhouettes(distances, np.zeros(4, dtype=int))).all()
    assert np.isnan(silhouettes(distances, np.arange(4))).all()
    alone = silhouettes(distances, np.array([0, 0, 0, 2]))  # no row has the label 1
    assert np.isfinite(alone).all()
    assert alone[3] == 0


def test_an_empty_cluster_takes_the_furthest_row():
    weights = averages(np.array([0, 0, 0, 2]), np.array([1.0, 5.0, 2.0, 0.0]), 3)
    np.testing.assert_allclose(weights, [[0.5, 0, 0], [0, 1, 0], [0.5, 0, 0], [0, 0, 1]])
    weights = averages(np.array([0, 0, 2, 2]), np.array([3.0, 3.0, 0.0, 0.0]), 4)  # both rows of cluster 0 leave it
    np.testing.assert_allclose(weights[:, 0], 0.25)  # the mean of all


def test_components_that_differ_by_rounding_are_not_different():
    rng = np.random.default_rng(0)
    unit = unit_rows(np.repeat(rng.random((2, 30)), 5, axis=0))
    unit[:, 0] = np.nextafter(unit[:, 0], rng.random(10))
    with pytest.raises(ValueError, match="too few for 8 clusters"):
        clustered(unit, distances_between(unit), 8)

"""A small X, fits of it, and fixtures for tests of `SparseNMF`.

Import the fixtures into the test files that use them.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from partwise import SparseNMF

PENALTIES = {"none": {}, "l1": {"l1": 0.2}, "l2": {"l2": 0.5}, "both": {"l1": (0.1, 0), "l2": (0.3, 0)}}
SPARSE = {
    "CSR matrix": sp.csr_matrix,
    "CSC matrix": sp.csc_matrix,
    "CSR array": sp.csr_array,
    "CSC array": sp.csc_array,
}
unconverged = pytest.mark.filterwarnings("ignore:reached max_iter")
crowded = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@pytest.fixture(name="X")
def small(rng):
    """25 × 30, rank 5 plus noise, with zeros."""
    return np.maximum(rng.random((25, 5)) ** 3 @ rng.random((5, 30)) ** 4 + 0.1 * rng.random((25, 30)) - 0.08, 0)


def fitted(X, **options):
    return SparseNMF(**{"n_components": 4, "sparsity": 0.45, "random_state": 0, **options}).fit(X)


def relative_error(X, model, activations):
    return np.linalg.norm(X - activations @ model.components_) / np.linalg.norm(X)

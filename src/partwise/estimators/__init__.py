"""scikit-learn's face: validates, calls, stores. No numerics."""

from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF

__all__ = ["MiniBatchSparseNMF", "SparseNMF"]

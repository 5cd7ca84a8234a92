"""scikit-learn's face: validates, calls, stores. No numerics."""

from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF
from .saved import load

__all__ = ["MiniBatchSparseNMF", "SparseNMF", "load"]

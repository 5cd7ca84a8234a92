"""scikit-learn's face: validates, calls, stores. No numerics."""

from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF
from .saved import load
from .tensor import SparseCP

__all__ = ["MiniBatchSparseNMF", "SparseCP", "SparseNMF", "load"]

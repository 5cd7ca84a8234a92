"""Estimators with the scikit-learn API. They validate, call a recipe and store the result; no numerics here."""

from .batch import SparseNMF
from .minibatch import MiniBatchSparseNMF
from .saved import load
from .tensor import SparseCP

__all__ = ["MiniBatchSparseNMF", "SparseCP", "SparseNMF", "load"]

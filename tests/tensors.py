"""Catalogues of tensors: shapes, kinds of data, definitions."""

from math import prod

import numpy as np
import pytest
from catalogues import every_other, random_factors
from scipy.optimize import linear_sum_assignment

import partwise as pw
from partwise.engine.validation import as_columns

SHAPES = {
    "order 2": (6, 5),
    "order 3": (6, 5, 4),
    "order 4": (4, 3, 5, 2),
    "order 5": (2, 3, 2, 3, 2),
    "one sample": (1, 5, 4),
    "ones within": (4, 1, 5),
    "small ends": (2, 30, 3),
    "a single entry": (1, 1, 1),
}
SHAPED = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def in_two_halves(X):
    """Entries in reverse order, each stored twice at half its value."""
    places = np.array(np.nonzero(X))[:, ::-1]
    values = X[tuple(places)] / 2
    return pw.COO(np.concatenate([places, places], axis=1), np.concatenate([values, values]), X.shape)


class Sparse:
    """The interface of pydata's sparse.COO."""

    def __init__(self, X, fill_value=0):
        self.coords, self.data, self.shape, self.fill_value = np.array(np.nonzero(X)), X[X != 0], X.shape, fill_value


FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": lambda X: every_other(X) if X.ndim == 2 else np.repeat(X, 2, axis=-1)[..., ::2],
    "axes moved": lambda X: np.moveaxis(np.ascontiguousarray(np.moveaxis(X, 0, -1)), -1, 0),
    "float32": lambda X: X.astype(np.float32),
    "COO": lambda X: pw.COO(np.array(np.nonzero(X)), X[X != 0], X.shape),
    "COO, in halves": in_two_halves,
    "COO, float32": lambda X: pw.COO(np.array(np.nonzero(X)), X[X != 0].astype(np.float32), X.shape),
    "pydata's": Sparse,
}
FORMED = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def with_zeros(shape, rng):
    return rng.random(shape) * (rng.random(shape) < 0.6)


def mttkrp(X, factors, mode):
    """By its definition."""
    others = [m for m in range(X.ndim) if m != mode]
    operands = [item for m in others for item in (factors[m].astype(float), [m, X.ndim])]
    every = np.ones(factors[mode].shape[1])  # a vector has no other modes
    return np.einsum(X, list(range(X.ndim)), every, [X.ndim], *operands, [mode, X.ndim])


def model_of(factors, weights=None):
    weights = np.ones(factors[0].shape[1]) if weights is None else weights
    operands = [item for m, f in enumerate(factors) for item in (f.astype(float), [m, len(factors)])]
    return np.einsum(weights, [len(factors)], *operands, list(range(len(factors))))


def planted(rng, shape=(14, 12, 10), r=3, sparsity=0.5, noise=0.02):
    factors = [as_columns(sparsity, r).project(f) for f in random_factors(shape, r, rng)]
    X = model_of(factors)
    return X + noise * rng.random(shape) * X.max(), factors


def match(found, true):
    """The factor match score: the product of cosines over the modes, averaged over the best matching."""
    unit = [[f / np.maximum(np.linalg.norm(f, axis=0), 1e-300) for f in fs] for fs in (found, true)]
    scores = prod(a.T @ b for a, b in zip(*unit, strict=True))
    return float(scores[linear_sum_assignment(-scores)].mean())

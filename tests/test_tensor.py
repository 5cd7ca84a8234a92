"""Tensors as data: statistics against their definition, for every kind of tensor, and bad input."""

from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import random_factors, tolerance
from tensors import FORMED, FORMS, SHAPED, Sparse, model_of, mttkrp, with_zeros

import partwise as pw
from partwise.data import DenseTensor, SparseTensor, as_tensor
from partwise.data import coordinates as coordinates_room
from partwise.data.tensor import two_ends
from partwise.statistics import gram


@SHAPED
@FORMED
def test_statistics_are_their_definition(shape, form, rng):
    X, r = with_zeros(shape, rng), 3
    data = as_tensor(form(X))
    assert data.shape == shape
    rtol = tolerance(data.dtype)
    factors = random_factors(shape, r, rng, data.dtype)
    grams = [gram(f) for f in factors]
    for mode in [*range(len(shape)), *reversed(range(len(shape)))]:  # as factors change, what is kept must not be stale
        stats = data.statistics(factors, grams, mode)
        np.testing.assert_allclose(stats.cross, mttkrp(X, factors, mode), rtol=rtol, atol=rtol)
        assert stats.cross.dtype == data.dtype
        assert stats.cross.flags.f_contiguous
        others = [f.astype(float) for m, f in enumerate(factors) if m != mode]
        np.testing.assert_allclose(stats.gram, prod(f.T @ f for f in others), rtol=rtol)
        direct = np.sum((X - model_of(factors)) ** 2)
        size = np.sum(X**2) + np.sum(model_of(factors) ** 2)
        assert data.loss(stats, factors, grams, mode) == pytest.approx(0.5 * direct, rel=rtol, abs=rtol * size)
        assert data.squared_error(factors) == pytest.approx(direct, rel=10 * rtol)
        factors[mode] = random_factors(shape, r, rng, data.dtype)[mode]
        grams[mode] = gram(factors[mode])


@SHAPED
@pytest.mark.parametrize("form", ["C order", "COO"])
def test_slices_and_vector_products(shape, form, rng):
    X = with_zeros(shape, rng)
    data = as_tensor(FORMS[form](X))
    assert data.sqnorm == pytest.approx(np.sum(X**2))
    vectors = [rng.random(n) for n in shape]
    for mode, n in enumerate(shape):
        unfolded = np.moveaxis(X, mode, 0).reshape(n, -1)
        np.testing.assert_allclose(data.sqnorms(mode), np.sum(unfolded**2, axis=1), rtol=1e-12)
        np.testing.assert_allclose(data.slice_products(mode, n - 1), unfolded @ unfolded[-1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(data.times(vectors, mode), mttkrp(X, [v[:, None] for v in vectors], mode)[:, 0])
        part = data.slice(mode, n - 1)
        ones = [np.ones(k) for k in part.shape]
        for m in range(len(part.shape)):
            np.testing.assert_allclose(
                part.times(ones, m), mttkrp(X.take(-1, axis=mode), [o[:, None] for o in ones], m)[:, 0]
            )


def test_an_iteration_takes_two_passes(rng, monkeypatch):
    """For any free mode, which is updated last."""
    passes = []
    contracted = DenseTensor._contracted
    monkeypatch.setattr(DenseTensor, "_contracted", lambda *args: passes.append(args[2]) or contracted(*args))
    X = rng.random((20, 18, 16, 17))
    for free in range(4):
        sparsity = {mode: 0.3 for mode in range(4) if mode != free}
        counts = []
        start = random_factors(X.shape, 2, rng)
        pw.cp(
            X, 2, sparsity=sparsity, init=start, tol=0, max_iter=4, callback=lambda _, c=counts: c.append(len(passes))
        )
        assert np.diff(counts)[-1] == 2


def test_products_stay_small():
    """Intermediate products take at most a quarter of X, unless X is as small as the factors."""
    for shape in ((50, 40, 3), (3, 40, 50), (3, 50, 3, 40), (2, 2, 60, 2, 30)):
        for mode in range(len(shape)):
            sizes = [prod(shape[m] for m in end) for end in two_ends(shape, 5, mode)]
            assert max(sizes) >= 20
            assert all(mode not in end for end in two_ends(shape, 5, mode))


def test_errors_of_large_sparse_tensors_need_no_dense_ones(rng, monkeypatch):
    X = with_zeros((6, 5, 4), rng)
    data = as_tensor(FORMS["COO"](X))
    factors = random_factors(X.shape, 2, rng)
    direct = np.sum((X - model_of(factors)) ** 2)
    monkeypatch.setattr(coordinates_room, "EXACT", 0)
    assert data.squared_error(factors) == pytest.approx(direct, rel=1e-10)
    wide = as_tensor(pw.COO([[10**4], [10**4], [10**4]], [2.0], (10**5,) * 3))
    assert wide.squared_error([np.zeros((10**5, 1))] * 3) == 4.0


# hostile input

BAD = {
    "a vector": (np.ones(3), r"shape \(3,\): X must have two or more modes"),
    "a number": (np.array(3.0), "two or more modes"),
    "an empty mode": (np.ones((3, 0, 2)), "none of them empty"),
    "NaN": (np.full((2, 2, 2), np.nan), r"contains NaN, first at \[0, 0, 0\]"),
    "infinity": (
        np.asfortranarray(np.where(np.arange(24).reshape(2, 3, 4) == 17, np.inf, 1)),
        r"infinity, first at \[1, 1, 1\]",
    ),
    "negative": (np.where(np.arange(24).reshape(2, 3, 4) == 6, -1, 1), r"X\[0, 1, 2\] is -1"),
    "complex": (np.ones((2, 2, 2), dtype=complex), "Complex data not supported"),
    "text": (np.full((2, 2, 2), "a"), "X must contain real numbers"),
    "masked": (np.ma.masked_array(np.ones((2, 2, 2))), "mask would be ignored"),
    "huge": (np.full((2, 2, 2), 1e300), "rescale X"),
    "COO, negative": (pw.COO([[0], [1], [1]], [-2.0], (1, 2, 2)), r"X\[0, 1, 1\] is -2"),
    "COO, NaN": (pw.COO([[0], [1], [1]], [np.nan], (1, 2, 2)), r"contains NaN, first at \[0, 1, 1\]"),
    "filled": (Sparse(np.eye(2), fill_value=1), "X has fill_value=1: give"),
}


@pytest.mark.parametrize(("X", "message"), BAD.values(), ids=BAD)
def test_bad_data_is_rejected(X, message):
    with pytest.raises(ValueError, match=message):
        pw.cp(X, 2)


@pytest.mark.parametrize(
    ("coords", "values", "shape", "message"),
    [
        ([[0], [0]], [1.0], (2, 2, 2), r"3 modes needs coords of shape \(3, entries\)"),
        ([[0, 1], [0, 1]], [1.0], (2, 2), r"2 modes needs coords of shape \(2, entries\)"),
        ([[0], [2]], [1.0], (2, 2), r"coords from 2 to 2 for mode 1: they must be in 0 … 1"),
        ([[-1], [0]], [1.0], (2, 2), "coords from -1 to -1 for mode 0"),
        ([[0.5], [0]], [1.0], (2, 2), "coords must be integers"),
        ([[0], [0]], ["a"], (2, 2), "values must contain real numbers"),
    ],
)
def test_bad_coordinates_are_rejected(coords, values, shape, message):
    with pytest.raises(ValueError, match=message):
        pw.COO(coords, values, shape)


def test_scipys_sparse_arrays_are_tensors_of_order_2(rng):
    X = with_zeros((5, 4), rng)
    for form in (sp.csr_array, sp.coo_matrix):
        data = as_tensor(form(X))
        assert isinstance(data, SparseTensor)
        np.testing.assert_array_equal(data.matrix.dense(), X)

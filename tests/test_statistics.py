"""Stats: the loss, sums over samples, and penalties."""

import numpy as np
import pytest
from catalogues import random_factors, stats_of

from partwise.data import as_data
from partwise.statistics import gram, inner


@pytest.mark.parametrize("mode", [0, 1])
def test_the_loss_is_that_of_the_residual(problem, mode, rng):
    factors = random_factors(problem.X.shape, problem.r, rng)
    stats = as_data(problem.X).statistics(factors, [gram(f) for f in factors], mode)
    direct = 0.5 * np.linalg.norm(problem.X - factors[0] @ factors[1].T) ** 2
    scale = stats.sqnorm + np.linalg.norm(factors[0] @ factors[1].T) ** 2
    assert abs(stats.loss(factors[mode]) - direct) <= 1e-14 * scale
    assert stats.loss(factors[mode], gram(factors[mode])) == stats.loss(factors[mode])


@pytest.mark.parametrize("cuts", [[1], [0, 1], [1, 2]])
def test_statistics_add_up_over_samples(problem, cuts, rng):
    factors = random_factors(problem.X.shape, problem.r, rng)
    whole = stats_of(problem.X, factors, 1)
    rows = np.split(np.arange(len(problem.X)), [c for c in cuts if 0 < c < len(problem.X)])
    chunks = [as_data(problem.X[i]).statistics(f := [factors[0][i], factors[1]], [gram(a) for a in f], 1) for i in rows]
    total = sum(chunks[1:], start=chunks[0])
    assert len(chunks) > 1
    np.testing.assert_allclose(total.cross, whole.cross, rtol=1e-12, atol=0)
    np.testing.assert_allclose(total.gram, whole.gram, rtol=1e-12)
    assert total.sqnorm == pytest.approx(whole.sqnorm, rel=1e-12)
    assert total.loss(factors[1]) == pytest.approx(whole.loss(factors[1]), rel=1e-10)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.7, 0.0), (0.0, 0.3), (0.7, 0.3)])
@pytest.mark.parametrize("problem", ["planted"], indirect=True)
def test_penalties_give_the_penalised_loss(problem, mode, l1, l2, rng):
    factors = random_factors(problem.X.shape, problem.r, rng)
    stats, F = stats_of(problem.X, factors, mode), factors[mode]
    before = stats.cross.copy(), stats.gram.copy()
    wanted = stats.loss(F) + l1 * F.sum() + 0.5 * l2 * np.sum(F**2)
    assert stats.penalised(l1, l2).loss(F) == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_array_equal(stats.cross, before[0])
    np.testing.assert_array_equal(stats.gram, before[1])


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_single_precision_is_summed_in_double(scale, rng):
    a, b = (np.asfortranarray(scale * rng.random((5000, 3)), dtype=np.float32) for _ in range(2))
    exact = np.vdot(a.astype(float), b.astype(float))
    assert inner(a, b) == pytest.approx(exact, rel=1e-12)


def test_the_gram_matrix_is_double(rng):
    a = np.asfortranarray(rng.random((5000, 3)), dtype=np.float32)
    exact = a.astype(float).T @ a.astype(float)
    assert gram(a).dtype == float
    np.testing.assert_allclose(gram(a), exact, rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_inner_product_does_not_depend_on_the_layout(order, rng):
    a, b = rng.random((7, 3)), rng.random((7, 3))
    assert inner(np.array(a, order=order), np.asfortranarray(b)) == pytest.approx(np.vdot(a, b), rel=1e-14)


@pytest.mark.parametrize(("l1", "l2", "rows"), [(0.0, 0.0, 0.7), (0.4, 0.2, 0.7), (0.4, 0.2, 0.0)])
def test_row_penalties_give_the_penalised_loss(l1, l2, rows, rng):
    factors = random_factors((30, 20), 4, rng)
    stats, F = stats_of(rng.random((30, 20)), factors, 1), factors[1]
    wanted = stats.loss(F) + l1 * F.sum() + 0.5 * l2 * np.sum(F**2) + 0.5 * rows * np.sum(F.sum(axis=1) ** 2)
    assert stats.penalised(l1, l2, rows).loss(F) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mixed_statistics_are_those_of_mixed_factors(dtype, rng):
    X, factors = rng.random((9, 7)).astype(dtype), random_factors((9, 7), 4, rng, dtype)
    for middle in (rng.random((4, 4)), rng.random((4, 6)), rng.random(4)):
        full = np.diag(middle) if middle.ndim == 1 else middle
        mixed = stats_of(X, factors, 0).mixed(middle)
        rest = factors[1].astype(float) @ full
        assert mixed.cross.dtype == dtype
        assert mixed.cross.flags.f_contiguous
        rtol = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(mixed.cross, X @ rest, rtol=rtol)
        np.testing.assert_allclose(mixed.gram, rest.T @ rest, rtol=rtol)


def test_slopes_and_changes_are_those_of_the_loss(rng):
    factors = random_factors((30, 20), 4, rng)
    stats, F = stats_of(rng.random((30, 20)), factors, 1), factors[1]
    slope = stats.slope(F)
    for _ in range(10):
        step = rng.standard_normal(F.shape)
        linear, bend = stats.change(slope, step)
        assert linear + bend == pytest.approx(stats.loss(F + step) - stats.loss(F), rel=1e-9)
        difference = (stats.loss(F + 1e-5 * step) - stats.loss(F - 1e-5 * step)) / 2e-5
        assert linear == pytest.approx(difference, rel=1e-5)
        assert linear == pytest.approx(np.vdot(slope, step), rel=1e-12)

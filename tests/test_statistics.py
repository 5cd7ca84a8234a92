"""Three sums are all that an update needs: they give the loss, add up over samples, and take penalties as edits."""

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
def test_statistics_of_the_parts_add_up_over_samples(problem, cuts, rng):
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
def test_penalties_are_edits(problem, mode, l1, l2, rng):
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

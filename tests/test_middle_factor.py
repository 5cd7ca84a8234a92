"""A matrix between the factors: statistics against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import one_at_a_time, random_factors

from partwise.data import as_data
from partwise.engine.middle_factor import MIDDLE, WithMiddle
from partwise.engine.revival import revive
from partwise.projections import Hoyer, Nonnegative
from partwise.statistics import dead_components, gram
from partwise.updates import Columns, Multiplicative, Pivot, Sequential

KINDS = {
    "dense": np.asarray,
    "Fortran order": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
    "CSR, float32": lambda X: sp.csr_array(X, dtype=np.float32),
    "CSC, float32": lambda X: sp.csc_array(X, dtype=np.float32),
}
MIDDLES = ("diagonal", "full", "fixed")
DEFINED = pytest.mark.parametrize("kind", KINDS)


def counts(rng, n=9, m=7):
    X = rng.poisson(1.0, (n, m)) * rng.random((n, m))
    X[2], X[:, 3] = 0, 0
    return X


def with_middle(X, which, r, rng):
    """The data, its factors (including D if it is not fixed), and D as a matrix."""
    data = as_data(X)
    factors = random_factors(data.shape, r, rng, data.dtype)
    D = np.diag(rng.random(r)) if which == "diagonal" else rng.random((r, r))
    D = D.astype(data.dtype).astype(float)
    if which == "fixed":
        return WithMiddle(data, D), factors, D
    row = D.diagonal() if which == "diagonal" else D.ravel()
    return WithMiddle(data), [*factors, np.asfortranarray(row[None], dtype=data.dtype)], D


def rest_of(factors, D, which, mode):
    """The other side of the model: X (or its transpose, or vec X) is F·restᵀ."""
    A, P = (f.astype(float) for f in factors[:2])
    if mode == 0:
        return P @ D.T
    if mode == 1:
        return A @ D
    r = A.shape[1]
    pairs = [(j, j) for j in range(r)] if which == "diagonal" else [(j, l) for j in range(r) for l in range(r)]
    return np.column_stack([np.outer(A[:, j], P[:, l]).ravel() for j, l in pairs])


@one_at_a_time(which=MIDDLES, r=[3, 1])
@DEFINED
def test_statistics_are_their_definition(kind, which, r, rng):
    X = counts(rng)
    data, factors, D = with_middle(KINDS[kind](X), which, r, rng)
    rtol = 1e-5 if data.dtype == np.float32 else 1e-12
    model = factors[0].astype(float) @ D @ factors[1].T.astype(float)
    direct = np.linalg.norm(X - model) ** 2
    assert data.squared_error(factors) == pytest.approx(direct, rel=rtol)
    grams = [gram(f) for f in factors]
    for mode in range(len(factors)):
        stats = data.statistics(factors, grams, mode)
        rest = rest_of(factors, D, which, mode)
        np.testing.assert_allclose(stats.cross, [X, X.T, X.reshape(1, -1)][mode] @ rest, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(stats.gram, rest.T @ rest, rtol=rtol)
        assert stats.cross.dtype == data.dtype
        assert stats.cross.flags.f_contiguous
        assert stats.sqnorm == pytest.approx(np.sum(X**2), rel=rtol)
        assert data.loss(stats, factors, grams, mode) == pytest.approx(0.5 * direct, rel=rtol, abs=rtol * stats.sqnorm)


def test_a_full_middles_gram_matrix_is_a_kronecker_product(rng):
    data, factors, _ = with_middle(counts(rng), "full", 3, rng)
    A, P = factors[:2]
    stats = data.statistics(factors, [gram(f) for f in factors], MIDDLE)
    np.testing.assert_allclose(stats.gram, np.kron(A.T @ A, P.T @ P), rtol=1e-12)


@pytest.mark.parametrize("which", ["diagonal", "full"])
def test_products_are_recomputed_when_factors_change(which, rng):
    X = counts(rng)
    data, factors, D = with_middle(X, which, 3, rng)
    grams = [gram(f) for f in factors]
    data.statistics(factors, grams, 0)
    for mode in (0, 1, 0):
        factors[mode] = random_factors(X.shape, 3, rng)[mode]
        grams[mode] = gram(factors[mode])
        cross = data.statistics(factors, grams, MIDDLE).cross
        np.testing.assert_allclose(cross, X.reshape(1, -1) @ rest_of(factors, D, which, MIDDLE), rtol=1e-12)


@pytest.mark.parametrize("which", ["diagonal", "full"])
@pytest.mark.parametrize("solver", [Pivot(), Multiplicative(20)])
def test_all_three_factors_descend(which, solver, rng):
    X = counts(rng, 20, 15)
    data, factors, _ = with_middle(X, which, 3, rng)
    sets = [Columns.same(Hoyer(0.3), 3), Columns.same(Hoyer(0.5), 3), Columns.same(Nonnegative(), factors[2].size)]
    factors = [np.asfortranarray(s.project(f)) for s, f in zip(sets, factors, strict=True)]
    losses = [0.5 * data.squared_error(factors)]
    for step in range(12):
        mode = step % 3
        grams = [gram(f) for f in factors]
        stats = data.statistics(factors, grams, mode)
        factors[mode], _ = (solver if mode == MIDDLE else Sequential())(factors[mode], stats, sets[mode], {})
        losses.append(0.5 * data.squared_error(factors))
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("kind", ["dense", "float32", "CSR", "CSC"])
@one_at_a_time(dead=[[1], [0, 2], [0, 1, 2, 3]], part=[Nonnegative(), Hoyer(0.5)])
def test_unused_components_restart(kind, dead, part, rng):
    data, factors, _ = with_middle(KINDS[kind](counts(rng, 20, 15)), "diagonal", 4, rng)
    sets = [Columns.same(Nonnegative(), 4), Columns.same(part, 4), Columns.same(Nonnegative(), 4)]
    factors[1] = np.asfortranarray(sets[1].project(factors[1]))
    factors[MIDDLE][0, dead] = 0
    grams = [gram(f) for f in factors]
    factors[MIDDLE], _ = Pivot()(factors[MIDDLE], data.statistics(factors, grams, MIDDLE), sets[2], {})
    factors[MIDDLE][0, dead] = 0
    before, others = data.squared_error(factors), np.setdiff1d(np.arange(4), dead)
    kept = [f[:, others].copy() for f in factors]
    stats = data.statistics(factors, grams, MIDDLE)
    alive = revive(data, factors, stats, MIDDLE, sets, np.array(dead))
    assert alive == dead
    assert data.squared_error(factors) == pytest.approx(before, rel=1e-6)
    for f, own in zip(factors, kept, strict=True):
        np.testing.assert_array_equal(f[:, others], own)
        assert f.min() >= 0
    grams = [gram(f) for f in factors]
    slope = data.statistics(factors, grams, MIDDLE).slope(factors[MIDDLE])
    assert slope[0, dead].max() < 0  # D can lower the loss with each of them
    factors[MIDDLE], _ = Pivot()(factors[MIDDLE], data.statistics(factors, grams, MIDDLE), sets[2], {})
    assert factors[MIDDLE][0, dead].max() > 0
    assert data.squared_error(factors) < before * (1 - 1e-3)


def test_components_in_use_and_exact_fits_are_left_alone(rng):
    activations, parts = random_factors((8, 6), 3, rng)
    data = WithMiddle(as_data(activations[:, :2] @ parts[:, :2].T))
    sets = [Columns.same(Nonnegative(), 3)] * 3
    for weights, unused in (([1.0, 1.0, 0.0], [2]), ([1.0, 0.5, 1.0], [])):
        factors = [activations.copy("F"), parts.copy("F"), np.array([weights])]
        grams = [gram(f) for f in factors]
        dead = dead_components(grams)
        assert dead.tolist() == unused
        assert revive(data, factors, data.statistics(factors, grams, MIDDLE), MIDDLE, sets, dead) == []
        np.testing.assert_array_equal(factors[0], activations)
        np.testing.assert_array_equal(factors[1], parts)

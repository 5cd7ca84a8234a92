"""Sets that share a sparsity among the columns of a matrix, and sets with a free norm."""

import math
from itertools import product

import numpy as np
import pytest

from partwise.projections import AtMost, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity, sparse_opt
from partwise.projections.sparsity import l1_norm

MATRICES = {
    "uniform": lambda rng, m, r: rng.random((m, r)),
    "normal": lambda rng, m, r: rng.standard_normal((m, r)),
    "all negative": lambda rng, m, r: -1 - rng.random((m, r)),
    "columns of all sizes": lambda rng, m, r: rng.random((m, r)) * 10.0 ** np.arange(r),
    "ties": lambda rng, m, r: rng.integers(0, 3, (m, r)).astype(float),
    "a constant column": lambda rng, m, r: np.where(np.arange(r) == 0, 0.5, rng.random((m, r))),
    "a zero column": lambda rng, m, r: np.where(np.arange(r) == 0, 0.0, rng.random((m, r))),
    "all constant": lambda rng, m, r: np.ones((m, r)),
    "all zero": lambda rng, m, r: np.zeros((m, r)),
    "equal columns": lambda rng, m, r: np.tile(rng.random((m, 1)), r),
    "one large entry": lambda rng, m, r: rng.random((m, r)) + 1e6 * (np.arange(m * r).reshape(m, r) == 1),
    "an offset": lambda rng, m, r: 1e6 + rng.random((m, r)),
    "Fortran order": lambda rng, m, r: np.asfortranarray(rng.random((m, r))),
}


def assert_in_group(Y, s, atol=1e-10):
    assert Y.min() >= 0
    np.testing.assert_allclose(np.linalg.norm(Y.astype(float), axis=0), 1, atol=atol)
    assert abs(hoyer_sparsity(Y, axis=0).mean() - s) <= atol


def best_split(b, want, points=41):
    """The largest Σ x_jᵀy_j over a grid of ℓ1 norms with that mean; the last column takes the rest."""
    m, r = b.shape
    norms = np.linspace(1, math.sqrt(m), points)
    best = -math.inf
    for ks in np.stack(np.meshgrid(*[norms] * (r - 1)), axis=-1).reshape(-1, r - 1):
        last = r * want - ks.sum()
        if 1 <= last <= math.sqrt(m):
            best = max(best, sum(b[:, j] @ sparse_opt(b[:, j], k) for j, k in enumerate([*ks, last])))
    return best


@pytest.mark.parametrize("name", MATRICES)
def test_the_mean_sparsity_is_exact_and_norms_are_1(name, rng):
    for (m, r), s in product(((2, 3), (7, 1), (7, 4), (40, 5)), (0.0, 0.2, 0.5, 0.9, 1.0)):
        b = MATRICES[name](rng, m, r)
        before = b.copy()
        Y = Grouped(s)(b)
        assert_in_group(Y, s)
        assert Y.shape == b.shape
        np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("name", MATRICES)
def test_no_other_split_of_the_budget_is_better(name, rng):
    for (m, r, points), s in product(((6, 2, 81), (5, 3, 15)), (0.1, 0.4, 0.8)):
        b = MATRICES[name](rng, m, r)
        slack = 1e-6 * max(1, np.abs(b).max())
        assert np.vdot(b, Grouped(s)(b)) >= best_split(b, l1_norm(s, m), points) - slack


def test_one_column_is_a_hoyer_set(rng):
    b = rng.standard_normal((9, 1))
    np.testing.assert_allclose(Grouped(0.6)(b)[:, 0], Hoyer(0.6)(b[:, 0]), atol=1e-10)


def test_one_threshold_serves_all_columns(rng):
    """Each column is (x − a)₊ normalised, with the same a."""
    b = rng.random((30, 4))
    Y = Grouped(0.5)(b)
    thresholds = []
    for x, y in zip(b.T, Y.T, strict=True):
        up = y > 0
        norm = np.ptp(x[up]) / np.ptp(y[up])
        thresholds.extend(x[up] - norm * y[up])
        assert x[~up].max() <= thresholds[-1] + 1e-9
    np.testing.assert_allclose(thresholds, thresholds[0], atol=1e-9)


def test_single_row():
    np.testing.assert_array_equal(Grouped(0.3)(np.array([[2.0, -1.0, 0.0]])), np.ones((1, 3)))


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-100, 1e100, 1e200, 1e300])
def test_scale_does_not_matter(scale, rng):
    b = rng.random((6, 3))
    np.testing.assert_allclose(Grouped(0.5)(scale * b), Grouped(0.5)(b), atol=1e-9)


def test_single_precision(rng):
    b = rng.random((20, 3)).astype(np.float32)
    Y = Grouped(0.5)(b)
    assert Y.dtype == np.float32
    assert_in_group(Y, 0.5, atol=1e-6)
    np.testing.assert_allclose(Y, Grouped(0.5)(b.astype(float)), atol=1e-5)


@pytest.mark.parametrize("dtype", [int, np.uint8, bool, np.float16])
def test_other_numbers_are_taken_as_double(dtype, rng):
    b = rng.integers(0, 9, (6, 3)).astype(dtype)
    np.testing.assert_allclose(Grouped(0.5)(b), Grouped(0.5)(b.astype(float)), atol=1e-10)


BAD = {
    "a vector": np.ones(3),
    "no rows": np.ones((0, 3)),
    "no columns": np.ones((3, 0)),
    "NaN": np.array([[1.0, np.nan], [0.0, 1.0]]),
    "infinity": np.array([[1.0, np.inf], [0.0, 1.0]]),
    "words": np.array([["a", "b"], ["c", "d"]]),
    "complex": np.full((3, 2), 1j),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_matrices_are_refused(name):
    with pytest.raises(ValueError, match=r"^b (has|holds|is|contains)"):
        Grouped(0.5)(BAD[name])


@pytest.mark.parametrize("s", [-0.1, 1.1, math.nan, "0.5", None, True])
def test_bad_sparsities_are_refused(s):
    with pytest.raises(ValueError, match="sparsity"):
        Grouped(s)


def test_relaxed_sets_have_a_share_of_the_sparsity():
    assert Grouped(0.8).relaxed(0.5) == Grouped(0.4)
    assert FreeNorm(Hoyer(0.8), keep=True).relaxed(0.5) == FreeNorm(Hoyer(0.4), keep=True)
    assert FreeNorm(HoyerBetween(0.8, 0.9)).relaxed(0.5) == FreeNorm(HoyerBetween(0.4, 0.9))


UNITS = {
    "flat": Hoyer(0.0),
    "Hoyer": Hoyer(0.6),
    "Hoyer, sorted": Hoyer(0.6, "sorted"),
    "single": Hoyer(1.0),
    "interval": HoyerBetween(0.3, 0.5),
    "at least": HoyerBetween(0.6, None),
    "at most": HoyerBetween(None, 0.2),
}
VECTORS = {
    "uniform": lambda rng: rng.random(8),
    "normal": lambda rng: rng.standard_normal(8),
    "all negative": lambda rng: -rng.random(8),
    "ties": lambda rng: rng.integers(0, 2, 8).astype(float),
    "zeros": lambda rng: np.zeros(8),
    "one": lambda rng: np.eye(8)[3],
}


@pytest.mark.parametrize("unit", UNITS)
def test_free_norm_gives_the_nearest_point(unit, rng):
    chosen = UNITS[unit]
    lo, hi = (getattr(chosen, "lo", chosen) or 0, getattr(chosen, "hi", chosen) or 1)
    lo, hi = (getattr(end, "sparsity", end) for end in (lo, hi))
    for vector, make in VECTORS.items():
        b = make(rng)
        p = FreeNorm(chosen)(b)
        assert p.min() >= 0, vector
        assert not p.any() or lo - 1e-10 <= hoyer_sparsity(p) <= hi + 1e-10, vector
        distance = np.linalg.norm(b - p)
        for _ in range(100):
            y = chosen(b + rng.choice([0.1, 1, 10]) * rng.standard_normal(8))
            for t in (max(b @ y, 0), rng.exponential()):
                assert distance <= np.linalg.norm(b - t * y) + 1e-12, vector


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norm_is_kept(unit, dtype, rng):
    b = rng.standard_normal(8).astype(dtype)
    y = FreeNorm(UNITS[unit], keep=True)(b)
    assert y.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(y), np.linalg.norm(b), rtol=1e-6 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(y / np.linalg.norm(b), UNITS[unit](b), atol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_best_at_zero_has_the_sparsity_and_hardly_a_norm(keep, dtype, rng):
    """Zeros have no sparsity."""
    for b in (np.zeros(5, dtype), -rng.random(5).astype(dtype)):
        y = FreeNorm(Hoyer(0.5), keep)(b)
        assert abs(hoyer_sparsity(y) - 0.5) < (1e-12 if dtype == np.float64 else 1e-6)
        assert keep or np.linalg.norm(y) <= np.finfo(dtype).eps * np.linalg.norm(b) * 1.001 + 1e-30


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_free_norm_is_scale_equivariant(keep, scale, rng):
    b = rng.random(6)
    project = FreeNorm(Hoyer(0.5), keep)
    np.testing.assert_allclose(project(scale * b, near=scale * b) / scale, project(b), rtol=1e-10)


def test_near_decides_among_equally_near_points():
    b = np.ones(6)
    near = np.array([0, 0, 0, 1.0, 2.0, 0])
    assert np.argmax(FreeNorm(Hoyer(0.8))(b, near=near)) == 4
    assert np.argmax(FreeNorm(Hoyer(0.8))(b, near=0 * near)) == np.argmax(FreeNorm(Hoyer(0.8))(b))


@pytest.mark.parametrize("unit", [Nonnegative(), AtMost(2), FreeNorm(Hoyer(0.5)), Grouped(0.5), 0.5, None])
def test_only_sets_of_unit_norm_get_a_free_one(unit):
    with pytest.raises(ValueError, match="give a Hoyer or HoyerBetween"):
        FreeNorm(unit)


@pytest.mark.parametrize("b", [np.ones((2, 2)), [], [1.0, math.nan], [1.0, math.inf], ["a"]])
def test_bad_vectors_are_refused(b):
    with pytest.raises(ValueError, match="b"):
        FreeNorm(Hoyer(0.5))(b)

"""Activations with an upper bound: exact solutions, fits, new samples, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, stats_of
from scipy.optimize import lsq_linear

import partwise as pw
from partwise.projections import Bounded, Nonnegative
from partwise.statistics import Stats
from partwise.updates import Columns, Pivot, WithinBounds

RNG = np.random.default_rng(0)
PARTS = RNG.random((3, 20)) ** 3
X = RNG.random((60, 3)) @ PARTS + 0.01 * RNG.random((60, 20))


def solved(X, parts, upper, start=None, l1=0.0):
    """The activations of every row of X, and their statistics."""
    n, r = len(X), parts.shape[1]
    stats = stats_of(X, [None, parts], 0).penalised(l1)
    a = np.zeros((n, r), order="F", dtype=X.dtype) if start is None else np.array(start, order="F")
    a, _ = WithinBounds()(a, stats, Columns.same(Bounded(upper), r), {})
    assert a.min() >= 0
    assert a.max() <= X.dtype.type(upper)
    return a, stats


def violation(a, X, parts, upper, l1=0.0):
    """How far the conditions of optimality are violated, relative to the sizes of the terms of each slope."""
    slope = (a @ parts.T - X) @ parts + l1
    size = np.linalg.norm(a @ parts.T, axis=1) + np.linalg.norm(X, axis=1)
    wrong = np.where(a == 0, np.maximum(-slope, 0), np.where(a == upper, np.maximum(slope, 0), np.abs(slope)))
    return (wrong / (size[:, None] * np.linalg.norm(parts, axis=0) + l1 + 1e-300)).max()


@pytest.mark.parametrize("upper", [0.05, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_rows_are_solved_exactly(problem, upper):
    rng = np.random.default_rng(1)
    X, r = PROBLEMS[problem](rng)
    parts = rng.random((X.shape[1], r))
    if r > 2:
        parts[:, 1] = parts[:, 0]  # dependent components
    a, _ = solved(X, parts, upper)
    assert violation(a, X, parts, upper) < 1e-12
    for x, row in zip(X, a, strict=True):
        least = lsq_linear(parts, x, (0, upper), tol=1e-13).cost
        assert 0.5 * np.square(parts @ row - x).sum() <= least + 1e-12 * (x @ x)


def test_both_bounds_are_active_in_these_tests():
    a, _ = solved(3 * X, RNG.random((20, 8)), 0.5)
    for here in (a == 0, a == 0.5, (a > 0) & (a < 0.5)):
        assert here.mean() > 0.05


@pytest.mark.parametrize("kind", ["scales", "nearly equal", "dependent", "zeros and ones", "bright row", "one"])
def test_optimality_of_hostile_rows(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m, r = rng.integers(1, 12), 1 if kind == "one" else rng.integers(3, 12)
        X, parts = rng.random((20, m)), rng.random((m, r))
        if kind == "scales":
            parts *= 10.0 ** rng.integers(-12, 13, r)
        elif kind == "nearly equal":
            parts[:, 1] = parts[:, 0] * (1 + 1e-7 * rng.random(m))
        elif kind == "dependent":
            parts[:, 2] = parts[:, :2].mean(axis=1)
        elif kind == "zeros and ones":
            X, parts = (X > 0.5).astype(float), (parts > 0.5).astype(float)
        elif kind == "bright row":
            X[0] *= 1e8
        for start in (None, rng.random((20, r)), np.full((20, r), 0.3)):
            a, _ = solved(X, parts, 0.3, start)
            dead = ~parts.any(axis=0)
            assert violation(a[:, ~dead], X, parts[:, ~dead], 0.3) < 1e-11, (kind, seed)


def test_the_result_does_not_depend_on_the_start():
    parts = RNG.random((20, 6))
    best, _ = solved(X, parts, 0.4)
    for start in (RNG.random((60, 6)), np.full((60, 6), 0.4), 5 * np.eye(6)[RNG.integers(6, size=60)], best):
        np.testing.assert_allclose(solved(X, parts, 0.4, start)[0], best, atol=1e-10)


def test_a_bound_that_is_not_reached_changes_nothing():
    parts = RNG.random((20, 6))
    stats = stats_of(X, [None, parts], 0)
    free, _ = Pivot()(np.zeros((60, 6), order="F"), stats, Columns.same(Nonnegative(), 6), {})
    for upper in (free.max() * 1.001, 1e6):
        np.testing.assert_allclose(solved(X, parts, upper)[0], free, atol=1e-10)


def test_each_column_may_have_its_own_bound():
    upper = np.array([0.1, 2.0, 0.5])
    stats = stats_of(3 * X, [None, PARTS.T], 0)
    a, _ = WithinBounds()(np.zeros((60, 3), order="F"), stats, Columns(tuple(map(Bounded, upper))), {})
    for x, row in zip(3 * X, a, strict=True):
        np.testing.assert_allclose(row, lsq_linear(PARTS.T, x, (0, upper), tol=1e-14).x, atol=1e-7)


def test_penalties_and_single_precision():
    parts = RNG.random((20, 6))
    a, _ = solved(X, parts, 0.4, l1=0.3)
    assert violation(a, X, parts, 0.4, l1=0.3) < 1e-12
    single, _ = solved(X.astype(np.float32), parts.astype(np.float32), 0.1)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, solved(X, parts, 0.1)[0], atol=1e-5)


def test_components_of_zeros_keep_their_activations():
    parts = np.column_stack([PARTS[0], np.zeros(20), PARTS[1]])
    start = np.full((60, 3), 0.25)
    a, _ = solved(X, parts, 0.5, start)
    assert (a[:, 1] == 0.25).all()
    np.testing.assert_array_equal(solved(X, 0 * parts, 0.5, start)[0], start)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("sparsity", [None, 0.4, (0.2, 0.6), [0.4, None, (0.1, 0.5)]])
def test_fits_have_the_bound_and_the_loss_of_a_fit_without_it(kind, sparsity):
    asked = {"sparsity": sparsity, "random_state": 0}
    bounded = pw.ssnmf(kind(X), 3, max_activation=2.5, **asked)
    free = pw.ssnmf(kind(X), 3, **asked)
    float32 = bounded.activations.dtype == np.float32
    assert bounded.activations.max() <= 2.5
    np.testing.assert_allclose(bounded.activations.max(axis=0), 2.5, rtol=1e-6)  # the components carry the scale
    np.testing.assert_array_equal(bounded.losses, free.losses)
    model = bounded.activations @ bounded.components
    np.testing.assert_allclose(model, free.activations @ free.components, atol=1e-5 if float32 else 1e-12)
    np.testing.assert_allclose(bounded.sparsity, free.sparsity, atol=1e-5 if float32 else 1e-10)


def test_planted_activations_are_recovered_on_their_scale():
    rng = np.random.default_rng(2)
    parts = np.kron(np.eye(3), rng.random(10) + 0.5) * [[5], [1], [20]]
    activations = np.minimum(rng.gamma(1.0, 0.5, (300, 3)), 1)
    model = pw.SparseNMF(3, sparsity=(0.2, None), max_activation=1.0, tol=1e-2, random_state=0)
    found = model.fit_transform(activations @ parts + 0.01 * rng.random((300, 30)))
    match = pw.match_parts(parts, model.components_)
    np.testing.assert_allclose(model.components_[match.second], parts, atol=1e-2 * parts.max())
    np.testing.assert_allclose(found[:, match.second], activations, atol=2e-2)


def test_transform_is_exact_and_saved(tmp_path):
    model = pw.SparseNMF(3, max_activation=1.0, random_state=0).fit(X[:40])
    new = model.transform(2 * X[40:])
    assert (new == 1).mean() > 0.1
    assert violation(new, 2 * X[40:], model.components_.T, 1.0) < 1e-12
    model.save(tmp_path / "model.pw")
    again = pw.load(tmp_path / "model.pw")
    assert again.max_activation == 1.0
    np.testing.assert_array_equal(again.transform(2 * X[40:]), new)


@pytest.mark.parametrize("accelerate", ["auto", False])
def test_known_components_are_bounded_in_the_fit(accelerate):
    bright = 2 * X  # the known component is needed more than once
    asked = {"fixed_components": PARTS[:1], "random_state": 0, "accelerate": accelerate}
    result = pw.ssnmf(bright, 3, max_activation=0.7, tol=1e-3, **asked)
    assert (result.activations <= 0.7).all()
    assert (result.activations[:, 0] == 0.7).mean() > 0.1
    np.testing.assert_array_equal(result.components[0], PARTS[0])
    assert (np.diff(result.losses) <= 1e-12 * result.losses[0]).all()
    all_known = pw.SparseNMF(3, max_activation=0.7, fixed_components=PARTS)
    a = all_known.fit_transform(bright)
    np.testing.assert_array_equal(all_known.components_, PARTS)
    assert violation(a, bright, PARTS.T, 0.7) < 1e-12


def test_chunks_weights_and_missing_entries(tmp_path):
    np.save(tmp_path / "X.npy", X)
    asked = {"max_activation": 1.0, "random_state": 0, "max_iter": 5, "tol": 0, "init": (RNG.random((60, 3)), PARTS)}
    whole = pw.ssnmf(X, 3, compress=False, **asked)
    chunked = pw.ssnmf(tmp_path / "X.npy", 3, memory_limit=4000, compress=False, **asked)
    np.testing.assert_allclose(chunked.components, whole.components, atol=1e-10)
    for more in ({"missing": "em"}, {"weights": RNG.random(X.shape)}):
        gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
        result = pw.ssnmf(gaps, 3, **more, **asked)
        assert result.activations.max() <= 1
        assert (np.diff(result.losses) <= 1e-12 * result.losses[0]).all()


def test_dask_arrays():
    da = pytest.importorskip("dask.array")
    model = pw.SparseNMF(3, max_activation=1.0, random_state=0)
    found = model.fit_transform(da.from_array(X, chunks=(25, 20)))
    np.testing.assert_allclose(np.asarray(found), model.transform(X), atol=1e-10)
    assert np.asarray(found).max() <= 1


def test_a_resumed_fit_is_the_same(tmp_path):
    path, asked = tmp_path / "fit.pw", {"max_activation": 1.0, "sparsity": 0.3, "random_state": 0, "tol": 0}
    whole = pw.ssnmf(X, 3, max_iter=9, **asked)
    pw.ssnmf(X, 3, max_iter=4, checkpoint=path, **asked)
    resumed = pw.ssnmf(X, 3, max_iter=9, resume_from=path, **asked)
    np.testing.assert_array_equal(resumed.components, whole.components)
    np.testing.assert_array_equal(resumed.activations, whole.activations)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pw.ssnmf(X, 3, max_activation=0), "max_activation=0: give a number from 1e-9 to 1e9"),
        (lambda: pw.ssnmf(X, 3, max_activation=np.inf), "max_activation=inf: give a number"),
        (lambda: pw.ssnmf(X, 3, max_activation="1"), "max_activation='1': give a number"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, activations="simplex"), "activations='simplex' is not available"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, activation_sparsity=0.3), "activation_sparsity is not available"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, l1=0.1, sparsity=0.3), "l1 is not available with max_activation"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, solver="pivot"), "solver is not available with max_activation"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, loss="kl"), "max_activation is not available with loss='kl'"),
        (lambda: pw.ssnmf(X, 3, max_activation=1, fixed_activations=X[:, :1]), "fixed_activations is not available"),
        (lambda: pw.SparseNMF(3, max_activation=1, recipe="nmfsc").fit(X), "does not accept 'max_activation'"),
        (lambda: Bounded(0.0), "upper=0.0: give a finite number above 0"),
        (lambda: Bounded(True), "upper=True: give a finite number above 0"),
        (lambda: WithinBounds()(X, Stats(X, X.T @ X, 0), Columns.same(Nonnegative(), 20), {}), "0 ≤ y ≤ u only"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(ValueError, match=said):
        call()

"""Activations on the simplex: exact solutions, fits, new samples, and what is refused."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, stats_of
from vectors import VECTORS, seeded

import partwise as pw
from partwise.projections import Nonnegative, Simplex
from partwise.updates import Columns, Rows, SumToOne

RNG = np.random.default_rng(0)
SPECTRA = np.array([np.exp(-0.5 * ((np.arange(40) - c) / w) ** 2) + 0.1 for c, w in ((8, 4), (20, 7), (32, 5))])
SHARES = RNG.dirichlet([0.4] * 3, 80)
X = SHARES @ SPECTRA + 0.01 * RNG.random((80, 40))


def optimality_gap(a, cross, gram):
    """aᵀ∇ − min ∇, zero if and only if a is optimal on the simplex; relative."""
    slope = a @ gram - cross
    return ((a * slope).sum(axis=1) - slope.min(axis=1)).max() / np.abs(slope).max()


def test_every_vector_is_projected():
    for kind, make in VECTORS.items():
        b = make(seeded(kind), 20)
        y = Simplex()(b)
        size = max(1.0, float(np.abs(b.astype(float)).max()))
        if size > 1e100:  # differences are all or nothing
            assert y.sum() == pytest.approx(1)
            continue
        assert y.min() >= 0, kind
        assert abs(y.astype(float).sum() - 1) <= (1e-6 if y.dtype == np.float32 else 1e-12), kind
        for point in np.random.default_rng(0).dirichlet(np.ones(20), 30):
            assert (b.astype(float) - y) @ (point - y) <= 1e-6 * size, kind


@pytest.mark.parametrize("problem", PROBLEMS)
def test_rows_are_solved_exactly(problem):
    rng = np.random.default_rng(1)
    X, r = PROBLEMS[problem](rng)
    parts = rng.random((X.shape[1], r))
    if r > 2:
        parts[:, 1] = parts[:, 0]  # dependent components
    stats = stats_of(X, [None, parts], 0)
    a, _ = SumToOne()(np.zeros((len(X), r), order="F"), stats, Rows(Simplex(), r), {})
    assert a.min() >= 0
    np.testing.assert_allclose(a.sum(axis=1), 1, atol=1e-12)
    assert optimality_gap(a, stats.cross, stats.gram) < 1e-10


def solved(X, parts):
    """The shares of every row of X, and half the squared distances."""
    r = parts.shape[1]
    a, _ = SumToOne()(np.zeros((len(X), r), order="F"), stats_of(X, [None, parts], 0), Rows(Simplex(), r), {})
    return a, 0.5 * np.square(X - a @ parts.T).sum(axis=1)


def least_of_all_supports(X, parts):
    """The least loss of every row: the best of the optima of all supports that are not negative."""
    r = parts.shape[1]
    least = np.full(len(X), np.inf)
    for size in range(1, r + 1):
        for support in map(list, combinations(range(r), size)):
            k, *others = sorted(support, key=lambda j: np.linalg.norm(parts[:, j]))
            differences = parts[:, others] - parts[:, [k]]
            scale = np.linalg.norm(differences, axis=0)
            shares = np.linalg.lstsq(differences / scale, (X - parts[:, k]).T)[0].T / scale
            fine = (shares.min(axis=1, initial=0) >= 0) & (shares.sum(axis=1) <= 1)
            loss = 0.5 * np.square(X - parts[:, k] - shares @ differences.T).sum(axis=1)
            least[fine] = np.minimum(least[fine], loss[fine])
    return least


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("features", [2, 9])
def test_no_support_is_better_whatever_the_scale_of_a_component(features, scale):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, parts = rng.random((20, features)), rng.random((features, 5))
        parts[:, 2] *= scale
        a, loss = solved(X, parts)
        assert a.min() >= 0
        np.testing.assert_allclose(a.sum(axis=1), 1, atol=1e-14)
        np.testing.assert_allclose(loss, least_of_all_supports(X, parts), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e8, 1e12, 1e15])
def test_a_further_component_never_costs_more(scale):
    rng = np.random.default_rng(2)
    X, parts = rng.random((40, 6)), rng.random((6, 5))
    more = np.column_stack([parts, scale * rng.random(6)])
    assert (solved(X, more)[1] <= solved(X, parts)[1] * (1 + 1e-12) + 1e-14).all()


def test_a_bright_row_and_a_bright_component():
    rng = np.random.default_rng(3)
    X, parts = rng.random((20, 9)), rng.random((9, 5))
    X[0] *= 1e8
    parts[:, 3] *= 1e8
    a, loss = solved(X, parts)
    np.testing.assert_allclose(loss, least_of_all_supports(X, parts), rtol=1e-9)
    assert np.abs(a[1:, 3]).max() < 1e-7 < a[0, 3]


def test_rows_improve_from_where_they_are():
    rng = np.random.default_rng(4)
    parts = rng.random((6, 5))
    stats, rows = stats_of(X[:, :6], [None, parts], 0), Rows(Simplex(), 5)
    best = solved(X[:, :6], parts)[0]
    for start in (rng.dirichlet(np.ones(5), 80), np.eye(5)[rng.integers(5, size=80)], rng.random((80, 5)) - 0.5, best):
        a, _ = SumToOne()(np.asfortranarray(start), stats, rows, {})
        np.testing.assert_allclose(a, best, atol=1e-10)


@pytest.mark.parametrize("kind", ["scales", "nearly equal", "dependent", "zeros and ones", "bright row"])
def test_optimality_of_hostile_rows(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m, r = rng.integers(1, 12), rng.integers(3, 12)
        X, parts = rng.random((20, m)), rng.random((m, r))
        if kind == "scales":
            parts *= 10.0 ** rng.integers(-12, 13, r)
        elif kind == "nearly equal":
            parts[:, 1] = parts[:, 0] * (1 + 1e-7 * rng.random(m))
        elif kind == "dependent":
            parts[:, 2] = parts[:, :2].mean(axis=1)
        elif kind == "zeros and ones":
            X, parts = (X > 0.5).astype(float), (parts > 0.5).astype(float)
        else:
            X[0] *= 1e8
        stats = stats_of(X, [None, parts], 0)
        for start in (np.zeros((20, r)), rng.dirichlet(np.ones(r), 20)):
            a, _ = SumToOne()(np.asfortranarray(start), stats, Rows(Simplex(), r), {})
            np.testing.assert_allclose(a.sum(axis=1), 1, atol=1e-12)
            assert a.min() >= 0
            size = np.linalg.norm(parts, axis=0)
            slope, brightness = (
                (a @ parts.T - X) @ parts,
                np.linalg.norm(a @ parts.T, axis=1) + np.linalg.norm(X, axis=1),
            )
            for row, own, bright in zip(a, slope, brightness, strict=True):
                k = min(np.flatnonzero(row), key=lambda j: size[j])  # no entry falls below that of the support
                assert (own[k] - own <= 1e-12 * bright * (size + size[k])).all(), (kind, seed)


def test_shares_at_the_level_of_rounding_errors_are_zero():
    parts = np.column_stack([SPECTRA[0], SPECTRA[1], SPECTRA[2]])
    share = np.array([[0.5, 0.5 - 1e-14, 1e-14], [1 - 1e-13, 0, 1e-13], [0.5, 0.4, 0.1]])
    a, _ = solved(share @ parts.T, parts)
    assert ((a > 0) == [[True, True, False], [True, False, False], [True, True, True]]).all()


def test_a_component_of_zeros_is_a_component():
    parts = np.column_stack([SPECTRA[0], np.zeros(40), SPECTRA[1]])
    a, _ = solved(0.25 * parts[:, [0, 2]].sum(axis=1)[None], parts)  # half as bright as the mixture
    np.testing.assert_allclose(a, [[0.25, 0.5, 0.25]], atol=1e-12)
    np.testing.assert_allclose(solved(X, 0 * parts)[0], 1 / 3)  # nothing to choose by


SHAPES = [(12, 1, 3), (12, 2, 4), (2, 9, 3), (12, 3, 8), (30, 12, 7), (60, 20, 6)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sparsity", [None, 0, 0.2, 0.5, 0.8, (0.2, 0.6)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_loss_never_rises(shape, sparsity):
    n, m, r = shape
    for seed in range(6):
        X = np.random.default_rng(seed).random((n, m))
        result = pw.ssnmf(X, r, sparsity=sparsity, activations="simplex", random_state=seed, max_iter=60)
        assert np.diff(result.losses).max() <= 1e-13 * np.square(X).sum(), seed
        assert np.linalg.norm(result.components, axis=1).max() < 1e3, seed
        np.testing.assert_allclose(result.activations.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("bright", [1.0, 1e4, 1e8])
def test_unused_components_and_bright_rows_do_not_blow_up(bright):
    X = np.random.default_rng(0).random((30, 12))
    X[0] *= bright
    for sparsity in (0.0, None):
        result = pw.ssnmf(X, 7, sparsity=sparsity, activations="simplex", random_state=0, max_iter=200)
        assert (np.diff(result.losses) <= 1e-13 * np.square(X).sum()).all()
        assert np.linalg.norm(result.components, axis=1).max() < 10 * np.linalg.norm(X, axis=1).max()


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("sparsity", [None, 0.3, (0.1, 0.4), [0.3, None, (0.1, 0.5)]])
def test_fits_sum_to_one_and_the_loss_falls(kind, sparsity):
    result = pw.ssnmf(kind(X), 3, activations="simplex", sparsity=sparsity, random_state=0)
    float32 = result.activations.dtype == np.float32
    np.testing.assert_allclose(result.activations.astype(float).sum(axis=1), 1, atol=1e-6 if float32 else 1e-12)
    assert (np.diff(result.losses) <= (1e-5 if float32 else 1e-12) * result.losses[0]).all()
    if sparsity == 0.3:
        np.testing.assert_allclose(result.sparsity, 0.3, atol=1e-5 if float32 else 1e-10)


def test_planted_mixtures_are_recovered():
    result = pw.ssnmf(X, 3, activations="simplex", random_state=0, tol=1e-3)
    match = pw.match_parts(SPECTRA, result.components)
    assert np.degrees(np.arccos(match.cosines)).mean() < 5
    assert np.abs(SHARES - result.activations[:, match.second]).mean() < 0.08
    assert np.abs(SPECTRA - result.components[match.second]).mean() < 0.1  # the components carry the scale


def test_transform_is_exact_and_saved(tmp_path):
    model = pw.SparseNMF(3, activations="simplex", random_state=0).fit(X[:60])
    new = model.transform(X[60:])
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)
    parts = model.components_.T
    assert optimality_gap(new, X[60:] @ parts, parts.T @ parts) < 1e-10
    model.save(tmp_path / "model.pw")
    np.testing.assert_array_equal(pw.load(tmp_path / "model.pw").transform(X[60:]), new)


def test_a_sample_without_any_observed_entry_has_equal_shares():
    model = pw.SparseNMF(3, activations="simplex", random_state=0).fit(X)
    seen = np.ones(X.shape, dtype=bool)
    seen[3] = False
    new = model.transform(X, observed=seen)
    np.testing.assert_allclose(new[3], 1 / 3)
    np.testing.assert_allclose(np.delete(new, 3, axis=0), np.delete(model.transform(X), 3, axis=0), atol=1e-10)


def test_chunks_and_missing_entries(tmp_path):
    np.save(tmp_path / "X.npy", X)
    asked = {"activations": "simplex", "random_state": 0, "init": (SHARES, SPECTRA), "max_iter": 5, "tol": 0}
    whole = pw.ssnmf(X, 3, **asked)
    chunked = pw.ssnmf(tmp_path / "X.npy", 3, memory_limit=10_000, **asked)
    np.testing.assert_allclose(chunked.components, whole.components, atol=1e-10)
    gaps = pw.ssnmf(np.where(RNG.random(X.shape) < 0.2, np.nan, X), 3, missing="em", **asked)
    np.testing.assert_allclose(gaps.activations.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(gaps.losses) <= 1e-12 * gaps.losses[0]).all()


def test_a_resumed_fit_is_the_same(tmp_path):
    path, asked = tmp_path / "fit.pw", {"activations": "simplex", "sparsity": 0.3, "random_state": 0, "tol": 0}
    whole = pw.ssnmf(X, 3, max_iter=9, **asked)
    pw.ssnmf(X, 3, max_iter=4, checkpoint=path, **asked)
    resumed = pw.ssnmf(X, 3, max_iter=9, resume_from=path, **asked)
    np.testing.assert_array_equal(resumed.components, whole.components)
    np.testing.assert_array_equal(resumed.activations, whole.activations)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pw.ssnmf(X, 3, activations="ball"), "activations='ball'"),
        (lambda: pw.ssnmf(X, 3, activations="simplex", activation_sparsity=0.3), "omit other options"),
        (lambda: pw.ssnmf(X, 3, activations="simplex", l1=0.1), "omit other options"),
        (lambda: pw.ssnmf(X, 3, activations="simplex", solver="pivot"), "omit other options"),
        (lambda: pw.ssnmf(X, 3, activations="simplex", weights=X), "cannot be combined with weights"),
        (lambda: pw.SparseNMF(3, activations="simplex").fit(X, weights=X), "cannot be combined with weights"),
        (
            lambda: pw.ssnmf(X, 3, activations="simplex", fixed_components=SPECTRA[:1]),
            "activations='simplex' cannot be combined with fixed_components",
        ),
        (lambda: pw.SparseNMF(3, activations="simplex", recipe="nmfsc").fit(X), "does not accept 'activations'"),
        (lambda: SumToOne()(SHARES, None, Columns.same(Nonnegative(), 3), {}), "rows on the simplex only"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(ValueError, match=said):
        call()

"""Activations on the simplex: exact solutions, fits, new samples, and what is refused."""

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


def test_zero_components_take_no_share():
    parts = np.column_stack([SPECTRA[0], np.zeros(40), SPECTRA[1]])
    rows = Rows(Simplex(), 3)
    a, _ = SumToOne()(np.zeros((80, 3), order="F"), stats_of(X, [None, parts], 0), rows, {})
    assert not a[:, 1].any()
    np.testing.assert_allclose(a.sum(axis=1), 1, atol=1e-12)
    a, _ = SumToOne()(np.zeros((80, 3), order="F"), stats_of(X, [None, 0 * parts], 0), rows, {})
    np.testing.assert_allclose(a, 1 / 3)


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
        (lambda: pw.ssnmf(X, 3, activations="simplex", weights=X), "weights are not available"),
        (lambda: pw.SparseNMF(3, activations="simplex", recipe="nmfsc").fit(X), "does not accept 'activations'"),
        (lambda: SumToOne()(SHARES, None, Columns.same(Nonnegative(), 3), {}), "rows on the simplex only"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(ValueError, match=said):
        call()

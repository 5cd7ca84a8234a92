"""Negative entries of X, which are fitted only if asked for, by the squared loss."""

import numpy as np
import pytest
import scipy.sparse as sp

import partwise as pw

RNG = np.random.default_rng(0)
X = np.where(RNG.random((30, 4)) < 0.6, RNG.random((30, 4)), 0) @ RNG.random((4, 20)) + 0.3 * RNG.standard_normal(
    (30, 20)
)
ASKED = {"negative": "allow", "random_state": 0}


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_loss_falls_and_is_that_of_all_entries(kind):
    result = pw.ssnmf(kind(X), 4, sparsity=0.5, **ASKED)
    assert X.min() < 0
    assert min(f.min() for f in result.factors) >= 0
    assert (np.diff(result.losses) <= 1e-12 * result.losses[0]).all()
    assert result.losses[-1] == pytest.approx(0.5 * np.sum((X - result.activations @ result.components) ** 2))
    np.testing.assert_allclose(result.sparsity, 0.5, atol=1e-10)


def test_nonnegative_data_are_fitted_bit_for_bit_as_without():
    Y = np.abs(X)
    for one, other in zip(pw.ssnmf(Y, 4, **ASKED).factors, pw.ssnmf(Y, 4, random_state=0).factors, strict=True):
        np.testing.assert_array_equal(one, other)


def test_missing_entries_may_be_among_them():
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    by_nan = pw.ssnmf(gaps, 4, missing="em", **ASKED)
    by_mask = pw.ssnmf(X, 4, observed=~np.isnan(gaps), **ASKED)
    sparse = pw.ssnmf(sp.csr_array(X), 4, observed=~np.isnan(gaps), **ASKED)
    assert by_nan.losses[-1] == pytest.approx(by_mask.losses[-1], rel=1e-9)
    assert by_nan.losses[-1] == pytest.approx(sparse.losses[-1], rel=1e-6)


@pytest.mark.parametrize("estimator", [pw.SparseNMF, pw.MiniBatchSparseNMF])
def test_estimators_transform_and_save(estimator, tmp_path):
    model = estimator(3, sparsity=0.4, max_iter=3, tol=0, **ASKED).fit(X)
    model.save(tmp_path / "model.pw")
    np.testing.assert_array_equal(pw.load(tmp_path / "model.pw").transform(X), model.transform(X))
    assert model.score(X) > 0
    with pytest.raises(ValueError, match="set negative='allow'"):
        model.set_params(negative="error").transform(X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_held_out_entries_may_be_among_them(form):
    options = {"n_splits": 1, "n_init": 1, "max_iter": 5, "tol": 0} | ASKED
    (row,) = pw.select(form(X), 4, holdout=0.01, **options).rows
    whole = pw.ssnmf(X, 4, max_iter=5, tol=0, **ASKED)
    assert row["train_error"] == pytest.approx(whole.relative_error, rel=0.05)
    seen = np.random.default_rng(1).random(X.shape) < 0.9
    masks = [pw.select(form(X), 4, observed=mask, **options).rows[0]["train_error"] for mask in (seen, form(seen))]
    assert masks[0] == pytest.approx(masks[1], rel=1e-6)
    with pytest.raises(ValueError, match="set negative='allow'"):
        pw.select(form(X), 4)
    with pytest.raises(ValueError, match="squared loss"):
        pw.select(form(X), 4, loss="kl", **options)


def test_held_out_entries_of_an_explorer_are_fitted_as_all_others():
    options = {"holdout": 0.1, "max_iter": 5} | ASKED
    found = pw.explore(X, 3, sparsities=[0.3], **options)
    assert found.heldout_errors.shape == found.errors.shape
    with pytest.raises(ValueError, match="multiplicative updates"):
        pw.explore(X, 3, sparsities=[0.3], recipe="nmfsc", **options)


def test_a_resumed_fit_is_the_same(tmp_path):
    path = tmp_path / "fit.pw"
    whole = pw.ssnmf(X, 4, sparsity=0.5, max_iter=12, tol=0, **ASKED)
    pw.ssnmf(X, 4, sparsity=0.5, max_iter=5, tol=0, checkpoint=path, **ASKED)
    resumed = pw.ssnmf(X, 4, sparsity=0.5, max_iter=12, tol=0, resume_from=path, **ASKED)
    np.testing.assert_array_equal(resumed.components, whole.components)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pw.ssnmf(X, 4), r"X\[.* is -.*set negative='allow'"),
        (lambda: pw.SparseNMF(4).fit(sp.csr_array(X)), "set negative='allow'"),
        (lambda: pw.ssnmf(X, 4, negative=True), "negative=True"),
        (lambda: pw.ssnmf(np.where(X < -0.3, -np.inf, X), 4, **ASKED), "infinity"),
        (lambda: pw.ssnmf(np.where(X < -0.3, np.nan, X), 4, **ASKED), "NaN"),
        (lambda: pw.ssnmf(X * 1e200, 4, **ASKED), "rescale"),
        (lambda: pw.ssnmf(X, 4, solver="multiplicative", **ASKED), "multiplicative updates"),
        (lambda: pw.nmfsc(X, 4, **ASKED), "multiplicative updates"),
        (lambda: pw.nsnmf(X, 4, loss="kl", **ASKED), "squared loss"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_data_in_chunks_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="needs X in memory"):
        pw.ssnmf(tmp_path / "X.npy", 4, memory_limit=1, **ASKED)

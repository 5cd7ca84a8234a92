"""Natural sparsity, and the advice from it: following the advice must not raise the error."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score

import partwise as pw
from partwise.data import as_data
from partwise.engine.natural import FEATURES, SAMPLES, excerpt, natural_fit


def warned(X, r, sparsity, **more):
    """The texts of the warnings, and the fit."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", pw.CapacityWarning)
        result = pw.ssnmf(X, r, sparsity=sparsity, random_state=0, **more)
    return [str(warning.message) for warning in said if warning.category is pw.CapacityWarning], result


def counts():
    """Poisson counts of cells: few genes are large in all programs, most are small."""
    rng = np.random.default_rng(1)
    programs = rng.gamma(0.2, size=(6, 300)) + 5 * (rng.random((6, 300)) < 0.02)
    return sp.csr_array(rng.poisson(rng.gamma(1.0, size=(200, 6)) @ programs).astype(float))


def smooth_spectra():
    """Broad bands that overlap: components are dense without a constraint."""
    rng, at = np.random.default_rng(2), np.linspace(0, 1, 120)
    bands = np.exp(-(((at - np.linspace(0.2, 0.8, 5)[:, None]) / 0.25) ** 2))
    return rng.random((150, 5)) @ bands + 0.01 * rng.random((150, 120))


DATA = {
    "digits": lambda: (load_digits().data[:600], 12),
    "breast cancer": lambda: (load_breast_cancer().data / load_breast_cancer().data.max(axis=0), 5),
    "wine": lambda: (load_wine().data / load_wine().data.max(axis=0), 4),
    "iris": lambda: (load_iris().data, 2),
    "counts": lambda: (counts(), 6),
    "spectra": lambda: (smooth_spectra(), 5),
    "swimmer": lambda: (pw.datasets.swimmer().X, 17),
    "bars": lambda: (pw.datasets.bars(200, 6).X, 12),
    "planted": lambda: (pw.datasets.planted(150, 100, 6, sparsity=0.6, random_state=0).X, 6),
    "uniform": lambda: (np.random.default_rng(3).random((100, 80)), 4),
}


@pytest.mark.parametrize("name", DATA)
def test_following_the_advice_does_not_raise_the_error(name):
    """Below the natural sparsity: at least. Far above it: the natural sparsity."""
    X, r = DATA[name]()
    usual = float(np.median(natural_fit(as_data(X), r).sparsity))
    heard = 0
    for sparsity in (0.1, 0.3, 0.5, 0.7, 0.9):
        said, result = warned(X, r, sparsity)
        for text in said:
            heard += 1
            assert f"(about {usual:.2f})" in text
            way = re.search(r"use sparsity=\(([\d.]+), None\)", text)
            assert ("denser" in text) == bool(way)
            better = (float(way[1]), None) if way else min(usual, sparsity)
            assert warned(X, r, better)[1].relative_error <= result.relative_error * (1 + 1e-3)
            assert better == (sparsity, None) or "Use a lower sparsity, or more components" in text
    assert heard


@pytest.mark.parametrize("name", ["digits", "counts"])
def test_dense_components_are_never_a_surprise(name):
    """A sparsity far below the natural one is warned of, and the natural one is not."""
    X, r = DATA[name]()
    natural = natural_fit(as_data(X), r).sparsity
    assert "denser" in warned(X, r, float(natural.min()) / 2)[0][0]
    assert not warned(X, r, None)[0]
    assert not warned(X, r, (float(natural.min()) / 2, None))[0]


def test_a_sparsity_that_can_be_met_exactly_is_not_said_to_be_too_high():
    """The limbs of the swimmer have sparsity 0.9 and more; a short fit does not find them."""
    true = pw.datasets.swimmer()
    level = float(pw.hoyer_sparsity(true.components, axis=1).min())
    assert level > 0.8
    assert not warned(true.X, len(true.components), level)[0]


def test_a_list_and_an_interval_are_named_as_they_were_given():
    X, r = DATA["digits"]()
    assert "this list of sparsities" in warned(X, r, [0.1] * 6 + [0.2] * 6)[0][0]
    assert "intervals (lo, None)" in warned(X, r, [0.1] * 6 + [0.2] * 6)[0][0]
    text = warned(X, r, (0.1, 0.2))[0][0]
    assert text.startswith("sparsity=(0.1, 0.2) makes the components denser")
    assert text.endswith("use sparsity=(0.1, None)")


def test_restarts_and_searches_are_told_once():
    X, r = DATA["digits"]()
    with pytest.warns(pw.CapacityWarning) as said:
        pw.SparseNMF(r, sparsity=0.2, n_init=3, random_state=0, max_iter=3, tol=0).fit(X)
    assert len([w for w in said if w.category is pw.CapacityWarning]) == 1


def test_folds_are_told_once():
    X, r = DATA["digits"]()
    with pytest.warns(pw.CapacityWarning, match="denser") as said:
        cross_val_score(pw.SparseNMF(r, sparsity=0.21, random_state=0, max_iter=3, tol=0), X, cv=4)
    assert len([w for w in said if w.category is pw.CapacityWarning]) == 1


def test_components_are_not_said_to_be_denser_than_sparser_ones(rng):
    """With more components than features, an interval fits better although the natural sparsity is lower."""
    X = rng.random((12, 9))
    usual = float(np.median(natural_fit(as_data(X), 20).sparsity))
    for sparsity in (0.2, 0.4, 0.6, 0.8):
        said = [text for text in warned(X, 20, sparsity)[0] if "denser" in text]
        assert not said or sparsity < usual


@pytest.mark.parametrize("form", ["float32", "sparse", "missing", "observed", "chunks", "dask"])
def test_any_kind_of_data_gets_the_same_advice(form, tmp_path):
    X, r = load_digits().data[:600], 8
    more = {}
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "sparse":
        X = sp.csc_array(X)
    elif form == "missing":
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
        more = {"missing": "em"}
    elif form == "observed":
        more = {"observed": np.random.default_rng(0).random(X.shape) < 0.9}
    elif form == "chunks":
        np.save(tmp_path / "x.npy", X)
        X, more = tmp_path / "x.npy", {"memory_limit": 2**17}
    else:
        X = pytest.importorskip("dask.array").from_array(X, chunks=(100, 64))
    said, _ = warned(X, r, 0.2, max_iter=2, tol=0, **more)
    assert "sparsity=0.2 makes the components denser" in said[0]
    assert "sparsity=(0.2, None)" in said[0]


def test_an_excerpt_is_small_and_has_no_empty_features():
    rng = np.random.default_rng(0)
    X = sp.random_array((3 * SAMPLES, 2 * FEATURES), density=0.002, rng=rng).tocsr()
    found = excerpt(as_data(X))
    assert found.shape[0] == SAMPLES
    assert found.shape[1] <= FEATURES
    assert (found.sqnorms(1) > 0).all()
    small = rng.random((20, 30))
    np.testing.assert_array_equal(excerpt(as_data(small)).matrix, small)


@pytest.mark.parametrize("X", [np.zeros((4, 9)), np.ones((1, 5)), np.eye(3), np.full((5, 4), 1e-60)])
def test_odd_data_is_no_problem(X):
    warned(X, 2, 0.5, max_iter=2, tol=0)
    found = natural_fit(as_data(X), 2)
    assert (found is None) == (not X.any())

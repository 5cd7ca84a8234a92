"""SparseNMF: bad input is named in the error, and edge cases give correct results."""

import numpy as np
import pytest
import scipy.sparse as sp
from models import crowded, fitted, relative_error, small  # noqa: F401  (fixtures)
from sklearn.exceptions import NotFittedError

from partwise import SparseNMF, cp

# bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"n_components": v}, f"n_components={v!r}: give a whole number") for v in (0, -1, 2.5, "7", None, True)),
        *(({"sparsity": v}, f"sparsity={v!r} is") for v in (1.2, -0.1, "half", float("nan"), True)),
        ({"sparsity": (0.6, 0.2)}, r"\(0.6, 0.2\) has lo > hi: give \(0.2, 0.6\)"),
        ({"sparsity": (0.1, 0.2, 0.3)}, r"\(0.1, 0.2, 0.3\) has 3 values: give an interval"),
        ({"sparsity": [0.1, 0.2]}, "2 values for n_components=4"),
        ({"sparsity": np.full(5, 0.3)}, "5 values for n_components=4"),
        ({"sparsity": [0.1, 0.2, 0.3, 1.5]}, r"sparsity\[3\]=1.5 is outside"),
        ({"recipe": "als"}, "recipe='als' is not one of .*'ssnmf'"),
        (
            {"recipe_params": {"solvers": "pivot"}},
            "ssnmf does not accept 'solvers' in recipe_params, only .*'faithful'.*'solver'",
        ),
        ({"recipe_params": {"max_iter": 5}}, "ssnmf does not accept 'max_iter'"),
        ({"recipe_params": {"solver": "newton"}}, "solver='newton' is not one of 'hals'"),
        ({"init": "zeros"}, "init='zeros' is not one of 'random'"),
        ({"init": (np.ones((25, 3)), np.ones((4, 30)))}, r"\(25, 3\): shape \(25, 4\) is needed"),
        ({"n_init": 0}, "n_init=0: give a whole number"),
        ({"max_iter": 0}, "max_iter=0: give a whole number"),
        ({"l1": -1}, "l1=-1"),
        ({"sparsity": None, "l1": 0.1}, "a penalty on the activations alone"),
        ({"random_state": "seed"}, "random_state='seed'"),
    ],
)
def test_bad_parameters_are_named(X, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, **options)


def spoiled(X, value):
    X = X.copy()
    X[3, 7] = value
    return X


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(
    ("value", "message"), [(-0.5, r"X\[3, 7\] is -0.5"), (np.nan, "NaN.*row 3, column 7"), (np.inf, "infinity.*row 3")]
)
def test_bad_values_are_rejected(X, form, value, message):
    bad, model = form(spoiled(X, value)), fitted(X)
    for method in (SparseNMF(4).fit, SparseNMF(4).fit_transform, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            method(bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(30), "Expected 2D array, got 1D"),
        (np.ones((2, 3, 4)), "dim 3"),
        (np.ones((0, 30)), "0 sample"),
        (np.ones((30, 0)), "0 feature"),
        (1j * np.ones((3, 30)), "Complex data not supported"),
        ([["a", "b"]], "could not convert string to float"),
    ],
)
def test_bad_shapes_and_types(bad, message):
    with pytest.raises(ValueError, match=message):
        SparseNMF(2).fit(bad)


def test_wrong_number_of_features(X):
    model = fitted(X)
    for method in (model.transform, model.score):
        with pytest.raises(ValueError, match="X has 29 features, but SparseNMF is expecting 30"):
            method(X[:, 1:])


def test_not_fitted(X):
    model = SparseNMF()
    for call in (model.transform, model.inverse_transform, model.score, lambda X: model.sparse_components()):
        with pytest.raises(NotFittedError, match="not fitted"):
            call(X)


# edges with a right answer


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("sparsity", [None, 0.4, (0.2, 0.5)])
@crowded
def test_rows_and_columns_of_zeros(X, form, sparsity):
    X[[0, 7]] = 0
    X[:, [3, 29]] = 0
    model = SparseNMF(4, sparsity=sparsity, random_state=0)
    activations = model.fit_transform(form(X))
    assert not activations[[0, 7]].any()
    assert relative_error(X, model, activations) < 0.2
    if sparsity is None:
        assert not model.components_[:, [3, 29]].any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("sparsity", [None, 0.4])
def test_x_of_zeros(form, sparsity):
    Z = form(np.zeros((6, 9)))
    model = SparseNMF(3, sparsity=sparsity, random_state=0)
    assert not model.fit_transform(Z).any()
    assert model.reconstruction_err_ == 0
    assert not model.explained_.any()
    assert model.score(Z) == 1
    assert np.isfinite(model.components_).all()
    if sparsity is not None:
        np.testing.assert_allclose(model.sparsity_, sparsity, atol=1e-10)


@pytest.mark.parametrize("shape", [(6, 7), (1, 5), (5, 1), (1, 1)])
def test_more_components_than_samples_and_features(rng, shape):
    X = rng.random(shape) + 0.1
    model = SparseNMF(9, random_state=0, tol=0, max_iter=500)
    activations = model.fit_transform(X)
    assert activations.shape == (shape[0], 9)
    assert relative_error(X, model, activations) < 1e-3


def test_components_of_a_single_feature(X):
    """At sparsity 1, X is reproduced exactly in the covered features."""
    few = X[:, :6]
    model = SparseNMF(6, sparsity=1.0, random_state=0, n_init=20)
    activations = model.fit_transform(few)
    assert np.all(np.count_nonzero(model.components_, axis=1) == 1)
    covered = np.flatnonzero(model.components_.any(axis=0))
    np.testing.assert_allclose((activations @ model.components_)[:, covered], few[:, covered], atol=1e-10)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize(
    ("array", "place", "value", "message"),
    [
        ("indices", 3, 99, "its indices go from 0 to 99, outside of 0 to"),
        ("indices", 3, -1, "its indices go from -1 to"),
        ("indptr", 2, 1, "indptr does not rise"),
        ("indptr", 0, 1, "indptr does not rise"),
        ("indptr", -1, 999, "indptr does not rise"),
    ],
)
def test_damaged_sparse_matrices_are_refused(rng, form, array, place, value, message):
    """SciPy lets indices be changed to places outside of the matrix, where kernels would read and write."""
    whole = rng.random((9, 9)) + 1
    X = form(whole)
    getattr(X, array)[place] = value
    model = SparseNMF(2, random_state=0).fit(whole)
    for use in (SparseNMF(2).fit, model.transform, lambda X: cp(X, 2)):
        with pytest.raises(ValueError, match=message):
            use(X)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda b: b[:3], r"returned shape \(3,\) and dtype float64 for 20 numbers"),
        (lambda b: b * np.nan, "must return 20 finite numbers"),
        (lambda b: -np.abs(b), "numbers of at least 0"),
        (lambda b: b + 1j, "dtype complex128"),
        (lambda b: "none", "dtype <U4"),
        (lambda b: None, "dtype object"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"init": "random"}, {"init": "given"}, {"loss": "kl"}])
def test_own_sets_that_return_something_else_are_named(rng, returned, message, options):
    X = rng.random((12, 20))
    if "init" in options and options["init"] == "given":
        options = {"init": (rng.random((12, 2)), rng.random((2, 20)))}
    with pytest.raises(ValueError, match=message):
        SparseNMF(2, sparsity=lambda b, near=None: returned(b), random_state=0, **options).fit(X)

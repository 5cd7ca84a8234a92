"""Any value of a parameter gives a fit, or one error message that names the parameter."""

import inspect
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from tensors import model_of

import partwise as pw
from partwise.engine.validation import as_switch, as_verbosity

X = np.random.default_rng(0).random((8, 6))
T = np.random.default_rng(0).random((5, 4, 3))
FIT = {"n_components": 2, "sparsity": 0.3, "max_iter": 2, "tol": 0, "random_state": 0}


def by_recipe(**asked):
    """The residual, factors, reported error and sparsity of a fit; the same for each way to fit."""
    found = pw.ssnmf(X, **FIT | asked)
    return X - found.activations @ found.components, found.factors, found.relative_error, found.sparsity


def by(model, **asked):
    model = model(**FIT | asked)
    activations = model.fit_transform(X)
    residual = X - model.inverse_transform(activations)
    return residual, [activations, model.components_], model.reconstruction_err_ / np.linalg.norm(X), model.sparsity_


def of_a_tensor(**asked):
    model = pw.SparseCP(
        **{"n_components": 2, "sparsity": {1: 0.3}, "max_iter": 2, "tol": 0, "random_state": 0} | asked
    ).fit(T)
    residual = T - model_of(model.factors_, model.weights_)
    error = model.reconstruction_err_ / np.linalg.norm(T)
    return residual, [*model.factors_, model.weights_], error, model.sparsity_[1]


FITS = {
    "ssnmf": (by_recipe, pw.ssnmf),
    "SparseNMF": (partial(by, pw.SparseNMF), pw.SparseNMF),
    "SparseCP": (of_a_tensor, pw.SparseCP),
    "MiniBatch": (partial(by, pw.MiniBatchSparseNMF), pw.MiniBatchSparseNMF),
}
GIVEN = [
    *(None, "x", b"x", "0.5", "", np.nan, np.inf, True, False, 1j, -1, -0.5, 1e300, 3.7, np.mean, float, object()),
    *((), [], {}, (0.1,), ["a", "b"], ("a", "b"), (1j, 1), (np.mean, 0.5), [None, None], {1: 2}, {"a": 1}),
    *(np.array(["a"]), np.array([1j, 2]), np.array(np.nan), np.array([[1.0]]), [[0.1, "a"], [0.1, 0.2]]),
]
SWITCH, AMOUNT, ABSENT = {"True", "False"}, {"1e+300", "3.7"}, {"None"}
TAKEN = {  # the values that a parameter accepts; none if it is not listed
    "sparsity": {"None", "[None, None]"},
    ("SparseCP", "sparsity"): {"None", "{}"},
    "activation_sparsity": ABSENT,
    ("SparseNMF", "activation_sparsity"): {"None", "[None, None]"},  # with a sparsity: bisparse
    **dict.fromkeys(("faithful", "accelerate", "compress", "verbose", "shuffle"), SWITCH),
    **dict.fromkeys(("solver", "component_sweeps", "activation_sweeps", "init", "random_state", "callback"), ABSENT),
    **dict.fromkeys(("resume_from", "fixed_components", "fixed_activations", "observed"), ABSENT),
    **dict.fromkeys(("weights", "sample_weight", "feature_weight"), ABSENT),
    ("MiniBatch", "component_sweeps"): set(),
    ("MiniBatch", "init"): set(),
    **dict.fromkeys(("l1", "l2", "kkt_tol", ("MiniBatch", "tol")), AMOUNT),
    "tol": ABSENT | AMOUNT,
    "max_time": ABSENT | AMOUNT | {"inf"},
    "memory_limit": {"None", "3.7"},
    "max_activation": {"None", "3.7"},
    "n_threads": {"None", "-1"},
    "checkpoint": {"None", "'x'", "'0.5'"},
    "recipe_params": {"None", "{}"},
}
ARRAYS = (
    "init",
    "fixed_components",
    "fixed_activations",
    "observed",
    "weights",
    "sample_weight",
    "feature_weight",
)  # named by their type or shape
CASES = [(fit, name) for fit, (_, f) in FITS.items() for name in inspect.signature(f).parameters if name != "X"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("fit", "name"), CASES)
def test_fit_succeeds_or_error_names_the_parameter(fit, name, tmp_path, monkeypatch):
    """The expected outcome of each value is listed."""
    monkeypatch.chdir(tmp_path)
    taken = TAKEN.get((fit, name), TAKEN.get(name, set()))
    for value in GIVEN:
        if name == "callback" and callable(value):
            continue  # its own exceptions are raised
        if repr(value) in taken:
            residual, factors, error, sparsity = FITS[fit][0](**{name: value})
            assert all(np.isfinite(f).all() and f.min() >= 0 for f in factors)
            size = np.linalg.norm(T if fit == "SparseCP" else X)
            assert error == pytest.approx(np.linalg.norm(residual) / size, rel=1e-6)
            if name != "sparsity":
                np.testing.assert_allclose(sparsity, 0.3, atol=1e-10)
        else:
            with pytest.raises(ValueError, match=name) as caught:
                FITS[fit][0](**{name: value})
            said = str(caught.value)
            assert name in ARRAYS or not isinstance(value, str | bytes | float | int | complex) or repr(value) in said
            assert len(said) < 300
            assert "\n" not in said


@pytest.mark.parametrize("wrong", [np.mean, float, lambda b: b, lambda b, far: b])
def test_a_function_is_not_a_sparsity(wrong):
    for value in (wrong, [wrong, 0.5]):
        with pytest.raises(ValueError, match=r"sparsity(\[0\])?=<.* give (a number|one) in \[0, 1\]"):
            pw.ssnmf(X, 2, sparsity=value)


def test_custom_set_is_a_sparsity():
    result = pw.ssnmf(X, 2, sparsity=lambda b, near=None: np.maximum(b, 0), max_iter=2, tol=0)
    assert result.components.min() >= 0


@pytest.mark.parametrize(
    "wrong", [None, "x", 1j, [["a", "b"]], [[1j]], np.array([[None]]), 3.0, [1.0, 2.0], {}, np.mean]
)
def test_bad_data_is_rejected(wrong):
    for fit in (lambda: pw.ssnmf(wrong, 2), lambda: pw.SparseNMF(2).fit(wrong), lambda: pw.cp(wrong, 2)):
        with pytest.raises((ValueError, TypeError)) as caught:
            fit()
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "wrong", [None, {}, {"a": [1.0]}, {1, 2}, 3.0, 1j, True, b"x", np.mean, list, object(), iter([])]
)
def test_data_of_a_wrong_type(wrong):
    fits = [lambda: pw.ssnmf(wrong, 2), lambda: pw.cp(wrong, 2), lambda: pw.select(wrong, 2)]
    fits += [lambda m=m: m(2).fit(wrong) for m in (pw.SparseNMF, pw.MiniBatchSparseNMF, pw.SparseCP)]
    for fit in fits:
        with pytest.raises(
            TypeError, match=f"X is of type {type(wrong).__name__}: give an array, .* path of a .npy file$"
        ):
            fit()


@pytest.mark.parametrize(
    ("ask", "right"),
    [
        (lambda v: as_switch(v, "on"), [(True, True), (False, False), (1, True), (np.bool_(False), False)]),
        (as_verbosity, [(True, True), (0, False), (2, True), (np.int64(1), True)]),
    ],
)
def test_boolean_parameters(ask, right):
    assert [(value, ask(value)) for value, _ in right] == right
    for wrong in (None, "yes", -1, 0.5, [], np.ones(2)):
        with pytest.raises(ValueError, match=r"give (True or False|0 for no output)"):
            ask(wrong)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_known_parts_are_saved(tmp_path, kind):
    known = kind(np.where(X[:1] > 0.5, X[:1], 0))
    model = pw.SparseNMF(2, fixed_components=known, max_iter=2, tol=0, random_state=0).fit(X)
    model.save(tmp_path / "m.pw")
    again = pw.load(tmp_path / "m.pw")
    assert sp.issparse(again.fixed_components)
    np.testing.assert_array_equal(again.fixed_components.toarray(), known.toarray())
    np.testing.assert_array_equal(again.fit(X).components_, model.components_)

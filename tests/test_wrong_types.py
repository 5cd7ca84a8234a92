"""Whatever is given for a parameter, the answer is a fit, or one sentence that names the parameter."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import partwise as pw
from partwise.ask import as_switch, as_verbosity

X = np.random.default_rng(0).random((8, 6))
T = np.random.default_rng(0).random((5, 4, 3))
FITS = {
    "ssnmf": (lambda **k: pw.ssnmf(X, **{"n_components": 2, "max_iter": 1, "tol": 0} | k), pw.ssnmf),
    "SparseNMF": (lambda **k: pw.SparseNMF(**{"n_components": 2, "max_iter": 1, "tol": 0} | k).fit(X), pw.SparseNMF),
    "SparseCP": (lambda **k: pw.SparseCP(**{"rank": 2, "max_iter": 1, "tol": 0} | k).fit(T), pw.SparseCP),
    "MiniBatch": (
        lambda **k: pw.MiniBatchSparseNMF(**{"n_components": 2, "max_iter": 1, "tol": 0} | k).fit(X),
        pw.MiniBatchSparseNMF,
    ),
}
WRONG = [
    *(None, "x", b"x", "0.5", "", np.nan, np.inf, True, False, 1j, -1, -0.5, 1e300, 3.7, np.mean, float, object()),
    *((), [], {}, (0.1,), ["a", "b"], ("a", "b"), (1j, 1), (np.mean, 0.5), [None, None], {1: 2}, {"a": 1}),
    *(np.array(["a"]), np.array([1j, 2]), np.array(np.nan), np.array([[1.0]]), [[0.1, "a"], [0.1, 0.2]]),
]
CASES = [(fit, name) for fit, (_, f) in FITS.items() for name in inspect.signature(f).parameters if name != "X"]
ALONE = "a penalty on the activations alone means nothing"  # a number that is right, and asks for another


@pytest.mark.parametrize(("fit", "name"), CASES)
def test_a_fit_or_one_sentence(fit, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = 0
    for value in WRONG:
        if name == "callback" and callable(value):
            continue  # what it raises is its own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                FITS[fit][0](**{name: value})
            except ValueError as error:
                said, refused = str(error), refused + 1
                assert name in said or ALONE in said
                assert len(said) < 300
                assert "\n" not in said
    assert refused > len(WRONG) / 2


@pytest.mark.parametrize("wrong", [np.mean, float, lambda b: b, lambda b, far: b])
def test_a_function_is_not_a_sparsity(wrong):
    for value in (wrong, [wrong, 0.5]):
        with pytest.raises(ValueError, match=r"sparsity(\[0\])?=<.* give (a number|one) in \[0, 1\]"):
            pw.ssnmf(X, 2, sparsity=value)


def test_a_set_of_ones_own_is():
    result = pw.ssnmf(X, 2, sparsity=lambda b, near=None: np.maximum(b, 0), max_iter=2, tol=0)
    assert result.components.min() >= 0


@pytest.mark.parametrize(
    "wrong", [None, "x", 1j, [["a", "b"]], [[1j]], np.array([[None]]), 3.0, [1.0, 2.0], {}, np.mean]
)
def test_data_that_is_none(wrong):
    for fit in (lambda: pw.ssnmf(wrong, 2), lambda: pw.SparseNMF(2).fit(wrong), lambda: pw.cp(wrong, 2)):
        with pytest.raises((ValueError, TypeError)) as caught:
            fit()
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("ask", "right"),
    [
        (lambda v: as_switch(v, "on"), [(True, True), (False, False), (1, True), (np.bool_(False), False)]),
        (as_verbosity, [(True, True), (0, False), (2, True), (np.int64(1), True)]),
    ],
)
def test_switches(ask, right):
    assert [(value, ask(value)) for value, _ in right] == right
    for wrong in (None, "yes", -1, 0.5, [], np.ones(2)):
        with pytest.raises(ValueError, match=r"give (True or False|0 for silence)"):
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

"""CP: exact sparsity, decreasing loss, equality with SSNMF for two modes, recovery, the estimator, and tensorly."""

import pickle
import warnings

import numpy as np
import pytest
from catalogues import assert_feasible, each, one_at_a_time, peak_of, random_factors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from tensors import FORMS, SHAPES, match, model_of, planted, with_zeros

import partwise as pw
from partwise.data import as_tensor
from partwise.engine.middle_factor import WithMiddle
from partwise.engine.revival import rank_one, revive
from partwise.engine.summary import summary
from partwise.engine.validation import as_columns
from partwise.statistics import gram

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@one_at_a_time(
    shape=[(6, 5, 4), *(shape for shape in SHAPES.values() if shape != (6, 5, 4))],
    sparsity=["all", {}, {0: 0.4}, {1: (0.2, 0.5)}, {0: 0.3, 1: each}],
)
def test_result_is_feasible_and_loss_decreases(shape, sparsity, rng):
    r, X = 3, with_zeros(shape, rng) + 0.1
    asked = dict.fromkeys(range(len(shape)), 0.4) if sparsity == "all" else sparsity
    asked = {mode: s(r) if callable(s) else s for mode, s in asked.items()}
    result = pw.cp(X, r, sparsity=asked, random_state=0, max_iter=10, tol=0)
    assert np.all(np.diff(result.losses) <= 1e-9 * result.losses[:-1] + 1e-14 * np.sum(X**2))
    assert result.losses[-1] == pytest.approx(
        0.5 * np.sum((X - model_of(result.factors, result.weights)) ** 2), abs=1e-9
    )
    assert result.weights.min() >= 0
    for mode, factor in enumerate(result.factors):
        assert factor.shape == (shape[mode], r)
        norms = np.linalg.norm(factor, axis=0)
        assert np.all((abs(norms - 1) < 1e-12) | ((norms == 0) & (result.weights == 0)))
        if mode in asked:
            assert_feasible(factor, as_columns(asked[mode], r))
            np.testing.assert_array_equal(result.sparsities[mode], pw.hoyer_sparsity(factor, axis=0))


@pytest.mark.parametrize("sparsity", [None, {2: 0.5}, {0: 0.4, 1: 0.4, 2: 0.4}])
@pytest.mark.parametrize("form", ["Fortran order", "COO", "COO, in halves"])
def test_all_kinds_of_data_agree(sparsity, form, rng):
    X = np.maximum(planted(rng)[0] - 0.02, 0)
    start = random_factors(X.shape, 3, rng)
    one, other = (pw.cp(Z, 3, sparsity=sparsity, init=start, max_iter=8, tol=0) for Z in (X, FORMS[form](X)))
    for a, b in zip(one.factors, other.factors, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-8)
    np.testing.assert_allclose(other.losses, one.losses, rtol=1e-8)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-8)


@pytest.mark.parametrize(
    ("free", "asked", "sparsity"),
    [(0, {}, None), (0, {"sparsity": 0.5}, {1: 0.5}), (1, {"activation_sparsity": 0.4}, {0: 0.4})],
)
@pytest.mark.parametrize("r", [4, 9])
@pytest.mark.parametrize("accelerate", [False, "auto"])
def test_order_2_is_ssnmf(free, asked, sparsity, r, accelerate, rng):
    X = with_zeros((13, 11), rng)
    X[3] = X[:, 4] = 0
    activations, parts = random_factors(X.shape, r, rng)
    activations[:, 1] = 0  # starts again
    matrix = pw.ssnmf(X, r, **asked, init=(activations, parts.T), max_iter=20, tol=0, accelerate=accelerate)
    tensor = pw.cp(X, r, sparsity=sparsity, init=(activations, parts), max_iter=20, tol=0, accelerate=accelerate)
    np.testing.assert_allclose(tensor.losses, matrix.losses, rtol=1e-10)
    scaled = [f * (tensor.weights if m == free else 1) for m, f in enumerate(tensor.factors)]
    for a, b in zip(scaled, matrix.factors, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * max(1, abs(b).max()))
    np.testing.assert_allclose(
        tensor.activations @ tensor.middle @ tensor.components, matrix.activations @ matrix.components
    )


def test_order_2_with_both_sides_sparse_is_bisparse(rng):
    X = with_zeros((13, 11), rng)
    activations, parts = random_factors(X.shape, 3, rng)
    matrix = pw.bisparse(X, 3, sparsity=0.5, activation_sparsity=0.3, init=(activations, parts.T), max_iter=15, tol=0)
    tensor = pw.cp(X, 3, sparsity={0: 0.3, 1: 0.5}, init=(activations, parts), max_iter=15, tol=0, accelerate=False)
    for a, b in zip([*tensor.factors, tensor.middle], [*matrix.factors, matrix.middle], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


@one_at_a_time(init=["samples", "random", "gradual"], sparsity=[{1: 0.5, 2: 0.5}, None, {0: 0.5, 1: 0.5, 2: 0.5}])
def test_known_factors_are_recovered(init, sparsity, rng):
    X, factors = planted(rng, noise=0.0)
    best = max(
        match(pw.cp(X, 3, sparsity=sparsity, init=init, random_state=seed, max_iter=500, tol=1e-7).factors, factors)
        for seed in range(3)
    )
    assert best > 0.999


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["C order", "COO"])
def test_dead_components_start_again(weighted, form, rng):
    X, factors = planted(rng, r=3, noise=0.0)
    sets = [as_columns(0.5 if weighted or m else None, 3) for m in range(3)]
    data = as_tensor(FORMS[form](X))
    factors = [f.copy(order="F") for f in factors]
    if weighted:
        data, factors = WithMiddle(data), [*factors, np.ones((1, 3), order="F")]
        sets = [*sets, as_columns(None, 3)]
    mode = 3 if weighted else 0
    for f in factors[1:]:
        f[:, 1] = f[:, 0]  # nothing of the lost component is left
    factors[mode][:, 1] = 0
    before = data.squared_error(factors)
    stats = data.statistics(factors, [gram(f) for f in factors], mode)
    assert revive(data, factors, stats, mode, sets, np.array([1])) == [1]
    if weighted:
        assert data.squared_error(factors) == pytest.approx(before)
        slope = data.statistics(factors, [gram(f) for f in factors], mode).slope(factors[mode])
        assert slope[0, 1] < 0  # the weight can lower the loss
    else:
        assert data.squared_error(factors) < 0.5 * before
    for f, s in zip(factors[:3], sets[:3], strict=True):
        assert_feasible(f, s)


def test_no_rank_one_term_without_a_residual(rng):
    _, factors = planted(rng)
    data = as_tensor(model_of(factors) / 2)
    for mode in range(3):
        assert (
            rank_one(data.slice_residual(factors, mode, 1), np.delete(data.shape, mode), [pw.Nonnegative()] * 2) is None
        )


def test_zero_and_overcomplete_tensors(rng):
    empty = pw.COO([[], [], []], [], (3, 4, 2))
    for X, r in ((np.zeros((3, 4, 2)), 2), (empty, 2), (rng.random((3, 2, 2)), 9), (np.ones((2, 3, 4)), 3)):
        for sparsity in (None, {0: 0.2}, dict.fromkeys(range(3), 0.2)):
            result = pw.cp(X, r, sparsity=sparsity, random_state=0, max_iter=5)
            assert all(np.isfinite(f).all() for f in (*result.factors, result.weights, result.losses))


@one_at_a_time(form=["float32", "COO, float32"], sparsity=[{1: 0.5}, None, dict.fromkeys(range(3), 0.5)])
def test_float32_stays_float32(form, sparsity, rng):
    X, _ = planted(rng)
    result = pw.cp(FORMS[form](X), 3, sparsity=sparsity, random_state=0, max_iter=10, tol=0)
    assert {f.dtype for f in result.factors} == {np.dtype(np.float32)}
    for mode in sparsity or {}:
        assert abs(result.sparsities[mode] - 0.5).max() < 1e-5
    error = np.linalg.norm(X - model_of(result.factors, result.weights)) / np.linalg.norm(X)
    assert result.relative_error == pytest.approx(error, abs=1e-4)


def test_components_and_activations_raise_for_tensors(rng):
    result = pw.cp(rng.random((4, 3, 2)), 2, random_state=0, max_iter=2)
    for name in ("activations", "components", "sparsity", "activation_sparsity"):
        with pytest.raises(AttributeError, match=r"3 modes has no \w+; use factors\[mode\]"):
            getattr(result, name)
    assert "4 × 3 × 2" in repr(result)


def test_more_components_than_the_sides_of_a_tensor_are_no_reason_for_a_warning(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pw.cp(rng.random((4, 3, 5)), 6, random_state=0, max_iter=2, tol=0).factors[1].shape == (3, 6)


def test_a_fit_takes_little_memory_beyond_its_data(rng):
    X = rng.random((120, 100, 40))
    start = random_factors(X.shape, 3, rng)
    pw.cp(X[:5, :5], 3, random_state=0, max_iter=3, tol=0)  # kernels that are loaded are not counted
    assert peak_of(lambda: pw.cp(X, 3, init=start, max_iter=3, tol=0)) < 0.3 * X.nbytes


# the estimator


def test_the_estimator(rng):
    X, _ = planted(rng, shape=(20, 9, 8))
    model = pw.SparseCP(3, sparsity={1: 0.5, 2: (0.3, 0.6)}, n_init=2, random_state=0, max_iter=50, tol=1e-3)
    assert clone(model).get_params() == model.get_params()
    activations = model.fit_transform(X)
    np.testing.assert_allclose(activations, model.factors_[0] * model.weights_)
    np.testing.assert_allclose(model.transform(X), activations, atol=1e-12)
    assert model.transform(X[:5]).shape == (5, 3)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - model_of(model.factors_, model.weights_)))
    assert model.reconstruction_err_ <= np.sqrt(2 * model.loss_curve_[-1]) * (1 + 1e-12)
    assert sorted(model.sparsity_) == [0, 1, 2]
    assert abs(model.sparsity_[1] - 0.5).max() < 1e-10
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert "tol=0.001" in model.stop_reason_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    for method in (model.transform, model.score):
        with pytest.raises(ValueError, match=r"samples of shape \(8, 8\), but the model expects shape \(9, 8\)"):
            method(X[:, :8])


@pytest.mark.parametrize("shape", [(12, 9), (12, 9, 8), (12, 5, 4, 3)])
def test_inverse_transform_and_score(rng, shape):
    X = rng.random(shape)
    model = pw.SparseCP(3, sparsity={1: 0.4}, random_state=0, max_iter=20, tol=0)
    activations = model.fit_transform(X)
    back = model.inverse_transform(activations)
    np.testing.assert_allclose(back, model_of(model.factors_, model.weights_), atol=1e-12)
    assert model.score(X) == pytest.approx(1 - np.sum((X - back) ** 2) / np.sum(X**2))
    assert model.inverse_transform(activations[:2]).shape == (2, *shape[1:])
    with pytest.raises(ValueError, match="X has 2 columns, but the model has 3 components"):
        model.inverse_transform(activations[:, :2])
    for method in (model.score, model.inverse_transform, model.save):
        with pytest.raises(NotFittedError):
            getattr(pw.SparseCP(3), method.__name__)(X)


def test_grid_search(rng):
    X, _ = planted(rng, shape=(20, 9, 8))
    model = pw.SparseCP(random_state=0, max_iter=30, tol=1e-3)
    search = GridSearchCV(model, {"n_components": [1, 3]}, cv=2).fit(X)
    assert search.best_params_ == {"n_components": 3}


def test_transform_with_a_sparse_sample_mode(rng):
    X, _ = planted(rng)
    model = pw.SparseCP(3, sparsity={0: 0.5}, random_state=0, max_iter=30).fit(X)
    assert abs(model.sparsity_[0] - 0.5).max() < 1e-10
    assert np.all(model.transform(X) >= 0)


def test_conversion_from_and_to_tensorly(rng):
    tensorly = pytest.importorskip("tensorly")
    X, _ = planted(rng)
    model = pw.SparseCP(3, sparsity={1: 0.5}, random_state=0, max_iter=40, tol=0).fit(X)
    other = model.to_tensorly()
    np.testing.assert_allclose(tensorly.cp_to_tensor(other), model_of(model.factors_, model.weights_), atol=1e-12)
    for init in (other, (other.weights, other.factors), (None, [f * other.weights ** (1 / 3) for f in other.factors])):
        again = pw.cp(X, 3, sparsity={1: 0.5}, init=init, max_iter=1, tol=0)
        assert again.losses[-1] <= 0.5 * model.reconstruction_err_**2 * (1 + 1e-9)
    np.testing.assert_allclose(again.weights, model.weights_, rtol=0.05)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"sparsity": 0.5}, ValueError, "sparsity=0.5 names no mode: give {mode: sparsity}"),
        ({"sparsity": {3: 0.5}}, ValueError, "the key 3, but the modes of X are 0 to 2"),
        ({"sparsity": {"a": 0.5}}, ValueError, "the key 'a'"),
        ({"sparsity": {1: 1.5}}, ValueError, r"sparsity\[1\]=1.5 is outside"),
        ({"sparsity": {1: [0.5]}}, ValueError, r"sparsity\[1\] has 1 values"),
        ({"init": "nonsense"}, ValueError, "'samples', 'random', 'gradual'"),
        ({"init": 3}, ValueError, "give a name, or a factor for each mode"),
        ({"init": [np.ones((4, 2))] * 2}, ValueError, r"shapes \[\(4, 2\), \(3, 2\), \(2, 2\)\] are needed"),
        ({"init": [-np.ones((n, 2)) for n in (4, 3, 2)]}, ValueError, "values in the factor of mode 0: values must be"),
        ({"init": (np.ones(3), [np.ones((n, 2)) for n in (4, 3, 2)])}, ValueError, "3 weights for n_components=2"),
        ({"memory_limit": 3}, TypeError, "cp does not take memory_limit"),
        ({"sweeps": 0}, ValueError, "sweeps=0"),
        ({"n_components": 0}, ValueError, "n_components=0: give a whole number"),
    ],
)
def test_bad_arguments_are_rejected(asked, error, message):
    with pytest.raises(error, match=message):
        pw.cp(np.ones((4, 3, 2)), **{"n_components": 2, **asked})


def test_summary_of_a_tensor_raises(rng):
    X = rng.random((6, 5, 4))
    result, model = pw.cp(X, 2, random_state=0), pw.SparseCP(2, random_state=0).fit(X)
    assert result._repr_html_() is None
    for found, name in ((result, "factors"), (model, "factors_")):
        with pytest.raises(ValueError, match=rf"is of a tensor, .* one mode \({name}\[mode\].T\)"):
            summary(found)
        assert summary(getattr(found, name)[1].T).n_features == 5
    pytest.importorskip("matplotlib")
    for mode, length in ((1, 5), (2, 4)):
        lines = [axis.lines[0].get_ydata() for axis in model.plot(mode).axes if axis.lines]
        np.testing.assert_array_equal(np.transpose(lines), model.factors_[mode])
        assert len(lines[0]) == length

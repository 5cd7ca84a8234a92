"""SparseNMF with every recipe: the same numbers as the function, and scikit-learn's conventions."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import RECIPES, one_of_each, planted
from scipy.optimize import nnls
from scipy.special import kl_div
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import partwise as pw
from partwise import SparseNMF

pytestmark = [
    pytest.mark.filterwarnings("ignore::partwise.CapacityWarning"),
    pytest.mark.filterwarnings("ignore:reached max_iter"),
]

R = 4
MAX_ITER = 3
OWN = ("sparsity", "activation_sparsity", "l1", "l2", "loss")  # parameters of the estimator itself


@pytest.fixture(scope="module", params=RECIPES)
def recipe(request):
    if RECIPES[request.param].name == "tpc":
        pytest.importorskip("clarabel")
    return RECIPES[request.param]


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=18, m=22, r=R, noise=0.1).X


@pytest.fixture(scope="module")
def fitted(recipe):
    """X, a model of it, and its activations."""
    X, model = planted(np.random.default_rng(0), n=18, m=22, r=R, noise=0.1).X, estimator(recipe)
    return X, model, model.fit_transform(X)


def estimator(recipe, **options):
    asked = recipe.asked(R)
    own = {name: asked.pop(name) for name in OWN if name in asked}
    return SparseNMF(
        R,
        recipe=recipe.name,
        recipe_params=asked or None,
        **{"max_iter": MAX_ITER, "random_state": 0, **own, **options},
    )


def test_estimator_equals_the_function(fitted, recipe):
    X, model, activations = fitted
    result = recipe(X, R, max_iter=MAX_ITER)
    np.testing.assert_array_equal(model.components_, result.components)
    np.testing.assert_array_equal(model.loss_curve_, result.losses)
    assert (model.n_iter_, model.stop_reason_) == (result.n_iter, result.stop_reason)
    assert hasattr(model, "scaling_") == (result.middle is not None)
    if result.middle is not None:
        np.testing.assert_array_equal(model.scaling_, result.middle)
    if result.encoder is not None:
        np.testing.assert_allclose(model.transform(X), activations, atol=1e-6)


@pytest.mark.parametrize(("form", "dtype"), [(sp.csr_array, np.float64), (np.asarray, np.float32)])
@pytest.mark.parametrize("recipe", one_of_each(RECIPES), indirect=True)
def test_fit_transform_is_fit_and_transform(X, recipe, form, dtype):
    X = form(X.astype(dtype))
    model = estimator(recipe)
    activations = model.fit_transform(X)
    assert activations.dtype == model.components_.dtype == dtype
    assert activations.shape == (18, R)
    assert activations.min() >= 0
    if recipe(X, R, max_iter=1).encoder is not None:
        np.testing.assert_allclose(clone(model).fit(X).transform(X), activations, atol=1e-6)
    assert model.transform(X).dtype == dtype


def test_attributes(fitted, recipe):
    X, model, activations = fitted
    middle = getattr(model, "scaling_", np.eye(R))
    back = model.inverse_transform(activations)
    np.testing.assert_allclose(back, activations @ middle @ model.components_, atol=1e-12)
    np.testing.assert_allclose(model.inverse_transform(sp.csr_array(activations)), back, atol=1e-12)

    def error(model):
        return np.sqrt(2 * kl_div(X, model).sum()) if recipe.divergence else np.linalg.norm(X - model)

    size = error(np.broadcast_to(X.mean(axis=0), X.shape) if recipe.divergence else np.zeros_like(X))
    assert model.reconstruction_err_ == pytest.approx(error(back), rel=1e-8)
    assert model.explained_.sum() == pytest.approx(1 - (model.reconstruction_err_ / size) ** 2, abs=1e-10)
    scored = error(model.inverse_transform(model.transform(X))) / size
    assert model.score(X) == pytest.approx(1 - scored**2, abs=1e-10)
    np.testing.assert_array_equal(model.sparsity_, pw.hoyer_sparsity(model.components_, axis=1))


def test_samples_are_encoded_one_by_one(fitted, recipe):
    X, model, _ = fitted
    together = model.transform(X[:5])
    for sample, activations in zip(X[:5], together, strict=True):
        np.testing.assert_allclose(model.transform(sample[None])[0], activations, atol=1e-9)
    if recipe.options.get("side") == "activations" and "nonzeros" in recipe.options:
        assert np.count_nonzero(together, axis=1).max() <= recipe.options["nonzeros"]


def test_transform_uses_the_penalty_of_snmf(X, rng):
    model = SparseNMF(R, recipe="snmf", recipe_params={"beta": 0.2}, max_iter=MAX_ITER, random_state=0).fit(X)
    system = np.vstack([model.components_.T, np.sqrt(0.2) * np.ones((1, R))])
    samples = rng.random((10, 22))
    wanted = [nnls(system, np.r_[sample, 0])[0] for sample in samples]
    np.testing.assert_allclose(model.transform(samples), wanted, atol=1e-9)


@pytest.mark.parametrize("recipe", one_of_each(RECIPES), indirect=True)
def test_clones_and_pickles(fitted):
    X, model, _ = fitted
    np.testing.assert_array_equal(clone(model).fit(X).components_, model.components_)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.transform(X), model.transform(X))
    assert thawed.score(X) == model.score(X)


# both sides sparse


@pytest.mark.parametrize("recipe_params", [None, {"middle": "full"}, {"middle_solver": "multiplicative"}])
def test_two_sparsities_mean_bisparse(X, recipe_params):
    model = SparseNMF(R, sparsity=0.5, activation_sparsity=0.3, recipe_params=recipe_params, max_iter=6, random_state=0)
    activations = model.fit_transform(X)
    result = pw.bisparse(
        X, R, sparsity=0.5, activation_sparsity=0.3, max_iter=6, random_state=0, **(recipe_params or {})
    )
    np.testing.assert_array_equal(activations, result.activations)
    np.testing.assert_array_equal(model.scaling_, result.middle)
    np.testing.assert_allclose(model.sparsity_, 0.5, atol=1e-10)
    np.testing.assert_allclose(pw.hoyer_sparsity(activations, axis=0), 0.3, atol=1e-10)
    assert model.reconstruction_err_ == pytest.approx(result.relative_error * np.linalg.norm(X))


def test_scaling_is_that_of_the_last_fit(X):
    model = SparseNMF(R, sparsity=0.5, activation_sparsity=0.3, random_state=0, max_iter=6).fit(X)
    model.set_params(activation_sparsity=None).fit(X)
    assert not hasattr(model, "scaling_")
    np.testing.assert_allclose(model.inverse_transform(np.eye(R)), model.components_, atol=1e-15)
    model.set_params(sparsity=None, recipe="nsnmf").fit(X)
    assert model.scaling_.shape == (R, R)


def test_encoder_is_that_of_the_last_fit(X):
    model = SparseNMF(R, recipe="l0", recipe_params={"nonzeros": 1, "side": "activations"}, random_state=0).fit(X)
    assert np.count_nonzero(model.transform(X), axis=1).max() == 1
    model.set_params(recipe="ssnmf", recipe_params=None).fit(X)
    assert np.count_nonzero(model.transform(X), axis=1).max() > 1


@pytest.mark.parametrize("name", ["nsnmf, kl, 0.5", "bisparse, diagonal, nnls", "l0, reverse", "grouped"])
def test_the_best_of_several_starts_is_kept(X, name):
    generator = np.random.default_rng(5)
    losses = [RECIPES[name](X, R, random_state=generator, max_iter=MAX_ITER).losses[-1] for _ in range(3)]
    model = estimator(RECIPES[name], n_init=3, random_state=5).fit(X)
    assert model.loss_curve_[-1] == min(losses)


def test_verbose_shows_no_error_for_a_divergence(X, capfd):
    estimator(RECIPES["nsnmf, kl, 0.5"], verbose=1).fit(X)
    assert "Traceback" not in capfd.readouterr().err


# bad parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "nsnmf", "sparsity": 0.5}, "recipe nsnmf does not accept 'sparsity', only 'theta'"),
        ({"recipe": "nsnmf", "l1": 0.5}, "recipe nsnmf does not accept 'l1', only 'theta'"),
        (
            {"recipe": "grouped", "sparsity": 0.5, "activation_sparsity": 0.5},
            "grouped does not accept 'activation_sparsity'",
        ),
        ({"recipe": "snmf", "sparsity": 0.5}, "recipe snmf does not accept 'sparsity', only 'beta', 'eta', 'side'"),
        ({"recipe": "nmfsc", "l2": (0, 1)}, "recipe nmfsc does not accept 'l2', only 'activation_sparsity', 'proj"),
        (
            {"sparsity": 0.5, "activation_sparsity": 0.5, "l1": 0.1},
            "bisparse .chosen because both factors are sparse. does not accept 'l1'",
        ),
        (
            {"recipe": "snmf", "recipe_params": {"betas": 1}},
            "snmf does not accept 'betas' in recipe_params, only 'beta', 'eta', .*'side'",
        ),
        (
            {"recipe": "l0", "recipe_params": {"nonzeros": 3, "theta": 1}},
            "l0 does not accept 'theta' in recipe_params, only .*'nonzeros'",
        ),
        ({"recipe": "l0", "recipe_params": {"nonzeros": 3, "tol": 1}}, "l0 does not accept 'tol'"),
        ({"recipe": "l0"}, "l0 needs 'nonzeros': pass it in recipe_params"),
        ({"recipe": "l0_path", "recipe_params": {"refit": False}}, "l0_path needs 'nonzeros'"),
        ({"recipe": "grouped"}, "grouped needs 'sparsity'"),
        ({"recipe": "bisparse"}, "bisparse needs 'activation_sparsity', 'sparsity'"),
        ({"recipe": "bisparse", "sparsity": 0.5}, "bisparse needs 'activation_sparsity'"),
        ({"recipe": "nnsc", "l1": -1}, "l1=-1"),
        ({"recipe": "nsnmf", "recipe_params": {"theta": 2}}, "theta=2"),
        ({"recipe": "nsnmf", "loss": "kl", "recipe_params": {"kkt_tol": 0.1}}, "kkt_tol"),
        ({"recipe": "l0", "recipe_params": [3]}, r"recipe_params=\[3\] is not a dict of parameters"),
        ({"recipe": ["l0"]}, r"recipe=\['l0'\] is not one of .*'l0'"),
    ],
)
def test_bad_parameters_are_named(X, options, message):
    with pytest.raises(ValueError, match=message):
        SparseNMF(R, random_state=0, **options).fit(X)


@pytest.mark.parametrize("name", ["grouped", "bisparse"])
def test_what_a_message_proposes_is_accepted(X, name):
    """recipe_params rejects parameters of the estimator, so no message may suggest them there."""
    with pytest.raises(ValueError, match="needs") as caught:
        SparseNMF(R, recipe=name).fit(X)
    assert "recipe_params" not in str(caught.value)


def test_parameters_of_a_recipe_can_be_searched(X):
    given = {"kkt_tol": 0.0, "theta": 0.2}
    model = SparseNMF(R, recipe="nsnmf", recipe_params=given, max_iter=20, random_state=0)
    search = GridSearchCV(model, {"recipe_params__theta": [0.0, 0.9]}, cv=2).fit(X)
    scores = [
        GridSearchCV(model, {"recipe_params": [{"kkt_tol": 0.0, "theta": theta}]}, cv=2).fit(X).best_score_
        for theta in (0.0, 0.9)
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)
    assert scores[0] > scores[1]
    assert search.best_estimator_.recipe_params == {"kkt_tol": 0.0, "theta": 0.0}
    assert given == {"kkt_tol": 0.0, "theta": 0.2}  # the user's dict is unchanged


def test_parameters_of_a_recipe_are_parameters():
    model = SparseNMF(R, recipe="nsnmf")
    again = clone(model).set_params(recipe_params__theta=0.3, max_iter=7)
    assert (again.recipe_params, again.max_iter, model.recipe_params) == ({"theta": 0.3}, 7, None)
    assert again.get_params()["recipe_params__theta"] == 0.3
    assert "recipe_params__theta" not in again.get_params(deep=False)
    assert clone(again).get_params() == again.get_params()
    line = make_pipeline(MinMaxScaler(), again).set_params(sparsenmf__recipe_params__theta=0.6)
    assert line[-1].recipe_params == {"theta": 0.6}
    with pytest.raises(ValueError, match="recipe nsnmf does not accept 'tetha' in recipe_params"):
        again.set_params(recipe_params__tetha=0.3).fit(np.eye(6))
    with pytest.raises(ValueError, match="Invalid parameter 'recipe_param'"):
        again.set_params(recipe_param__theta=0.3)

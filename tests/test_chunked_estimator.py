"""The estimator fitted to a path equals the one fitted to the array."""

import pickle

import numpy as np
import pytest
from chunked import R, seven, small  # noqa: F401  (fixtures)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from stores import Rows, saved

import partwise as pw

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")

ESTIMATORS = {
    "ssnmf": {"sparsity": 0.5},
    "ssnmf, n_init": {"sparsity": 0.5, "n_init": 3},
    "ssnmf, penalised": {"sparsity": 0.5, "l1": 0.05, "l2": 0.1},
    "ssnmf, pivot": {"recipe_params": {"solver": "pivot", "kkt_tol": 1e-3}},
    "nmfsc": {"recipe": "nmfsc", "sparsity": 0.4},
    "snmf": {"recipe": "snmf", "recipe_params": {"beta": 0.1}},
    "l0": {"recipe": "l0", "recipe_params": {"nonzeros": 2, "side": "activations"}},
    "l0_path": {"recipe": "l0_path", "recipe_params": {"nonzeros": 2}},
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("limit", ["4500 B", None])
@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_fit_of_a_path_equals_that_of_the_array(X, name, limit, tmp_path, rng):
    path, new = saved(X, tmp_path), rng.random((50, 20))
    new_path = saved(new, tmp_path, "new.npy")
    model = pw.SparseNMF(R, max_iter=15, random_state=0, memory_limit=limit, **ESTIMATORS[name])
    other = clone(model)
    close = {"rtol": 1e-8, "atol": 1e-8}
    np.testing.assert_allclose(model.fit_transform(path), other.fit_transform(X), **close)
    for attribute in ("components_", "sparsity_", "explained_", "reconstruction_err_", "loss_curve_"):
        np.testing.assert_allclose(getattr(model, attribute), getattr(other, attribute), err_msg=attribute, **close)
    for attribute in ("n_iter_", "stop_reason_", "n_features_in_", "n_components_"):
        assert getattr(model, attribute) == getattr(other, attribute)
    assert model.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    np.testing.assert_allclose(model.transform(new_path), other.transform(new), **close)
    np.testing.assert_allclose(model.transform(new), other.transform(new_path), **close)
    assert model.score(new_path) == pytest.approx(other.score(new), rel=1e-8)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(new_path), model.transform(new_path))
    np.testing.assert_allclose(clone(model).fit(path).components_, model.components_, **close)


def test_activations_are_contiguous_writeable_arrays(X, tmp_path):
    model = pw.SparseNMF(R, sparsity=0.5, random_state=0, memory_limit=seven(X))
    activations = model.fit_transform(saved(X.astype(np.float32), tmp_path))
    assert type(activations) is np.ndarray
    assert activations.dtype == model.components_.dtype == np.float32
    assert activations.flags.c_contiguous
    assert activations.flags.writeable


def test_the_number_of_features_is_checked(X, tmp_path):
    model = pw.SparseNMF(R, random_state=0, memory_limit=seven(X))
    with pytest.raises(NotFittedError):
        model.transform(saved(X, tmp_path))
    model.fit(saved(X, tmp_path))
    assert model.n_features_in_ == 20
    for ask in (model.transform, model.score):
        for wrong in (saved(X[:, 1:], tmp_path), X[:, 1:], Rows(X[:, 1:])):
            with pytest.raises(ValueError, match="19 features, but SparseNMF is expecting 20 features"):
                ask(wrong)


def test_fitting_a_path_clears_feature_names(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"feature {j}" for j in range(20)])
    model = pw.SparseNMF(R, random_state=0).fit(frame)
    assert len(model.feature_names_in_) == 20
    assert not hasattr(model.fit(saved(X, tmp_path)), "feature_names_in_")
    model.transform(X)


@pytest.mark.parametrize("options", [{"activation_sparsity": 0.3}, {"recipe": "nsnmf"}, {"init": "nndsvd"}])
def test_estimator_rejects_what_the_recipe_rejects(X, options, tmp_path):
    path = saved(X, tmp_path)
    with pytest.raises(ValueError, match="memory"):
        pw.SparseNMF(R, max_iter=2, tol=0, memory_limit=seven(X), **options).fit(path)
    assert pw.SparseNMF(R, max_iter=2, tol=0, memory_limit=X.nbytes, **options).fit(path).n_features_in_ == 20

"""Mini-batches: a batch of all samples equals the batch iteration, and sparsity is exact after each batch."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import one_at_a_time, planted
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import partwise as pw
from partwise.data import as_data
from partwise.engine.online import BatchLearner, batches
from partwise.engine.solving import solve_activations
from partwise.statistics import Stats, gram

R = 5


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng, n=90).X


def parts_of(X, sparsity=0.6, seed=0):
    """Feasible initial components."""
    return pw.ssnmf(X, R, sparsity=sparsity, init="random", max_iter=2, tol=0, random_state=seed).components


@parametrize_with_checks([pw.MiniBatchSparseNMF(2, sparsity=0.3, batch_size=7)])
@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("sparsity", [0.6, (0.3, 0.5), [0.2, 0.4, 0.5, 0.6, 0.7]])
def test_one_batch_that_holds_everything_is_the_batch_iteration(X, sparsity):
    components = parts_of(X, sparsity)
    start = (np.ones((len(X), R)), components)
    for sweeps in (1, 3):
        model = pw.MiniBatchSparseNMF(R, sparsity=sparsity, init=components, forget_factor=1.0, component_sweeps=sweeps)
        wanted = pw.ssnmf(X, R, sparsity=sparsity, init=start, solver="pivot", max_iter=1, component_sweeps=sweeps)
        np.testing.assert_allclose(model.partial_fit(X).components_, wanted.components, atol=1e-10)


def test_full_batches_without_memory_equal_the_batch_fit(X):
    components = parts_of(X)
    start = (np.ones((len(X), R)), components)
    asked = {"init": components, "forget_factor": 0.0, "batch_size": len(X), "tol": 0, "max_iter": 6, "shuffle": False}
    model = pw.MiniBatchSparseNMF(R, sparsity=0.6, **asked).fit(X)
    wanted = pw.ssnmf(X, R, sparsity=0.6, init=start, solver="pivot", max_iter=6, tol=0, component_sweeps=1)
    np.testing.assert_allclose(model.components_, wanted.components, atol=1e-9)
    np.testing.assert_allclose(model.loss_curve_[1:] * len(X), wanted.losses[1:-1], rtol=1e-9)


@one_at_a_time(
    form=[np.asarray, sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32)],
    sparsity=[0.6, (0.3, 0.5), [0.2, 0.4, 0.5, 0.6, 0.7]],
)
def test_sparsity_is_exact_after_every_call(X, form, sparsity):
    model = pw.MiniBatchSparseNMF(R, sparsity=sparsity, random_state=0)
    low, high = sparsity if isinstance(sparsity, tuple) else (np.array(sparsity), np.array(sparsity))
    for steps, rows in enumerate(np.array_split(np.arange(len(X)), 7), 1):
        batch = form(X[rows])
        before = getattr(model, "components_", np.zeros(1))
        kept = before.copy()
        model.partial_fit(batch)
        np.testing.assert_array_equal(before, kept)  # earlier components are not overwritten
        tolerance = 1e-5 if batch.dtype == np.float32 else 1e-10
        assert np.all(model.sparsity_ >= low - tolerance)
        assert np.all(model.sparsity_ <= high + tolerance)
        assert model.components_.min() >= 0
        assert model.components_.dtype == batch.dtype
        assert model.n_steps_ == steps


def test_dense_and_sparse_agree(X):
    fits = [pw.MiniBatchSparseNMF(R, sparsity=0.5, batch_size=20, tol=0, max_iter=3, random_state=0) for _ in "ab"]
    fits[0].fit(X)
    fits[1].fit(sp.csr_array(X))
    np.testing.assert_allclose(fits[0].components_, fits[1].components_, atol=1e-8)


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_error_is_close_to_the_batch_fit(X, sparsity):
    batch = pw.SparseNMF(R, sparsity=sparsity, random_state=0).fit(X)
    model = pw.MiniBatchSparseNMF(R, sparsity=sparsity, batch_size=15, max_iter=60, tol=0, random_state=0).fit(X)
    assert model.reconstruction_err_ <= 1.1 * batch.reconstruction_err_
    assert model.loss_curve_[-1] < 0.5 * model.loss_curve_[0]
    residual = X - model.transform(X) @ model.components_
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual), rel=1e-8)


def test_running_statistics_are_discounted_sums(X):
    components = parts_of(X)
    model = pw.MiniBatchSparseNMF(R, sparsity=0.6, init=components, forget_factor=0.3)
    model.partial_fit(X[:30])
    first = model._learner.stats
    parts = model.components_.T
    model.partial_fit(X[30:70])
    solved = solve_activations(as_data(X[30:70]), parts).activations
    wanted = first.discounted(0.3) + Stats(X[30:70].T @ solved, gram(solved), np.vdot(X[30:70], X[30:70]))
    found = model._learner.stats
    np.testing.assert_allclose(found.cross, wanted.cross, atol=1e-9)
    np.testing.assert_allclose(found.gram, wanted.gram, atol=1e-9)
    assert found.sqnorm == pytest.approx(wanted.sqnorm)


def test_unused_components_restart(X):
    components = parts_of(X)
    components[1] = 0
    components[1, 0] = 1.0
    X[:, 0] = 0  # nothing in X looks like it
    model = pw.MiniBatchSparseNMF(R, init=components, random_state=0).partial_fit(X)
    assert model.components_[1, 0] < 0.5
    assert model.transform(X)[:, 1].max() > 0


def test_seeds_repeat_and_generators_are_used_up(X):
    def fit(seed):
        return pw.MiniBatchSparseNMF(R, sparsity=0.5, batch_size=20, max_iter=2, tol=0, random_state=seed).fit(X)

    np.testing.assert_array_equal(fit(3).components_, fit(3).components_)
    assert abs(fit(3).components_ - fit(4).components_).max() > 1e-3


def test_fit_restarts_and_partial_fit_continues(X):
    model = pw.MiniBatchSparseNMF(R, sparsity=0.5, batch_size=30, max_iter=2, tol=0, random_state=0)
    once = model.fit(X).components_.copy()
    np.testing.assert_array_equal(model.fit(X).components_, once)
    model.partial_fit(X[:20])
    assert abs(model.components_ - once).max() > 0
    assert model.n_steps_ == 7


def test_it_can_be_pickled_between_batches(X):
    model = pw.MiniBatchSparseNMF(R, sparsity=0.5, random_state=0).partial_fit(X[:40])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.partial_fit(X[40:]).components_, copy.partial_fit(X[40:]).components_)
    assert not hasattr(clone(model), "components_")


@pytest.mark.parametrize("kind", ["array", "path"])
def test_every_sample_is_visited_once_per_epoch(X, kind, tmp_path):
    data = as_data(X)
    if kind == "path":
        np.save(tmp_path / "x.npy", X)
        data = as_data(str(tmp_path / "x.npy"), X.nbytes // 3)
    for rng in (None, np.random.default_rng(0)):
        seen = np.vstack([batch.matrix for batch in batches(data, 7, rng)])
        np.testing.assert_array_equal(np.sort(seen.sum(axis=1)), np.sort(X.sum(axis=1)))


def test_data_on_disk(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    path = str(tmp_path / "x.npy")
    asked = {"sparsity": 0.5, "batch_size": 10, "max_iter": 3, "tol": 0, "init": parts_of(X, 0.5), "shuffle": False}
    model = pw.MiniBatchSparseNMF(R, memory_limit=4 * 10 * X[0].nbytes, **asked)
    activations = model.fit_transform(path)
    wanted = pw.MiniBatchSparseNMF(R, **asked).fit(X)
    np.testing.assert_allclose(model.components_, wanted.components_, atol=1e-10)
    np.testing.assert_allclose(activations, wanted.transform(X), atol=1e-8)
    with pytest.raises(ValueError, match="fits in memory"):
        model.partial_fit(path)


def test_penalties(X):
    plain = pw.MiniBatchSparseNMF(R, sparsity=0.5, random_state=0).partial_fit(X)
    lean = pw.MiniBatchSparseNMF(R, sparsity=0.5, l1=0.2, random_state=0).partial_fit(X)
    assert lean.transform(X).sum() < plain.transform(X).sum()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"forget_factor": 1.2}, "forget_factor"),
        ({"forget_factor": -0.1}, "forget_factor"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_components": 0}, "n_components"),
        ({"sparsity": 1.2}, "sparsity"),
        ({"component_sweeps": 0}, "component_sweeps"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"init": "nonsense"}, "nonsense"),
        ({"init": np.ones((R, 3))}, "shape"),
        ({"l1": (0.1, 0.1), "sparsity": None, "l2": -1}, "l2"),
    ],
)
def test_bad_arguments_are_rejected(X, asked, message):
    with pytest.raises(ValueError, match=message):
        pw.MiniBatchSparseNMF(**{"n_components": R, **asked}).fit(X)


def test_bad_batches_are_refused_and_change_nothing(X):
    model = pw.MiniBatchSparseNMF(R, sparsity=0.5, random_state=0).partial_fit(X)
    before = model.components_.copy()
    for bad, message in ((-X, "Negative"), (np.full_like(X, np.nan), "NaN"), (X[:, 1:], "features")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad)
    np.testing.assert_array_equal(model.components_, before)
    with pytest.raises(NotFittedError):
        pw.MiniBatchSparseNMF(R).transform(X)


def test_why_it_stopped(X):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = pw.MiniBatchSparseNMF(R, batch_size=30, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert (
        model.stop_reason_
        == "reached max_iter=2 before converging; raise max_iter, batch_size (components then fluctuate less) or tol"
    )
    assert model.n_iter_ == 2
    model = pw.MiniBatchSparseNMF(R, batch_size=30, max_iter=500, tol=0.1, random_state=0).fit(X)
    assert model.stop_reason_ == "converged: components have settled to tol=0.1"
    model = pw.MiniBatchSparseNMF(R, batch_size=30, max_time=0, tol=0, random_state=0).fit(X)
    assert model.stop_reason_ == "time limit of 0 s reached"
    assert model.n_iter_ == len(model.loss_curve_) == len(model.time_curve_) == 1
    model = pw.MiniBatchSparseNMF(R, batch_size=30, max_iter=2, tol=0, random_state=0).fit(X)
    assert model.stop_reason_ == "reached max_iter=2"


def test_larger_batches_help_components_that_only_fluctuate():
    """The advice of the warning."""
    rng = np.random.default_rng(0)
    means = rng.gamma(0.3, size=(400, 6)) @ rng.gamma(0.2, size=(6, 80))
    X = rng.poisson(means / means.mean()).astype(float)
    limits = {"sparsity": 0.6, "max_iter": 100, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="raise max_iter, batch_size"):
        pw.MiniBatchSparseNMF(6, batch_size=40, **limits).fit(X)
    assert pw.MiniBatchSparseNMF(6, batch_size=400, **limits).fit(X).converged_


@pytest.mark.parametrize("first", ["zeros", "exact"])
def test_a_first_batch_that_fits_perfectly_is_not_forgotten(X, first):
    """Its loss is zero, which was once mistaken for no batch, so that the next one restarted."""
    X = X[:10, :R]
    batch = np.zeros((10, R)) if first == "zeros" else np.tile(np.eye(R), (2, 1))
    asked = {"init": np.eye(R), "random_state": 0}
    stream = pw.MiniBatchSparseNMF(R, **asked).partial_fit(batch).partial_fit(X)
    model = pw.MiniBatchSparseNMF(R, batch_size=10, max_iter=1, tol=0, **asked).fit(np.vstack([batch, X]))
    assert model.n_steps_ == stream.n_steps_ == 2
    np.testing.assert_array_equal(model.components_, stream.components_)


def test_exact_fit_stops():
    model = pw.MiniBatchSparseNMF(2, batch_size=3, random_state=0).fit(np.zeros((9, 4)))
    assert model.stop_reason_ == "converged: the fit is exact to the precision of float64 statistics"
    assert model.n_iter_ == 1


def test_the_step_reports_the_mean_loss_before_it(X):
    parts = np.asfortranarray(parts_of(X).T)
    encoder = pw.SparseNMF(R, sparsity=0.5, random_state=0).fit(X)._encoder
    block = pw.MiniBatchSparseNMF(R, sparsity=0.6, init=parts.T).partial_fit(X)._block
    loss = BatchLearner(parts.copy(order="F"), None, {}).step(as_data(X), encoder, block, 1.0)
    error = solve_activations(as_data(X), parts).relative_error
    assert loss == pytest.approx(0.5 * error**2 * np.vdot(X, X) / len(X), rel=1e-8)


def test_a_mask_of_observed_entries_is_missing_entries(X, rng):
    seen = rng.random(X.shape) < 0.8
    options = {"sparsity": 0.4, "batch_size": 20, "max_iter": 3, "tol": 0, "random_state": 0}
    holed, plain = pw.MiniBatchSparseNMF(3, missing="em", **options), pw.MiniBatchSparseNMF(3, **options)
    nan = np.where(seen, X, np.nan)
    np.testing.assert_array_equal(plain.fit_transform(X, observed=seen), holed.fit_transform(nan))
    np.testing.assert_array_equal(plain.components_, holed.components_)
    np.testing.assert_array_equal(plain.partial_fit(X, observed=seen).components_, holed.partial_fit(nan).components_)


@pytest.mark.parametrize("changed", [{"n_components": 4}, {"sparsity": 0.7}, {"sparsity": [0.5, 0.5, 0.6]}])
def test_partial_fit_refuses_other_components_than_at_the_first_batch(rng, changed):
    X = rng.random((20, 15))
    model = pw.MiniBatchSparseNMF(3, sparsity=0.5, random_state=0).partial_fit(X)
    before = model.components_.copy()
    with pytest.raises(ValueError, match="these were different at the first batch"):
        model.set_params(**changed).partial_fit(X)
    np.testing.assert_array_equal(model.components_, before)
    assert model.set_params(n_components=3, sparsity=[0.5] * 3).partial_fit(X).n_steps_ == 2


def test_larger_batches_are_advised_only_if_they_can_be_larger(X):
    with pytest.warns(ConvergenceWarning, match=r"converging; raise max_iter or tol$"):
        pw.MiniBatchSparseNMF(R, batch_size=len(X), max_iter=2, tol=1e-12, random_state=0).fit(X)

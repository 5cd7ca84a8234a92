"""SparseNMF: scikit-learn's conventions, exact sparsity, and attributes with correct values."""

import os
import pickle
import re
import subprocess
import sys
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, dense, one_at_a_time
from models import PENALTIES, SPARSE, crowded, fitted, relative_error, small, unconverged  # noqa: F401  (fixtures)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import partwise as pw
from partwise import SparseNMF

FORMS = {
    "float": (0.45, [0.45] * 4),
    "tuple": ((0.3, 0.5), [(0.3, 0.5)] * 4),
    "list": ([0.1, 0.3, 0.5, 0.7], [0.1, 0.3, 0.5, 0.7]),
    "list of tuples": ([(0.1, 0.2), (0.3, 0.3), (0.5, None), (None, 0.1)], [(0.1, 0.2), 0.3, (0.5, 1), (0, 0.1)]),
    "array": (np.array([0.1, 0.3, 0.5, 0.7]), [0.1, 0.3, 0.5, 0.7]),
}


def short(**options):
    """Few iterations, so that rounding errors stay small."""
    return {"max_iter": 6, "tol": 0, **options}


@unconverged
@crowded
@parametrize_with_checks(
    [
        SparseNMF(max_iter=20, recipe_params={"solver": "pivot"}),
        SparseNMF(max_iter=20, sparsity=(0.2, 0.6), n_init=2, init="nndsvd", l1=0.01),
    ],
    expected_failed_checks=lambda estimator: {
        "check_sample_weights_not_overwritten": "weights need solver='hals' and another start",
        "check_sample_weight_equivalence_on_dense_data": "weights need solver='hals' and another start",
        "check_sample_weight_equivalence_on_sparse_data": "weights need solver='hals' and, for a sparse X, no penalty",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# scikit-learn's tools


def test_in_a_pipeline(X):
    pipeline = make_pipeline(MinMaxScaler(clip=True), SparseNMF(4, sparsity=0.4, random_state=0))
    activations = pipeline.fit_transform(X)
    scaled = MinMaxScaler(clip=True).fit(X).transform(X)
    alone = fitted(scaled, sparsity=0.4)
    np.testing.assert_array_equal(pipeline[-1].components_, alone.components_)
    np.testing.assert_allclose(activations, alone.transform(scaled), atol=1e-6)
    np.testing.assert_allclose(pipeline.transform(X), activations, atol=1e-6)


def test_grid_search_scores_held_out_samples(X):
    folds, levels = KFold(3), [None, 0.2, 0.6, (0.3, 0.5)]
    model = SparseNMF(4, random_state=0, tol=1e-2)
    search = GridSearchCV(model, {"sparsity": levels}, cv=folds).fit(X)
    for which, level in enumerate(levels):
        scores = [search.cv_results_[f"split{i}_test_score"][which] for i in range(3)]
        wanted = [clone(model).set_params(sparsity=level).fit(X[a]).score(X[b]) for a, b in folds.split(X)]
        np.testing.assert_array_equal(scores, wanted)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.score(X) == search.best_estimator_.score(X)


def test_clones_and_pickles(X):
    model = fitted(X, sparsity=[0.1, (0.2, 0.3), None, pw.Hoyer(0.6)], recipe_params={"solver": "pivot"})
    again = clone(model).fit(X)
    np.testing.assert_array_equal(again.components_, model.components_)
    thawed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(thawed.transform(X), model.transform(X))
    assert thawed.stop_reason_ == model.stop_reason_
    assert not hasattr(clone(model), "components_")


def test_threads_give_the_same_bits(X):
    def fit(seed):
        return fitted(X, random_state=seed).components_

    together = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(fit)(seed) for seed in range(8))
    for seed, components in enumerate(together):
        np.testing.assert_array_equal(components, fit(seed))
    with joblib.parallel_backend("threading"):
        search = GridSearchCV(SparseNMF(4, random_state=0), {"sparsity": [0.2, 0.4]}, cv=2, n_jobs=2).fit(X)
    alone = GridSearchCV(SparseNMF(4, random_state=0), {"sparsity": [0.2, 0.4]}, cv=2).fit(X)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


OVERLAP = """
import threading
import scipy.linalg
from threadpoolctl import threadpool_info
from partwise.runtime.threads import fitting_threads

def first():
    with fitting_threads(1):
        first_in.set()
        second_in.wait(60)
    first_out.set()

def second():
    first_in.wait(60)
    with fitting_threads(1):
        second_in.set()
        first_out.wait(60)

first_in, second_in, first_out = (threading.Event() for _ in range(3))
before = threadpool_info()
threads = [threading.Thread(target=f) for f in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([pool["num_threads"] for pool in before] == [pool["num_threads"] for pool in threadpool_info()])
"""


def test_fits_in_parallel_leave_the_thread_pools_as_they_were():
    """The first fit ends while the second runs. In a new process, whose pools no test has limited."""
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", OVERLAP], env=two, capture_output=True, text=True, timeout=600)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_data_frames_in_and_out(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(30)], index=[f"cell {i}" for i in range(25)])
    model = fitted(frame).set_output(transform="pandas")
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out()) == [f"sparsenmf{j}" for j in range(4)]
    assert list(out.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(out.to_numpy(), fitted(X).transform(X))
    assert isinstance(model.fit_transform(frame), pd.DataFrame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


def test_get_feature_names_out(X):
    model = fitted(X)
    assert list(model.get_feature_names_out()) == [f"sparsenmf{j}" for j in range(4)]
    assert model.n_features_in_ == 30


# sparsity


@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@unconverged
@crowded
def test_sparsity_is_as_requested(X, asked, dtype):
    value, wanted = FORMS[asked]
    atol = 1e-10 if dtype == np.float64 else 1e-5
    lo, hi = np.array([w if isinstance(w, tuple) else (w, w) for w in wanted], dtype=float).T
    for max_iter in (1, 200):
        model = fitted(X.astype(dtype), sparsity=value, max_iter=max_iter)
        assert np.all((model.sparsity_ >= lo - atol) & (model.sparsity_ <= hi + atol))
        np.testing.assert_array_equal(model.sparsity_, pw.hoyer_sparsity(model.components_, axis=1))
    model = SparseNMF(4, activation_sparsity=value, random_state=0)
    achieved = pw.hoyer_sparsity(model.fit_transform(X.astype(dtype)), axis=0)
    assert np.all((achieved >= lo - atol) & (achieved <= hi + atol))


def test_sparse_components(X):
    model = fitted(X, sparsity=0.5)
    components = model.sparse_components()
    assert isinstance(components, sp.csr_array)
    assert components.nnz == np.count_nonzero(model.components_) < model.components_.size
    np.testing.assert_array_equal(components.toarray(), model.components_)


# what the numbers mean


@one_at_a_time(
    problem=PROBLEMS, sparsity=[None, 0.4], kind=["C order", "float32", "integers", "data frame", "CSR, float32"]
)
@unconverged
@crowded
def test_attributes(problem, kind, sparsity):
    X = kind(problem.X)
    atol = 1e-4 if getattr(X, "dtype", None) == np.float32 else 1e-8
    model = SparseNMF(problem.r, sparsity=sparsity, max_iter=20, random_state=0)
    activations = model.fit_transform(X)
    error = relative_error(dense(X), model, activations)
    assert activations.min() >= 0
    assert model.components_.min() >= 0
    assert model.reconstruction_err_ == pytest.approx(error * np.linalg.norm(dense(X)), rel=1e-6, abs=10 * atol)
    assert model.explained_.min() >= 0
    assert model.explained_.sum() == pytest.approx(1 - error**2, abs=atol)
    assert model.score(X) == pytest.approx(1 - error**2, abs=atol)
    assert model.score(X) <= 1
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert model.loss_curve_[-1] >= 0.5 * model.reconstruction_err_**2 - atol * model.loss_curve_[0]
    np.testing.assert_allclose(model.transform(X), activations, atol=1e-6 if atol < 1e-6 else 1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
@unconverged
def test_losses_decrease(X, penalty):
    losses = fitted(X, tol=0, max_iter=40, **PENALTIES[penalty]).loss_curve_
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])


def test_why_the_fit_stopped(X):
    model = fitted(X, tol=1e-3)
    assert model.converged_
    assert "tol=0.001" in model.stop_reason_
    assert 0 < model.n_iter_ < model.max_iter
    model = fitted(X, max_time=0)
    assert model.n_iter_ == 1
    assert "time limit of 0 s" in model.stop_reason_
    model = fitted(X, tol=0, max_iter=7)
    assert not model.converged_
    assert model.n_iter_ == 7
    assert "max_iter=7" in model.stop_reason_


def test_convergence_is_warned_of(X):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 before converging.*; raise max_iter or tol") as caught:
        SparseNMF(4, sparsity=0.45, random_state=0, max_iter=3).fit(X)
    assert caught[0].filename == __file__


def test_the_score_of_other_samples(X):
    model = fitted(X[:15])
    for other in (X[15:], X[::-1] ** 2, np.eye(30), np.ones((1, 30))):
        error = relative_error(other, model, model.transform(other))
        assert model.score(other) == pytest.approx(1 - error**2, abs=1e-12)
        assert model.score(other) <= 1


# precision, kinds of data, seeds


@one_at_a_time(
    form=[np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix],
    options=[{}, {"sparsity": None}, {"l1": 0.1}, {"init": "nndsvd"}, {"n_init": 2}],
)
@unconverged
def test_float32_stays_float32(X, form, options):
    X32 = form(X.astype(np.float32))
    model = fitted(X32, **short(**options))
    activations = model.transform(X32)
    arrays = model.components_, activations, model.fit_transform(X32), model.inverse_transform(activations)
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}
    assert model.sparse_components().dtype == np.float32
    np.testing.assert_allclose(model.components_, fitted(X, **short(**options)).components_, atol=1e-3)
    assert fitted(X).transform(X32).dtype == np.float32


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("sparsity", [None, 0.45])
def test_sparse_x_gives_the_dense_result(X, name, sparsity):
    one, other = (fitted(Z, sparsity=sparsity, **short()) for Z in (X, SPARSE[name](X)))
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-9)
    np.testing.assert_allclose(other.transform(SPARSE[name](X)), one.transform(X), atol=1e-8)
    assert other.reconstruction_err_ == pytest.approx(one.reconstruction_err_)
    assert other.score(SPARSE[name](X)) == pytest.approx(one.score(X))


def test_random_states(X):
    def components(state):
        return fitted(X, random_state=state, **short()).components_

    wanted = components(3)
    np.testing.assert_array_equal(components(3), wanted)
    np.testing.assert_array_equal(components(np.int64(3)), wanted)
    np.testing.assert_array_equal(components(np.random.default_rng(3)), wanted)
    np.testing.assert_array_equal(*(components(np.random.RandomState(3)) for _ in range(2)))
    generator = np.random.default_rng(3)
    assert not np.array_equal(components(generator), components(generator))
    assert not np.array_equal(components(None), components(None))
    assert not np.array_equal(components(4), wanted)


@pytest.mark.parametrize("options", [{"sparsity": 0.4}, {"activation_sparsity": 0.2}, {"l1": (0.1, 0.1)}])
def test_one_start_is_the_recipe(X, options):
    model = SparseNMF(4, random_state=5, **options).fit(X)
    result = pw.ssnmf(X, 4, random_state=5, **options)
    np.testing.assert_array_equal(model.components_, result.components)
    np.testing.assert_array_equal(model.loss_curve_, result.losses)
    assert (model.n_iter_, model.stop_reason_) == (result.n_iter, result.stop_reason)


def test_the_best_of_several_starts_is_kept(X):
    generator = np.random.default_rng(5)
    results = [pw.ssnmf(X, 4, sparsity=0.45, init="random", random_state=generator) for _ in range(5)]
    best = min(results, key=lambda result: result.losses[-1])
    model = fitted(X, init="random", n_init=5, random_state=5)
    np.testing.assert_array_equal(model.components_, best.components)
    np.testing.assert_array_equal(model.loss_curve_, best.losses)


def test_a_start_may_be_given(X, rng):
    given = rng.random((25, 4)), rng.random((4, 30))
    model = fitted(X, init=given)
    np.testing.assert_array_equal(model.components_, pw.ssnmf(X, 4, sparsity=0.45, init=given).components)


# progress


@pytest.mark.parametrize("n_init", [1, 2])
def test_verbose_draws_a_line_on_the_terminal(X, capfd, monkeypatch, n_init):
    monkeypatch.setenv("FORCE_COLOR", "1")  # standard error passes for a terminal
    monkeypatch.setenv("TERM", "xterm")
    model = fitted(X, verbose=1, n_init=n_init)
    out, err = capfd.readouterr()
    assert out == ""
    lines = re.findall(r"SparseNMF(.*?) +(\d+)/\2 relative error (\d\.\d+)", re.sub(r"\x1b\[[\d;?]*\w", "", err))
    best = f"{np.sqrt(2 * model.loss_curve_[-1]) / np.linalg.norm(X):.4f}"
    assert (str(model.n_iter_), best) in [line[1:] for line in lines]
    assert ("start 2 of 2" in err) == (n_init == 2)


def test_verbose_writes_no_escapes_into_a_file(X, capfd, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    fitted(X, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "\x1b" not in err


def test_nothing_is_printed_by_default(X, capfd):
    fitted(X)
    assert capfd.readouterr() == ("", "")


# what is said about X


def test_a_column_of_words_is_named(X):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(kind="x", day=pandas.Timestamp(0))
    with pytest.raises(ValueError, match=r"columns that are not numbers: 'kind', 'day'\. Drop or encode them"):
        fitted(table)


@pytest.mark.parametrize("fit", [pw.ssnmf, partial(pw.select, n_splits=1), partial(pw.consensus, n_runs=2)])
def test_functions_name_columns_of_words_and_dates(X, fit):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    for other in ("x", pandas.Timestamp(0), pandas.Timedelta(1)):
        with pytest.raises(ValueError, match="columns that are not numbers: 'd'"):
            fit(table.assign(d=other), 2)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "U", complex])
def test_arrays_that_are_no_real_numbers(X, dtype):
    for fit in (fitted, lambda Y: pw.ssnmf(Y, 2)):
        with pytest.raises(ValueError, match="X must contain real numbers"):
            fit(X.round().astype(int).astype(dtype))


def test_missing_values_of_nullable_columns(X):
    pandas = pytest.importorskip("pandas")
    holes = np.where(X < 0.1, np.nan, X)
    table = pandas.DataFrame(holes, columns=[f"x{j}" for j in range(X.shape[1])]).astype("Float64")
    assert table.isna().to_numpy().any()
    one, other = (pw.ssnmf(Y, 2, missing="em", max_iter=3, random_state=0) for Y in (holes, table))
    np.testing.assert_allclose(one.components, other.components, atol=1e-10)
    runs = [pw.consensus(Y, 2, n_runs=2, missing="em", max_iter=3, random_state=0) for Y in (holes, table)]
    np.testing.assert_allclose(*(run.spectra[2] for run in runs), atol=1e-10)


def test_sparse_columns_are_not_made_dense(X, monkeypatch):
    pandas = pytest.importorskip("pandas")
    sparse = sp.csr_matrix(np.where(X < 0.5, 0, X))
    monkeypatch.setattr(pandas.DataFrame, "__array__", None)
    table = pandas.DataFrame.sparse.from_spmatrix(sparse)
    one, other = (pw.ssnmf(Y, 2, max_iter=3, random_state=0) for Y in (sparse, table))
    np.testing.assert_array_equal(one.components, other.components)


def test_columns_of_the_same_name_are_named(X):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"the feature name 'a' of X occurs more than once: make the names unique$"):
        fitted(pandas.DataFrame(X[:, :3], columns=["a", "b", "a"]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_transposed_data_is_recognised(X, form):
    model = fitted(X)
    with pytest.raises(ValueError, match=r"expecting 30 features.* seems to be transposed, pass X\.T"):
        model.transform(form(X.T))
    with pytest.raises(ValueError, match=r"expecting 30 features as input\.?$"):
        model.transform(form(X[:, :7]))


def test_transposed_data_on_disk_is_recognised(X, tmp_path):
    np.save(tmp_path / "x.npy", X.T)
    with pytest.raises(ValueError, match="seems to be transposed"):
        fitted(X).transform(tmp_path / "x.npy")


@pytest.mark.parametrize(("shape", "said"), [((20, 3), "only 3 features"), ((3, 20), "only 3 samples")])
def test_more_components_than_samples_or_features_are_warned_of(shape, said, rng):
    with pytest.warns(UserWarning, match=f"n_components=4, but X has {said}: use at most 3 components"):
        SparseNMF(4, max_iter=2, tol=0).fit(rng.random(shape))


@pytest.mark.parametrize("n_init", [1, 3])
def test_a_drawn_seed_repeats_the_fit(X, n_init, tmp_path):
    first, second = (SparseNMF(3, max_iter=3, tol=0, n_init=n_init).fit(X) for _ in range(2))
    assert isinstance(first.seed_, int)
    assert first.seed_ != second.seed_
    again = SparseNMF(3, max_iter=3, tol=0, n_init=n_init, random_state=first.seed_).fit(X)
    np.testing.assert_array_equal(again.components_, first.components_)
    assert again.seed_ == first.seed_
    first.save(tmp_path / "m.pw")
    assert pw.load(tmp_path / "m.pw").seed_ == first.seed_


def test_the_seed_of_a_generator_is_unknown(X, tmp_path):
    model = SparseNMF(3, max_iter=3, tol=0, random_state=np.random.default_rng(0)).fit(X)
    assert model.seed_ is None
    model.save(tmp_path / "m.pw")
    assert not hasattr(pw.load(tmp_path / "m.pw"), "seed_")


def test_the_seed_is_kept_in_checkpoints(X, tmp_path):
    options = {"tol": 0, "checkpoint": tmp_path / "c", "checkpoint_every": 1}
    first = pw.ssnmf(X, 3, max_iter=2, **options)
    resumed = pw.ssnmf(X, 3, max_iter=4, tol=0, resume_from=tmp_path / "c")
    assert resumed.seed == first.seed
    np.testing.assert_array_equal(
        resumed.components, pw.ssnmf(X, 3, max_iter=4, tol=0, random_state=first.seed).components
    )

"""scikit-learn's callbacks (from version 1.9 on) around each iteration of SparseNMF."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import partwise as pw
from partwise import SparseNMF

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


class Recorder:
    """Records its calls; requests a stop after some iterations."""

    def __init__(self, stop_after=None, fail_after=None):
        self.stop_after, self.fail_after = stop_after, fail_after
        self.set_up, self.torn_down, self.begun, self.ended = 0, 0, [], []

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.begun.append((context.parent is not None, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None):
        self.ended.append((context.parent is not None, context.task_id))
        if self.iterations_ended == self.fail_after:
            raise RuntimeError("from the callback")
        return self.iterations_ended == self.stop_after

    @property
    def iterations_ended(self):
        return sum(inner for inner, _ in self.ended)


class Watcher(Recorder):
    """Records the score of the current model."""

    def __init__(self, X):
        super().__init__()
        self.samples, self.scores = X, []

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.parent is not None:
            activations = fitted_estimator.transform(self.samples)
            assert activations.shape == (len(self.samples), estimator.n_components)
            self.scores.append(fitted_estimator.score(X))


@pytest.fixture(name="X")
def small(rng):
    return rng.random((25, 5)) ** 3 @ rng.random((5, 30)) ** 4 + 0.1 * rng.random((25, 30))


def model(**options):
    return SparseNMF(**{"n_components": 4, "sparsity": 0.4, "random_state": 0, **options})


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("options", [{"max_iter": 5, "tol": 0}, {"tol": 1e-2}, {"n_init": 3, "tol": 1e-2}])
def test_each_iteration_begins_and_ends(X, method, options):
    recorder = Recorder()
    fit = model(**options).set_callbacks(recorder)
    getattr(fit, method)(X)
    assert recorder.begun[0] == recorder.ended[-1] == (False, 0)
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert (recorder.set_up, recorder.torn_down) == (1, 1)
    if fit.n_init == 1:
        assert recorder.iterations_ended == fit.n_iter_
    np.testing.assert_array_equal(fit.components_, model(**options).fit(X).components_)


def test_callback_can_use_the_current_model(X):
    watcher = Watcher(X[:3])
    fit = model(max_iter=6, tol=0).set_callbacks(watcher).fit(X)
    assert len(watcher.scores) == 6
    assert np.all(np.diff(watcher.scores) > -1e-3)
    assert watcher.scores[-1] == pytest.approx(fit.score(X), abs=1e-9)


@pytest.mark.parametrize("after", [1, 4])
def test_a_callback_stops_the_fit(X, after):
    recorder = Recorder(stop_after=after)
    fit = model(tol=1e-12).set_callbacks(recorder).fit(X)  # and there is no warning
    assert fit.n_iter_ == recorder.iterations_ended == after
    assert f"stopped by the callback after iteration {after}" in fit.stop_reason_
    assert sorted(recorder.begun) == sorted(recorder.ended)
    whole = pw.ssnmf(X, 4, sparsity=0.4, tol=0, max_iter=after, random_state=0)
    np.testing.assert_array_equal(fit.components_, whole.components)


def test_stop_ends_all_starts(X):
    """Iterations of all starts are tasks of the same level."""
    recorder = Recorder(stop_after=3)
    model(n_init=4, tol=0, max_iter=10).set_callbacks(recorder).fit(X)
    assert recorder.iterations_ended == 3


class Interrupt(Recorder):
    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if self.iterations_ended == 3 and context.parent is not None:  # not again at the end of the fit
            signal.raise_signal(signal.SIGINT)


def test_interrupt_ends_all_starts(X):
    interrupt = Interrupt()
    fit = model(n_init=4, tol=0, max_iter=10).set_callbacks(interrupt).fit(X)
    assert "interrupted" in fit.stop_reason_
    assert interrupt.iterations_ended <= 3 + 4  # all starts end after their next iteration
    assert fit.transform(X).shape == (25, 4)


def test_any_of_several_callbacks_stops_the_fit(X):
    recorders = Recorder(), Recorder(stop_after=2), Recorder()
    assert model(tol=0).set_callbacks(*recorders).fit(X).n_iter_ == 2
    assert [r.iterations_ended for r in recorders] == [2, 2, 2]


def test_teardown_follows_an_error(X):
    recorder = Recorder(fail_after=2)
    fit = model().set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="from the callback"):
        fit.fit(X)
    assert (recorder.set_up, recorder.torn_down) == (1, 1)
    with pytest.raises(ValueError, match="sparsity=2"):
        fit.set_params(sparsity=2).fit(X)
    assert recorder.set_up == recorder.torn_down


@pytest.mark.parametrize("n_init", [1, 2])
def test_progress_bar(X, capfd, n_init):
    pytest.importorskip("rich")
    fit = model(n_init=n_init).set_callbacks(callback.ProgressBar()).fit(X)
    assert "SparseNMF" in capfd.readouterr().out
    np.testing.assert_array_equal(fit.components_, model(n_init=n_init).fit(X).components_)


def test_progress_bar_around_a_pipeline(X, capfd):
    pytest.importorskip("rich")
    pipeline = make_pipeline(MinMaxScaler(), model())
    if not hasattr(pipeline, "set_callbacks"):
        pytest.skip("this scikit-learn's Pipeline takes no callbacks")
    with pytest.warns(UserWarning, match="MinMaxScaler does not support callbacks"):
        pipeline.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(X)
    assert "SparseNMF" in capfd.readouterr().out


def test_progress_bar_around_a_search(X, capfd):
    pytest.importorskip("rich")
    search = GridSearchCV(model(), {"sparsity": [0.2, 0.4]}, cv=2)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this scikit-learn's GridSearchCV takes no callbacks")
    search.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(X)
    assert "SparseNMF" in capfd.readouterr().out
    plain = GridSearchCV(model(), {"sparsity": [0.2, 0.4]}, cv=2).fit(X)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


WITHOUT = """
import sys
sys.modules["sklearn.callback"] = None
import numpy as np
from partwise import SparseNMF, ssnmf
X = np.random.default_rng(0).random((10, 6))
model = SparseNMF(2, random_state=0).fit(X)
assert not hasattr(model, "set_callbacks")
assert np.array_equal(model.components_, ssnmf(X, 2, random_state=0).components)
"""


@pytest.mark.slow
def test_older_scikit_learn_has_no_callbacks():
    """scikit-learn imports its callbacks early, so they are hidden after its import."""
    code = "import sklearn.base, sklearn.utils.validation\n" + WITHOUT
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")

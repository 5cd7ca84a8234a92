"""Fits side by side: each is the fit alone, and passes over X are shared."""

import signal

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import RECIPES, one_at_a_time, one_of_each, planted
from chunked import Watched, deadly, seven

import partwise as pw
from partwise.data import DenseData, MissingDense, SparseData, as_data, at_once, sparse
from partwise.data.matrix import Statistics
from partwise.engine.loop import factorize
from partwise.recipes.many import fit_many
from partwise.runtime.together import Request, alone, job_of, side_by_side, single, together

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@pytest.fixture(name="X")
def made(rng):
    return planted(rng, n=61, m=20, noise=0.2).X


def assert_equal_fits(found, wanted, tolerance=1e-8):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.n_iter, one.stop_reason, one.converged) == (other.n_iter, other.stop_reason, other.converged)
        assert one.seed == other.seed
        np.testing.assert_allclose(one.losses, other.losses, rtol=tolerance)
        assert one.relative_error == pytest.approx(other.relative_error, rel=tolerance)
        for mine, its in zip(one.factors, other.factors, strict=True):
            np.testing.assert_allclose(mine, its, atol=tolerance * np.abs(its).max())


KINDS = {
    "dense": lambda X: (X, {}),
    "Fortran": lambda X: (np.asfortranarray(X), {}),
    "csr": lambda X: (sp.csr_array(X * (X > 0.3)), {}),
    "csc": lambda X: (sp.csc_array(X * (X > 0.3)), {}),
    "file": lambda X: (Watched(X), {"memory_limit": seven(X)}),
    "file with many zeros": lambda X: (Watched(np.where(np.quantile(X, 0.95) > X, 0, X)), {"memory_limit": seven(X)}),
    "missing": lambda X: (np.where(np.arange(X.size).reshape(X.shape) % 7, X, np.nan), {"missing": "em"}),
    "file with missing": lambda X: (
        Watched(np.where(np.arange(X.size).reshape(X.shape) % 7, X, np.nan)),
        {"missing": "em", "memory_limit": seven(X)},
    ),
}


@one_at_a_time(
    form=KINDS,
    options=[
        {},
        {"sparsity": 0.7},
        {"sparsity": (0.3, 0.5)},
        {"sparsity": [0.2, None, 0.6]},
        {"accelerate": False},
        {"accelerate": False, "sparsity": 0.7},
        {"kkt_tol": 1e-3},
        {"l1": 0.01, "sparsity": 0.5},
        {"solver": "multiplicative"},
        {"init": "random"},
    ],
)
def test_each_fit_is_the_fit_alone(X, form, options):
    X, given = KINDS[form](X)
    options = {"max_iter": 20, "tol": 0, **given, **options}
    runs = [{"n_components": 3, "random_state": seed} for seed in range(4)]
    wanted = [pw.ssnmf(X, **run, **options) for run in runs]
    assert_equal_fits(fit_many(X, runs, **options), wanted)


@pytest.mark.parametrize("options", [{"activation_sparsity": 0.5}, {"init": "gradual", "sparsity": 0.6}])
def test_methods_for_data_in_memory(X, options):
    runs = [{"n_components": 3, "random_state": seed, **options} for seed in range(3)]
    assert_equal_fits(fit_many(X, runs, max_iter=20), [pw.ssnmf(X, **run, max_iter=20) for run in runs])


@pytest.mark.parametrize("kind", ["dense", "csr", "file"])
def test_ranks_and_sparsities_may_differ(X, kind):
    X, given = KINDS[kind](X)
    runs = [
        {"n_components": 1, "random_state": 0},
        {"n_components": 5, "random_state": 0, "sparsity": 0.6},
        {"n_components": 2, "random_state": 7, "sparsity": (0.1, 0.4), "max_iter": 3},
        {"n_components": 5, "random_state": 1, "accelerate": False},
    ]
    wanted = [pw.ssnmf(X, **{"max_iter": 20, **given, **run}) for run in runs]
    assert_equal_fits(fit_many(X, runs, max_iter=20, **given), wanted)


def test_single_precision(X):
    X = X.astype(np.float32)
    runs = [{"n_components": 3, "random_state": seed} for seed in range(3)]
    found = fit_many(X, runs, max_iter=20, tol=0)
    assert all(f.dtype == np.float32 for one in found for f in one.factors)
    assert_equal_fits(found, [pw.ssnmf(X, **run, max_iter=20, tol=0) for run in runs], 1e-3)


@pytest.mark.parametrize("name", one_of_each(RECIPES))
def test_every_recipe(X, name):
    recipe = RECIPES[name]
    runs = [{"n_components": 3, "random_state": seed} for seed in range(3)]
    shared = {**recipe.asked(3), "max_iter": 5, "tol": 0}
    wanted = [recipe(X, 3, random_state=run["random_state"], max_iter=5, tol=0) for run in runs]
    cone = recipe.name == "tpc"  # solved to a tolerance only
    assert_equal_fits(fit_many(X, runs, recipe=recipe.name, **shared), wanted, 1e-4 if cone else 1e-8)


@pytest.mark.parametrize("kind", ["dense", "csr", "file"])
def test_dead_components_start_again_beside_other_fits(X, kind, rng):
    data, given = KINDS[kind](X)
    runs = [
        {"n_components": 4, "init": deadly(X, rng, [1, 2])},
        {"n_components": 4, "random_state": 0},
        {"n_components": 4, "init": deadly(X, rng, [0]), "accelerate": False},
    ]
    options = {"max_iter": 20, "tol": 0, **given}
    wanted = [pw.ssnmf(data, **{"random_state": 3, **run}, **options) for run in runs]
    found = fit_many(data, [{"random_state": 3, **run} for run in runs], **options)
    assert_equal_fits(found, wanted)
    assert all((np.linalg.norm(one.components, axis=1) > 0).all() for one in found)


class Counted(DenseData):
    """Data that counts its passes, with the number of columns of each."""

    def __init__(self, X):
        super().__init__(X)
        self.widths = []

    def multiply(self, rest, mode, out):
        self.widths.append(rest.shape[1])
        super().multiply(rest, mode, out)


def test_passes_are_shared_and_fits_that_have_ended_leave(X):
    data, together_ = Counted(X), Counted(X)
    runs = [{"n_components": 3, "random_state": 0, "max_iter": n, "tol": 0, "init": "random"} for n in (2, 5, 9)]
    singly = [len(data.widths) for run in runs if [data.widths.clear(), pw.ssnmf(data, **run)]]
    fit_many(together_, runs)
    assert len(together_.widths) == max(singly)
    assert sum(together_.widths) == 3 * sum(singly)  # nothing is computed twice
    assert together_.widths[0] == 9
    assert together_.widths[-1] == 3
    assert together_.widths == sorted(together_.widths, reverse=True)


def test_a_file_is_read_once_for_all(X):
    one, many = Watched(X), Watched(X)
    limits = {"memory_limit": seven(X), "max_iter": 6, "tol": 0, "init": "random", "accelerate": False}
    pw.ssnmf(one, 3, random_state=0, **limits)
    fit_many(many, [{"n_components": 3, "random_state": seed} for seed in range(5)], **limits)
    assert len(many.read) == len(one.read)


def test_results_do_not_depend_on_how_many_run_at_once(X, monkeypatch):
    runs = [{"n_components": 3, "random_state": seed, "max_iter": 5 + seed} for seed in range(5)]
    monkeypatch.setattr("partwise.data.MEMORY", 2.5 * 8 * 81 * 3 * 8)
    assert at_once(as_data(X), 3) == 2
    ended = []
    found = fit_many(X, runs, tol=0, done=lambda number, result: ended.append((number, result)))
    assert sorted(number for number, _ in ended) == [*range(5)]
    assert all(found[number] is result for number, result in ended)
    assert_equal_fits(found, [pw.ssnmf(X, **run, tol=0) for run in runs])


def test_the_same_bits_again(X):
    runs = [{"n_components": 3, "random_state": seed} for seed in range(3)]
    for one, other in zip(*(fit_many(X, runs) for _ in range(2)), strict=True):
        for mine, its in zip(one.factors, other.factors, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_what_is_not_shared_runs_one_after_another(X):
    mask = np.arange(X.size).reshape(X.shape) % 5 > 0
    assert at_once(MissingDense(X, mask), 3) == 1
    assert at_once(as_data(sp.csr_array(X)), 3) > 10
    assert at_once(as_data(Watched(X), seven(X)), 3) > 10


def test_no_runs(X):
    assert fit_many(X, []) == []


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([{"n_components": 0}], {}, "n_components"),
        ([{"n_components": 2, "sparsity": 2}], {}, "sparsity=2"),
        ([{"n_components": 2}], {"recipe": "best"}, "recipe='best'"),
        ([{"n_components": 2}], {"missing": "maybe"}, "missing='maybe'"),
    ],
)
def test_invalid_options(X, runs, options, message):
    with pytest.raises(ValueError, match=message):
        fit_many(X, runs, **options)


@pytest.mark.filterwarnings("error")
def test_an_error_ends_all_fits(X):
    def fails(iteration):
        if iteration.n_iter == 3:
            raise RuntimeError("from the callback")

    runs = [{"n_components": 2, "random_state": seed, "callback": fails if seed == 1 else None} for seed in range(3)]
    with pytest.raises(RuntimeError, match="from the callback"):
        fit_many(X, runs)
    assert pw.ssnmf(X, 2, max_iter=2, random_state=0).n_iter == 2  # threads and signals are as before


# Restarts


def fitted(X, **options):
    return pw.SparseNMF(3, random_state=0, **{"max_iter": 30, "tol": 0, **options}).fit(X)


@pytest.mark.parametrize("kind", ["dense", "csr", "file", "missing"])
@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_restarts_keep_the_best_of_the_single_fits(X, kind, sparsity):
    X, given = KINDS[kind](X)
    rng = np.random.default_rng(0)
    fits = [pw.ssnmf(X, 3, sparsity=sparsity, random_state=rng, max_iter=20, tol=0, **given) for _ in range(4)]
    best = min(fits, key=lambda fit: fit.losses[-1])
    model = pw.SparseNMF(3, sparsity=sparsity, n_init=4, random_state=np.random.default_rng(0), max_iter=20, tol=0)
    model.set_params(**given).fit(X)
    np.testing.assert_allclose(model.loss_curve_, best.losses, rtol=1e-8)
    np.testing.assert_allclose(model.components_, best.components, atol=1e-8)


def test_one_start_is_the_recipe_bit_by_bit(X):
    np.testing.assert_array_equal(fitted(X).components_, pw.ssnmf(X, 3, random_state=0, max_iter=30, tol=0).components)


def test_interrupt_ends_running_fits_and_starts_no_more(X, monkeypatch):
    monkeypatch.setattr("partwise.data.MEMORY", 2.5 * 8 * 81 * 3 * 8)  # two at once
    seen = []

    def interrupt(iteration):
        seen.append(iteration.n_iter)
        if len(seen) == 6:
            signal.raise_signal(signal.SIGINT)

    runs = [{"n_components": 3, "random_state": seed, "callback": interrupt} for seed in range(5)]
    found = fit_many(X, runs, tol=0)
    assert len(found) == 2
    assert all("interrupted" in one.stop_reason for one in found)
    assert max(one.n_iter for one in found) <= 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_time_limit_is_for_each_fit(X, monkeypatch):
    now = [0.0]

    def later(iteration):
        now[0] += 1.0

    monkeypatch.setattr("partwise.runtime.compiled.time.perf_counter", lambda: now[0])
    runs = [{"n_components": 2, "random_state": seed, "callback": later} for seed in range(3)]
    found = fit_many(X, runs, max_time=4.5, tol=0)
    assert [one.n_iter for one in found] == [5, 5, 5]  # the callback is called at the start, too
    assert all(one.stop_reason == "time limit of 4.5 s reached" for one in found)
    assert all(one.times[-1] == pytest.approx(5) for one in found)


def test_callbacks_can_stop_single_fits(X):
    runs = [{"n_components": 2, "random_state": 0, "callback": lambda it, n=n: it.n_iter == n} for n in (1, 4)]
    assert [one.n_iter for one in fit_many(X, runs, tol=0)] == [1, 4]


def test_other_threads_may_fit_many(X):
    from concurrent.futures import ThreadPoolExecutor

    runs = [{"n_components": 2, "random_state": seed, "max_iter": 5} for seed in range(3)]
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(lambda _: fit_many(X, runs), range(2))]
    for fits in found:
        assert_equal_fits(fits, [pw.ssnmf(X, **run) for run in runs])


# The scheduler


class Doubled(Request):
    def __init__(self, number, log):
        self.number, self.log = number, log

    @property
    def kind(self):
        return self.number % 2

    def answers(self, requests):
        self.log.append([one.number for one in requests])
        return [2 * one.number for one in requests]


async def sums(numbers, log):
    return sum([await Doubled(number, log) for number in numbers])


def test_the_largest_group_is_answered_first():
    log = []
    found = dict(together([sums([1, 2], log), sums([3, 4], log), sums([6], log)], 3))
    assert found == {0: 6, 1: 14, 2: 12}
    assert log == [[1, 3], [2, 4, 6]]


def test_work_of_their_own_comes_before_what_jobs_share():
    class Own(Doubled):
        kind, cost = Request.kind, 1.0

    class Shared(Doubled):
        cost = 2.0

    async def job(number, log):
        own = sum([await Own(number, log) for _ in range(number)])
        return own + sum([await Shared(2, log) for _ in range(2)])

    log = []
    assert dict(together([job(number, log) for number in (1, 3, 2)], 3)) == {0: 10, 1: 26, 2: 16}
    assert log == [[1]] + [[3]] * 3 + [[2]] * 2 + [[2, 2, 2]] * 2


def test_jobs_that_share_nothing_run_one_after_another():
    class Lonely(Doubled):
        kind = Request.kind

    async def lonely(number, log):
        return sum([await Lonely(number, log) for _ in range(3)])

    log = []
    assert dict(together([lonely(1, log), lonely(2, log)], 2)) == {0: 6, 1: 12}
    assert log == [[1]] * 3 + [[2]] * 3


def test_statistics_of_another_kind_are_not_shared(X):
    class Weighted(DenseData):
        def statistics(self, factors, grams, mode):
            return super().statistics(factors, grams, mode)

    assert DenseData(X).shared
    assert not Weighted(X).shared
    assert at_once(Weighted(X), 3) == 1


def test_jobs_are_taken_when_there_is_room():
    log, taken = [], []

    def jobs():
        for number in range(4):
            taken.append((number, len(log)))
            yield sums([2] * (number + 1), log)

    assert [number for number, _ in together(jobs(), 2)] == [0, 1, 2, 3]
    assert taken == [(0, 0), (1, 0), (2, 1), (3, 2)]


def test_jobs_without_requests():
    async def seven():
        return 7

    assert alone(seven()) == 7
    assert side_by_side([seven, seven], 1) == [7, 7]
    assert single(seven)() == 7
    assert job_of(single(seven)) is seven


def test_products_are_those_of_single_passes(X, rng):
    for data in (DenseData(X), SparseData(sp.csr_array(X)), SparseData(sp.csc_array(X))):
        for mode in (0, 1):
            rests = [np.asfortranarray(rng.random((X.shape[1 - mode], r))) for r in (1, 3, 8)]
            asked = [Statistics(data, [rest, rest], [rest.T @ rest] * 2, mode) for rest in rests]
            for stats, rest in zip(asked[0].answers(asked), rests, strict=True):
                assert stats.cross.flags.f_contiguous
                np.testing.assert_allclose(stats.cross, (X.T if mode else X) @ rest, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_wide_products_in_panels(X, form, dtype, count, rng, monkeypatch):
    """Also with empty rows and columns."""
    X = np.where(X > 0.5, X, 0).astype(dtype)
    X[[0, 5, 60]] = 0
    X[:, [3, 19]] = 0
    data = SparseData(form(X))
    inner = X.shape[1] if form is sp.csr_array else X.shape[0]
    monkeypatch.setattr(sparse, "PANEL", inner * sparse.WIDTH * X.itemsize // count)
    monkeypatch.setattr(sparse, "ENTRIES", 1e-9)
    assert count <= len(data.panels) <= count + 1
    for mode in (0, 1):
        rests = [np.asfortranarray(rng.random((X.shape[1 - mode], r)), dtype=dtype) for r in (30, 3, 180)]
        for found, rest in zip(data.crosses(rests, mode), rests, strict=True):
            np.testing.assert_allclose(found, (X.T if mode else X) @ rest, rtol=1e-4 if dtype == np.float32 else 1e-12)


def test_short_rows_are_not_cut_into_panels(X):
    assert len(SparseData(sp.csr_array(X)).panels) == 1
    assert len(SparseData(sp.csr_array((30, 20))).panels) == 1  # nothing stored


def test_factorize_is_a_single_job():
    assert job_of(factorize).__name__ == "factorize"


def test_a_run_without_a_rank_is_named(X):
    with pytest.raises(ValueError, match="run 1 has no n_components"):
        fit_many(X, [{"n_components": 2}, {}])

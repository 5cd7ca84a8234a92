"""A fit of X in chunks is the fit of X in memory, and takes one pass over X for each iteration."""

import os
import pickle
import signal
import time
from itertools import pairwise

import numpy as np
import pytest
from catalogues import PROBLEMS, RECIPES, UPDATES, Recipe, planted, random_factors, stats_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_stored import Rows, assert_same, saved

import partwise as pw
from partwise import start
from partwise.blocks import Block
from partwise.data import DenseData, StoredData, as_data
from partwise.projections import AtMost, Nonnegative
from partwise.recipes import SOLVERS
from partwise.start import PIECE, Uniform, dead_components
from partwise.statistics import gram
from partwise.stream import FindWorst, Step, Streamed
from partwise.updates import Columns, Path, Pivot, Sequential
from partwise.updates import Rows as EachRow

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
R = 4
BOUND = {  # samples to each other, or to what was before: these need X in one place
    "ssnmf, activations": "sparsity on the activations",
    "nmfsc, activations": "sparsity on the activations",
    "nmfsc, both": "sparsity on the activations",
    "nmfsc, sorted": "sparsity on the activations",
    "tpc, activations": "sparsity on the activations",
    "tpc, both": "sparsity on the activations",
    "nnsc, components, sequential": "binds all samples",
    "nnsc, components, hoyer": "binds all samples",
    "grouped, activations": "sparsity on the activations",
    **{name: "load X into memory" for name in RECIPES if RECIPES[name].name in ("nsnmf", "bisparse")},
}
MORE = {
    **{f"ssnmf, {solver}": Recipe("ssnmf", {"solver": solver}) for solver in SOLVERS},
    **{f"ssnmf, sparse, {solver}": Recipe("ssnmf", {"sparsity": 0.5, "solver": solver}) for solver in SOLVERS},
    "ssnmf, extrapolated": Recipe("ssnmf", {"sparsity": 0.5, "extrapolate": True}),
    "ssnmf, interval": Recipe("ssnmf", {"sparsity": (0.3, 0.5)}),
    "ssnmf, faithful, free": Recipe("ssnmf", {"faithful": True}),
    "ssnmf, penalised twice": Recipe("ssnmf", {"l1": (0.05, 0.02), "l2": (0.1, 0.2), "solver": "pivot"}),
    "ssnmf, penalised to death": Recipe("ssnmf", {"sparsity": 0.5, "l1": 0.6}),
    "ssnmf, at random": Recipe("ssnmf", {"sparsity": 0.5, "init": "random"}),
    "nnsc, unpenalised": Recipe("nnsc", {"l1": 0.0}),
    "snmf, unpenalised": Recipe("snmf", {"beta": 0.0, "eta": 0.0}),
    "l0, in pairs": Recipe("l0", {"nonzeros": 2, "side": "activations", "every": 2}),
    "l0, components in pairs": Recipe("l0", {"nonzeros": 5, "every": 2}),
    "nmfsc, samples": Recipe("nmfsc", {"sparsity": 0.5, "init": "samples"}),
    "ssnmf, nndsvd": Recipe("ssnmf", {"sparsity": 0.5, "init": "nndsvd"}),
    "ssnmf, gradual": Recipe("ssnmf", {"sparsity": 0.5, "init": "gradual"}),
}
BOUND |= {
    "ssnmf, gradient": "load X into memory",
    "ssnmf, sparse, gradient": "load X into memory",
    "ssnmf, extrapolated": "load X into memory",
    "l0, in pairs": "load X into memory",
    "ssnmf, nndsvd": "init='nndsvd' needs X in memory",
    "ssnmf, gradual": "init='gradual' needs X in memory",
}
ALL = RECIPES | MORE
STREAMED = [name for name in ALL if name not in BOUND]


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=61, m=20, r=R, noise=0.05).X


def seven(X):
    """The limit for seven samples a chunk: 61 are nine chunks, the last of five."""
    return 4 * 7 * X.shape[1] * 8


class Watched(Rows):
    """Writes down which rows are read."""

    def __init__(self, X):
        super().__init__(X)
        self.read = []

    def __getitem__(self, rows):
        self.read.append((rows.start, rows.stop))
        return super().__getitem__(rows)

    def times(self):
        """How often each row has been read."""
        counts = np.zeros(self.shape[0], dtype=int)
        for first, end in self.read:
            counts[first:end] += 1
        return counts


# The same fit


@pytest.mark.parametrize("name", STREAMED)
def test_every_recipe_that_streams_gives_the_fit_of_memory(X, name):
    recipe = ALL[name]
    assert isinstance(as_data(Rows(X), seven(X)), StoredData)
    cone = recipe.name == "tpc"  # solved to a tolerance only
    limits = {"max_iter": 3 if cone else 15, "tol": 0}
    result, wanted = recipe(Rows(X), R, memory_limit=seven(X), **limits), recipe(X, R, **limits)
    assert_same(result, wanted, 1e-4 if cone else 1e-8)
    assert (result.encoder, result.middle) == (wanted.encoder, None)


@pytest.mark.parametrize("name", BOUND)
def test_every_other_recipe_says_why_not_and_takes_what_fits(X, name):
    recipe = ALL[name]
    with pytest.raises(ValueError, match=BOUND[name]):
        recipe(Rows(X), R, memory_limit=seven(X), max_iter=2)
    result, wanted = recipe(Rows(X), R, memory_limit=X.nbytes, max_iter=2, tol=0), recipe(X, R, max_iter=2, tol=0)
    np.testing.assert_array_equal(result.components, wanted.components)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p != "tiny"], indirect=True)
@pytest.mark.parametrize("name", ["ssnmf, free", "ssnmf", "ssnmf, multiplicative", "nmfsc"])
def test_every_problem_gives_the_fit_of_memory(problem, name):
    X, r = problem
    limits = {"max_iter": 15, "tol": 0}
    result, wanted = ALL[name](Rows(X), r, memory_limit=4 * X[0].nbytes, **limits), ALL[name](X, r, **limits)
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-8, atol=1e-10 * np.vdot(X, X))
    if wanted.relative_error > 1e-6:  # a perfect fit is not the only one
        assert_same(result, wanted)


@pytest.mark.parametrize("name", STREAMED)
def test_single_precision(X, name):
    X = X.astype(np.float32)
    if ALL[name].name == "tpc":
        pytest.skip("a cone program to single precision is not the same program")
    limits = {"max_iter": 4, "tol": 0}
    result, wanted = ALL[name](Rows(X), R, memory_limit=seven(X) // 2, **limits), ALL[name](X, R, **limits)
    assert result.activations.dtype == result.components.dtype == np.float32
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-4)
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-4)
    np.testing.assert_allclose(result.activations, wanted.activations, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["ssnmf", "ssnmf, pivot", "nmfsc", "l0, forward", "ssnmf, penalised"])
def test_given_factors_are_where_both_begin(X, name, rng):
    init = rng.random((61, R)), rng.random((R, 20))
    before = [f.copy() for f in init]
    limits = {"init": init, "max_iter": 8, "tol": 0}
    assert_same(ALL[name](Rows(X), R, memory_limit=seven(X), **limits), ALL[name](X, R, **limits))
    for given, kept in zip(init, before, strict=True):
        np.testing.assert_array_equal(given, kept)


@pytest.mark.parametrize("n", [20, 61])  # of which 8 are looked at: in memory, either in place or taken out
def test_a_start_looks_at_the_same_samples(X, n, monkeypatch):
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 0)
    limits = {"max_iter": 5, "tol": 0}
    X = X[:n]
    stored = Watched(X)
    result = ALL["ssnmf, free"](stored, R, memory_limit=4 * X[0].nbytes, **limits)
    assert_same(result, ALL["ssnmf, free"](X, R, **limits))
    assert np.count_nonzero(stored.times() == stored.times().max()) == 2 * R


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("name", ["ssnmf", "nmfsc", "snmf"])
def test_tolerances_are_met_at_the_same_time(X, name, tol):
    result = ALL[name](Rows(X), R, memory_limit=seven(X), tol=tol)
    assert result.converged
    assert_same(result, ALL[name](X, R, tol=tol))


@pytest.mark.parametrize("name", ["ssnmf", "ssnmf, pivot", "ssnmf, penalised", "snmf", "nmfsc, free", "l0, sequential"])
def test_fixed_points_are_found_at_the_same_time(X, name):
    limits = {"tol": 0, "kkt_tol": 0.02, "max_iter": 500}
    result = ALL[name](Rows(X), R, memory_limit=seven(X), **limits)
    assert "kkt_tol=0.02" in result.stop_reason
    assert result.n_iter > 1
    assert_same(result, ALL[name](X, R, **limits), 1e-7)


def test_the_residual_itself_tells_the_error_of_a_perfect_fit(rng):
    X = rng.random((60, 3)) @ rng.random((3, 20))
    stored = Watched(X)
    result = pw.ssnmf(stored, 3, solver="pivot", memory_limit=seven(X), max_iter=400, tol=0, random_state=0)
    direct = np.linalg.norm(X - result.activations @ result.components) / np.linalg.norm(X)
    assert direct < 1e-5
    assert result.relative_error == pytest.approx(direct, rel=1e-6)


def test_an_X_of_zeros(rng):  # noqa: N802
    X = np.zeros((61, 20))
    for sparsity in (None, 0.4):
        limits = {"sparsity": sparsity, "max_iter": 3, "random_state": 0}
        assert_same(pw.ssnmf(Rows(X), R, memory_limit=seven(X), **limits), pw.ssnmf(X, R, **limits))


# Dead components


def deadly(X, rng, dead):
    """Data without its first features, and a start whose ``dead`` parts lie on those alone: nothing can move them."""
    X[:, :8] = 0
    activations, components = 0.1 * rng.random((len(X), R)), rng.random((R, 20))
    components[dead, :8] += 5
    components[dead, 8:] = 0
    return activations, components


@pytest.fixture(name="restarts")
def spied(monkeypatch):
    """What each look for dead components has found."""
    found = []

    def spy(self, restarted=Streamed.restarted):
        found.append(restarted(self))
        return found[-1]

    monkeypatch.setattr(Streamed, "restarted", spy)
    return found


MORTAL = {
    "ssnmf": Recipe("ssnmf", {"sparsity": 0.6}),
    "ssnmf, multiplicative": Recipe("ssnmf", {"sparsity": 0.6, "solver": "multiplicative"}),
    "ssnmf, pivot": Recipe("ssnmf", {"sparsity": (0.5, 0.7), "solver": "pivot"}),
    "ssnmf, free": Recipe("ssnmf", {}),
    "nnsc": Recipe("nnsc", {"l1": 0.0}),
    "l0": Recipe("l0", {"nonzeros": 6}),
    "l0, sequential": Recipe("l0", {"nonzeros": 6, "method": "sequential"}),
    "snmf": Recipe("snmf", {"beta": 0.0, "eta": 0.0}),
}


@pytest.mark.parametrize("name", MORTAL)
@pytest.mark.parametrize("dead", [[1], [0, 3], [0, 1, 3]], ids=len)
@pytest.mark.parametrize("rows", [1, 7])
def test_dead_components_start_again_as_in_memory(X, name, dead, rows, restarts, rng):
    init = deadly(X, rng, dead)
    limits = {"init": init, "max_iter": 10, "tol": 0}
    result = MORTAL[name](Rows(X), R, memory_limit=4 * 160 * rows, **limits)
    assert {j for _, alive in restarts for j in alive} >= set(dead)
    assert not dead_components([gram(f) for f in result.factors]).size
    assert_same(result, MORTAL[name](X, R, **limits))


@pytest.mark.parametrize("name", MORTAL)
def test_unused_components_start_again_as_in_memory(X, name, restarts, rng):
    activations, components = 0.1 * rng.random((61, R)), rng.random((R, 20))
    activations[:, [0, 2]] = 0
    limits = {"init": (activations, components), "max_iter": 10, "tol": 0}
    result = MORTAL[name](Rows(X), R, memory_limit=seven(X), **limits)
    assert any(alive for _, alive in restarts)
    assert_same(result, MORTAL[name](X, R, **limits))


@pytest.mark.parametrize("side", ["activations", "components"])
def test_either_side_of_an_unpenalised_fit_revives(X, side, rng):
    """Kim and Park's method without penalties is plain least squares, and solves for either side last."""
    activations, components = 0.1 * rng.random((61, R)), rng.random((R, 20))
    activations[:, [0, 2]] = 0
    limits = {"init": (activations, components), "side": side, "beta": 0, "eta": 0, "max_iter": 10, "tol": 0}
    assert_same(pw.snmf(Rows(X), R, memory_limit=seven(X), **limits), pw.snmf(X, R, **limits))


@pytest.mark.parametrize("sparsity", [None, 0.3])
def test_nothing_to_start_again_with(sparsity, restarts, rng):
    """A matrix of rank 1 and three parts: what is dead has nothing left to fit."""
    X = np.outer(rng.random(40), pw.Hoyer(0.3)(rng.random(9)))
    limits = {"sparsity": sparsity, "max_iter": 60, "tol": 0, "random_state": 0, "solver": "pivot"}
    result = pw.ssnmf(Rows(X), 3, memory_limit=4 * X[0].nbytes, **limits)
    wanted = pw.ssnmf(X, 3, **limits)
    assert result.relative_error < 1e-6
    assert wanted.relative_error < 1e-6
    assert np.all(np.diff(result.losses) <= 1e-12 * np.vdot(X, X))


def test_a_penalty_may_kill_for_good(X, restarts):
    limits = {"sparsity": 0.5, "l1": 1.5, "max_iter": 20, "tol": 0, "random_state": 0}
    result = pw.ssnmf(Rows(X), R, memory_limit=seven(X), **limits)
    assert dead_components([gram(f) for f in result.factors]).size
    assert not restarts
    assert_same(result, pw.ssnmf(X, R, **limits))


# One pass


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("kkt_tol", [0, 1e-12])
def test_each_iteration_reads_each_sample_once_and_in_order(X, name, kkt_tol):
    """Before them: a look at the values, the sums at the start, and the update that some recipes begin with."""
    stored, marks = Watched(X), []
    pieces = [*pairwise([*range(0, 61, 7), 61])]
    limits = {"init": "random", "max_iter": 5, "tol": 0, "kkt_tol": kkt_tol}
    ALL[name](stored, R, memory_limit=seven(X), callback=lambda it: marks.append(len(stored.read)), **limits)
    assert len(marks) == 6
    assert stored.read[: marks[0]] == 2 * pieces
    assert stored.read[marks[0] : marks[1]] in (pieces, 2 * pieces)
    for before, after in pairwise(marks[1:]):
        assert stored.read[before:after] == pieces
    assert len(stored.read) == marks[-1]


def test_a_look_for_the_worst_samples_is_one_more_pass(X, restarts, rng):
    stored, marks = Watched(X), []
    limits = {"init": deadly(X, rng, [1, 2]), "sparsity": 0.6, "max_iter": 4, "tol": 0}
    pw.ssnmf(stored, R, memory_limit=seven(X), callback=lambda it: marks.append(len(stored.read)), **limits)
    searches = sum(bool(found) for found, _ in restarts)
    assert searches >= 1
    assert np.all(stored.times() == 2 + len(restarts) + searches)  # `restarts` has one entry for each update
    assert len(restarts) == 1 + 4


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 8), (np.float32, 4), (np.uint8, 1 + 8)])
@pytest.mark.parametrize("init", ["random", "samples"])
@pytest.mark.parametrize("chunk", [None, 3, 20, 61])  # what the storage calls a chunk
def test_no_more_than_a_quarter_of_the_limit_is_read_at_a_time(X, dtype, size, init, chunk):
    stored, limit = Watched((20 * X).astype(dtype)), 4 * 10 * 20 * size
    if chunk is not None:
        stored.chunks = (chunk, 20)
    pw.ssnmf(stored, R, init=init, memory_limit=limit, max_iter=2, random_state=0)
    assert max(end - first for first, end in stored.read) <= 10


def test_transform_and_score_take_two_passes(X):
    model = pw.SparseNMF(R, sparsity=0.5, random_state=0, memory_limit=seven(X)).fit(X)
    for ask in (model.transform, model.score):
        stored = Watched(X)
        ask(stored)
        assert np.all(stored.times() == 2)  # a look at the values, and the activations


@pytest.mark.parametrize("name", UPDATES)
def test_separable_updates_treat_rows_alike_wherever_they_are_cut(X, name, rng):
    update = UPDATES[name]
    free = Columns.same(Nonnegative(), R)
    if not Block(update, free).separable:
        pytest.skip("not separable")
    factors = random_factors(X.shape, R, rng)
    whole, _ = update(factors[0].copy("F"), stats_of(X, factors, 0), free, {})
    for cuts in ([0, 1, 61], [0, 30, 31, 61], range(62)):
        for first, end in pairwise(cuts):
            some = [np.asfortranarray(factors[0][first:end]), factors[1]]
            piece, _ = update(some[0], stats_of(X[first:end], some, 0), free, {})
            np.testing.assert_allclose(piece, whole[first:end], rtol=1e-9, atol=1e-12)


STEPS = {
    "none": None,
    "sequential": Block(Sequential(2), Columns.same(Nonnegative(), R), l1=0.1, l2=0.2),
    "pivot": Block(Pivot(), Columns.same(Nonnegative(), R), rows=0.1),
    "path": Block(Path(2, True), EachRow(AtMost(2), R)),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("again", [((), ()), ((1, 3), ()), ((1, 3), (1, 3)), ((0, 2), (0,))])
def test_steps_are_pure_and_add_up_over_any_cut(X, name, again, rng):
    activations, parts = random_factors(X.shape, R, rng)
    step = Step(parts, gram(parts), STEPS[name], measure=True, dead=again[0], alive=again[1])
    found, sums = step(DenseData(X), activations.copy("F"))
    if STEPS[name] is None:
        assert not found[:, sorted({*again[0]} - {*again[1]})].any()
    direct = [X.T @ found, found.T @ found, found.sum(axis=0)]
    for cuts in ([0, 61], [0, 1, 60, 61], [*range(0, 61, 5), 61]):
        pieces = [
            pickle.loads(pickle.dumps(step))(DenseData(X[a:b]), np.array(activations[a:b], order="F"))
            for a, b in pairwise(cuts)
        ]
        np.testing.assert_allclose(np.vstack([piece for piece, _ in pieces]), found, rtol=1e-9, atol=1e-12)
        total = pieces[0][1]
        for _, more in pieces[1:]:
            total = total + more
        for got, wanted in zip([total.stats.cross, total.stats.gram, total.totals], direct, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(total.moves, sums.moves, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dead", [[2], [0, 1, 3]], ids=len)
def test_the_worst_samples_are_found_in_any_cut(X, dead, rng):
    activations, parts = random_factors(X.shape, R, rng)
    find = FindWorst(parts, gram(parts), np.array(dead))
    activations[:, dead] = 0
    errors = np.sum((X - activations @ parts.T) ** 2, axis=1)
    wanted = np.argsort(-errors)[: len(dead)]
    for cuts in ([0, 61], [0, 1, 60, 61], range(62)):
        worst = None
        for first, end in pairwise(cuts):
            chunk = DenseData(X[first:end])
            chunk.first = first
            _, more = find(chunk, np.array(activations[first:end], order="F"))
            worst = more if worst is None else worst + more
        np.testing.assert_array_equal(worst.rows, wanted)
        np.testing.assert_allclose(worst.errors, errors[wanted], rtol=1e-9)
        np.testing.assert_array_equal(worst.samples, X[wanted])
        np.testing.assert_array_equal(worst.activations, activations[wanted])


# Starts of any samples


@pytest.mark.parametrize("sets", [Columns.same(Nonnegative(), 3), EachRow(AtMost(2), 3)], ids=["free", "two a row"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_uniform_rows_do_not_depend_on_the_cut(sets, dtype):
    n = 2 * PIECE + 100
    uniform = Uniform(5, np.dtype(dtype), sets)
    whole = uniform(0, n)
    assert (whole.shape, whole.dtype) == ((n, 3), dtype)
    for cuts in ([0, 1, n], [0, PIECE, n], [0, PIECE - 1, PIECE + 1, 2 * PIECE, n], [0, 700, 5000, 8200, n]):
        np.testing.assert_array_equal(np.vstack([uniform(a, b) for a, b in pairwise(cuts)]), whole)
    np.testing.assert_array_equal(Uniform(5, np.dtype(dtype), sets)(0, n), whole)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(uniform))(PIECE - 3, PIECE + 3), whole[PIECE - 3 : PIECE + 3]
    )
    assert not np.array_equal(Uniform(6, np.dtype(dtype), sets)(0, n), whole)
    assert np.count_nonzero(whole, axis=1).max() == (3 if sets.nonnegative else 2)
    assert 0 <= whole.min() < 0.01 < 0.99 < whole.max() <= 1
    assert len(np.unique(whole[:, 0][whole[:, 0] > 0])) > 0.99 * np.count_nonzero(whole[:, 0])  # pieces differ


# Stopping


def strike():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.02)  # so that two do not become one


def press(*when):
    """A callback that presses Ctrl-C at some iterations."""
    return lambda iteration: [strike() for n in when if n == iteration.n_iter] and None


@pytest.mark.parametrize("name", ["ssnmf", "nmfsc"])
def test_an_interrupt_keeps_the_result(X, name):
    before = signal.getsignal(signal.SIGINT)
    limits = {"tol": 0, "memory_limit": seven(X)}
    result = ALL[name](Rows(X), R, max_iter=50, callback=press(4), **limits)
    assert signal.getsignal(signal.SIGINT) is before
    assert 4 <= result.n_iter <= 5
    assert f"interrupted after iteration {result.n_iter}" in result.stop_reason
    wanted = ALL[name](Rows(X), R, max_iter=result.n_iter, **limits)
    np.testing.assert_array_equal(result.components, wanted.components)
    np.testing.assert_array_equal(result.activations, wanted.activations)


def test_an_interrupt_in_the_middle_of_a_pass_keeps_the_result(X):
    class Pressed(Watched):
        def __getitem__(self, rows):
            if len(self.read) == 50:  # of nine for each pass
                os.kill(os.getpid(), signal.SIGINT)
            return super().__getitem__(rows)

    stored = Pressed(X)
    result = pw.ssnmf(stored, R, init="random", tol=0, max_iter=50, random_state=0, memory_limit=seven(X))
    assert "interrupted after iteration" in result.stop_reason
    assert 2 <= result.n_iter <= 4
    assert np.ptp(stored.times()) == 0
    wanted = pw.ssnmf(X, R, init="random", tol=0, max_iter=result.n_iter, random_state=0)
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-8)


def test_a_second_interrupt_raises(X):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pw.ssnmf(Rows(X), R, tol=0, max_iter=50, callback=press(2, 2), random_state=0, memory_limit=seven(X))
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("last", [0, 1, 3])
def test_a_callback_is_told_the_same_and_may_stop(X, last):
    told = []

    def tell(iteration):
        told[-1].append((iteration.n_iter, iteration.loss, iteration.relative_error, iteration.factors[1].sum()))
        return iteration.n_iter == last

    results = []
    for given in (X, Rows(X)):
        told.append([])
        results.append(ALL["ssnmf"](given, R, callback=tell, memory_limit=seven(X)))
    np.testing.assert_allclose(told[1], told[0], rtol=1e-9)
    assert len(told[1]) == last + 1
    assert "the callback said stop" in results[1].stop_reason
    assert_same(results[1], results[0])


# The estimator

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
@pytest.mark.filterwarnings("ignore:the loss still falls")
def test_the_estimator_of_a_path_is_that_of_the_array(X, name, limit, tmp_path, rng):
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


def test_activations_are_what_users_get(X, tmp_path):
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


def test_names_of_features_are_forgotten_with_a_path(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"feature {j}" for j in range(20)])
    model = pw.SparseNMF(R, random_state=0).fit(frame)
    assert len(model.feature_names_in_) == 20
    assert not hasattr(model.fit(saved(X, tmp_path)), "feature_names_in_")
    model.transform(X)


@pytest.mark.parametrize("options", [{"activation_sparsity": 0.3}, {"recipe": "nsnmf"}, {"init": "nndsvd"}])
def test_the_estimator_refuses_what_the_recipe_does(X, options, tmp_path):
    path = saved(X, tmp_path)
    with pytest.raises(ValueError, match="memory"):
        pw.SparseNMF(R, max_iter=2, tol=1, memory_limit=seven(X), **options).fit(path)
    assert pw.SparseNMF(R, max_iter=2, tol=1, memory_limit=X.nbytes, **options).fit(path).n_features_in_ == 20

"""One pass over X per iteration, with sums that do not depend on the chunks; and interrupts."""

import os
import pickle
import signal
import time
from itertools import pairwise

import numpy as np
import pytest
from catalogues import UPDATES, one_at_a_time, random_factors, stats_of
from chunked import ALL, CHUNKED, FEW, R, Watched, deadly, seven, small, spied  # noqa: F401  (fixtures)
from stores import Rows, assert_same

import partwise as pw
from partwise.data import DenseData
from partwise.engine import starts as start
from partwise.engine.blocks import Block
from partwise.engine.chunked_fit import ChunkStep, FindWorst
from partwise.engine.starts import Uniform
from partwise.projections import AtMost, Nonnegative
from partwise.statistics import gram
from partwise.updates import Columns, Path, Pivot, Sequential
from partwise.updates import Rows as EachRow

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


# One pass


@pytest.mark.parametrize(("name", "kkt_tol"), [*((name, 0) for name in CHUNKED), *((name, 1e-12) for name in FEW)])
def test_each_iteration_reads_each_sample_once_and_in_order(X, name, kkt_tol):
    """Before the iterations: one pass to check values, one for the first sums, and for some recipes a first update."""
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


def test_search_for_the_worst_samples_takes_one_pass(X, restarts, rng):
    stored, marks = Watched(X), []
    limits = {"init": deadly(X, rng, [1, 2]), "sparsity": 0.6, "max_iter": 4, "tol": 0, "accelerate": False}
    pw.ssnmf(stored, R, memory_limit=seven(X), callback=lambda it: marks.append(len(stored.read)), **limits)
    searches = sum(bool(found) for found, _ in restarts)
    assert searches >= 1
    assert np.all(stored.times() == 2 + len(restarts) + searches)  # `restarts` has one entry for each update
    assert len(restarts) == 1 + 4


@one_at_a_time(
    of=[(np.float64, 8), (np.float32, 4), (np.uint8, 1 + 8)],
    init=["random", "samples"],
    chunk=[None, 3],  # what the storage calls a chunk
)
def test_at_most_a_quarter_of_the_limit_is_read_at_once(X, of, init, chunk):
    dtype, size = of
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
        assert np.all(stored.times() == 2)  # one pass for the values, one for the activations


FREE = Columns.same(Nonnegative(), R)


@pytest.mark.parametrize("name", [name for name in UPDATES if Block(UPDATES[name], FREE).separable])
def test_separable_updates_do_not_depend_on_the_chunks(X, name, rng):
    update, free = UPDATES[name], FREE
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
def test_steps_are_pure_and_sum_over_any_chunks(X, name, again, rng):
    activations, parts = random_factors(X.shape, R, rng)
    step = ChunkStep(parts, gram(parts), STEPS[name], measure=True, dead=again[0], alive=again[1])
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
def test_worst_samples_do_not_depend_on_the_chunks(X, dead, rng):
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
def test_uniform_rows_do_not_depend_on_the_chunks(sets, dtype, monkeypatch):
    monkeypatch.setattr(start, "PIECE", PIECE := 64)
    n = 2 * PIECE + 100
    uniform = Uniform(5, np.dtype(dtype), sets)
    whole = uniform(0, n)
    assert (whole.shape, whole.dtype) == ((n, 3), dtype)
    for cuts in ([0, 1, n], [0, PIECE, n], [0, PIECE - 1, PIECE + 1, 2 * PIECE, n], [0, 7, 50, 200, n]):
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
    time.sleep(0.02)  # signals in quick succession may merge into one


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
def test_callback_gets_the_same_values_and_can_stop(X, last):
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
    assert "stopped by the callback" in results[1].stop_reason
    assert_same(results[1], results[0])

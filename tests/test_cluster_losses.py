"""Dask arrays: workers that die, chunks that fail, fits that are cut short, and what all that leaves behind."""

import gc
import importlib
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from clusters import (  # noqa: F401  (fixtures)
    FORMS,
    SHORT,
    assert_nothing_is_left,
    assert_same,
    by_value,
    changed,
    chunked,
    cluster_data,
    connected,
    dask,
    distributed,
    eventually,
    fresh,
    no_longer_than,
    on_processes,
    own_scheduler,
    small,
    two_processes,
    visits,
)

import partwise as pw
from partwise.data import as_data
from partwise.projections import Hoyer
from partwise.start import Zeros

by_value(sys.modules[__name__])

BAD = 2  # the chunk that tests spoil: samples 50 to 79


# Activations that are lost


def lose(kept):
    kept.clear()


def lose_some(kept):
    for key in [key for key in kept if key[1] in (0, 3)]:
        del kept[key]


def fall_behind(kept):
    for key, state in [*kept.items()]:
        kept[key] = state._replace(taken=state.taken - 1)


@pytest.mark.parametrize("when", [(0,), (3, 4), (20,)])
@pytest.mark.parametrize("accident", [lose, lose_some, fall_behind])
def test_lost_activations_come_back(accident, when, X):
    def spoil(iteration):
        if iteration.n_iter in when:
            assert visits.KEPT
            accident(visits.KEPT)

    options = {"sparsity": 0.5, "max_iter": max(when) + 2, "tol": 0, "random_state": 0}
    assert_same(pw.ssnmf(chunked(X), 4, callback=spoil, **options), pw.ssnmf(X, 4, **options))
    assert not visits.KEPT


def test_revival_survives_a_loss(X, rng):
    X[:, :8] = 0
    parts = np.array([Hoyer(0.7)(np.where(np.arange(24) < 8, rng.random(24), -10.0)) for _ in range(4)])
    options = {**SHORT, "sparsity": 0.7, "init": (rng.random((150, 4)), parts)}
    wanted = pw.ssnmf(X, 4, **options)
    assert wanted.components[:, 8:].max(axis=1).all()
    spoiled = pw.ssnmf(chunked(X), 4, callback=lambda it: visits.KEPT.clear(), **options)
    assert_same(spoiled, wanted)


def test_a_visit_that_is_asked_for_twice_says_the_same(monkeypatch, X):
    """As a worker does whose answer was lost on its way."""
    visit, seen = visits.visit, []

    def twice(*asked):
        answers = visit(*asked), visit(*asked)
        seen.append(answers[0].total is answers[1].total)
        return answers[1]

    monkeypatch.setattr(cluster_data, "visit", twice)
    assert_same(pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT))
    assert len(seen) > 6 * 6
    assert all(seen)


class Sieve(dict):
    """Keeps nothing."""

    def __setitem__(self, key, value):
        pass


def test_a_fit_whose_activations_are_lost_every_time_gives_up(monkeypatch, X):
    monkeypatch.setattr(visits, "KEPT", Sieve())
    with pytest.raises(RuntimeError, match="lost again and again"):
        pw.ssnmf(chunked(X), 4, max_iter=30, tol=0, random_state=0)


def test_a_loss_at_the_very_end_does_not_cost_the_fit(monkeypatch, X):
    """After the last step, and before its activations are collected."""
    sweep, losses = cluster_data.HeldThere.sweep, []

    def sweep_and_lose(held, step):
        answer = sweep(held, step)
        if step is visits.unchanged and not losses:
            losses.append(len(visits.KEPT))
            visits.KEPT.clear()
        return answer

    monkeypatch.setattr(cluster_data.HeldThere, "sweep", sweep_and_lose)
    assert_same(pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT))
    assert losses == [6]


def test_fits_beside_each_other_do_not_meet(X):
    found = {}

    def fit(seed):
        found[seed] = pw.ssnmf(chunked(X), 4, **SHORT | {"random_state": seed}).components

    threads = [threading.Thread(target=fit, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        wanted = pw.ssnmf(X, 4, **SHORT | {"random_state": seed}).components
        np.testing.assert_allclose(found[seed], wanted, atol=1e-8)


# What a fit leaves behind


STARTED, ENDED, OVER = [], [], threading.Event()


class Straggler:
    """A step in which the first chunk fails while the others are at work, and these end when all is over."""

    def __call__(self, chunk, activations):
        if chunk.first == 0:
            eventually(lambda: len(STARTED) == 5, seconds=1)
            raise ValueError("the first fails")
        STARTED.append(chunk.first)
        OVER.wait(timeout=1)
        ENDED.append(chunk.first)
        return activations, 0


@pytest.mark.filterwarnings("ignore:the loss still falls")
def test_nothing_is_left_in_this_process(scheduler, X):
    model = pw.SparseNMF(4, max_iter=3, random_state=0)
    activations = model.fit_transform(chunked(X))
    assert not visits.KEPT
    model.score(chunked(X))
    result = pw.ssnmf(chunked(X), 4, **SHORT)
    assert not visits.KEPT
    assert activations.shape == result.activations.shape


def stop(error):
    def callback(iteration):
        if iteration.n_iter == 3:
            assert visits.KEPT or cluster_data.active_client()
            raise error

    return callback


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_after_an_error(error, X):
    with pytest.raises(error):
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(error("enough")))
    assert eventually(lambda: not visits.KEPT)


def test_nothing_is_left_while_the_error_is_looked_at(X):
    """As in a notebook, which keeps the last error with all its frames."""
    with pytest.raises(KeyboardInterrupt) as caught:
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(KeyboardInterrupt("enough")))
    assert eventually(lambda: not visits.KEPT, seconds=0.5)
    assert "enough" in str(caught.value)


def test_a_chunk_that_ends_after_the_fit_leaves_nothing(X):
    with dask.config.set(scheduler="threads", num_workers=6):
        held = as_data(chunked(X)).hold(Zeros(4, np.dtype(float)), 4)
        with pytest.raises(ValueError, match="the first fails"):
            held.sweep(Straggler())
        del held
        gc.collect()
        OVER.set()
        assert eventually(lambda: len(ENDED) == len(STARTED) == 5)
    assert eventually(lambda: not visits.KEPT, seconds=0.5)


@pytest.mark.filterwarnings("error::ResourceWarning")
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_every_file_is_closed(X):
    pw.ssnmf(chunked(X), 4, **SHORT)
    gc.collect()


def test_the_input_is_untouched(X):
    before, given = X.copy(), chunked(X)
    graph = set(given.dask)
    pw.ssnmf(given, 4, **SHORT)
    np.testing.assert_array_equal(X, before)
    assert set(given.dask) == graph


# Chunks that fail


ERRORS = {
    "value": ValueError("it cannot be read"),
    "runtime": RuntimeError("it cannot be read"),
    "chunk": RuntimeError("a chunk is missing"),
    "file": FileNotFoundError(2, "it is gone"),
    "key": KeyError(7),
    "bare": ZeroDivisionError(),
}


def failing(X, error):
    """X in chunks of which one cannot be computed."""

    def fail(block, number):
        if number == BAD:
            raise error
        return block

    return changed(X, fail)


def message_of(error):
    """All that a user sees of an error."""
    return "".join(traceback.format_exception_only(error))


@pytest.mark.parametrize("init", ["samples", "random"])
@pytest.mark.parametrize("name", ERRORS)
def test_a_chunk_that_cannot_be_computed_is_named(name, init, X):
    error = type(ERRORS[name])(*ERRORS[name].args)
    with pytest.raises(type(error)) as caught:
        pw.ssnmf(failing(X, error), 4, init=init, **SHORT)
    assert type(caught.value) is type(error)
    assert f"chunk {BAD} (samples 50 to 79)" in message_of(caught.value)
    if name in ("value", "runtime", "chunk"):
        assert f"chunk {BAD}" in str(caught.value)
        assert str(ERRORS[name]) in str(caught.value)


BAD_VALUES = {"NaN": (np.nan, "NaN"), "infinite": (np.inf, "infinity"), "negative": (-0.25, r"X\[77, 3\] is -0.25")}


@pytest.mark.parametrize("init", ["samples", "random"])
@pytest.mark.parametrize("form", ["dense", "CSR matrix", "CSC matrix"])
@pytest.mark.parametrize("bad", BAD_VALUES)
def test_a_bad_value_is_named_by_chunk_and_row(bad, form, init, X):
    value, message = BAD_VALUES[bad]
    X[77, 3] = value
    for fit in (pw.ssnmf, lambda X, r, **options: pw.SparseNMF(r, **options).fit(X)):
        with pytest.raises(ValueError, match=message) as caught:
            fit(chunked(X, FORMS[form]), 4, init=init, **SHORT)
        assert "row 77, column 3" in str(caught.value) or "X[77, 3]" in str(caught.value)
        assert f"chunk {BAD} (samples 50 to 79)" in str(caught.value)


@pytest.mark.parametrize("form", ["dense", "CSR matrix"])
@pytest.mark.parametrize("bad", BAD_VALUES)
@pytest.mark.parametrize("ask", ["transform", "score"])
def test_new_samples_with_a_bad_value_are_refused_as_in_memory(ask, bad, form, X):
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    value, message = BAD_VALUES[bad]
    X[77, 3] = value
    with pytest.raises(ValueError, match=message):
        getattr(model, ask)(X)
    with pytest.raises(ValueError, match=message) as caught:
        np.asarray(getattr(model, ask)(chunked(X, FORMS[form])))
    assert f"chunk {BAD}" in str(caught.value)


def test_a_chunk_that_transform_cannot_compute_is_told_as_it_is(X):
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    with pytest.raises(RuntimeError, match="it cannot be read"):
        model.transform(failing(X, RuntimeError("it cannot be read"))).compute()


SHAPES = {
    "too few samples": lambda block: block[:-1],
    "too many samples": lambda block: np.vstack([block, block]),
    "too few features": lambda block: block[:, 1:],
    "too many features": lambda block: np.hstack([block, block]),
    "one sample, flat": lambda block: block[0],
    "none": lambda block: block[:0],
}


@pytest.mark.parametrize("init", ["samples", "random"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_chunk_of_another_shape_than_declared_is_named(shape, init, X):
    given = changed(X, lambda block, number: SHAPES[shape](block) if number == BAD else block)
    with pytest.raises(ValueError, match=rf"chunk {BAD} .*shape .* instead of \(30, 24\)"):
        pw.ssnmf(given, 4, init=init, **SHORT)
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    with pytest.raises(ValueError, match=rf"chunk {BAD} .*shape .* instead of \(30, 24\)"):
        model.transform(given).compute()


# On a cluster of processes


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "init"), [("value", "samples"), ("value", "random"), ("runtime", "random"), ("file", "random")]
)
def test_a_chunk_that_cannot_be_computed_on_a_cluster_is_named(client, name, init, X):
    error = ERRORS[name]
    with pytest.raises(type(error)) as caught:
        pw.ssnmf(failing(X, type(error)(*error.args)), 4, init=init, **SHORT)
    assert type(caught.value) is type(error)
    assert f"chunk {BAD} (samples 50 to 79)" in message_of(caught.value)
    del caught
    assert_nothing_is_left(client)


@pytest.mark.heavy
@pytest.mark.parametrize(("bad", "init"), [("NaN", "samples"), ("negative", "random")])
def test_a_bad_value_on_a_cluster_is_named_by_chunk_and_row(client, bad, init, X):
    value, message = BAD_VALUES[bad]
    X[77, 3] = value
    with pytest.raises(ValueError, match=message) as caught:
        pw.ssnmf(chunked(X), 4, init=init, **SHORT)
    assert "77" in str(caught.value)
    assert f"chunk {BAD} (samples 50 to 79)" in str(caught.value)
    del caught
    assert_nothing_is_left(client)


@pytest.mark.heavy
def test_a_callback_stops_the_fit_with_the_result_so_far(client, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT, callback=lambda it: it.n_iter == 4)
    assert_same(result, pw.ssnmf(X, 4, **SHORT, callback=lambda it: it.n_iter == 4))
    assert "the callback said stop after iteration 4" in result.stop_reason
    del result
    assert_nothing_is_left(client)


def interrupt(times=1):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: signal.getsignal(signal.SIGINT) is signal.default_int_handler)  # two at once are one


@pytest.mark.heavy
def test_one_interrupt_keeps_the_result_so_far(client, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT, callback=lambda it: it.n_iter == 4 and interrupt())
    assert "interrupted after iteration" in result.stop_reason
    wanted = pw.ssnmf(X, 4, **SHORT | {"max_iter": result.n_iter})
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-8)
    np.testing.assert_allclose(result.activations.compute(), wanted.activations, atol=1e-8)


@pytest.mark.heavy
def test_an_interrupt_from_the_callback_leaves_nothing(client, X):
    with pytest.raises(KeyboardInterrupt):
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(KeyboardInterrupt("enough")))
    assert_nothing_is_left(client)


@pytest.mark.heavy
def test_an_interrupt_in_the_middle_of_a_pass_leaves_nothing(client, monkeypatch, X):
    monkeypatch.setattr(cluster_data, "SHARE", 0)  # each pass computes the slow chunks again

    def slow(block, number):
        time.sleep(0.05)
        return block

    def soon(iteration):
        if iteration.n_iter == 1:
            threading.Timer(0.1, interrupt, [2]).start()

    with pytest.raises(KeyboardInterrupt):
        pw.ssnmf(changed(X, slow), 4, **SHORT, callback=soon)
    assert_nothing_is_left(client)


@pytest.mark.heavy
@pytest.mark.parametrize("accident", [lose_some, fall_behind])
def test_activations_that_workers_lose_come_back(client, accident, X):
    def there():
        accident(importlib.import_module("partwise.data.visits").KEPT)

    def spoil(iteration):
        if iteration.n_iter in (2, 5):
            client.run(there)

    result = pw.ssnmf(chunked(X), 4, sparsity=0.5, callback=spoil, **SHORT)
    assert_same(result, pw.ssnmf(X, 4, sparsity=0.5, **SHORT))


@pytest.mark.heavy
def test_a_task_that_takes_too_long_by_its_own_account_is_not_waited_for(client):
    def fail():
        raise TimeoutError("the server does not answer")

    with pytest.raises(TimeoutError, match="the server does not answer"):
        importlib.import_module("partwise.data.workers").awaited(client, client.submit(fail), {*client.nthreads()})


# Workers that die


@pytest.fixture
def mortal(request):
    """A cluster of its own, whose workers a test may kill; nannies start others."""
    with connected(request.param) as found, distributed.Client(found) as client, no_longer_than(100):
        yield client


class Kill:
    """A callback that kills the oldest worker at some iterations, when all are there."""

    def __init__(self, client, *when):
        self.client, self.when, self.killed = client, when, []
        self.workers = len(client.cluster.workers)

    def __call__(self, iteration):
        if iteration.n_iter in self.when:
            assert eventually(lambda: len(self.client.nthreads()) == self.workers, seconds=30)
            self.killed.append(min(self.client.run(os.getpid).values()))
            os.kill(self.killed[-1], signal.SIGKILL)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("mortal", "fits"),
    [(2, [((5,), 0), ((2, 8), 0.6)]), (1, [((5,), 0.6)])],
    indirect=["mortal"],
    ids=["one, then one after the other", "the only one"],
)
def test_a_fit_survives_its_workers(mortal, monkeypatch, fits, X):
    """Killed at some iterations, the last one too, with X kept by the workers or not."""
    options = {"sparsity": 0.5, "max_iter": 8, "tol": 0, "random_state": 0}
    wanted = pw.ssnmf(X, 4, **options)
    for when, share in fits:
        monkeypatch.setattr(cluster_data, "SHARE", share)
        kill = Kill(mortal, *when)
        result = pw.ssnmf(chunked(X), 4, callback=kill, **options)
        assert_same(result, wanted)
        assert len(set(kill.killed)) == len(when)
        del result
        assert_nothing_is_left(mortal)


@pytest.mark.heavy
@pytest.mark.parametrize("mortal", [1], indirect=True)
def test_activations_that_die_with_their_worker_say_so(mortal, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT)
    os.kill(*mortal.run(os.getpid).values(), signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"activations of chunk \d were lost with their worker: use transform"):
        result.activations.compute()

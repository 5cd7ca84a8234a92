"""Dask on a cluster of processes: the fit equals the one in memory, through failures and interrupts."""

import importlib
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from clusters import (  # noqa: F401  (fixtures)
    BAD,
    BAD_VALUES,
    ERRORS,
    FORMS,
    SHORT,
    assert_nothing_is_left,
    assert_same,
    assert_same_model,
    by_value,
    changed,
    chunked,
    cluster_data,
    connected,
    dask,
    distributed,
    eventually,
    failing,
    fall_behind,
    fresh,
    kept,
    lose_some,
    message_of,
    no_longer_than,
    on_a_cluster,
    one_cluster,
    small,
    stop,
    tasks,
)

import partwise as pw

by_value(sys.modules[__name__])


# The same fit


@pytest.mark.parametrize(("share", "form"), [(0.6, "dense"), (0.6, "CSR array"), (0, "dense"), (0, "CSR matrix")])
def test_a_fit_on_a_cluster_is_the_fit_in_memory(client, monkeypatch, share, form, X):
    monkeypatch.setattr(cluster_data, "SHARE", share)
    seen = []

    def look(iteration):
        if iteration.n_iter == 3:
            wanted = 6 if share else 0  # the chunks of X stay there only if they fit
            assert eventually(lambda: tasks(client)[1] == wanted), tasks(client)
            seen.append(kept(client))

    result = pw.ssnmf(chunked(X, FORMS[form]), 4, sparsity=0.5, callback=look, **SHORT)
    assert_same(result, pw.ssnmf(FORMS[form](X), 4, sparsity=0.5, **SHORT))
    assert seen == [6]
    del result
    assert_nothing_is_left(client)


@pytest.mark.filterwarnings("ignore:reached max_iter")
@pytest.mark.parametrize("form", ["dense", "CSR matrix"])
def test_the_estimator_on_a_cluster_is_the_one_in_memory(client, form, X):
    model = pw.SparseNMF(4, sparsity=(0.4, 0.6), max_iter=6, random_state=0)
    wanted = pw.SparseNMF(**model.get_params())
    activations, given = wanted.fit_transform(FORMS[form](X)), chunked(X, FORMS[form])
    found = model.fit_transform(given)
    assert_same_model(model, wanted)
    np.testing.assert_allclose(found.compute(), activations, atol=1e-8)
    np.testing.assert_allclose(model.transform(given).compute(), activations, atol=1e-8)
    assert model.score(given) == pytest.approx(wanted.score(X), abs=1e-8)
    assert_nothing_is_left(client)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["apart"], indirect=True)
@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_same_bits_for_any_placement_of_chunks(client, monkeypatch, X):
    options, parts = {"n_components": 4, "max_iter": 2, "n_init": 2, "random_state": 7}, []
    one, other = client.nthreads()
    for homes in ([one] * 6, [one, other] * 3, [other, one, one, other, other, other]):
        monkeypatch.setattr(cluster_data.HeldThere, "at_home", lambda _, places, h=homes: [h[p.index] for p in places])
        parts.append(pw.SparseNMF(**options).fit(chunked(X)).components_)
    np.testing.assert_array_equal(parts[0], parts[1])
    np.testing.assert_array_equal(parts[0], parts[2])
    np.testing.assert_allclose(parts[0], pw.SparseNMF(**options).fit(X).components_, atol=1e-8)


def test_transform_on_a_cluster_is_lazy(client, tmp_path, X):
    def count(block, number):
        (tmp_path / f"{number}-{time.time_ns()}").touch()
        return block

    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    activations = model.transform(changed(X, count))
    time.sleep(0.5)
    assert not [*tmp_path.iterdir()]
    np.testing.assert_allclose(activations.compute(), model.transform(X), atol=1e-12)
    assert len([*tmp_path.iterdir()]) == 6


def test_a_fit_in_a_task_of_the_only_thread(X):
    """The task leaves its thread to those that it waits for, and to others that come later."""

    def fit():
        return [pw.ssnmf(chunked(X), 4, sparsity=0.5, **SHORT).components for _ in range(2)]

    with connected(1, processes=False) as cluster, distributed.Client(cluster) as client, no_longer_than(120):
        wanted = pw.ssnmf(X, 4, sparsity=0.5, **SHORT).components
        for task in [client.submit(fit, pure=False) for _ in range(2)]:
            for components in task.result():
                np.testing.assert_allclose(components, wanted, atol=1e-8)
        assert client.submit(abs, -3).result() == 3
        assert eventually(lambda: kept(client) == 0)


def test_graphs_do_not_grow(client, X):
    """Between passes the scheduler holds the chunks of X and nothing else, after any number of passes."""
    seen = []

    def look(iteration):
        if iteration.n_iter in (1, 2, 5, 10, 20):
            eventually(lambda: tasks(client)[0] <= 6)
            seen.append(tasks(client))

    pw.ssnmf(chunked(X), 4, sparsity=0.5, tol=0, max_iter=20, random_state=0, callback=look)
    assert seen == [(6, 6, X.nbytes)] * 5


def test_scheduler_updates_do_not_disturb_a_fit(cluster, X):
    """A client requests them every few seconds (here constantly), and they do not list the workers."""
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        distributed.Client(cluster),
    ):
        assert_same(pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT))


def test_data_of_the_user_on_the_cluster_is_left_alone(client, X):
    given = chunked(X).persist()
    pw.ssnmf(given, 4, **SHORT)
    assert_nothing_is_left(client, but=6)
    np.testing.assert_array_equal(given.compute(), X)


def test_activations_on_the_cluster_last_as_long_as_the_result(client, X):
    result, wanted = pw.ssnmf(chunked(X), 4, **SHORT), pw.ssnmf(X, 4, **SHORT)
    assert eventually(lambda: kept(client) == 0)
    for _ in range(2):
        np.testing.assert_allclose(result.activations.compute(), wanted.activations, atol=1e-8)
    np.testing.assert_allclose(result.activations.sum(axis=0).compute(), wanted.activations.sum(axis=0))
    del result
    assert_nothing_is_left(client)


def test_activations_are_dropped_from_any_thread(client):
    """The garbage collector may run in any thread, including the client's."""
    client.run(lambda: importlib.import_module("partwise.data.visits").KEPT.update({("a fit", 0): None}))
    assert kept(client) > 0
    client.loop.add_callback(importlib.import_module("partwise.data.workers").forget_everywhere, client, "a fit")
    assert eventually(lambda: kept(client) == 0)


# What fails, stops or is lost


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


def test_a_callback_stops_the_fit_with_the_result_so_far(client, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT, callback=lambda it: it.n_iter == 4)
    assert_same(result, pw.ssnmf(X, 4, **SHORT, callback=lambda it: it.n_iter == 4))
    assert "stopped by the callback after iteration 4" in result.stop_reason
    del result
    assert_nothing_is_left(client)


def interrupt(times=1):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: signal.getsignal(signal.SIGINT) is signal.default_int_handler)  # signals may merge


def test_one_interrupt_keeps_the_result_so_far(client, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT, callback=lambda it: it.n_iter == 4 and interrupt())
    assert "interrupted after iteration" in result.stop_reason
    wanted = pw.ssnmf(X, 4, **SHORT | {"max_iter": result.n_iter})
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-8)
    np.testing.assert_allclose(result.activations.compute(), wanted.activations, atol=1e-8)


def test_an_interrupt_from_the_callback_leaves_nothing(client, X):
    with pytest.raises(KeyboardInterrupt):
        pw.ssnmf(chunked(X), 4, **SHORT, callback=stop(KeyboardInterrupt("enough")))
    assert_nothing_is_left(client)


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


@pytest.mark.parametrize("accident", [lose_some, fall_behind])
def test_activations_lost_by_workers_are_recomputed(client, accident, X):
    def there():
        accident(importlib.import_module("partwise.data.visits").KEPT)

    def spoil(iteration):
        if iteration.n_iter in (2, 5):
            client.run(there)

    result = pw.ssnmf(chunked(X), 4, sparsity=0.5, callback=spoil, **SHORT)
    assert_same(result, pw.ssnmf(X, 4, sparsity=0.5, **SHORT))


def test_timeout_error_of_a_task_is_raised(client):
    def fail():
        raise TimeoutError("the server does not answer")

    with pytest.raises(TimeoutError, match="the server does not answer"):
        importlib.import_module("partwise.data.workers").awaited(client, client.submit(fail), {*client.nthreads()})


# Workers that die


@pytest.fixture
def mortal(request):
    """A separate cluster whose workers a test may kill; nannies restart them."""
    with connected(request.param) as found, distributed.Client(found) as client, no_longer_than(900):
        yield client


class Kill:
    """A callback that kills the oldest worker at some iterations, once all are running."""

    def __init__(self, client, *when):
        self.client, self.when, self.killed = client, when, []
        self.workers = len(client.cluster.workers)

    def __call__(self, iteration):
        if iteration.n_iter in self.when:
            assert eventually(lambda: len(self.client.nthreads()) == self.workers, seconds=30)
            self.killed.append(min(self.client.run(os.getpid).values()))
            os.kill(self.killed[-1], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mortal", "fits"),
    [(2, [((5,), 0), ((2, 8), 0.6)]), (1, [((5,), 0.6)])],
    indirect=["mortal"],
    ids=["one, then one after the other", "the only one"],
)
def test_fit_survives_the_loss_of_workers(mortal, monkeypatch, fits, X):
    """Workers are killed at some iterations, including the last, with X persisted or not."""
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


@pytest.mark.slow
@pytest.mark.parametrize("mortal", [1], indirect=True)
def test_lost_activations_of_a_result_raise_an_error(mortal, X):
    result = pw.ssnmf(chunked(X), 4, **SHORT)
    os.kill(*mortal.run(os.getpid).values(), signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"activations of chunk \d were lost with their worker: call transform"):
        result.activations.compute()

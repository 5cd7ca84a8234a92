"""Dask arrays, clusters of processes, and fixtures for tests of both.

Import the fixtures into the test files that use them, so that other tests do not start a cluster.
"""

import gc
import importlib
import signal
import sys
import time
import traceback
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted

import partwise as pw

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
cluster_data = importlib.import_module("partwise.data.cluster")
visits = importlib.import_module("partwise.data.visits")
by_value = pytest.importorskip("cloudpickle").register_pickle_by_value  # workers cannot import test files
by_value(sys.modules[__name__])

CHUNKS = ((40, 10, 30, 1, 44, 25), 24)
SHORT = {"max_iter": 6, "tol": 0, "random_state": 0}
FORMS = {"dense": np.asarray, "CSR matrix": sp.csr_matrix, "CSR array": sp.csr_array, "CSC matrix": sp.csc_matrix}
BAD = 2  # the chunk that tests spoil: samples 50 to 79
ERRORS = {
    "value": ValueError("it cannot be read"),
    "runtime": RuntimeError("it cannot be read"),
    "chunk": RuntimeError("a chunk is missing"),
    "file": FileNotFoundError(2, "it is gone"),
    "key": KeyError(7),
    "bare": ZeroDivisionError(),
}
BAD_VALUES = {"NaN": (np.nan, "NaN"), "infinite": (np.inf, "infinity"), "negative": (-0.25, r"X\[77, 3\] is -0.25")}


@pytest.fixture(name="X")
def small(rng):
    """150 × 24, rank 4 plus noise, a third of it zero."""
    return np.maximum(planted(rng, n=150, m=24, r=4).X - 0.05, 0)


def chunked(X, form=np.asarray, chunks=CHUNKS):
    """X as a Dask array with chunks of the given form."""
    given = da.from_array(X, chunks=chunks)
    return given if form is np.asarray else given.map_blocks(form, dtype=X.dtype, meta=form(np.empty((0, 0), X.dtype)))


def changed(X, change):
    """A Dask array whose blocks are ``change(block, number)``, called only when it is computed."""

    def one(block, block_id=None):
        return change(block, block_id[0])

    return chunked(X).map_blocks(one, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))


def counted(X):
    """X in chunks, and the list of chunks computed so far."""
    seen = []

    def count(block, number):
        seen.append(number)
        return block

    return changed(X, count), seen


def assert_same(result, wanted, tol=1e-8):
    """The result for a Dask array equals the one in memory."""
    assert isinstance(result.activations, da.Array)
    assert result.components.dtype == wanted.components.dtype
    assert result.activations.dtype == wanted.activations.dtype
    np.testing.assert_allclose(result.components, wanted.components, atol=tol)
    np.testing.assert_allclose(result.activations.compute(), wanted.activations, atol=tol * wanted.activations.max())
    np.testing.assert_allclose(result.losses, wanted.losses, atol=tol * wanted.losses[0])
    assert result.relative_error == pytest.approx(wanted.relative_error, rel=1e-3 if tol > 1e-6 else 1e-6)
    assert (result.n_iter, result.stop_reason) == (wanted.n_iter, wanted.stop_reason)


def assert_same_model(model, wanted, tol=1e-8):
    """The fitted estimator equals the one in memory."""
    for name in ("components_", "explained_", "sparsity_", "reconstruction_err_", "n_iter_", "stop_reason_"):
        if name == "stop_reason_":
            assert model.stop_reason_ == wanted.stop_reason_
        else:
            np.testing.assert_allclose(getattr(model, name), getattr(wanted, name), atol=tol, err_msg=name)
    np.testing.assert_allclose(model.loss_curve_, wanted.loss_curve_, atol=tol * wanted.loss_curve_[0])


def eventually(true, seconds=20.0):
    """Whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        gc.collect()
        time.sleep(0.02)
    return True


@pytest.fixture(autouse=True)
def fresh():
    """Clear what earlier tests have left."""
    visits.KEPT.clear()


@pytest.fixture(name="scheduler", params=["threads", "synchronous"])
def own_scheduler(request):
    """Dask's own schedulers, with several threads on any machine."""
    assert cluster_data.active_client() is None
    with dask.config.set(scheduler=request.param, num_workers=3):
        yield request.param


@contextmanager
def connected(n, **options):
    """A cluster of n processes with loaded kernels."""
    with distributed.LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0", **options) as found:
        with distributed.Client(found):
            X = planted(np.random.default_rng(0), n=4, m=9, r=2).X
            pw.ssnmf(chunked(X, chunks=(1, 9)), 2, sparsity=0.3, max_iter=1, random_state=0)
        yield found


@contextmanager
def no_longer_than(seconds):
    """Fail instead of waiting forever."""

    def late(number, frame):
        pytest.fail(f"it takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(name="cluster", scope="module", params=["here", pytest.param("apart", marks=pytest.mark.slow)])
def one_cluster(request):
    """One worker in this process, or two in other processes."""
    with connected(2) if request.param == "apart" else connected(1, processes=False) as found:
        yield found


@pytest.fixture(name="client")
def on_a_cluster(cluster):
    with distributed.Client(cluster) as found, no_longer_than(900):
        assert cluster_data.active_client() is found
        found.run(lambda: importlib.import_module("partwise.data.visits").KEPT.clear())
        yield found


def kept(client):
    """The number of chunks whose activations the workers hold."""
    return sum(
        client.run(lambda: len(importlib.import_module("partwise.data.visits").KEPT), on_error="ignore").values()
    )


def tasks(client):
    """The scheduler's number of tasks and results, and their bytes."""

    def known(dask_scheduler):
        states = dask_scheduler.tasks.values()
        results = [state.nbytes for state in states if state.state == "memory"]
        return len(states), len(results), sum(results)

    return client.run_on_scheduler(known)


def assert_nothing_is_left(client, but=0):
    assert eventually(lambda: kept(client) == 0), f"activations of {kept(client)} chunks"
    assert eventually(lambda: tasks(client)[0] == but), f"{tasks(client)[0]} tasks instead of {but}"


def lose_some(kept):
    for key in [key for key in kept if key[1] in (0, 3)]:
        del kept[key]


def fall_behind(kept):
    for key, state in [*kept.items()]:
        kept[key] = state._replace(taken=state.taken - 1)


def stop(error):
    def callback(iteration):
        if iteration.n_iter == 3:
            assert visits.KEPT or cluster_data.active_client()
            raise error

    return callback


def failing(X, error):
    """X in chunks, one of which cannot be computed."""

    def fail(block, number):
        if number == BAD:
            raise error
        return block

    return changed(X, fail)


def message_of(error):
    """The complete text of an error."""
    return "".join(traceback.format_exception_only(error))

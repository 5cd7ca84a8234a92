"""Threads: the same bits for the same number, the same result up to rounding for others, and cleaning up."""

import multiprocessing
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import one_at_a_time
from threadpoolctl import threadpool_limits

import partwise as pw
from partwise.data import DenseData, visits
from partwise.runtime import compiled, threads
from partwise.runtime.threads import blas_threads, fitting_threads, in_parts

FIT = {"max_iter": 4, "tol": 0, "random_state": 0}


@pytest.fixture(scope="module", name="X")
def enough_for_two():
    """Enough features for kernels to use several threads."""
    rng = np.random.default_rng(0)
    return rng.random((20, 5)) @ rng.random((5, 36_000)) ** 4 + 0.01 * rng.random(36_000)


@pytest.fixture
def ranges(monkeypatch):
    """The ranges given to the threads."""
    seen = []
    original = threads.pool

    def pool(count):
        seen.append(count)
        return original(count)

    monkeypatch.setattr(threads, "pool", pool)
    monkeypatch.setattr(threads, "ALONE", 0)
    monkeypatch.setattr(threads, "LEAST", 8)
    return seen


def sparse(X):
    return sp.csr_array(np.where(np.quantile(X, 0.8) < X, X, 0).T)


KINDS = {"dense": np.asarray, "tall": lambda X: X.T.copy(), "CSR": sparse, "CSC": lambda X: sparse(X).tocsc()}


@pytest.mark.compiled
@one_at_a_time(sparsity=[0.5, None, (0.2, 0.4)], form=KINDS)
def test_number_of_threads_changes_only_rounding(X, form, sparsity, ranges):
    data = KINDS[form](X)
    one, two, again = (pw.ssnmf(data, 5, sparsity=sparsity, n_threads=n, **FIT) for n in (1, 2, 2))
    assert set(ranges) == {2}
    np.testing.assert_array_equal(two.components, again.components)
    np.testing.assert_array_equal(two.activations, again.activations)
    scale = abs(one.activations).max()
    np.testing.assert_allclose(one.components, two.components, atol=1e-8)
    np.testing.assert_allclose(one.activations, two.activations, atol=1e-8 * scale)


@pytest.mark.compiled
def test_fit_respects_the_thread_limit_of_blas(X, ranges):
    with threadpool_limits(limits=1):
        pw.ssnmf(sparse(X), 5, sparsity=0.5, **FIT)
    assert not ranges
    with threadpool_limits(limits=3):
        pw.ssnmf(sparse(X), 5, sparsity=0.5, **FIT)
    assert max(ranges) == 3


@pytest.mark.compiled
def test_estimators_take_n_threads(X, ranges):
    found = [pw.SparseNMF(5, sparsity=0.5, n_threads=n, **FIT | {"max_iter": 2}).fit(sparse(X)) for n in (1, 2)]
    assert set(ranges) == {2}
    np.testing.assert_allclose(found[0].components_, found[1].components_, atol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_thread_limits_are_restored(count):
    with threadpool_limits(limits=count):
        with fitting_threads(1e12, 2):
            assert blas_threads() == 1
            assert in_parts(lambda a, b: (a, b), 10, 5) == [(0, 5), (5, 10)]
        assert blas_threads() == count
        with fitting_threads(1.0, 2):
            assert blas_threads() == 1
            assert in_parts(lambda a, b: (a, b), 10, 5) == [(0, 10)]
        assert blas_threads() == count
    assert in_parts(lambda a, b: (a, b), 10, 5) == [(0, 10)]


def test_ranges_cover_everything_once_and_in_order():
    with fitting_threads(1e12, 4):
        for size in (1, 7, 8, 9, 1000):
            found = in_parts(lambda a, b: list(range(a, b)), size, 2)
            assert [i for part in found for i in part] == list(range(size))
            assert len(found) == min(4, max(size // 2, 1))


def test_scratch_memory_is_freed_after_a_fit():
    with fitting_threads(1.0):
        first = threads.scratch((2, 3), np.dtype("f4"))
        assert (first.shape, first.dtype) == ((2, 3), np.float32)
        assert threads.scratch((2, 3), np.dtype("f4")) is first
        assert threads.scratch((2, 3), np.dtype("f8")) is not first
        with fitting_threads(1.0):  # a fit inside of another has its own
            assert threads.scratch((2, 3), np.dtype("f4")) is not first
        assert threads.scratch((2, 3), np.dtype("f4")) is first
    assert threads.scratch((2, 3), np.dtype("f4")) is not threads.scratch((2, 3), np.dtype("f4"))


def test_errors_in_threads_are_raised():
    def fail(a, b):
        raise RuntimeError(f"from {a}")

    with fitting_threads(1e12, 2), pytest.raises(RuntimeError, match="from 0"):
        in_parts(fail, 10, 1)


def test_other_threads_leave_blas_alone():
    seen = []

    def work():
        with fitting_threads(1e12, 2):
            seen.append((blas_threads(), in_parts(lambda a, b: (a, b), 10, 5)))

    with threadpool_limits(limits=2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [(2, [(0, 10)])]


def fit_again(X):
    return pw.ssnmf(X, 5, sparsity=0.5, n_threads=2, **FIT).losses


@pytest.fixture
def child():
    """A forked process."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        yield pool


@pytest.fixture
def fitted(X, ranges):
    losses = fit_again(X)
    assert set(ranges) == {2}
    return losses


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(X, fitted, child):
    np.testing.assert_array_equal(child.apply_async(fit_again, [X]).get(timeout=30), fitted)


def free_locks():
    return [lock.acquire(blocking=False) for lock in (compiled.compiling.lock, visits.keeping)]


@pytest.fixture
def locked():
    with compiled.compiling.lock, visits.keeping:
        yield


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_locks_of_its_own(locked, child):
    assert child.apply_async(free_locks).get(timeout=30) == [True, True]


@pytest.mark.parametrize("shape", [(7, 40), (40, 7), (1, 40), (40, 1)])
def test_products_by_ranges_equal_whole_products(rng, shape, monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 8)
    wide, small, other = rng.random(shape), rng.random((3, shape[0])), rng.random((shape[0], 4))
    with fitting_threads(1e12, 3):
        out = np.full((3, shape[1]), np.nan)
        assert threads.product(small, wide, out) is out
        np.testing.assert_allclose(out, small @ wide, rtol=1e-12)
        np.testing.assert_allclose(threads.summed_product(wide, other), wide.T @ other, rtol=1e-12)


@pytest.mark.parametrize("n_threads", [0, 1.5, "many", True])
def test_bad_n_threads_is_rejected(n_threads):
    with pytest.raises(ValueError, match="n_threads"):
        pw.ssnmf(np.ones((4, 4)), 2, n_threads=n_threads)


def test_all_cores_but_some():
    from partwise.engine.validation import as_jobs

    assert as_jobs(-1, "n_threads") >= as_jobs(-2, "n_threads") >= 1
    assert as_jobs(np.int64(3), "n_threads") == 3


def test_starts_run_with_one_blas_thread():
    seen = []

    class Watching(DenseData):
        def times(self, vector, mode):
            seen.append(blas_threads())
            return super().times(vector, mode)

    with threadpool_limits(2, "blas"):
        pw.ssnmf(Watching(np.random.default_rng(0).random((30, 20))), 3, init="samples", max_iter=1, random_state=0)
    assert set(seen) == {1}

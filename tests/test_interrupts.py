"""Ctrl-C keeps the result so far; fits in other threads, which cannot catch signals."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from catalogues import planted

import partwise as pw
from partwise.runtime.interrupts import interrupts


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=25, m=30).X


class Interrupt:
    """A callback that presses Ctrl-C at some iterations."""

    def __init__(self, *when):
        self.when = when

    def __call__(self, iteration):
        if iteration.n_iter in self.when:
            os.kill(os.getpid(), signal.SIGINT)


def test_one_interrupt_keeps_the_result(X):
    before = signal.getsignal(signal.SIGINT)
    result = pw.ssnmf(X, 3, tol=0, max_iter=50, callback=Interrupt(4), random_state=0)
    assert signal.getsignal(signal.SIGINT) is before
    assert 4 <= result.n_iter <= 5
    assert f"interrupted after iteration {result.n_iter}" in result.stop_reason
    assert not result.converged
    whole = pw.ssnmf(X, 3, tol=0, max_iter=result.n_iter, random_state=0)
    np.testing.assert_array_equal(result.components, whole.components)
    assert result.relative_error == whole.relative_error


def test_a_second_interrupt_raises(X):
    before = signal.getsignal(signal.SIGINT)

    def twice(iteration):
        if iteration.n_iter == 2:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.02)  # signals in quick succession may merge into one

    with pytest.raises(KeyboardInterrupt):
        pw.ssnmf(X, 3, tol=0, max_iter=50, callback=twice, random_state=0)
    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_interrupts_stay_ignored(X):
    """Ctrl-C is not meant for a fit in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = pw.ssnmf(X, 3, tol=0, max_iter=4, callback=Interrupt(2), random_state=0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.n_iter == 4


def test_handlers_are_put_back_after_an_error(X):
    def mine(number, frame):
        raise AssertionError("not called")

    def fail(iteration):
        raise RuntimeError("from the callback")

    before = signal.signal(signal.SIGINT, mine)
    try:
        with pytest.raises(RuntimeError, match="from the callback"):
            pw.ssnmf(X, 3, callback=fail, random_state=0)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_may_fit(X):
    results = []
    threads = [threading.Thread(target=lambda: results.append(pw.ssnmf(X, 3, random_state=0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = pw.ssnmf(X, 3, random_state=0).components
    assert len(results) == 2
    for result in results:
        np.testing.assert_array_equal(result.components, wanted)


def test_an_interrupt_before_the_first_iteration_keeps_a_result():
    """The command line also handles Ctrl-C while X is read and checked."""
    X = np.random.default_rng(0).random((20, 10))
    with interrupts() as seen:
        seen.append(signal.SIGINT)
        model = pw.SparseNMF(2, n_init=3, random_state=0).fit(X)
    assert model.n_iter_ == 1
    assert model.stop_reason_.startswith("interrupted")

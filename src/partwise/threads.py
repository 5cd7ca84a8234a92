"""How many threads a fit takes, and who takes them: BLAS, or kernels of our own.

Threads of BLAS go on spinning for a while after each product, so that other threads beside them gain nothing (measured:
sparse products with two threads are 1.7 × faster than with one, and not at all while BLAS has two as well). Therefore a
fit gives all its threads to BLAS where products are BLAS's, and to kernels where they are not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ALONE = (2e7, 4e6)  # multiplications, of BLAS and of kernels, below which a second thread costs more than it gives

_threads: ContextVar[int] = ContextVar("threads", default=1)  # for kernels, in this context


@cache
def controller() -> Any:
    """The thread pools of this process; finding them takes a while."""
    return ThreadpoolController()


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for kernels."""
    return ThreadPoolExecutor(threads, thread_name_prefix="partwise")


def blas_threads() -> int:
    """How many threads the matrix products may take, as the environment or threadpoolctl has it."""
    return max((lib.num_threads for lib in controller().lib_controllers if lib.user_api == "blas"), default=1)


@contextmanager
def fitting_threads(multiplications: float, n_jobs: int | None = None, kernels: bool = False) -> Iterator[None]:
    """Let products take ``n_jobs`` threads, or as many as BLAS may; one for a small problem.

    ``kernels`` says that the products are kernels of our own (`in_parts`), not BLAS's. The limit of BLAS is the whole
    process's, so that only the main thread sets it: fits that run beside each other in other threads could not restore
    it in the right order.
    """
    may = blas_threads()
    threads = 1 if multiplications < ALONE[kernels] else may if n_jobs is None else n_jobs
    token = _threads.set(threads if kernels else 1)
    blas = 1 if kernels else threads
    try:
        if blas != may and threading.current_thread() is threading.main_thread():
            with controller().limit(limits=blas, user_api="blas"):
                yield
        else:
            yield
    finally:
        _threads.reset(token)


def in_parts(task: Callable[[int, int], Any], size: int, least: int) -> list[Any]:
    """``task(first, end)`` for equal parts of ``range(size)``, at least so long, one for each thread of the fit.

    The results come in order. Parts depend on the size and the number of threads alone, and so do the bits.
    """
    threads = max(min(_threads.get(), size // least), 1)
    if threads == 1:
        return [task(0, size)]
    bounds = [size * t // threads for t in range(threads + 1)]
    return list(pool(threads).map(task, bounds[:-1], bounds[1:]))

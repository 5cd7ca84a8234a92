"""Threads and scratch memory of a fit.

BLAS threads keep spinning after each product and slow down kernels, and BLAS splits tall, narrow products badly
(measured at 613,410 × 269, rank 40: two BLAS threads make the products 1.5 times faster and Gram matrices slower; two
of our threads make them 1.8 and 1.6 times faster). So BLAS is limited to one thread during a fit, and `in_parts` gives
each of our threads a range of rows.

A fit also reuses its scratch memory: allocating it anew in every pass costs as much as several passes over it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, reduce
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .arrays import Array, DType

T = TypeVar("T")


ALONE = 1e7  # multiplications below which a second thread does not pay
LEAST = 512  # minimum number of rows per thread in a product

_threads: ContextVar[int] = ContextVar("threads", default=1)  # number of threads of the current fit
_blas: ContextVar[int | None] = ContextVar("blas", default=None)  # BLAS threads before a fit limits them
_scratch: ContextVar[dict[tuple[tuple[int, ...], DType], Array] | None] = ContextVar("scratch", default=None)


def in_child(renew: Callable[[], Any]) -> None:
    """Call ``renew`` in every process forked from this one, where threads are gone and locks may stay taken."""
    if hasattr(os, "register_at_fork"):  # missing on Windows
        os.register_at_fork(after_in_child=renew)


@cache
def controller() -> Any:
    """The thread pools of this process. Cached, because finding them is slow."""
    return ThreadpoolController()


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """A pool of worker threads, reused by later fits."""
    return ThreadPoolExecutor(threads, thread_name_prefix="partwise")


in_child(pool.cache_clear)


def blas_threads() -> int:
    """Number of BLAS threads, as set by the environment or threadpoolctl."""
    return max((lib.num_threads for lib in controller().lib_controllers if lib.user_api == "blas"), default=1)


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Limit BLAS to one thread, and yield how many it had. Contexts within this one change nothing.

    The limit is global, and concurrent fits in several threads could not restore it in the right order. So outside the
    main thread it is not changed.
    """
    had = _blas.get()
    if had is not None:
        yield had
        return
    may = blas_threads()
    known = _blas.set(may)
    try:
        with controller().limit(limits=1, user_api="blas") if ours() and may > 1 else nullcontext():
            yield may
    finally:
        _blas.reset(known)


def ours() -> bool:
    """Whether this is the main thread."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def fitting_threads(multiplications: float, n_threads: int | None = None) -> Iterator[None]:
    """Give `in_parts` ``n_threads`` threads (default: as many as BLAS has), or one thread for a small problem.

    A fit outside the main thread uses one thread.
    """
    with one_blas_thread() as may:
        threads = 1 if multiplications < ALONE else may if n_threads is None else n_threads
        taken, kept = _threads.set(threads if ours() else 1), _scratch.set({})
        try:
            yield
        finally:
            _threads.reset(taken)
            _scratch.reset(kept)


def scratch(shape: tuple[int, ...], dtype: DType) -> Array:
    """An uninitialised array. Within a fit, each call with the same arguments returns the same array."""
    kept = _scratch.get()
    if kept is None:
        return np.empty(shape, dtype=dtype)
    if (shape, dtype) not in kept:
        kept[shape, dtype] = np.empty(shape, dtype=dtype)
    return kept[shape, dtype]


def in_parts(task: Callable[[int, int], T], size: int, least: int) -> list[T]:
    """Run ``task(first, end)`` on equal parts of ``range(size)``, one per thread, and return the results in order.

    Each part has at least ``least`` elements. The parts depend only on the size and the number of threads, so that
    results are reproducible bit for bit.
    """
    threads = min(_threads.get(), size // least)
    if threads <= 1:
        return [task(0, size)]
    bounds = [size * t // threads for t in range(threads + 1)]
    return list(pool(threads).map(task, bounds[:-1], bounds[1:]))


def product(small: Array, wide: Array, out: Array | None = None) -> Array:
    """small · wide; each thread computes some of the columns."""
    if out is None:
        out = np.empty((len(small), wide.shape[1]), dtype=wide.dtype)
    in_parts(lambda a, b: np.matmul(small, wide[:, a:b], out=out[:, a:b]), wide.shape[1], LEAST)
    return out


def summed_product(left: Array, right: Array) -> Array:
    """leftᵀ · right; each thread sums over some of the rows."""
    return reduce(np.add, in_parts(lambda a, b: left[a:b].T @ right[a:b], len(left), LEAST))

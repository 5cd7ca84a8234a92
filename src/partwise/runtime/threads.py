"""What a fit takes of the machine. Its threads are ours: BLAS works in each of them by itself.

Threads of BLAS go on spinning for a while after each product, so that kernels beside them gain nothing, and BLAS cuts
tall and narrow products badly (measured at 613,410 × 269, rank 40: two threads of BLAS make the products 1.5 × faster
and Gram matrices slower, two of ours 1.8 × and 1.6 ×). Therefore BLAS gets one thread for the time of a fit, and
`in_parts` gives a range of rows to each of ours.

A fit keeps its scratch memory too: new memory costs as much at every pass as going through it several times.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

Array = npt.NDArray[Any]

ALONE = 1e7  # multiplications, below which a second thread costs more than it gives
LEAST = 512  # rows for which a thread of their own pays in a product

_threads: ContextVar[int] = ContextVar("threads", default=1)  # of the fit in this context
_scratch: ContextVar[dict[Any, Array] | None] = ContextVar("scratch", default=None)


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
def fitting_threads(multiplications: float, n_threads: int | None = None) -> Iterator[None]:
    """Let `in_parts` take ``n_threads`` threads, or as many as BLAS may; one for a small problem.

    The limit of BLAS is the whole process's, and fits that run beside each other in several threads could not restore
    it in the right order: outside of the main thread, a fit takes no threads of its own and leaves BLAS alone.
    """
    may = blas_threads()
    threads = 1 if multiplications < ALONE else may if n_threads is None else n_threads
    ours = threading.current_thread() is threading.main_thread()
    taken, kept = _threads.set(threads if ours else 1), _scratch.set({})
    try:
        with controller().limit(limits=1, user_api="blas") if ours and may > 1 else nullcontext():
            yield
    finally:
        _threads.reset(taken)
        _scratch.reset(kept)


def scratch(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array to overwrite: in a fit the same one at each call, so one caller at a time."""
    kept = _scratch.get()
    if kept is None:
        return np.empty(shape, dtype=dtype)
    if (shape, dtype) not in kept:
        kept[shape, dtype] = np.empty(shape, dtype=dtype)
    return kept[shape, dtype]


def in_parts(task: Callable[[int, int], Any], size: int, least: int) -> list[Any]:
    """``task(first, end)`` for equal parts of ``range(size)``, at least so long, one for each thread of the fit.

    The results come in order. Parts depend on the size and the number of threads alone, and so do the bits.
    """
    threads = max(min(_threads.get(), size // least), 1)
    if threads == 1:
        return [task(0, size)]
    bounds = [size * t // threads for t in range(threads + 1)]
    return list(pool(threads).map(task, bounds[:-1], bounds[1:]))


def product(small: Array, wide: Array, out: Array | None = None) -> Array:
    """small · wide, each thread of the fit with some columns of ``wide``."""
    if out is None:
        out = np.empty((len(small), wide.shape[1]), dtype=wide.dtype)
    in_parts(lambda a, b: np.matmul(small, wide[:, a:b], out=out[:, a:b]), wide.shape[1], LEAST)
    return out


def summed_product(left: Array, right: Array) -> Array:
    """leftᵀ · right, each thread of the fit with some of their rows."""
    return reduce(np.add, in_parts(lambda a, b: left[a:b].T @ right[a:b], len(left), LEAST))

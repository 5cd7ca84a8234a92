"""How many threads the matrix products take."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ALONE = 2e7  # multiplications below which a second thread costs more than it gives


@cache
def controller() -> Any:
    """The thread pools of this process; finding them takes a while."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(multiplications: float) -> Iterator[None]:
    """One thread for the products of a small problem, which else wait for each other; otherwise as they are set.

    The limit is the whole process's, so that only the main thread sets it: fits that run beside each other in other
    threads could not restore it in the right order.
    """
    if multiplications < ALONE and threading.current_thread() is threading.main_thread():
        with controller().limit(limits=1, user_api="blas"):
            yield
    else:
        yield

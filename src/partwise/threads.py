"""How many threads the matrix products take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

ALONE = 2e7  # multiplications below which a second thread costs more than it gives

_lock = Lock()
_limits: list[Any] = []  # one entry for each small fit under way: the limit itself, then None for those that share it


@cache
def controller() -> Any:
    """The thread pools of this process; finding them takes a while."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(multiplications: float) -> Iterator[None]:
    """One thread for the products of a small problem, which else wait for each other; otherwise as they are set.

    The limit is the process's: fits that overlap share one, and the last of them lifts it.
    """
    if multiplications >= ALONE:
        yield
        return
    with _lock:
        _limits.append(None if _limits else controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            shared = _limits.pop()
            if shared is not None:
                shared.restore_original_limits()

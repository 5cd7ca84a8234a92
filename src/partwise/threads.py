"""How many threads the matrix products take."""

from __future__ import annotations

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
    """One thread for the products of a small problem, which else wait for each other; otherwise as they are set."""
    if multiplications < ALONE:
        with controller().limit(limits=1, user_api="blas"):
            yield
    else:
        yield

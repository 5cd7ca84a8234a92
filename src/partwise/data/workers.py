"""The workers of a Dask cluster, as its client sees them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import dask
import numpy as np

from .visits import LostError, forget, forget_there

PATIENCE = 1.0  # seconds to wait for an answer before a look whether those who are asked are still there


def active_client() -> Any:
    """The active `distributed.Client`, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def awaited(client: Any, future: Any, homes: set[str]) -> Any:
    """The result of a future; raises LostError if one of the workers that its tasks are bound to is gone."""
    from distributed import wait

    patience = PATIENCE
    while True:
        try:
            wait(future, timeout=PATIENCE)
            return future.result(timeout=patience)
        except TimeoutError:
            if future.status == "error":  # the task's own
                raise
            if not homes <= set(client.nthreads()):
                raise LostError("a worker is gone") from None
            if future.done():  # a large result takes its time
                patience *= 2


def staying_at(home: str | None) -> Any:
    """Tasks made inside go to that worker, and to no other."""
    return dask.annotate(workers=[home]) if home else nullcontext()


def memory(client: Any) -> float:
    """The bytes of memory that the workers have; infinite if one has no limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return float(sum(worker["memory_limit"] or np.inf for worker in workers))


def forget_everywhere(client: Any, fit: str) -> None:
    """Drop what a fit has left in the workers."""
    forget(fit)
    if client is not None and client.status == "running":
        order = partial(client.run, forget_there, fit, wait=False)
        if client.asynchronous:  # the garbage collector has come by in the client's own thread, which awaits it later
            client.loop.add_callback(order)
        else:
            order()

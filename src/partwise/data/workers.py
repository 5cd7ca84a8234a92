"""Communication between the client and the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
import numpy as np

from .visits import LostError, forget, forget_there

if TYPE_CHECKING:  # distributed is optional
    from distributed import Client, Future

PATIENCE = 1.0  # seconds to wait for a result before checking that its workers are alive


def active_client() -> Any:
    """Return the active `distributed.Client`, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def leave_thread() -> None:
    """Inside of a Dask task, leave the worker's thread to the tasks that this one will wait for."""
    from distributed import secede

    with suppress(ValueError, KeyError, AttributeError):  # not in a task, or it has left already
        secede()


def awaited(client: Client, future: Future, homes: set[str]) -> Any:
    """Return the result of a future, once it is there. Raises LostError if one of ``homes``, its workers, is gone."""
    from distributed import wait

    patience = PATIENCE
    while True:
        try:
            wait(future, timeout=PATIENCE)
            return future.result(timeout=patience)
        except TimeoutError:
            if future.status == "error":  # the task itself raised TimeoutError
                raise
            if not homes <= set(client.nthreads()):
                raise LostError("a worker is gone") from None
            if future.done():  # transferring a large result takes time
                patience *= 2


def staying_at(home: str | None) -> AbstractContextManager[None]:
    """Return a context in which tasks are restricted to one worker; None: to any."""
    return dask.annotate(workers=[home]) if home else nullcontext()


def memory(client: Client) -> float:
    """The total memory of the workers in bytes; infinite if one of them has no limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return float(sum(worker["memory_limit"] or np.inf for worker in workers))


def forget_everywhere(client: Client | None, fit: str) -> None:
    """Free the activations of a fit on all workers."""
    forget(fit)
    if client is not None and client.status == "running":
        order = partial(client.run, forget_there, fit, wait=False)
        if client.asynchronous:  # garbage collection runs in the client's own thread, which cannot block here
            client.loop.add_callback(order)
        else:
            order()

"""Ctrl-C, noted instead of raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_watching: list[list[int]] = []


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collect the first Ctrl-C in a list instead of raising it; the second one raises as usual.

    Inside of another such context the same list is given, so that a fit made of several fits stops as a whole. A
    process that ignores Ctrl-C, as a script's background processes do, goes on ignoring it.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    if _watching:
        yield _watching[-1]
        return

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):  # None: a handler that Python did not install and cannot put back
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.pop()
        signal.signal(signal.SIGINT, before)

"""Defer Ctrl-C until a fit can stop cleanly."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_watching: list[list[int]] = []


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Append the first Ctrl-C to the yielded list instead of raising; the second one raises as usual.

    A nested context yields the same list, so that a fit made of several fits stops as a whole. If the process ignores
    Ctrl-C, as background processes of a script do, it is still ignored.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    if _watching:
        yield _watching[-1]
        return

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):  # None: a handler that Python did not install and cannot restore
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.pop()
        signal.signal(signal.SIGINT, before)

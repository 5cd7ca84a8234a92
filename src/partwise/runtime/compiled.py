"""How Partwise compiles its kernels and keeps them, and a clock that stands still meanwhile.

Kernels are plain functions of arrays and numbers that also run as ordinary Python (``NUMBA_DISABLE_JIT=1``). Each is
compiled at its first call and kept on disk, so that the next process only has to load it.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.core.sigutils import normalize_signature

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger("partwise")
WAIT = "compiling for this machine: a few seconds, at the first use only ..."

# Sums may be reassociated: without that they do not vectorise. NaN and infinity keep their meaning (no nnan, no ninf).
FASTMATH = {"reassoc", "contract", "nsz"}
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call. Kernels call pieces and loops, never each other."""
    return _compile(function)


def piece(function: Function) -> Function:
    """A part of kernels, compiled as if it were written out in each of them.

    A kernel that is called by another would exist twice, optimised in different surroundings, and its last digits would
    depend on which of the two the cache held.
    """
    return _compile(function, inline="always")


def loop(function: Function) -> Function:
    """The same as `piece` for one loop over vectors, which then vectorises better. Only kernels can call it."""
    return _compile(function, forceinline=True, no_cpython_wrapper=True)


def _compile(function: Function, **options: Any) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(all="ignore")(function)  # overflow is as silent as in compiled code
    compiled = numba.njit(**OPTIONS, **options)(function)
    compiled._compile_for_args = compiling.timed(compiled._compile_for_args)
    compiled.files = source_files(function)
    try:
        compiled._cache = Cache(function, digest(compiled.files))
    except RuntimeError as error:  # neither the installation nor the user's cache can be written to
        log.debug("%s is compiled in every process: %s", function.__name__, error)
    return compiled


def source_files(function: Callable[..., Any]) -> frozenset[str]:
    """The files that decide what a kernel becomes: its own, those of the pieces it imports, and this one."""
    imported: list[frozenset[str]] = [getattr(value, "files", frozenset()) for value in function.__globals__.values()]
    return frozenset({function.__code__.co_filename, __file__}).union(*imported)


@cache
def digest(files: frozenset[str]) -> str:
    """A digest of what these files hold."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in sorted(files))).hexdigest()


class Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk. It is good for the given sources alone, and a fit works without it too.

    numba itself looks at a kernel's own file only, fails on a damaged file or a full disk, and can be misled by two
    processes that write the first two versions of one kernel at the same moment.
    """

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = stamp

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for this signature, or None."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # whatever a damaged file makes pickle raise
            log.debug("a kernel in the cache cannot be read and is compiled again: %r", error)
            return None
        return found if found is None or found.signature.args == tuple(normalize_signature(sig)[0]) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if the disk allows it."""
        for _ in range(2):
            try:
                return super().save_overload(sig, data)
            except Exception as error:
                log.debug("a compiled kernel cannot be kept: %r", error)
                with suppress(OSError):
                    self.flush()  # a damaged index is replaced by an empty one


class Compiling(Listener):  # type: ignore[misc]
    """Counts the seconds that go into compiling and loading kernels, and says once in each process that it compiles."""

    def __init__(self) -> None:
        self.active, self.since, self.seconds, self.said = 0, 0.0, 0.0, False
        self.lock = threading.Lock()

    def timed(self, compile_for: Callable[..., Any]) -> Callable[..., Any]:
        """What a kernel does when it meets new types, with its time taken: once, if threads do it together."""

        @wraps(compile_for)
        def compile_timed(*args: Any, **kwargs: Any) -> Any:
            with self.lock:
                if not self.active:
                    self.since = time.perf_counter()
                self.active += 1
            try:
                return compile_for(*args, **kwargs)
            finally:
                with self.lock:
                    self.active -= 1
                    if not self.active:
                        self.seconds += time.perf_counter() - self.since

        return compile_timed

    def on_start(self, event: Event) -> None:
        """Tell a person who waits why: in a terminal or a notebook by a line, elsewhere in the log.

        The logger silences the line too, at a level above WARNING. Worker processes say nothing.
        """
        if self.said or not self.active or multiprocessing.current_process().name != "MainProcess":
            return
        self.said = True
        if sys.stderr is None or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            log.info(WAIT)
        elif log.isEnabledFor(logging.WARNING):
            sys.stderr.write(f"partwise: {WAIT}\n")
            sys.stderr.flush()

    def on_end(self, event: Event) -> None:
        """Nothing more to say."""


compiling = Compiling()
register("numba:compile", compiling)


def clock() -> float:
    """Seconds on a clock that stands still while kernels are compiled."""
    now = time.perf_counter()
    return now - compiling.seconds - (now - compiling.since if compiling.active else 0.0)

"""Compile kernels with numba, cache them on disk, and exclude the time this takes from measurements (`clock`).

Kernels are plain functions of arrays and numbers, and also run as ordinary Python (``NUMBA_DISABLE_JIT=1``). Each is
compiled at its first call. Later processes load it from the cache.
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
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.core.runtime import rtsys
from numba.core.sigutils import normalize_signature

from .threads import in_child

Function = TypeVar("Function", bound=Callable[..., Any])

log = logging.getLogger("partwise")
WAIT = "compiling for this machine: a few seconds, at the first use only ..."

# Sums vectorise only if they may be reassociated. NaN and infinity are still handled correctly (no nnan, no ninf).
FASTMATH = {"reassoc", "contract", "nsz"}
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile ``function`` at its first call. Kernels call pieces and loops, never each other."""
    return _compile(function)


def piece(function: Function) -> Function:
    """A function that numba inlines into the kernels that call it.

    A kernel called from another kernel would be compiled twice, in different contexts, and rounding would depend on
    which version was in the cache.
    """
    return _compile(function, inline="always")


def loop(function: Function) -> Function:
    """A `piece` with one loop over vectors. LLVM inlines it, which vectorises better. Only kernels can call it."""
    return _compile(function, forceinline=True, no_cpython_wrapper=True)


def apart(function: Function) -> Function:
    """A `loop` that is given arrays without common memory.

    LLVM compares the addresses of vectors before it enters a loop, lest writing one changes another. For short vectors
    this takes longer than the loop itself, and numba has no option to omit it.
    """
    compiled: Any = loop(function)
    if hasattr(compiled, "_compiler"):
        compiled._compiler._customize_flags = _without_overlap
    return compiled  # type: ignore[no-any-return]


def _without_overlap(flags: Any) -> Any:
    flags.noalias = True
    return flags


def _compile(function: Function, **options: bool | str) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(all="ignore")(function)  # compiled code does not warn of overflow either
    compiled = numba.njit(**OPTIONS, **options)(function)
    compiled._compile_for_args = compiling.timed(compiled._compile_for_args)
    compiled.files = source_files(function)
    try:
        compiled._cache = Cache(function, digest(compiled.files))
    except RuntimeError as error:  # no cache directory is writable
        log.debug("%s is compiled anew in every process: %s", function.__name__, error)
    return compiled


def source_files(function: Callable[..., object]) -> frozenset[str]:
    """The files that a compiled kernel depends on: its own, those of the pieces it imports, and this one."""
    imported: list[frozenset[str]] = [getattr(value, "files", frozenset()) for value in function.__globals__.values()]
    return frozenset({function.__code__.co_filename, __file__}).union(*imported)


@cache
def digest(files: frozenset[str]) -> str:
    """A digest of the contents of ``files``."""
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in sorted(files))).hexdigest()


class Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk, made safe: entries are valid only for the given sources, and errors never stop a fit.

    numba's own cache checks only the file that defines the kernel, raises on a damaged file or a full disk, and can
    return the wrong version if two processes write the first two versions of a kernel at the same time.
    """

    def __init__(self, function: Callable[..., object], stamp: str) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = stamp

    def load_overload(self, sig: object, target_context: object) -> Any:
        """The compiled function for this signature, or None.

        numba would first import all that it can compile, which takes half a second and 25 MB. A kernel that is compiled
        already needs numba's memory management only.
        """
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except Exception as error:  # unpickling a damaged file can raise anything
            log.debug("cannot read a kernel from the cache; compiling it again: %r", error)
            return None
        return found if found is None or found.signature.args == tuple(normalize_signature(sig)[0]) else None

    def save_overload(self, sig: object, data: object) -> None:
        """Store a compiled function, if possible."""
        for _ in range(2):
            try:
                return super().save_overload(sig, data)
            except Exception as error:
                log.debug("cannot store a compiled kernel in the cache: %r", error)
                with suppress(OSError):
                    self.flush()  # replace a damaged index by an empty one, then try again


class Compiling(Listener):  # type: ignore[misc]
    """Measures the time spent compiling and loading kernels, and announces compilation once per process."""

    def __init__(self) -> None:
        self.since, self.seconds, self.announced = 0.0, 0.0, False
        self.forget()

    def forget(self) -> None:
        """Forget the threads that compile now."""
        self.active, self.lock = 0, threading.Lock()

    def timed(self, compile_for: Callable[..., object]) -> Callable[..., object]:
        """Wrap numba's compile step to measure its time. Time in which several threads compile counts once."""

        @wraps(compile_for)
        def compile_timed(*args: object, **kwargs: object) -> object:
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
        """Announce compilation: a line on stderr in a terminal or notebook, a log entry elsewhere.

        A logger level above WARNING silences the line too. Worker processes print nothing.
        """
        if self.announced or not self.active or multiprocessing.current_process().name != "MainProcess":
            return
        self.announced = True
        if sys.stderr is None or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            log.info(WAIT)
        elif log.isEnabledFor(logging.WARNING):
            sys.stderr.write(f"partwise: {WAIT}\n")
            sys.stderr.flush()

    def on_end(self, event: Event) -> None:
        """Required by numba; does nothing."""


compiling = Compiling()
register("numba:compile", compiling)
in_child(compiling.forget)


AWAY: ContextVar[float] = ContextVar("AWAY", default=0.0)  # seconds that fits next to this one have taken


def clock() -> float:
    """Seconds of this fit, not counting the time in which kernels are compiled or loaded, or other fits run."""
    return seconds() - AWAY.get()


def seconds() -> float:
    """Seconds elapsed, not counting the time in which kernels are compiled or loaded."""
    now = time.perf_counter()
    return now - compiling.seconds - (now - compiling.since if compiling.active else 0.0)

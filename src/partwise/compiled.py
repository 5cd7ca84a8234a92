"""How Partwise compiles its kernels.

Kernels are plain functions of arrays and numbers that also run as ordinary Python (``NUMBA_DISABLE_JIT=1``).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function``, keeping IEEE arithmetic."""
    return _compile(function, fastmath=False)


def piece(function: Function) -> Function:
    """The same, for a part of other kernels that has a `reduction` in it: compiled into each that calls it.

    Otherwise it would be there twice, optimised in other surroundings, by itself and in its caller, and which of them
    runs would depend on what the cache held when the process began: the same seed would not give the same bits.
    """
    return _compile(function, fastmath=False, forceinline=True)


def reduction(function: Function) -> Function:
    """The same as `piece`, letting sums be reassociated: without that they do not vectorise.

    NaN and infinity keep their meaning (no ``nnan``, no ``ninf``).
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"}, forceinline=True)


def _compile(function: Function, **options: Any) -> Function:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return np.errstate(all="ignore")(function)  # overflow is as silent as in compiled code
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:  # neither the install nor the user's cache can be written
        logging.getLogger(__name__).debug("%s is compiled anew: %s", function.__name__, error)
        return numba.njit(**options)(function)
    if hasattr(compiled, "_cache"):
        # numba's cache looks at a kernel's own file only, and would go on using kernels that others were inlined into.
        compiled._cache._cache_file._source_stamp = sources()
    return compiled


@cache
def sources() -> str:
    """A digest of the package's sources: a kernel in the cache is good for these alone."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()

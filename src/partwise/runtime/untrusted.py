"""Rules for reading files that may be damaged or hostile: one error, one limit on memory, and safe text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

FLOOR = 2**28  # bytes of memory that any file may take: a brain mask of 100 kB takes nearly as much
RATIO = 1000  # bytes of memory that a byte on disk may take
ASSUMED = 2**33  # bytes of memory of a machine that does not tell

_max_bytes: ContextVar[int | None] = ContextVar("max_bytes", default=None)


class UnreadableError(ValueError):
    """Raised for a file that cannot be read: damaged, too new, not what its name says, or too large."""


@contextmanager
def reading(source: object) -> Iterator[None]:
    """Turn whatever a library raises into an `UnreadableError` of one sentence that names the file."""
    try:
        yield
    except (UnreadableError, ImportError):  # ImportError: an optional dependency is missing
        raise
    except Exception as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)  # strerror: without number and path
        lines = reason.strip().splitlines()
        text = lines[0] if lines else ""
        kinds = {
            MemoryError: "not enough memory",
            RecursionError: "nested too deeply",
            UnicodeDecodeError: "its text is not in UTF-8: save it as UTF-8",
        }
        kind = next((kind for which, kind in kinds.items() if isinstance(error, which)), None)
        name = type(error).__name__ if isinstance(error, LookupError) or not text else ""
        raise UnreadableError(f"{source} cannot be read: {kind or ': '.join(filter(None, (name, text)))}") from error


@contextmanager
def limited(max_bytes: int | None) -> Iterator[None]:
    """Set the limit of `allow`; None leaves it as it is."""
    token = _max_bytes.set(_max_bytes.get() if max_bytes is None else max_bytes)
    try:
        yield
    finally:
        _max_bytes.reset(token)


def allow(path: str | os.PathLike[str], claimed: int, *others: str | os.PathLike[str]) -> None:
    """Raise `UnreadableError` if a file, or several together, would take ``claimed`` bytes of memory, and may not.

    Files may take as many bytes as they have. If they are compressed, they may take a thousand times as many, up to
    half of the free memory.

    >>> allow(os.devnull, 10**7)
    >>> allow(os.devnull, 10**9)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    partwise.runtime.untrusted.UnreadableError: ... takes 1.0 GB of memory and has 0 B on disk; the limit is ...
    """
    limit = _max_bytes.get()
    if claimed <= (FLOOR if limit is None else limit):
        return
    held = sum(map(size_of, {path, *others}))
    if limit is None:
        limit = max(FLOOR, held, min(RATIO * held, free_memory() // 2))
    if claimed > limit:
        raise UnreadableError(
            f"{os.fspath(path)} takes {in_units(claimed)} of memory and has {in_units(held)} on disk; "
            f"the limit is {in_units(limit)}: raise max_bytes if you trust the file"
        )


def size_of(path: str | os.PathLike[str]) -> int:
    """The bytes of a file, or of all files in a folder."""
    if not os.path.isdir(path):
        return os.stat(path).st_size
    return sum(os.stat(file).st_size for file in files_in(path))


def files_in(folder: str | os.PathLike[str]) -> Iterator[str]:
    """All files in a folder and its subfolders. Links are followed, because many data sets are made of them."""
    seen: set[str] = set()
    for home, folders, names in os.walk(folder, followlinks=True):
        if os.path.realpath(home) in seen:  # a link to a folder that contains it
            folders.clear()
            continue
        seen.add(os.path.realpath(home))
        yield from (os.path.join(home, name) for name in names if os.path.isfile(os.path.join(home, name)))


def free_memory() -> int:
    """Bytes of memory that are available, or, where the system does not tell, of all memory."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pages = getattr(os, "sysconf_names", {})
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_PHYS_PAGES" in pages else ASSUMED


def in_units(count: float) -> str:
    """A number of bytes for people.

    >>> in_units(70), in_units(3_400_000_000)
    ('70 B', '3.4 GB')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def visible(text: str) -> str:
    r"""Text with control characters, except line feeds, as JSON escapes.

    Names in a file must not control the terminal, and fonts have no glyphs for control characters.

    >>> visible("gene\x1b[2J")
    'gene\\u001b[2J'
    """
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)

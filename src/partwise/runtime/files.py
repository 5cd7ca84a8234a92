"""The one way to write a file: whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write a file (or a folder) to, which takes the place of ``path`` when the block ends without an error.

    The path has the name of the target, whose ending many writers go by, and lies in a temporary folder beside it. All
    bytes are on the disk before the target is replaced, so that a crash leaves the old file or the new one. An error
    leaves the old one alone, and nothing else behind. A new file has the permissions of the one that it replaces.

    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as fresh:
    ...         _ = fresh.write_text("all of it")
    ...     print(Path(folder, "a.txt").read_text(), os.listdir(folder))
    all of it ['a.txt']
    """
    target = Path(os.path.realpath(path))  # what a link points to, not the link
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{target} is not a regular file and is not replaced: remove it, or give another name")
    with _folder_beside(target) as folder:
        fresh = Path(folder, target.name)
        yield fresh
        for home, _, names in os.walk(folder):
            for name in names:
                with open(Path(home, name), "rb+") as file:
                    os.fsync(file.fileno())
            _flush_folder(home)
        if target.is_file():
            fresh.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(fresh, target)
    _flush_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `replacing` would raise before anything is written."""
    _folder_beside(Path(os.path.realpath(path))).cleanup()


def leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """The temporary folders of processes that were killed while they wrote ``path``."""
    target = Path(os.path.realpath(path))
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.tmp")
    return [entry for entry in target.parent.iterdir() if pattern.fullmatch(entry.name)]


def _folder_beside(target: Path) -> TemporaryDirectory[str]:
    """A new folder on the target's disk that no one else can write to."""
    try:
        return TemporaryDirectory(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent, ignore_cleanup_errors=True
        )
    except OSError as error:  # it names a folder that no one has asked for
        raise type(error)(error.errno, error.strerror, os.fspath(target)) from None


def _flush_folder(path: str | os.PathLike[str]) -> None:
    """Write the names in a folder to the disk, where the system allows it (Windows does not)."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

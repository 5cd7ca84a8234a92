"""Write files atomically."""

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
    """Yield a temporary path, and move the file (or folder) written there to ``path`` if no error occurs.

    The temporary path is in a new folder beside ``path`` and has the same name, because many writers choose the format
    by the extension. All bytes are flushed to disk before the move, so that a crash leaves either the old or the new
    file. After an error the old file is unchanged. The new file gets the permissions of the file it replaces.

    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as fresh:
    ...         _ = fresh.write_text("all of it")
    ...     print(Path(folder, "a.txt").read_text(), os.listdir(folder))
    all of it ['a.txt']
    """
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    if target.exists() and not target.is_file():
        raise FileExistsError(f"{target} exists and is not a regular file: remove it, or give another name")
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
    """Raise the OSError that `replacing` would raise, without writing anything."""
    _folder_beside(Path(os.path.realpath(path))).cleanup()


def leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """Temporary folders left by processes that were killed while writing ``path``."""
    target = Path(os.path.realpath(path))
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.tmp")
    return [entry for entry in target.parent.iterdir() if pattern.fullmatch(entry.name)]


def _folder_beside(target: Path) -> TemporaryDirectory[str]:
    """Create a private temporary folder on the same disk as ``target``."""
    try:
        return TemporaryDirectory(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent, ignore_cleanup_errors=True
        )
    except OSError as error:  # report the target's path, not the temporary one
        raise type(error)(error.errno, error.strerror, os.fspath(target)) from None


def _flush_folder(path: str | os.PathLike[str]) -> None:
    """Flush a folder's entries to disk, where the system supports it (Windows does not)."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

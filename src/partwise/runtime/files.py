"""Write files atomically."""

from __future__ import annotations

import errno
import os
import platform
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from zlib import crc32

MACHINE = f"{crc32(platform.node().encode()):08x}"
TEMPORARY = re.compile(r"\.partwise-(?P<machine>[0-9a-f]{8})-(?P<process>\d{1,9})-[a-z0-9_]{8}\.tmp")
DAY = 24 * 3600  # seconds


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
    target = replaced_path(path)
    with _beside(target) as fresh:
        yield fresh
        for home, _, names in os.walk(fresh.parent):
            for name in names:
                with open(Path(home, name), "rb+") as file:
                    os.fsync(file.fileno())
            _flush_folder(home)
        if target.is_file():
            fresh.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(fresh, target)
    _flush_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `replacing` would raise. ``path`` stays unchanged."""
    with _beside(replaced_path(path)) as fresh:
        fresh.touch()


def replaced_path(path: str | os.PathLike[str]) -> Path:
    """The path that `replacing` replaces: the target of a link, not the link. Only regular files can be replaced."""
    target = os.path.realpath(path)
    if (os.path.exists(path) or os.path.lexists(target)) and not os.path.isfile(path):  # a pipe has no target
        raise FileExistsError(errno.EEXIST, "it is not a regular file: give another name", os.fspath(path))
    return Path(target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a path with the name of ``target`` in a new private folder on the same disk. Errors name ``target``."""
    remove_abandoned(target.parent)
    prefix = f".partwise-{MACHINE}-{os.getpid()}-"
    try:
        with TemporaryDirectory(prefix=prefix, suffix=".tmp", dir=target.parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder, target.name)
    except OSError as error:
        if error.errno is None or (error.filename is not None and prefix not in str(error.filename)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary folders of our own processes that were killed while they wrote to ``folder``."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            made = TEMPORARY.fullmatch(entry.name)
            if made and entry.is_dir(follow_symlinks=False) and _abandoned(entry, made):
                rmtree(entry, ignore_errors=True)


def _abandoned(entry: os.DirEntry[str], made: re.Match[str]) -> bool:
    """Whether a temporary folder is ours and its process is dead, or has written nothing for a day."""
    if hasattr(os, "getuid") and entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    if made["machine"] == MACHINE and os.name == "posix":  # elsewhere os.kill would end the process
        try:
            os.kill(int(made["process"]), 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
    files = (Path(home, name) for home, _, names in os.walk(entry) for name in (".", *names))
    return max((file.lstat().st_mtime for file in files), default=0) < time.time() - DAY


def _flush_folder(path: str | os.PathLike[str]) -> None:
    """Flush a folder's entries to disk, where the system supports it (Windows does not)."""
    with suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

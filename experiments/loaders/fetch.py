"""Find data files in local folders, or download them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Read = TypeVar("Read")


@dataclass(frozen=True)
class Address:
    """The URL of a file, and its checksum ("md5:…", "sha256:…") if one is published."""

    url: str
    checksum: str | None = None


def folders() -> list[Path]:
    """The folders that are searched: PARTWISE_DATA, then the user's cache."""
    named = [Path(os.environ["PARTWISE_DATA"])] if os.environ.get("PARTWISE_DATA") else []
    return [*named, *cache()]


def in_words() -> str:
    """The searched folders, for messages."""
    return " or ".join(map(str, folders())) or "the folder given by PARTWISE_DATA"


def cache() -> list[Path]:
    """The folder for downloads, in a list; empty if pooch is not installed."""
    try:
        import pooch
    except ImportError:
        return []
    return [Path(pooch.os_cache("partwise"))]


def find(*names: str) -> Path | None:
    """The first file or folder of these names in the searched folders."""
    return next((folder / name for folder in folders() for name in names if (folder / name).exists()), None)


def download(what: str, file: str, addresses: Sequence[Address], read: Callable[[Path], Read]) -> Read:
    """Download ``file`` to the user's cache from the first address that has it intact, and return ``read(file)``.

    A file that ``read`` rejects with a ValueError is deleted. FileNotFoundError says what was tried, and where to put
    the file by hand.
    """
    sought = f"{what} are not in {in_words()}"
    if not cache():
        raise ImportError(f"{sought}, and downloading them requires pooch: pip install '.[bench]'")
    folder, failures = cache()[0], []
    if (trouble := _unwritable(folder)) is not None:
        urls = " or ".join(address.url for address in addresses)
        raise FileNotFoundError(
            f"{sought}, and cannot be downloaded to {folder} ({trouble}): put {file} from {urls} "
            "into a folder, and set PARTWISE_DATA to it"
        )
    for address in addresses:
        try:
            return read(_retrieve(address, folder, file))
        except (OSError, ValueError) as error:  # exceptions of requests are OSErrors too
            (folder / file).unlink(missing_ok=True)
            failures.append(f"{address.url} ({_reason(error)})")
    raise FileNotFoundError(
        f"{sought}, and could not be downloaded from {' or '.join(failures)}: "
        f"put {file} into {folder}, or into a folder given by PARTWISE_DATA"
    )


def _retrieve(address: Address, folder: Path, file: str) -> Path:
    import pooch

    with _quiet(pooch.get_logger()):
        loader = pooch.HTTPDownloader(timeout=30)
        return Path(pooch.retrieve(address.url, address.checksum, fname=file, path=folder, downloader=loader))


def _unwritable(folder: Path) -> str | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return str(error)
    return None if os.access(folder, os.W_OK) else "it is read-only"


def _reason(error: Exception) -> str:
    """A short reason; messages of requests repeat the address and show urllib3 objects."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"HTTP status {status}"
    if isinstance(error, OSError):
        return f"no connection: {type(error).__name__}"
    return str(error).rstrip(".")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[Any]:
    """Suppress pooch's messages on standard error."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)

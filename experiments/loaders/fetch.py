"""Where data lies, and how it comes there."""

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
    """Where a file can be had from, and its checksum ("md5:…", "sha256:…") if that is publicly known."""

    url: str
    checksum: str | None = None


def folders() -> list[Path]:
    """Where data is looked for: the folder that PARTWISE_DATA names, the user's cache."""
    named = [Path(os.environ["PARTWISE_DATA"])] if os.environ.get("PARTWISE_DATA") else []
    return [*named, *cache()]


def in_words() -> str:
    """These folders, for messages."""
    return " or ".join(map(str, folders())) or "a folder that PARTWISE_DATA names"


def cache() -> list[Path]:
    """The folder that downloads go to; none where pooch is missing."""
    try:
        import pooch
    except ImportError:
        return []
    return [Path(pooch.os_cache("partwise"))]


def find(*names: str) -> Path | None:
    """The first file or folder of these names in the folders where data is looked for."""
    return next((folder / name for folder in folders() for name in names if (folder / name).exists()), None)


def download(what: str, file: str, addresses: Sequence[Address], read: Callable[[Path], Read]) -> Read:
    """What ``read`` makes of ``file``, downloaded to the user's cache from the first address that has it whole.

    A file that ``read`` refuses with a ValueError is removed again. FileNotFoundError says in a sentence what was
    tried, and where to put the file by hand.
    """
    sought = f"{what} are not in {in_words()}"
    if not cache():
        raise ImportError(f"{sought}, and to download them needs pooch: pip install '.[bench]'")
    folder, failures = cache()[0], []
    if (trouble := _unwritable(folder)) is not None:
        urls = " or ".join(address.url for address in addresses)
        raise FileNotFoundError(
            f"{sought}, and cannot be downloaded to the last of these ({trouble}): put {file} from {urls} "
            "into a folder and name it in PARTWISE_DATA"
        )
    for address in addresses:
        try:
            return read(_retrieve(address, folder, file))
        except (OSError, ValueError) as error:  # what requests raises is an OSError, too
            (folder / file).unlink(missing_ok=True)
            failures.append(f"{address.url} ({_reason(error)})")
    raise FileNotFoundError(
        f"{sought}, and could not be downloaded from {' or '.join(failures)}: "
        f"put {file} into {folder} by hand, or into a folder that PARTWISE_DATA names"
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
    """In a few words: those of requests quote the address again, and urllib3's objects."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"the server answered {status}"
    if isinstance(error, OSError):
        return f"no connection: {type(error).__name__}"
    return str(error).rstrip(".")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[Any]:
    """Without pooch's notes on standard error: only the command line speaks."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)

"""Read files from a folder or an archive in memory; nothing is unpacked to disk."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath

import numpy as np

from partwise.statistics import Array

LARGEST = 2**25  # bytes; much larger than any file of these datasets, so a larger one is rejected
NOTHING = re.compile(r"(?!)")


def numbered_files(place: Path, wanted: str, inner: str | None = None) -> dict[tuple[int, ...], bytes]:
    """The files whose names match ``wanted``, keyed and sorted by the numbers in their names.

    Parameters
    ----------
    place : Path
        A folder, or a .zip, .tar or .tar.gz archive.
    wanted : str
        A regular expression for the last parts of the path; its groups are the numbers.
    inner : str, optional
        The same for nested archives to be read.
    """
    ours = _ending(wanted)
    files = _folder(place, ours) if place.is_dir() else _archive(place, ours, _ending(inner) if inner else NOTHING)
    found: dict[tuple[int, ...], bytes] = {}
    for name, content in files:
        match = ours.fullmatch(name)
        key = tuple(int(number) for number in match.groups()) if match else ()
        if key in found:
            raise ValueError(f"{place} has {name} in two folders: pass one of the folders")
        found[key] = content
    return dict(sorted(found.items()))


def arrays_in(place: Path, *names: str) -> list[Array]:
    """Read arrays from an .npz file."""
    raw = place.read_bytes()
    try:
        arrays = np.load(BytesIO(raw), allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it contains a single array")
        return [arrays[name] for name in names]
    except KeyError as error:
        raise ValueError(f"{place} lacks an array: {error.args[0]}; it is not the expected file") from None
    except Exception as error:  # any error of the reader means a damaged file
        raise ValueError(f"{place} is damaged or not an .npz file ({error}): download it again") from error


def _ending(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:.*/)?{pattern}")


def _folder(place: Path, ours: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    for path in sorted(place.rglob("*")):
        if ours.fullmatch(name := path.relative_to(place).as_posix()) and path.is_file():
            yield name, path.read_bytes()


def _archive(place: Path, ours: re.Pattern[str], inner: re.Pattern[str]) -> list[tuple[str, bytes]]:
    if not place.name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
        raise ValueError(f"{place} has an unsupported format: pass a folder, a .zip, .tar, .tar.gz or .npz file")
    raw = place.read_bytes()
    try:
        return list(_members(place.name, raw, ours, inner))
    except Exception as error:  # any error of the reader means a damaged archive
        raise ValueError(f"{place} is damaged, or not the format of its name ({error}): download it again") from error


def _members(archive: str, raw: bytes, ours: re.Pattern[str], inner: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    read = _zipped if archive.endswith(".zip") else _tarred
    for name, content in read(raw, re.compile(f"{ours.pattern}|{inner.pattern}")):
        if inner.fullmatch(name):
            yield from _members(name, content, ours, NOTHING)
        else:
            yield name, content


def _zipped(raw: bytes, ours: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        for member in archive.infolist():
            if _acceptable(member.filename, member.file_size, ours):
                yield member.filename, archive.read(member)


def _tarred(raw: bytes, ours: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    # A stream cannot seek backwards. In a seekable archive, a member of negative size would cause an endless loop.
    with tarfile.open(fileobj=BytesIO(raw), mode="r|*") as archive:
        for member in archive:  # skips links and devices
            if member.isreg() and _acceptable(member.name, member.size, ours):
                content = archive.extractfile(member)
                yield member.name, content.read() if content else b""


def _acceptable(name: str, size: int, ours: re.Pattern[str]) -> bool:
    """Whether the name matches and stays inside the archive; raise ValueError if the file is too large."""
    path = PurePosixPath(name)
    if not ours.fullmatch(name) or path.is_absolute() or ".." in path.parts:
        return False
    if size > LARGEST:
        raise ValueError(f"{name} would take {size} bytes")
    return True

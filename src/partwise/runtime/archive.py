"""Files that last: a JSON header and named arrays in one file, never a pickle, written whole or not at all.

A file is a zip archive whose members lie in it as they are: ``partwise.json``, and for each array a ``.npy`` file, or
three of them where only the nonzeros are stored. Its comment holds a digest of all bytes before it, so that a file that
was cut off or altered is refused before anything in it is looked at. ``docs/files.md`` describes the format.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..version import __version__
from .files import replacing

Array = npt.NDArray[Any]
Header = dict[str, Any]

FORMAT = (1, 0)  # a reader takes any second number, and no larger first one
HEADER = "partwise.json"
SEAL = re.compile(rb"partwise (\d{3}) sha256 ([0-9a-f]{64})")
DIGEST = 64  # bytes
NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
PARTS = ("values", "indices", "starts")  # of an array whose nonzeros alone are stored
SMALL, RATIO = 2**28, 1000  # bytes that any file may unfold to, and how many times its own size a larger one may


class UnreadableError(ValueError):
    """A file that is damaged, too new, or not one of ours."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a header (of what JSON can say) and arrays of numbers, all or nothing (`files.replacing`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/a.pw", {"kind": "example"}, {"x": np.eye(2)})
    ...     print(read(f"{folder}/a.pw")[1]["x"].tolist())
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with replacing(path) as fresh, open(fresh, "x+b") as file:
        fill(file, header, arrays)


def fill(file: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """The bytes of a file."""
    members: dict[str, Array] = {}
    table = {name: entered(name, np.asarray(array), members) for name, array in arrays.items()}
    about = {
        "format": list(FORMAT),
        "written_by": f"partwise {__version__}",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "arrays": table,
    }
    text = json.dumps({**about, **header}, ensure_ascii=False, allow_nan=False, indent=1)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), text.encode())
        for name, array in members.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=array.nbytes > 2**30) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.comment = b"partwise %03d sha256 %s" % (FORMAT[0], b" " * DIGEST)
    digest = digest_of(file)
    file.seek(-DIGEST, os.SEEK_END)
    file.write(digest)


def entered(name: str, array: Array, members: dict[str, Array]) -> dict[str, Any]:
    """Enter an array among the members, in the smaller form, and say in which."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of an array")
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {array.dtype}: only real numbers are stored")
    if array.ndim == 2:
        columns = array.flags.f_contiguous and not array.flags.c_contiguous
        rows = array.T if columns else array
        filled = rows != 0
        count = int(np.count_nonzero(filled))
        width = np.min_scalar_type(max(rows.shape[1], 1))
        size = count * (array.itemsize + width.itemsize) + 8 * (len(rows) + 1)
        minus = bool((np.signbit(rows) & ~filled).any()) if array.dtype.kind == "f" else False  # −0 is not nothing
        if size < array.nbytes and not minus and may_unfold(array.nbytes, size):
            starts = np.concatenate([[0], np.cumsum(np.count_nonzero(filled, axis=1))]).astype(np.int64)
            parts = rows[filled], np.nonzero(filled)[1].astype(width), starts
            members |= {f"{name}.{part}": values for part, values in zip(PARTS, parts, strict=True)}
            return {"shape": list(array.shape), "nonzeros": "by columns" if columns else "by rows"}
    members[name] = array
    return {"shape": list(array.shape)}


def may_unfold(full: int, stored: int) -> bool:
    """Whether so few bytes may stand for so many."""
    return full <= max(SMALL, RATIO * stored)


def read(path: str | os.PathLike[str]) -> tuple[Header, dict[str, Array]]:
    """The header and the arrays of a file that `write` has made; `UnreadableError` for any other.

    Nothing in a file is ever executed, and a file cannot ask for much more memory than it has bytes.
    """
    name = os.fspath(path)
    with opened(name) as file:
        check_seal(file, name)
        try:
            with zipfile.ZipFile(file) as archive:
                return contents(archive, os.fstat(file.fileno()).st_size)
        except UnreadableError as error:
            raise UnreadableError(f"{name}: {error}") from None
        except (zipfile.BadZipFile, ArithmeticError, EOFError, KeyError, OSError, RuntimeError, TypeError) as error:
            raise UnreadableError(f"{name} is not a file that partwise has written: {error}") from error
        except ValueError as error:
            raise UnreadableError(f"{name} holds what partwise does not write: {error}") from error


def kind_of(path: str | os.PathLike[str]) -> Any:
    """The ``kind`` that a file's header names, without a look at the rest; `UnreadableError` if it is not ours."""
    with opened(os.fspath(path)) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return json.loads(archive.read(HEADER))["kind"]
        except (zipfile.BadZipFile, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError):
            raise UnreadableError(f"{os.fspath(path)} is not a file that partwise has written") from None


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """An ordinary file, open for reading; nothing else is waited for."""
    try:
        file = open(name, "rb") if stat.S_ISREG(os.stat(name).st_mode) else None  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no file {name!r}: give the path of one that partwise has written") from None
    except OSError as error:
        raise type(error)(f"{name} cannot be read: {error.strerror}; check its path and who may read it") from None
    if file is None:
        raise UnreadableError(f"{name} is not a file: give the path of one that partwise has written")
    with file:
        yield file


def digest_of(file: IO[bytes]) -> bytes:
    """A digest of all bytes but the last, where the digest itself belongs."""
    digest, left = hashlib.sha256(), file.seek(0, os.SEEK_END) - DIGEST
    file.seek(0)
    while left > 0 and (piece := file.read(min(left, 2**20))):
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest().encode()


def check_seal(file: IO[bytes], name: str) -> None:
    """Refuse a file that does not end in the digest of its bytes."""
    start = file.read(30 + len(HEADER))
    ours = start[:4] == b"PK\3\4" and start[30:] == HEADER.encode()
    file.seek(max(file.seek(0, os.SEEK_END) - DIGEST - 20, 0))
    seal = SEAL.fullmatch(file.read())
    if seal and int(seal[1]) > FORMAT[0]:
        raise UnreadableError(too_new(name, int(seal[1])))
    if not ours:
        raise UnreadableError(f"{name} is not a file that partwise has written")
    if not seal or digest_of(file) != seal[2]:
        raise UnreadableError(f"{name} is damaged or was cut off: its bytes are not those that were written")


def too_new(name: str, number: int) -> str:
    """What to say of a file from the future."""
    return f"{name} is in format {number}, and partwise {__version__} reads formats up to {FORMAT[0]}: upgrade partwise"


def contents(archive: zipfile.ZipFile, size: int) -> tuple[Header, dict[str, Array]]:
    """What is in an archive of so many bytes."""
    members = archive.infolist()
    if len({m.filename for m in members}) < len(members) or sum(m.file_size for m in members) > size:
        raise UnreadableError("its table of contents is not what partwise writes")
    for member in members:
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.flag_bits & 1
            or member.file_size != member.compress_size
        ):
            raise UnreadableError(
                f"its member {member.filename!r} is compressed or encrypted, which partwise never does"
            )
    header = json.loads(archive.read(HEADER), parse_constant=refused)
    if not isinstance(header, dict) or not isinstance(header.get("arrays"), dict):
        raise UnreadableError("its header is not one of partwise's")
    version = header.get("format")
    if not isinstance(version, list) or not version or not isinstance(version[0], int) or version[0] < 1:
        raise UnreadableError("its header does not say which format it is in")
    if version[0] > FORMAT[0]:
        raise UnreadableError(too_new("it", version[0]))
    return header, {name: array_of(archive, name, form) for name, form in header["arrays"].items()}


def refused(constant: str) -> None:
    """No header has such a number."""
    raise UnreadableError(f"its header holds {constant}")


def array_of(archive: zipfile.ZipFile, name: str, form: Any) -> Array:
    """One array, in the form that the header gives."""
    shape = form.get("shape") if isinstance(form, dict) else None
    if not NAME.fullmatch(name) or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise UnreadableError(f"its header says nothing sensible of the array {name!r}")
    if "nonzeros" not in form:
        array = member_of(archive, f"{name}.npy")
        if array.shape != tuple(shape):
            raise UnreadableError(f"its array {name!r} has shape {array.shape}, and the header says {tuple(shape)}")
        return array
    by_columns = form["nonzeros"] == "by columns"
    values, indices, starts = (member_of(archive, f"{name}.{part}.npy") for part in PARTS)
    if len(shape) != 2 or not (by_columns or form["nonzeros"] == "by rows"):
        raise UnreadableError(f"its array {name!r} has a form that partwise does not write")
    array = unfolded(values, indices, starts, (shape[1], shape[0]) if by_columns else (shape[0], shape[1]))
    return array.T if by_columns else array


def unfolded(values: Array, indices: Array, starts: Array, shape: tuple[int, int]) -> Array:
    """The array whose nonzeros are ``values``, in row i in columns indices[starts[i] : starts[i + 1]]."""
    stored = values.nbytes + indices.nbytes + starts.nbytes
    if not may_unfold(math.prod(shape) * values.itemsize, stored):
        raise UnreadableError(f"it asks for an array of shape {shape} by {stored} bytes")
    flat = {a.ndim for a in (values, indices, starts)} == {1} and indices.dtype.kind == "u" and starts.dtype == np.int64
    if not flat or len(starts) != shape[0] + 1 or len(indices) != len(values):
        raise UnreadableError("its nonzeros do not belong together")
    counts = np.diff(starts)
    if starts[0] != 0 or starts[-1] != len(values) or (counts < 0).any() or (indices >= shape[1]).any():
        raise UnreadableError("its nonzeros lie outside of their array")
    places = np.repeat(np.arange(shape[0]), counts) * shape[1] + indices.astype(np.int64)
    if (np.diff(places) <= 0).any():
        raise UnreadableError("its nonzeros are not in order")
    array = np.zeros(shape, dtype=values.dtype)
    array.ravel()[places] = values
    return array


def member_of(archive: zipfile.ZipFile, name: str) -> Array:
    """An array of numbers that fills its member exactly; no other is made room for."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        if version != (1, 0):
            raise UnreadableError(f"its member {name!r} is not a .npy file of version 1.0")
        shape, columns, dtype = np.lib.format.read_array_header_1_0(member)
        if dtype.kind not in "buif" or dtype.itemsize > 8 or dtype.shape:
            raise UnreadableError(f"its member {name!r} has dtype {dtype}, and partwise stores real numbers only")
        size = math.prod(int(n) for n in shape) * dtype.itemsize
        if min(shape, default=0) < 0 or member.tell() + size != archive.getinfo(name).file_size:
            raise UnreadableError(f"its member {name!r} is not as long as shape {shape} needs")
        array = np.empty(shape[::-1] if columns else shape, dtype=dtype)
        view: Any = array.reshape(-1).view(np.uint8)
        while len(view) and (piece := member.read(min(len(view), 2**24))):
            view[: len(piece)] = np.frombuffer(piece, np.uint8)
            view = view[len(piece) :]
        if len(view):
            raise UnreadableError(f"its member {name!r} ends too early")
        return array.T if columns else array

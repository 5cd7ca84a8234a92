"""Model and checkpoint files: a JSON header and named arrays in one file, without pickle.

A file is an uncompressed zip archive. It contains ``partwise.json`` and, for each array, one ``.npy`` file, or three if
only the nonzeros are stored. The archive's comment holds a SHA-256 digest of all preceding bytes, so that a truncated
or modified file is rejected before any of it is parsed. ``docs/files.md`` describes the format.
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
import scipy.sparse as sp

from ..version import __version__
from .arrays import Array
from .files import replacing
from .npy import read_member
from .untrusted import FLOOR, RATIO, allow, reading
from .untrusted import UnreadableError as UnreadableError

Header = dict[str, Any]

FORMAT = (1, 0)  # major, minor: readers accept any minor version, and major versions up to their own
HEADER = "partwise.json"
SEAL = re.compile(rb"partwise (\d{3}) sha256 ([0-9a-f]{64})")
DIGEST = 64  # length in bytes
NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
PARTS = ("values", "indices", "starts")  # the members of a sparse array, in CSR form


def write(path: str | os.PathLike[str], header: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    """Write a JSON-serialisable header and numeric arrays, atomically (`files.replacing`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/a.pw", {"kind": "example"}, {"x": np.eye(2)})
    ...     print(read(f"{folder}/a.pw")[1]["x"].tolist())
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with replacing(path) as fresh, open(fresh, "x+b") as file:
        fill(file, header, arrays)


def fill(file: IO[bytes], header: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    """Write the archive and its digest to an open file."""
    members: dict[str, Array] = {}
    table: dict[str, Any] = {}
    small = FLOOR // 2  # with half of the ratio in `add_members`, the whole file stays within the limits of `allow`
    for name, array in arrays.items():
        table[name] = add_members(name, np.asarray(array), members, small)
        small -= 8 * np.size(array) if "nonzeros" in table[name] else 0
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


def add_members(name: str, array: Array, members: dict[str, Array], small: int) -> dict[str, Any]:
    """Add an array to ``members``, dense or sparse, whichever is smaller, and return its entry for the header.

    An array is stored dense if reading it would take more than ``small`` bytes, and far more than it has on disk.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid array name: use letters, digits, underscores and dots")
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {array.dtype}: only real numbers can be stored")
    if array.ndim == 2 and array.dtype in (np.float32, np.float64):
        columns = array.flags.f_contiguous and not array.flags.c_contiguous
        rows = array.T if columns else array
        width = np.min_scalar_type(max(rows.shape[1], 1))
        size = int(np.count_nonzero(rows)) * (array.itemsize + width.itemsize) + 8 * (len(rows) + 1)
        negative_zeros = np.signbit(rows[rows == 0]).any()  # a sparse array would lose them
        if size < array.nbytes and not negative_zeros and 8 * array.size <= max(small, RATIO // 2 * size):
            sparse = sp.csr_array(rows)
            parts = sparse.data, sparse.indices.astype(width), sparse.indptr.astype(np.int64)
            members |= {f"{name}.{part}": values for part, values in zip(PARTS, parts, strict=True)}
            return {"shape": list(array.shape), "nonzeros": "by columns" if columns else "by rows"}
    members[name] = array
    return {"shape": list(array.shape)}


def read(path: str | os.PathLike[str]) -> tuple[Header, dict[str, Array]]:
    """Read the header and the arrays of a file made by `write`; raise `UnreadableError` for any other file.

    Nothing in the file is executed, and the memory used is limited relative to the size of the file.
    """
    name = os.fspath(path)
    with open_regular(name) as file:
        check_seal(file, name)
        with reading(name), zipfile.ZipFile(file) as archive:
            header = header_of(archive, os.fstat(file.fileno()).st_size)
            if not isinstance(header.get("arrays"), dict):
                raise ValueError("the header is invalid")
            version = header.get("format")
            if not isinstance(version, list) or not version or not isinstance(version[0], int) or version[0] < 1:
                raise ValueError("the header has no valid format number")
            if version[0] > FORMAT[0]:
                raise UnreadableError(too_new(name, version[0]))
            return header, arrays_of(archive, header["arrays"], name)


def kind_of(path: str | os.PathLike[str]) -> Any:
    """The ``kind`` in a file's header, without reading the rest; `UnreadableError` if Partwise did not write it."""
    with open_regular(os.fspath(path)) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return header_of(archive, os.fstat(file.fileno()).st_size)["kind"]
        except Exception as error:
            raise UnreadableError(f"{os.fspath(path)} was not written by partwise") from error


@contextmanager
def open_regular(name: str) -> Iterator[IO[bytes]]:
    """Open a regular file for reading; anything else, such as a pipe that would block, raises an error."""
    try:
        file = open(name, "rb") if stat.S_ISREG(os.stat(name).st_mode) else None  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no file {name!r}: give the path of a file written by partwise") from None
    except OSError as error:
        raise type(error)(f"{name} cannot be read: {error.strerror}; check its path and permissions") from None
    if file is None:
        raise UnreadableError(f"{name} is not a regular file: give the path of a file written by partwise")
    with file:
        yield file


def digest_of(file: IO[bytes]) -> bytes:
    """SHA-256 of all bytes except the last 64, which hold the digest itself."""
    digest, left = hashlib.sha256(), file.seek(0, os.SEEK_END) - DIGEST
    file.seek(0)
    while left > 0 and (piece := file.read(min(left, 2**20))):
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest().encode()


def check_seal(file: IO[bytes], name: str) -> None:
    """Raise an error if the file does not end in the digest of its bytes."""
    start = file.read(30 + len(HEADER))
    ours = start[:4] == b"PK\3\4" and start[30:] == HEADER.encode()
    file.seek(max(file.seek(0, os.SEEK_END) - DIGEST - 20, 0))
    seal = SEAL.fullmatch(file.read())
    if seal and int(seal[1]) > FORMAT[0]:
        raise UnreadableError(too_new(name, int(seal[1])))
    if not ours:
        raise UnreadableError(f"{name} was not written by partwise")
    if not seal or digest_of(file) != seal[2]:
        raise UnreadableError(f"{name} is damaged or truncated: its checksum does not match")


def too_new(name: str, number: int) -> str:
    """The message for a file in a later format."""
    return f"{name} has format {number}, but partwise {__version__} reads formats up to {FORMAT[0]}: upgrade partwise"


def header_of(archive: zipfile.ZipFile, size: int) -> Header:
    """The header of an archive of ``size`` bytes, if all its members are stored as they are."""
    members = archive.infolist()
    if len({m.filename for m in members}) < len(members) or sum(m.file_size for m in members) > size:
        raise ValueError("the table of contents is invalid")
    for member in members:
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.flag_bits & 1
            or member.file_size != member.compress_size
        ):
            raise ValueError(f"member {member.filename!r} is compressed or encrypted")
    header = json.loads(archive.read(HEADER), parse_constant=reject_constant)
    if not isinstance(header, dict):
        raise ValueError("the header is invalid")
    return header


def arrays_of(archive: zipfile.ZipFile, forms: Mapping[str, Any], path: str) -> dict[str, Array]:
    """Read all arrays. Those stored as nonzeros share the memory that the file may take."""
    arrays: dict[str, Array] = {}
    expanded = 0
    for name, form in forms.items():
        shape = form.get("shape") if isinstance(form, dict) else None
        if not NAME.fullmatch(name) or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"the header entry of array {name!r} is invalid")
        if "nonzeros" in form:
            expanded += 8 * math.prod(shape)
            allow(path, expanded)
        arrays[name] = array_of(archive, name, form)
    return arrays


def reject_constant(constant: str) -> None:
    """Raise an error for NaN and Infinity, which are not valid JSON."""
    raise ValueError(f"the header contains {constant}")


def array_of(archive: zipfile.ZipFile, name: str, form: Mapping[str, Any]) -> Array:
    """Read the array ``name``, stored as its header entry ``form`` says."""
    shape = form["shape"]
    if "nonzeros" not in form:
        array = member_of(archive, f"{name}.npy")
        if array.shape != tuple(shape):
            raise ValueError(f"array {name!r} has shape {array.shape}, but the header says {tuple(shape)}")
        return array
    by_columns = form["nonzeros"] == "by columns"
    values, indices, starts = (member_of(archive, f"{name}.{part}.npy") for part in PARTS)
    if len(shape) != 2 or not (by_columns or form["nonzeros"] == "by rows"):
        raise ValueError(f"array {name!r} is stored in an unknown form")
    array = dense_from_csr(values, indices, starts, (shape[1], shape[0]) if by_columns else (shape[0], shape[1]))
    return array.T if by_columns else array


def dense_from_csr(values: Array, indices: Array, starts: Array, shape: tuple[int, int]) -> Array:
    """Expand an array in CSR form to a dense one; raise an error if its members are inconsistent."""
    if values.dtype not in (np.float32, np.float64) or indices.dtype.kind != "u" or starts.dtype != np.int64:
        raise ValueError("the dtypes of a sparse array are invalid")
    matrix = sp.csr_array((values, indices, starts), shape=shape)
    matrix.check_format(full_check=True)  # a ValueError for indices out of range
    if not matrix.has_canonical_format:
        raise ValueError("the indices of a sparse array are not sorted and unique")
    return np.asarray(matrix.toarray())


def member_of(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one ``.npy`` member, an array of real numbers."""
    array = read_member(archive, name)
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise ValueError(f"member {name!r} has dtype {array.dtype}, which is not a real number type")
    return array

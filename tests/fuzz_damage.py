"""Damage to files, for `fuzz_files.py`: to their bytes, and to what is inside archives, with checksums that are right.

A file is a bytes object here. `damaged` changes one at random, `invented` makes one up.
"""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib

import h5py
import numpy as np
from hostile_files import png_piece, sealed

NUMBERS = [0, 1, 2, 3, 7, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "99999999999",
    "-0.5",
    "1_0",
    "0x1",
    "1j",
    '"',
    "\0",
    ",",
    "\n",
    "x" * 99,
]
VALUES = [None, True, 0, -1, 1.5, 1e308, 10**9, 2**70, "", "x", "<f4", "|O", [], {}, [1], [-1, 4], [2**40, 2**40], [[]]]


# of bytes


def flip(content, rng):
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(content))
        content = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    return content


def number(content, rng):
    """Another number in a field of 1 to 8 bytes."""
    size = rng.choice([1, 2, 4, 8])
    at = rng.randrange(max(len(content) - size, 1))
    value = rng.choice(NUMBERS) % 2 ** (8 * size)
    return content[:at] + value.to_bytes(size, rng.choice(["little", "big"])) + content[at + size :]


def word(content, rng):
    """Another number in a text."""
    found = list(re.finditer(rb"[\d.]+", content[:4000])) or [re.match(b"", content)]
    one = rng.choice(found)
    text = rng.choice([*WORDS, *map(str, NUMBERS)]).encode()
    if rng.random() < 0.5:  # as long as before
        text = text[: len(one[0])].ljust(len(one[0]))
    return content[: one.start()] + text + content[one.end() :]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def piece(content, rng):
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return first, min(last, first + rng.choice([4, 64, 4096]))


def repeat(content, rng):
    first, last = piece(content, rng)
    return content[:last] + content[first:last] * rng.choice([1, 3, 100]) + content[last:]


def drop(content, rng):
    first, last = piece(content, rng)
    return content[:first] + content[last:]


def move(content, rng):
    first, last = piece(content, rng)
    at = rng.randrange(len(content))
    return content[:at] + content[first:last] + content[at + last - first :]


def noise(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + rng.randbytes(rng.choice([1, 4, 50])) + content[at:]


# of what is inside


def within_json(content, rng):
    """Another value somewhere."""
    about = json.loads(content)
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(about)
    node, key = rng.choice(places)
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    else:
        node[key] = rng.choice([*VALUES, *NUMBERS, rng.choice(places)[1]])
    return json.dumps(about).encode()


def within_zip(content, rng):
    """Another member, under a right checksum, and, in a file of ours, under a right digest."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        ours = archive.comment.startswith(b"partwise")
    name = rng.choice(list(members))
    if rng.random() < 0.1:
        del members[name]
    else:
        members[name] = damaged(members[name], rng)
    if ours:
        return sealed(members.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inner in members.items():
            archive.writestr(name, inner)
    return buffer.getvalue()


def within_gzip(content, rng):
    return gzip.compress(damaged(gzip.decompress(content), rng), 1)


def within_png(content, rng):
    """Another piece, under a right checksum."""
    at, pieces = 8, []
    while at + 8 <= len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        pieces.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + size]))
        at += 12 + size
    chosen = rng.randrange(len(pieces))
    kind, body = pieces[chosen]
    if kind == b"IDAT" and rng.random() < 0.5:
        body = zlib.compress(damaged(zlib.decompress(body), rng))
    else:
        body = damaged(body or b"x", rng)
    pieces[chosen] = kind, body
    return content[:8] + b"".join(png_piece(*one) for one in pieces)


def within_mat(content, rng):
    """Another variable in a compressed MATLAB file."""
    kind, size = struct.unpack("<II", content[128:136])
    if kind != 15:
        raise ValueError("not compressed")
    packed = zlib.compress(damaged(zlib.decompress(content[136 : 136 + size]), rng))
    return content[:128] + struct.pack("<II", 15, len(packed)) + packed + content[136 + size :]


def arrays(rng):
    """An array of any type and shape."""
    shape = rng.choice([(), (0,), (1,), (4,), (5,), (4, 5), (2, 2, 5), (0, 3)])
    values = np.resize(np.array(rng.choice([[0, 1, 2], [-1, 3], NUMBERS[:-2], [np.nan, 1], [np.inf, 0]])), shape)
    with np.errstate(invalid="ignore", over="ignore"):
        return values.astype(rng.choice(["f8", "f4", "f2", "i8", "i4", "u1", "u8", "?", "c16", "S3", ">f8"]))


def within_hdf5(content, rng):
    """Another dataset or attribute."""
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        names = []
        file.visit(names.append)
        name = rng.choice(names)
        kind = rng.random()
        if kind < 0.15:
            del file[name]
        elif kind < 0.4:
            about = file[name].attrs
            value = rng.choice(["", "csr_matrix", "array", 7, -1, arrays(rng)])
            about[rng.choice([*about, "MATLAB_sparse", "shape", "encoding-type"])] = value
        else:
            about = dict(file[name].attrs)
            values = file[name][()] if isinstance(file[name], h5py.Dataset) and rng.random() < 0.5 else arrays(rng)
            del file[name]
            if np.ndim(values) and np.size(values) and values.dtype.kind in "iuf" and rng.random() < 0.7:
                values = values.copy()
                values.flat[rng.randrange(values.size)] = rng.choice([-1, 0, 3, 120])
            limits = {"chunks": True, "compression": "gzip"} if np.ndim(values) and np.size(values) else {}
            file.create_dataset(name, data=values, **(limits if rng.random() < 0.5 else {}))
            file[name].attrs.update(about)
    return buffer.getvalue()


PLAIN = (flip, flip, number, number, word, word, cut, repeat, drop, move, noise)
INSIDE = {
    b"{": within_json,
    b"PK": within_zip,
    b"\x1f\x8b": within_gzip,
    b"\x89PNG": within_png,
    b"\x89HDF": within_hdf5,
    b"MATLAB 5": within_mat,
    b"MATLAB 7.3": within_hdf5,
}


def damaged(content, rng):
    """The same content with one to three changes.

    Of HDF5 files no other bytes are changed: its library may then run without end, which docs/files.md excepts.
    """
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if not content:
            return rng.randbytes(9)
        deeper = next((change for start, change in INSIDE.items() if content.startswith(start)), None)
        plain = rng.choice(PLAIN) if deeper is not within_hdf5 else cut
        try:
            content = (deeper if deeper and rng.random() < 0.7 else plain)(content, rng)
        except Exception:  # too damaged to look inside
            content = plain(content, rng)
    return content


STARTS = [
    b"",
    b"\x93NUMPY\1\0",
    b"PK\3\4",
    b"\x1f\x8b\x08",
    b"\x89HDF\r\n\x1a\n",
    b"%%MatrixMarket matrix ",
    b"RIFF",
    b"P5 ",
]
STARTS += [
    b"fLaC",
    b"OggS",
    b"II*\0",
    b"BM",
    b"\xff\xd8\xff",
    b"\\\1\0\0",
    b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM",
]
TOKENS = [
    *WORDS,
    *map(str, NUMBERS),
    "coordinate",
    "array",
    "real",
    "integer",
    "pattern",
    "general",
    "symmetric",
    " ",
    "\t",
]


def invented(rng):
    """A file from scratch: the first bytes of some format, and noise or words."""
    start = rng.choice(STARTS)
    if rng.random() < 0.5:
        return start + rng.randbytes(rng.choice([1, 30, 300]))
    return start + "".join(rng.choice(TOKENS) + rng.choice(" ,\n\t") for _ in range(rng.choice([1, 9, 60]))).encode()

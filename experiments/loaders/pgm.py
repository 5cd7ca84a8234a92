"""Read grey images in PGM format."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from partwise.statistics import Array

GAP = rb"(?:\s|#[^\n]*\n)"
HEADER = re.compile(rb"P([25])" + GAP + rb"+(\d{1,9})" + GAP + rb"+(\d{1,9})" + GAP + rb"+(\d{1,9})" + GAP)


def read_pgm(raw: bytes, name: str = "this file") -> Array:
    r"""Decode the bytes of a PGM file: rows × columns, uint8, or uint16 if its largest grey value exceeds 255.

    Binary (P5) and plain (P2) files are read, with comments. A file whose size differs from its header is rejected,
    since text-mode transfers damage binary files in that way.

    Parameters
    ----------
    raw : bytes
    name : str
        The name of the file in messages.

    References
    ----------
    https://netpbm.sourceforge.net/doc/pgm.html

    Examples
    --------
    >>> read_pgm(b"P2 # a comment\n3 2 9\n0 1 2\n3 4 9\n")
    array([[0, 1, 2], [3, 4, 9]], dtype=uint8)
    """
    header = HEADER.match(raw)
    if header is None:
        raise ValueError(f"{name} is not a PGM image (P5 or P2): it begins with {raw[:12]!r}")
    form, columns, rows, most = (int(number) for number in header.groups())
    if not (rows and columns and 0 < most < 2**16):
        raise ValueError(
            f"{name} is a PGM image of {rows} × {columns} with a maximum of {most}: none of these may be 0"
        )
    body, kind = raw[header.end() :], np.dtype(np.uint8 if most < 256 else np.uint16)
    values = _binary(body, rows * columns, kind, name) if form == 5 else _plain(body, rows * columns, name)
    if (top := values.max()) > most:
        raise ValueError(f"{name} has a grey value of {top}, above its maximum of {most}: it is damaged")
    return values.reshape(rows, columns).astype(kind, copy=False)


def _binary(body: bytes, count: int, kind: np.dtype[Any], name: str) -> Array:
    size = count * kind.itemsize
    if len(body) < size or body[size:].strip():
        raise ValueError(
            f"{name} is damaged: {len(body)} bytes for an image of {size}; download it again, in binary mode"
        )
    return np.frombuffer(body, kind.newbyteorder(">"), count).copy()


def _plain(body: bytes, count: int, name: str) -> Array:
    words = re.sub(rb"#[^\n]*", b"", body).split()
    if len(words) != count or not all(word.isdigit() and len(word) < 10 for word in words):
        raise ValueError(
            f"{name} is damaged: {len(words)} words for an image of {count} grey values; download it again"
        )
    return np.array([int(word) for word in words])

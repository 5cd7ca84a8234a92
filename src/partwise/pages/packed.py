"""Numbers inside of a web page: JSON that cannot end its element, and arrays in one compressed block."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from ..statistics import Array

STEPS = 2047  # a row of weights is stored as whole numbers from 0 to this, relative to its maximum


class Arrays:
    """Arrays that a page holds, in one block. Each is referred to by its place, length and form."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, raw: bytes, form: str, count: int) -> dict[str, Any]:
        """Append bytes, and return the reference to them."""
        padded = raw + b"\0" * (-len(raw) % 4)
        self.pieces.append(padded)
        self.size += len(padded)
        return {"at": self.size - len(padded), "count": count, "form": form}

    def floats(self, values: Array) -> dict[str, Any]:
        """Store numbers in single precision."""
        return self.add(np.ascontiguousarray(values, dtype="<f4").tobytes(), "float", values.size)

    def rows(self, values: Array) -> dict[str, Any]:
        """Store rows, each relative to its largest absolute value, up to 1/4094 of that. Counts are exact.

        Differences of neighbours, with low and high bytes apart, compress well: components are smooth, or mostly zero.
        """
        scales = np.abs(values).max(axis=1, initial=0.0)
        scales[(values == np.rint(values)).all(axis=1) & (scales <= STEPS)] = STEPS
        levels = np.rint(values * (STEPS / np.where(scales > 0, scales, 1))[:, None]).astype(np.int32)
        steps = np.diff(levels, axis=1, prepend=0)
        folded = np.where(steps < 0, -2 * steps - 1, 2 * steps).astype("<u2")
        raw = (folded & 255).astype(np.uint8).tobytes() + (folded >> 8).astype(np.uint8).tobytes()
        return {**self.add(raw, "rows", values.size), "scales": scales.tolist(), "width": values.shape[1]}

    def bytes(self, values: Array) -> dict[str, Any]:
        """Store small whole numbers."""
        return self.add(np.ascontiguousarray(values, dtype=np.uint8).tobytes(), "bytes", values.size)

    def text(self) -> str:
        """The compressed block as text."""
        return base64.b64encode(zlib.compress(b"".join(self.pieces), 9)).decode("ascii")


def safe_json(value: object) -> str:
    """JSON for an element of a page. ``<`` and ``&`` are escaped, so that nothing in it ends the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text

"""Open HDF5 files that may come from anybody: .h5, .h5ad, .mat of version 7.3."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..runtime.untrusted import UnreadableError, allow
from .table import extra

BOUNDED = (2, 3, 5, 6)  # filters that make chunks little smaller: shuffle, checksum, n-bit, scale and offset
OBJECT = 64  # bytes of a short str in Python


def open_hdf5(path: Path, name: str, what: str) -> Any:
    """Open a file for reading, unless parts of it lie in other files or its chunks take too much memory."""
    h5py = extra("h5py", name, what)
    file = h5py.File(path, "r")

    largest = 0

    def outside(name: str, item: Any) -> str | None:
        nonlocal largest
        if isinstance(item, h5py.Dataset):
            about = item.id.get_create_plist()
            filters = [about.get_filter(k)[0] for k in range(about.get_nfilters())]
            if sum(code not in BOUNDED for code in filters) > 1:
                raise UnreadableError(f"{path}: /{name} is compressed more than once, which is not supported")
            largest = max(largest, math.prod(item.chunks or ()) * item.dtype.itemsize)
            return name if item.external or item.is_virtual else None
        return name if isinstance(item, h5py.ExternalLink) else None

    try:
        found = file.visititems_links(outside) or file.visititems(outside)  # stops at the first; follows no links
        if found:
            raise UnreadableError(f"{path}: /{found} is in another file or virtual, which is not supported")
        allow(path, largest)
    except BaseException:
        file.close()
        raise
    return file


def claimed(item: Any, known: dict[Any, int | None] | None = None) -> int:
    """The memory that a dataset takes, or all that is in a group; what has several names is read several times."""
    if hasattr(item, "shape"):
        return (item.size or 0) * (OBJECT if item.dtype.hasobject else item.dtype.itemsize)
    known = {} if known is None else known
    if item not in known:
        known[item] = None
        inside = (item.get(name) for name in item) if hasattr(item, "keys") else ()
        known[item] = sum(OBJECT + claimed(one, known) for one in inside if one is not None)  # None: a dangling link
    size = known[item]
    if size is None:
        raise ValueError(f"{item.name} contains itself")
    return size

"""Which codecs a zarr store may use. Others, such as numcodecs' ``pickle``, could run code while a chunk is decoded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..runtime.untrusted import UnreadableError, files_in, reading

COMPRESSION = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}
NUMBERS = {"astype", "bitround", "bytes", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle", "transpose"}
CHECKSUMS = {"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"}
PLAIN = COMPRESSION | NUMBERS | CHECKSUMS | {"sharding_indexed", "vlen-bytes", "vlen-utf8"}


def check_codecs(path: Path) -> None:
    """Raise an error if the metadata anywhere in the store, of zarr 2 or 3, names a codec that is not plain."""
    for file in files_in(path):
        name = os.path.basename(file).lower()  # not all file systems tell upper from lower case
        if name in (".zarray", ".zmetadata", "zarr.json"):
            with reading(file):
                found = list(_codecs(json.loads(Path(file).read_bytes()), name))
            for codec in found:
                if codec not in PLAIN:
                    raise UnreadableError(f"{file} has the codec {codec!r}, which is not read: rewrite it with another")


def _codecs(about: Any, name: str) -> Iterator[str]:
    """The names of all codecs in a metadata file of this name: of an array, or of all arrays if it is consolidated."""
    if name == ".zmetadata":
        for key, array in about["metadata"].items():
            if key.rpartition("/")[2] == ".zarray":
                yield from _codecs(array, ".zarray")
    elif name == ".zarray":
        yield from (str(c["id"]) for c in (about.get("compressor"), *(about.get("filters") or ())) if c is not None)
    else:
        for array in ((about.get("consolidated_metadata") or {}).get("metadata") or {}).values():
            yield from _codecs(array, name)
        for codec in about.get("codecs") or ():
            inner = {} if isinstance(codec, str) else codec.get("configuration") or {}
            yield (codec if isinstance(codec, str) else str(codec["name"])).removeprefix("numcodecs.")
            yield from _codecs({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]}, name)

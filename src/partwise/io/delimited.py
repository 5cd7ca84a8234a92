"""Text tables: .csv, .tsv and .txt, plain or gzipped, with or without a header and row names."""

from __future__ import annotations

import csv
import gzip
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.untrusted import UnreadableError, allow
from ..statistics import Array
from .table import Table

CORNERS = ("", "id", "index", "name", "sample", "feature")  # headers that mark a column of row names
CELL = 24  # bytes that pandas takes for a cell while it reads a table: a pointer, the number, and a copy
LINE, PIECE = 4096, 2**20  # characters of a line that are looked at, bytes that are read at a time


def read_table(path: Path, inner: str = "", *, row_names: bool | None = None) -> Table:
    """Read a table of numbers.

    The first line is a header unless all its cells are numbers. The first column holds row names if it is not numeric,
    or if its header is empty or a word such as "id" or "sample"; ``row_names`` overrides this. A .txt file may also
    hold numbers between spaces, after comments, as `numpy.savetxt` writes them.
    """
    if ".txt" in path.suffixes and not row_names and _is_spaced(path):
        return _read_spaced(path)
    import pandas as pd

    size, cells, _ = scanned(path)
    allow(path, size + CELL * cells)
    first, second, separator = _first_lines(path)
    header = first if not all(map(_is_number, first)) else None
    if row_names is None:
        nameless = header is not None and (header[0].strip().lower() in CORNERS or len(header) == len(second) - 1)
        row_names = nameless or not _is_number(plain(second[0]))
    frame = pd.read_csv(
        path,
        sep=separator,
        header=None,
        skiprows=1 if header else 0,
        encoding="utf-8-sig",
        dtype={0: str} if row_names else None,
        float_precision="round_trip",
        low_memory=False,
    )
    names = tuple(map(str, frame.pop(0))) if row_names else None
    if not frame.shape[1]:
        raise UnreadableError(f"{path} has no column of numbers")
    columns = None
    if header is not None:
        columns = tuple(header[1:] if row_names and len(header) == frame.shape[1] + 1 else header)
        if len(columns) != frame.shape[1]:
            raise UnreadableError(f"{path}: the header has {len(header)} cells but line 2 has {len(second)}")
    offset = 2 if header else 1
    X = _numbers(frame, path, columns, offset)
    if np.isnan(X[:, -1]).any():
        _check_lengths(path, separator, len(second))
    return Table(X, "table", str(path), names, columns)


def _is_spaced(path: Path) -> bool:
    """Whether the first line, comments aside, has numbers between spaces."""
    with opened(path) as file:
        lines = file.read(PIECE).splitlines()
    line = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    cells = line[:LINE].split()[: -1 if len(line) > LINE else None]  # without a number that is cut off
    several = len(cells) > 1 and "\t" not in line
    return bool(cells) and all(map(_is_number, cells)) and (several or lines[0].startswith("#"))


def _read_spaced(path: Path) -> Table:
    size, cells, _ = scanned(path, b" \t")
    allow(path, size + CELL * cells)
    with opened(path) as file:
        try:
            return Table(np.loadtxt(file, ndmin=2), "table", str(path))
        except ValueError as error:
            raise UnreadableError(f"{path}: {str(error).split(';')[0].rstrip('.')}") from error  # and not the advice


def _first_lines(path: Path) -> tuple[list[str], list[str], str]:
    """The cells of the first two lines, and the separator."""
    with opened(path) as file:
        line = file.readline(LINE)
        separator = max("\t,;", key=line.count) if ".tsv" not in path.name else "\t"
        file.seek(0)
        lines = list(islice(filter(any, csv.reader(file, delimiter=separator)), 2))
    if not lines:
        raise UnreadableError(f"{path} is empty")
    if len(lines) == 1 and not any(map(_is_number, lines[0])):
        raise UnreadableError(f"{path} has a header but no rows")
    return lines[0], lines[-1], separator


def opened(path: Path) -> Any:
    """Open a text file for reading, decompressing .gz files."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def scanned(path: Path, separators: bytes = b"\t,;") -> tuple[int, int, bytes]:
    """The number of bytes of a text file, after decompression, the number of its cells, and its end."""
    size, cells, end = 0, 0, b""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while piece := file.read(PIECE):
            if b"\0" in piece:
                raise ValueError("it has NUL characters, so it is not text, or not in UTF-8: save it as UTF-8")
            size, cells = size + len(piece), cells + sum(map(piece.count, separators + b"\n"))
            end = (end + piece)[-LINE:]
    return size, cells, end


def _numbers(frame: Any, path: Path, columns: tuple[str, ...] | None, offset: int) -> Array:
    """Convert the table to an array; raise an error that locates the first cell that is not a number."""
    for j, (place, column) in enumerate(frame.items()):
        if column.dtype.kind in "buif":
            continue
        for i, cell in enumerate(column):
            if isinstance(cell, str) and not _is_number(cell):
                where = f"column {columns[j]!r}" if columns else f"column {place + 1}"  # as editors count
                raise UnreadableError(f"{path}: line {i + offset}, {where} is {cell!r}, not a number{hint(cell)}")
    return np.asarray(frame.to_numpy(dtype=float))


def _check_lengths(path: Path, separator: str, width: int) -> None:
    """Raise an error for lines with too few cells, which pandas fills with NaN."""
    with opened(path) as file:
        lines = csv.reader(file, delimiter=separator)
        for cells in islice(lines, 1, None):
            if cells and len(cells) != width:
                raise UnreadableError(f"{path}: line {lines.line_num} has {len(cells)} cells but line 2 has {width}")


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000


def plain(cell: str) -> str:
    """A cell without the marks that people, but not programs, write in numbers."""
    return re.sub("[,_%]", "", cell)


def hint(cell: str) -> str:
    """What to do about a number that is written in another way."""
    return ": write it with a decimal point, and without other marks" if _is_number(plain(cell)) else ""

"""Choose the reader of a file by its extension, and of a folder by its contents."""

from __future__ import annotations

import glob
import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..engine.validation import as_bytes, as_signed
from ..runtime.untrusted import UnreadableError, allow, limited, reading
from .array_files import read_npy, read_npz
from .delimited import read_table
from .h5ad import beside, read_h5ad, read_mtx
from .images import read_images
from .matlab import read_mat
from .sound import SOUNDS, read_sound
from .stores import read_hdf5, read_zarr
from .table import LazyRows, Table
from .volumes import read_nifti

Source = str | os.PathLike[str]


@dataclass(frozen=True)
class Format:
    """A file format: its name, its extensions and its reader; ``many``: several files make one table, a sample each."""

    what: str
    endings: tuple[str, ...]
    read: Callable[..., Table]
    many: bool = False


FORMATS = (
    Format("NumPy array", (".npy",), read_npy),
    Format("NumPy archive or scipy sparse matrix", (".npz",), read_npz),
    Format("table", (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_table),
    Format("Matrix Market", (".mtx", ".mtx.gz"), read_mtx),
    Format("MATLAB file", (".mat",), read_mat),
    Format("AnnData", (".h5ad",), read_h5ad),
    Format("zarr", (".zarr",), read_zarr),
    Format("HDF5", (".h5", ".hdf5"), read_hdf5),
    Format("images", (".png", ".pgm", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"), read_images, many=True),
    Format("NIfTI", (".nii", ".nii.gz"), read_nifti, many=True),
    Format("sound", SOUNDS, read_sound),
)


def read(
    source: Source | Sequence[Source],
    *,
    transpose: bool = False,
    max_bytes: int | str | None = None,
    negative: str = "error",
    **settings: Any,
) -> Table:
    r"""Read a file, a folder, a glob pattern or a list of files.

    Parameters
    ----------
    source : path or list of paths
        ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.mtx`` (or a 10x folder), ``.mat``, ``.h5ad``, ``.zarr``, ``.h5``,
        ``.wav``; images or NIfTI files as a list, a folder or a glob pattern. ``file.h5:/path`` selects one of several
        arrays in a file. Formats that can be read in chunks stay on disk.
    transpose : bool
        Swap rows and columns, for files whose columns are samples.
    max_bytes : int or str
        The most memory that the file may take, such as "8 GB". By default 1000 times its size on disk, but at
        least 256 MiB, and at most half of the free memory.
    negative : {"error", "allow"}
        Whether negative entries of an array in memory are an error.
    mask : path or Brain
        For NIfTI: an image that is nonzero at the voxels to use, or ``origin_`` of a model of such images.
    colour : bool
        For images: keep red, green and blue, as the last axis of ``part_shape``; by default colours become grey.
    row_names : bool
        For tables: whether the first column holds row names; guessed by default.
    layer : str
        For AnnData: the layer to read instead of X.
    mask_var : str
        For AnnData: the boolean column of ``var`` that selects the genes to read, such as "highly_variable".
    whole : bool
        For AnnData: read a large matrix into memory, too.
    window, hop : int
        For sound: samples per frame (default 1024), and between frames (default 256).
    rate : int
        For sound: the samples per second that the file must have.

    Returns
    -------
    Table

    Raises
    ------
    UnreadableError
        If a file is damaged, is not what its name says, or would take more memory than ``max_bytes``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cells.csv")
    ...     _ = path.write_text("cell,geneA,geneB\nc1,1,0\nc2,0,3\n")
    ...     read(path).feature_names
    ('geneA', 'geneB')
    """
    signed = as_signed(negative)
    paths, inner = _found(source)
    form = _format(paths)
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in inspect.signature(form.read).parameters:
            owners = [f.what for f in FORMATS if name in inspect.signature(f.read).parameters]
            if not owners:
                raise TypeError(f"read has no parameter {name}")
            raise ValueError(f"{name} applies only to {', '.join(owners)}; {paths[0]} has the format {form.what!r}")
    if not form.many and len(paths) > 1:
        raise ValueError(f"{paths[0]} and {paths[1]}: only images and NIfTI can be read from several files")
    with limited(as_bytes(max_bytes, "max_bytes")), reading(paths[0]):
        table = form.read(paths if form.many else paths[0], inner, **given)
        allow(paths[0], 8 * sum(table.X.shape), *paths)  # the least that a fit takes
        table = (table.transposed() if transpose else table).checked(signed)
    return replace(table, X=replace(table.X, source=table.source)) if isinstance(table.X, LazyRows) else table


def files_of(source: Source | Sequence[Source]) -> list[Path]:
    """All files that `read` would open for ``source``, including the name files beside a 10x matrix."""
    paths, _ = _found(source)
    return [*paths, *(file for path in paths if ".mtx" in path.suffixes for file in beside(path).values())]


def _found(source: Source | Sequence[Source]) -> tuple[list[Path], str]:
    """The files that ``source`` refers to, and the name of an array inside the file, if given."""
    if not isinstance(source, str | os.PathLike):
        found = [_found(one) for one in source]
        if not found:
            raise ValueError("source is empty: give at least one file")
        return [path for paths, _ in found for path in paths], found[0][1]
    text = os.fspath(source)
    address = re.fullmatch(r"(.+\.(?:h5|hdf5|h5ad|npz|mat|zarr)):(.+)", text)
    if address and not os.path.exists(text):
        return [_one(address[1])], address[2]
    if not os.path.exists(text) and glob.has_magic(text):
        matches = [Path(match) for match in sorted(glob.glob(text), key=_natural)]
        if not matches:
            raise FileNotFoundError(f"no file matches {text}: check its path")
        if len(matches) > 1 or not matches[0].is_dir():
            return matches, ""
        text = os.fspath(matches[0])
    path = _one(text)
    return (_in_folder(path) if path.is_dir() and path.suffix != ".zarr" else [path]), ""


def _one(text: str) -> Path:
    if not os.path.exists(text):
        raise FileNotFoundError(f"there is no file {text or repr(text)}: check its path")
    return Path(text)


def _in_folder(folder: Path) -> list[Path]:
    """The files to read in a folder: a 10x matrix, a zarr store, images, or NIfTI."""
    _check_readable(folder)
    for name in ("matrix.mtx", "matrix.mtx.gz"):
        if (folder / name).is_file():
            return [folder / name]
    if any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup")):
        return [folder]
    names = sorted((entry.name for entry in folder.iterdir() if not entry.name.startswith(".")), key=_natural)
    for form in FORMATS:
        found = [folder / name for name in names if form.many and name.lower().endswith(form.endings)]
        if found:
            return found
    raise ValueError(f"{folder} is a folder without images, NIfTI files, a 10x matrix.mtx or a zarr store")


def _check_readable(path: Path) -> None:
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        raise PermissionError(f"{path} cannot be read: permission denied")


def _format(paths: Sequence[Path]) -> Format:
    for path in paths:
        _check_readable(path)
        if len(paths) > 1 and path.is_dir():
            raise ValueError(f"{path} is a folder among several files: give one folder, or only files")
    if paths[0].is_dir():
        return next(form for form in FORMATS if form.what == "zarr")
    forms = {path: next((f for f in FORMATS if path.name.lower().endswith(f.endings)), None) for path in paths}
    for path, form in forms.items():
        if form is None:
            known = " ".join(ending for f in FORMATS for ending in f.endings)
            raise ValueError(f"{path} has an unknown extension; known extensions are {known}")
        if form is not forms[paths[0]]:
            raise ValueError(f"{path} is {form.what}, but {paths[0]} is not: give files of the same format")
        if not path.stat().st_size:
            raise UnreadableError(f"{path} is empty")
    return next(form for form in forms.values() if form is not None)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that orders numbers in names by value: image 2 before image 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]

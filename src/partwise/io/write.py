"""Write results, and convert data. The file extension selects the format."""

from __future__ import annotations

import csv
import errno
import gzip
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.origins import Brain
from ..runtime.files import check_replaceable, replaced_path, replacing
from ..statistics import Array
from .images import write_images
from .table import Table, extra, is_sparse, numbers, part_names
from .volumes import write_nifti
from .write_h5ad import add_to_h5ad, all_genes, new_h5ad, usage_columns

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NIFTI = (".nii", ".nii.gz")
COMPONENTS = (*TABLES, *NIFTI, ".h5ad", ".npy")
IMAGES = (".png", ".tif", ".tiff")  # one file per component
ACTIVATIONS = (*TABLES, ".npy")
LIBRARIES = {  # and the extras that install them
    **dict.fromkeys(NIFTI, (("nibabel", "brain"),)),
    **dict.fromkeys((".h5", ".hdf5"), (("h5py", "stored"),)),
    ".zarr": (("zarr", "stored"),),
    ".h5ad": (("anndata", "cells"), ("h5py", "cells")),
}


def check_target(path: str | os.PathLike[str], endings: Sequence[str] = ()) -> Path:
    """Check before the work starts that a file can be written, and return its path."""
    target = Path(path)
    if endings and ending(target, endings) is None:
        raise ValueError(f"{target} has an unsupported extension; supported here are {' '.join(endings)}")
    if os.path.isdir(target):
        raise OSError(f"{target} cannot be written: it is a folder")
    try:
        parent = replaced_path(target).parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise OSError(errno.EACCES, f"{parent} is not a writable folder")
        check_replaceable(target)
    except OSError as error:
        raise OSError(f"{target} cannot be written: {error.strerror}") from error
    for module, name in LIBRARIES.get(ending(target, endings) or "", ()):
        extra(module, name, f"writing {target.name}")
    return target


def check_components_target(path: str | os.PathLike[str], table: Table) -> Path:
    """As `check_target`, for the components of ``table``."""
    target = check_target(path, (*COMPONENTS, *IMAGES))
    shape = table.part_shape or ()
    if ending(target, IMAGES) and len(shape) != 2 and not (len(shape) == 3 and shape[2] == 3):
        raise ValueError(f"{target}: components can be written as images only if the data consists of images")
    if ending(target, NIFTI) and not isinstance(table.origin, Brain):
        raise ValueError(f"{target}: components can be written as NIfTI only if the data is NIfTI")
    return target


def image_names(path: str | os.PathLike[str], count: int) -> list[Path]:
    """The names of ``count`` images: ``path`` with the numbers of the components for %d."""
    target = Path(path)
    if not re.fullmatch(r"[^%]*%(0?[1-9])?d[^%]*", target.name):
        raise ValueError(f"{target}: each component becomes an image, so the name needs one %d, as in parts_%d.png")
    return [target.with_name(target.name % k) for k in range(count)]


def write_components(
    path: str | os.PathLike[str],
    components: Array,
    table: Table,
    *,
    activations: Any = None,
    about: dict[str, Any] | None = None,
    obs_columns: bool = False,
) -> None:
    """Write components: as columns of a table, volumes of a NIfTI image, images, or to .npy or .h5ad.

    ``.png``, ``.tif``: one image per component, numbered by a %d in the name, as in ``parts_%d.png``. PNG is scaled to
    0–255 by the maximum of the component; TIFF has its values as float32. The table must have a ``part_shape``.
    ``.h5ad``: a copy of the file that the data came from, with the components in ``varm["NMFs"]``, the activations in
    ``obsm["X_nmf"]`` and ``about`` in ``uns["nmf"]``. Genes that were not read have 0 in all components.
    ``obs_columns`` adds the activations to ``obs`` as well, as nmf_0, nmf_1, …
    """
    target, components = check_components_target(path, table), np.asarray(components)
    if table.part_shape is not None and ending(target, IMAGES):
        return write_images(image_names(target, len(components)), components, table.part_shape)
    with replacing(target) as fresh:
        if isinstance(table.origin, Brain) and ending(target, NIFTI):
            write_nifti(fresh, components, table.origin)
        elif ending(target, (".h5ad",)):
            obsm = {} if activations is None else {"X_nmf": np.asarray(activations)}
            obs = usage_columns(activations) if obs_columns else {}
            varm = {"NMFs": all_genes(components, table.home_features)}
            add_to_h5ad(fresh, table.home, table, obs, obsm, varm, {"nmf": about or {}})
        elif ending(target, (".npy",)):
            np.save(fresh, components)
        else:
            _write_rows(fresh, "feature", table.features, part_names(len(components)), [components.T])


def write_activations(
    path: str | os.PathLike[str], activations: Any, sample_names: Sequence[str] | None = None
) -> None:
    """Write activations, one row per sample."""
    target, activations = check_target(path, ACTIVATIONS), np.asarray(activations)
    names = sample_names or numbers(len(activations))
    with replacing(target) as fresh:
        if ending(target, (".npy",)):
            np.save(fresh, activations)
        else:
            _write_rows(fresh, "sample", names, part_names(activations.shape[1]), [activations])


def convert(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table in another format, with sample and feature names if the format supports them."""
    target = check_target(path, DATA)
    with replacing(target) as fresh:
        WRITERS[str(ending(target, DATA))](fresh, table)


def ending(path: Path, endings: Sequence[str]) -> str | None:
    """The longest of ``endings`` that the file name has, or None."""
    return max((e for e in endings if path.name.lower().endswith(e)), key=len, default=None)


def _write_rows(
    path: Path, corner: str, names: Sequence[str], columns: Sequence[str], blocks: Iterator[Array] | Sequence[Array]
) -> None:
    separator = "\t" if ending(path, (".tsv", ".tsv.gz")) else ","
    with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow([corner, *columns])
        rest = iter(names)
        for block in blocks:
            writer.writerows([name, *row] for name, row in zip(rest, block.tolist(), strict=False))


def _to_table(path: Path, table: Table) -> None:
    _write_rows(path, "sample", table.samples, table.features, (rows for _, rows in table.blocks()))


def _to_npy(path: Path, table: Table) -> None:
    out = np.lib.format.open_memmap(path, mode="w+", dtype=table.X.dtype, shape=table.shape)
    _fill(out, table)
    out.flush()


def _to_npz(path: Path, table: Table) -> None:
    named = {"sample_names": table.sample_names, "feature_names": table.feature_names, "part_shape": table.part_shape}
    beside = {name: np.array(value) for name, value in named.items() if value is not None}
    if is_sparse(table.X):
        sparse = table.X.tocsr()
        arrays = {name: getattr(sparse, name) for name in ("data", "indices", "indptr", "shape")}
        arrays |= {"format": np.array(b"csr"), "_is_array": np.array(True)}  # as in scipy.sparse.save_npz
    else:
        arrays = {"X": _whole(table)}
    with path.open("wb") as file:
        np.savez_compressed(file, **(arrays | beside))


def _to_h5ad(path: Path, table: Table) -> None:
    new_h5ad(path, table, table.X if is_sparse(table.X) else _whole(table))


def _to_hdf5(path: Path, table: Table) -> None:
    with extra("h5py", "stored", "an HDF5 file").File(path, "w") as file:
        _fill(file.create_dataset("X", shape=table.shape, dtype=table.X.dtype), table)


def _to_zarr(path: Path, table: Table) -> None:
    zarr = extra("zarr", "stored", "a zarr store")
    rows = max(1, min(table.shape[0], 2**20 // table.shape[1]))
    chunks = (rows, table.shape[1])
    _fill(zarr.open(str(path), mode="w", shape=table.shape, dtype=table.X.dtype, chunks=chunks), table)


def _fill(out: Any, table: Table) -> None:
    for first, rows in table.blocks():
        out[first : first + len(rows)] = rows


def _whole(table: Table) -> Array:
    return np.concatenate([rows for _, rows in table.blocks()])


WRITERS: dict[str, Callable[[Path, Table], None]] = {
    **dict.fromkeys(TABLES, _to_table),
    ".npy": _to_npy,
    ".npz": _to_npz,
    ".h5ad": _to_h5ad,
    ".zarr": _to_zarr,
    ".h5": _to_hdf5,
    ".hdf5": _to_hdf5,
}
DATA = tuple(WRITERS)

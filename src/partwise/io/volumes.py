"""NIfTI: each volume is a sample, each voxel (within the mask) a feature."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.origins import Brain
from ..runtime.untrusted import UnreadableError, allow, reading
from ..statistics import Array
from .table import Table, extra, numeric


def read_nifti(paths: Sequence[Path], inner: str = "", *, mask: str | os.PathLike[str] | Brain | None = None) -> Table:
    """Read volumes with the same shape and affine, in the given order, within a mask (default: all voxels).

    ``mask`` is an image, or the origin of other data, whose shape, affine and mask then apply.
    A 4-D image contains several samples. Images are not resampled: a different shape or affine raises an error.
    """
    nibabel = extra("nibabel", "brain", "a NIfTI image")
    images = [_load(nibabel, path) for path in paths]  # reads only the headers
    for image, path in zip(images, paths, strict=True):
        _check_place(image, images[0], path, str(paths[0]))
    if isinstance(mask, Brain):
        _check_place(images[0], mask, paths[0], "the model")
        inside, chosen = mask.mask, "the mask of the model"
    else:
        inside = None if mask is None else _inside(nibabel, Path(mask), images[0], str(paths[0]))
        chosen = "" if mask is None else Path(mask).name
    shape = tuple(map(int, images[0].shape[:3]))
    names = [name for image, path in zip(images, paths, strict=True) for name in _names(image, path)]
    kind = np.result_type(
        np.float32, *(image.get_data_dtype() for image in images)
    )  # float32, as in nilearn, if precise enough
    width = math.prod(shape) if inside is None else int(np.count_nonzero(inside))
    allow(paths[0], len(names) * width * kind.itemsize, *paths)
    X = np.empty((len(names), width), dtype=kind)
    first = 0
    for image, path in zip(images, paths, strict=True):
        volumes = _values(image, path, kind)
        X[first : first + len(volumes)] = volumes.reshape(len(volumes), -1) if inside is None else volumes[:, inside]
        first += len(volumes)
    what = "all voxels (no mask)" if inside is None else f"{X.shape[1]} voxels of {chosen}"
    source = str(paths[0] if len(paths) == 1 else paths[0].parent)
    origin = Brain(np.asarray(images[0].affine), shape, inside)
    return Table(X, f"NIfTI, {what}", source, tuple(names), part_shape=shape if inside is None else None, origin=origin)


def write_nifti(path: Path, parts: Array, brain: Brain) -> None:
    """Write parts as one 4-D image, one volume per part, with the affine of the data."""
    brain.image(np.asarray(parts, dtype=np.float32)).to_filename(path)


def _load(nibabel: Any, path: Path) -> Any:
    with reading(path):
        _check_extensions(nibabel, path)
        image = nibabel.load(path)
        numeric(image.dataobj, str(path))
    if len(image.shape) not in (3, 4):
        raise UnreadableError(
            f"{path} has shape {image.shape}: give 3-D images, or 4-D images with one sample per volume"
        )
    return image


def _check_extensions(nibabel: Any, path: Path) -> None:
    """Raise an error if what lies between header and values, which nibabel reads with the header, is too large."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(nibabel.Nifti2Header.sizeof_hdr)
        kinds = (nibabel.Nifti1Header, nibabel.Nifti2Header)
        kind = next((kind for kind in kinds if kind.may_contain_header(head)), None)
        if kind is None:
            return  # nibabel says why
        about = kind(head[: kind.sizeof_hdr], check=False)
        start = float(about["vox_offset"])
        if not 0 <= start < 2**62:
            raise ValueError(f"it is damaged: its values begin at byte {start:g}")
        file.seek(kind.sizeof_hdr)
        size = 0
        if file.read(4)[:1] in (b"", b"\0"):
            return
        while file.tell() + 16 <= start and (tag := file.read(8)):
            length = int.from_bytes(tag[:4], "little" if about.endianness == "<" else "big", signed=True)
            if length < 16:
                raise ValueError(f"it is damaged: an extension of its header has {length} bytes")
            size += length
            allow(path, size)
            file.seek(length - 8, 1)


def _inside(nibabel: Any, path: Path, first: Any, reference: str) -> Array:
    """The mask as a boolean array."""
    mask = _load(nibabel, path)
    _check_place(mask, first, path, reference)
    inside = _values(mask, path, np.dtype(np.float32))[0] != 0
    if not inside.any():
        raise UnreadableError(f"{path} is zero everywhere: the mask selects no voxels")
    return np.asarray(inside)


def _names(image: Any, path: Path) -> list[str]:
    """Names of the samples in an image."""
    stem = path.name.removesuffix(".gz").removesuffix(".nii")
    return [stem] if len(image.shape) == 3 else [f"{stem}[{k}]" for k in range(image.shape[3])]


def _check_place(image: Any, first: Any, path: Path, reference: str) -> None:
    if image.shape[:3] != first.shape[:3]:
        raise UnreadableError(
            f"{path} has {_by(image.shape)} voxels but {reference} has {_by(first.shape)}: resample one to the other"
        )
    if not np.allclose(image.affine, first.affine, atol=1e-3):
        raise UnreadableError(f"{path} has a different affine than {reference}: resample one to the other")


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape[:3]))


def _values(image: Any, path: Path, kind: np.dtype[Any]) -> Array:
    """The volumes of an image, volume index first."""
    with reading(path):
        allow(path, math.prod(image.shape) * (image.get_data_dtype().itemsize + kind.itemsize))
        values = np.asarray(image.dataobj, dtype=kind)
    return values[None] if values.ndim == 3 else np.moveaxis(values, -1, 0)

"""NIfTI: each volume is a sample, each voxel (of the mask) a feature."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..statistics import Array
from .table import Brain, Table, extra


def read_nifti(paths: Sequence[Path], inner: str = "", *, mask: str | os.PathLike[str] | None = None) -> Table:
    """Volumes that lie in the same place, inside of a mask (without one: all voxels), in the order given.

    A 4-D image has several samples. Images are not resampled: one that lies elsewhere is refused.
    """
    nibabel = extra("nibabel", "brain", "a NIfTI image")
    first = _load(nibabel, paths[0])
    inside = None
    if mask is not None:
        image = _load(nibabel, Path(mask))
        _check_place(image, first, Path(mask), str(paths[0]))
        inside = np.asarray(image.dataobj).reshape(first.shape[:3]) != 0
        if not inside.any():
            raise ValueError(f"{mask} has no voxel inside")
    shape = tuple(map(int, first.shape[:3]))
    brain = Brain(np.asarray(first.affine), shape, inside)
    rows, names = [], []
    for path in paths:
        image = _load(nibabel, path)
        _check_place(image, first, path, str(paths[0]))
        volumes = _values(image, path)
        rows.append(volumes[:, inside] if inside is not None else volumes.reshape(len(volumes), -1))
        stem = path.name.removesuffix(".gz").removesuffix(".nii")
        names += [stem] if len(volumes) == 1 else [f"{stem}[{k}]" for k in range(len(volumes))]
    X = np.concatenate(rows)
    kind = f"NIfTI, {X.shape[1]} voxels of {Path(mask).name}" if mask is not None else "NIfTI, all voxels (no mask)"
    source = str(paths[0] if len(paths) == 1 else paths[0].parent)
    return Table(X, kind, source, tuple(names), part_shape=shape if mask is None else None, home=brain)


def write_nifti(path: Path, parts: Array, brain: Brain | None) -> None:
    """Parts as one 4-D image, a part a volume, where the data lay."""
    nibabel = extra("nibabel", "brain", "a NIfTI image")
    if brain is None:
        raise ValueError(f"{path}: parts can be written as NIfTI only where the data was NIfTI")
    volumes = np.moveaxis(brain.volumes(np.asarray(parts)), 0, -1)
    nibabel.Nifti1Image(volumes.astype(np.float32), brain.affine).to_filename(path)


def _load(nibabel: Any, path: Path) -> Any:
    try:
        image = nibabel.load(path)
    except (nibabel.filebasedimages.ImageFileError, OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a NIfTI image that can be read: {error}") from error
    if len(image.shape) not in (3, 4):
        raise ValueError(f"{path} has shape {image.shape}: give 3-D images, or 4-D ones with a sample a volume")
    return image


def _check_place(image: Any, first: Any, path: Path, reference: str) -> None:
    if image.shape[:3] != first.shape[:3]:
        raise ValueError(
            f"{path} has {_by(image.shape)} voxels, and {reference} has {_by(first.shape)}: resample one to the other"
        )
    if not np.allclose(image.affine, first.affine, atol=1e-3):
        raise ValueError(f"{path} lies elsewhere than {reference} (other affine): resample one to the other")


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape[:3]))


def _values(image: Any, path: Path) -> Array:
    """Volumes one after the other; what float32 holds is read as such, as in nilearn."""
    kind = np.result_type(image.get_data_dtype(), np.float32)
    try:
        values = np.asarray(image.dataobj, dtype=kind)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{path} is not a NIfTI image that can be read: {error}") from error
    return values[None] if values.ndim == 3 else np.moveaxis(values, -1, 0)

"""Grey matter of 185 subjects."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from partwise.statistics import Array

from .fetch import find, in_words
from .packed_files import arrays_in

FILE = "smri_ixi_gm185.npz"


def load_smri(path: str | os.PathLike[str] | None = None) -> tuple[Array, Array]:
    """Grey-matter density of 185 subjects of the IXI study, in [0, 1], at 2 mm, smoothed by 10 mm.

    These data replace the paper's 269 scans, which are private. They were derived from public segmentations by affine
    alignment. They are not available for download in this form: provide the file yourself.

    Licence: IXI (https://brain-development.org/ixi-dataset/) is CC BY-SA 3.0; the segmentations are for research.

    Parameters
    ----------
    path : path, optional
        An .npz file with `X` (voxels × subjects, uint8) and `mask` (a box of bool, True for each voxel of X), or a
        folder with smri_ixi_gm185.npz. Without it, the folders of `load_orl` are searched.

    Returns
    -------
    X : array of shape (185, 219688), float32
        The stored bytes divided by 255.
    mask : array of shape (71, 92, 71), bool
        The positions of the voxels: ``volume[mask] = X[i]``.

    Examples
    --------
    >>> X, mask = load_smri("Downloads/smri_ixi_gm185.npz")  # doctest: +SKIP
    """
    place = find(FILE) if path is None else Path(path)
    if place is not None and place.is_dir():
        place = place / FILE
    if place is None or not place.is_file():
        where = in_words() if place is None else place.parent
        raise FileNotFoundError(
            f"{FILE} is not in {where}, and it cannot be downloaded: make it from the grey-matter segmentations of IXI "
            "(https://brain-development.org/ixi-dataset/), with X (voxels × subjects, uint8) and mask (a box of bool), "
            "and set PARTWISE_DATA to its folder"
        )
    stored, mask = arrays_in(place, "X", "mask")
    if stored.dtype != np.uint8 or stored.ndim != 2 or mask.dtype != bool or np.count_nonzero(mask) != len(stored):
        raise ValueError(
            f"{place} has X of shape {stored.shape} and type {stored.dtype}, and a mask of {np.count_nonzero(mask)} "
            "voxels: X must be uint8, with a row for each voxel of the mask"
        )
    X = np.empty(stored.shape[::-1], np.float32)
    np.divide(stored.T, np.float32(255), out=X)
    return X, mask

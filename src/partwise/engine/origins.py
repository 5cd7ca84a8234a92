"""Where samples come from: what is needed to read more of them, and to write components back in their format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..statistics import Array


@dataclass(frozen=True)
class Brain:
    """The geometry of NIfTI data: affine, shape of a volume, and the brain mask (None: all voxels are features)."""

    affine: Array
    shape: tuple[int, ...]
    mask: Array | None = None

    def __post_init__(self) -> None:
        affine = np.asarray(self.affine)
        if affine.shape != (4, 4) or not np.isfinite(affine).all():
            raise ValueError(f"affine has shape {affine.shape}: give a finite 4 × 4 matrix")
        if len(self.shape) != 3 or not all(n > 0 for n in self.shape):
            raise ValueError(f"shape={self.shape}: a volume has three dimensions")
        if self.mask is not None and (self.mask.shape != self.shape or self.mask.dtype != bool):
            raise ValueError(f"mask has shape {self.mask.shape}, but volumes have shape {self.shape}")

    @property
    def size(self) -> int:
        """The number of features."""
        return int(np.prod(self.shape)) if self.mask is None else int(np.count_nonzero(self.mask))

    def volumes(self, parts: Array) -> Array:
        """Reshape components (rows) to volumes, zero outside the mask."""
        if self.mask is None:
            return parts.reshape(-1, *self.shape)
        volumes = np.zeros((len(parts), *self.shape), dtype=parts.dtype)
        volumes[:, self.mask] = parts
        return volumes

    def image(self, parts: Array) -> Any:
        """Components (rows) as one 4-D image of nibabel, one volume for each."""
        try:
            import nibabel
        except ImportError:
            raise ImportError("NIfTI images need nibabel: pip install 'partwise[brain]'") from None
        volumes = np.moveaxis(self.volumes(parts), 0, -1)
        return nibabel.Nifti1Image(volumes, self.affine)  # type: ignore[no-untyped-call]

    def millimetres(self, voxel: npt.ArrayLike) -> Array:
        """The position of a voxel: right, front and up are positive."""
        return np.asarray(self.affine[:3, :3] @ np.asarray(voxel) + self.affine[:3, 3])

    @property
    def feature_names(self) -> Positions:
        """The positions of the features as text."""
        return Positions(self)


@dataclass(frozen=True)
class Positions:
    """Names of voxels: their positions in millimetres, computed on access."""

    brain: Brain

    def __len__(self) -> int:
        return self.brain.size

    def __getitem__(self, feature: int) -> str:
        flat = feature if self.brain.mask is None else np.flatnonzero(self.brain.mask)[feature]
        return in_millimetres(self.brain.millimetres(np.unravel_index(flat, self.brain.shape)))


def in_millimetres(place: Array) -> str:
    """A position (x, y, z) as text.

    >>> in_millimetres(np.array([-12.0, 0, 4.5]))
    '(-12, 0, 4.5) mm'
    """
    return f"({', '.join(f'{round(mm, 1) + 0.0:g}' for mm in place.tolist())}) mm"


@dataclass(frozen=True)
class Sound:
    """How a recording became a spectrogram: samples per second, samples per frame, and samples between frames."""

    rate: int
    window: int
    hop: int

    def __post_init__(self) -> None:
        if min(self.rate, self.window, self.hop) < 1:
            raise ValueError(f"rate={self.rate}, window={self.window}, hop={self.hop}: each must be at least 1")

    @property
    def size(self) -> int:
        """The number of features: frequencies from 0 to half the rate."""
        return self.window // 2 + 1

    @property
    def frequencies(self) -> Array:
        """The frequency of each feature, in Hz."""
        return np.arange(self.size) * (self.rate / self.window)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The frequencies as text."""
        return tuple(f"{f:.1f} Hz" for f in self.frequencies.tolist())

    def times(self, count: int) -> Array:
        """The centres of the first ``count`` frames, in seconds."""
        return np.arange(count) * (self.hop / self.rate)


Origin = Brain | Sound
ORIGINS = {"Brain": Brain, "Sound": Sound}

"""Where samples come from: what is needed to read more of them, and to write components back in their format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

"""A part of brain images as three slices, oriented by the affine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from ..engine.origins import Brain, in_millimetres
from ..statistics import Array
from .figures import INK, OUTSIDE, full_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Extent: TypeAlias = tuple[float, float, float, float]  # left, right, low, high
VIEWS = ((1, 0, 2), (0, 1, 2), (2, 0, 1))  # coronal, sagittal, axial: the axes that are cut, drawn across, and drawn up
ENDS = ("LR", "PA")  # left and right, or posterior and anterior: of the axis that is drawn across
MNI = np.array([[-72.0, -107, -72], [72, 73, 82]])  # corners of the brain in nilearn's template, in mm
SHARP: dict[str, Any] = {"origin": "lower", "interpolation": "nearest"}
MARGIN = 0.05  # between slices, relative to their width
NEAR = 15.0  # mm between the corners of a mask and of the template, at most


@dataclass(frozen=True)
class Brains:
    """A part as three slices through its peak (coronal, sagittal, axial): left is on the left, front on top.

    If the brain is in MNI space, the slices are drawn over the template of nilearn.
    """

    brain: Brain
    across: ClassVar[int | None] = 2

    @property
    def spans(self) -> tuple[Array, Array]:
        """Widths and heights of the slices in mm, with a margin on the right."""
        left, right, low, high = np.transpose([extent for _, extent in self.slices(np.zeros(self.brain.size))])
        return (right - left) * (1 + MARGIN), high - low

    @property
    def size(self) -> tuple[float, float]:
        """Four inches wide."""
        widths, heights = self.spans
        return 4.0, 4.0 * float(heights.max() / widths.sum())

    @property
    def ground(self) -> str:
        """The colour around the slices."""
        return "black" if near_mni(self.brain) and find_spec("nilearn") is not None else OUTSIDE

    def peak(self, part: Array) -> Array:
        """The position of the largest weight in mm."""
        voxels = np.arange(self.brain.size) if self.brain.mask is None else np.flatnonzero(self.brain.mask)
        return self.brain.millimetres(np.unravel_index(voxels[np.argmax(part)], self.brain.shape))

    def note(self, part: Array) -> str:
        """Where the slices are."""
        return in_millimetres(self.peak(part))

    def slices(self, part: Array) -> Iterator[tuple[Array, Extent]]:
        """The slices through the peak; masked arrays if there is a mask."""
        volume, affine = upright(self.brain.volumes(part[None])[0], self.brain.affine)
        if self.brain.mask is not None:
            volume = np.ma.masked_array(volume, ~upright(self.brain.mask, self.brain.affine)[0])
        return slices(volume, affine, self.peak(part))

    def draw(self, axis: Axes, part: Array, left: bool, bottom: bool) -> str:
        """Draw the slices side by side on one scale."""
        from matplotlib import colormaps

        below = template(self.peak(part)) if near_mni(self.brain) else None
        colours = colormaps["gray_r"].with_extremes(bad=OUTSIDE) if below is None else colormaps["YlOrRd"]
        widths, heights = self.spans
        axis.set(xlim=(0, widths.sum()), ylim=(0, heights.max()), aspect="equal")
        axis.set_axis_off()
        for k, (pixels, extent) in enumerate(self.slices(part)):
            corner = widths[:k].sum(), (heights.max() - heights[k]) / 2
            panel = axis.inset_axes((*corner, widths[k] / (1 + MARGIN), heights[k]), transform=axis.transData)
            if below is not None:
                grey, around = below[k]
                panel.imshow(grey, cmap="gray", extent=around, **SHARP)
                pixels = np.ma.masked_equal(pixels, 0)
            panel.imshow(pixels, cmap=colours, vmin=0, vmax=full_scale(part), extent=extent, **SHARP)
            mark(panel, extent, self.peak(part), k, "0.3" if below is None else "white")
        return self.note(part)


def mark(panel: Axes, extent: Extent, peak: Array, view: int, ink: str) -> None:
    """Add the ends of the axis, and lines through the peak."""
    _, across, up = VIEWS[view]
    panel.set(xlim=extent[:2], ylim=extent[2:], xticks=(), yticks=())
    panel.spines[:].set(color="0.75", linewidth=0.6)
    panel.axvline(peak[across], color=INK, linewidth=0.4, alpha=0.7)
    panel.axhline(peak[up], color=INK, linewidth=0.4, alpha=0.7)
    for letter, side in zip(ENDS[across], ("left", "right"), strict=True):
        at = float(side == "right")
        panel.text(at, 1, letter, transform=panel.transAxes, ha=side, va="top", fontsize=6, color=ink)


def has_orientation(brain: Brain) -> bool:
    """Whether it can be said where the axes of the volumes point."""
    return find_spec("nibabel") is not None and bool(np.linalg.matrix_rank(brain.affine[:3, :3]) == 3)


def upright(volume: Array, affine: Array) -> tuple[Array, Array]:
    """The volume with axes that point right, forward and up, and its affine, as in nibabel.as_closest_canonical."""
    nibabel: Any = import_module("nibabel.orientations")  # has no types
    turns = nibabel.io_orientation(affine)
    return nibabel.apply_orientation(volume, turns), affine @ nibabel.inv_ornt_aff(turns, volume.shape)


def slices(volume: Array, affine: Array, place: Array) -> Iterator[tuple[Array, Extent]]:
    """For each of `VIEWS` the pixels of an upright volume at ``place`` in mm, lowest row first, and their extent in mm.

    The extent of oblique slices is measured along their own axes.
    """
    inverse, size = np.linalg.inv(affine), np.array(volume.shape)
    voxel = np.rint(inverse[:3, :3] @ place + inverse[:3, 3]).astype(int).clip(0, size - 1)
    steps = np.linalg.norm(affine[:3, :3], axis=0)
    low = affine[:3, :3] @ voxel + affine[:3, 3] - (voxel + 0.5) * steps
    high = low + size * steps
    for cut, across, up in VIEWS:
        yield volume.take(voxel[cut], axis=cut).T, (low[across], high[across], low[up], high[up])


def near_mni(brain: Brain) -> bool:
    """Whether the mask has about the place and the size of nilearn's template, along the same axes."""
    if brain.mask is None:
        return False
    directions = np.abs(brain.affine[:3, :3])
    straight = np.allclose(directions.max(axis=0), directions.sum(axis=0), rtol=1e-3)
    places = np.argwhere(brain.mask) @ brain.affine[:3, :3].T + brain.affine[:3, 3]
    return straight and bool((np.abs([places.min(axis=0), places.max(axis=0)] - MNI) <= NEAR).all())


def template(place: Array) -> list[tuple[Array, Extent]] | None:
    """The slices of the MNI template of nilearn, which is a file of that package; None without nilearn."""
    try:
        from nilearn.datasets import load_mni152_template
    except ImportError:
        return None
    image = load_mni152_template(resolution=1)  # nilearn keeps it in memory
    return list(slices(*upright(np.asarray(image.dataobj), image.affine), place))

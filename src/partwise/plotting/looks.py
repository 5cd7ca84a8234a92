"""Ways to plot one part: as an image, slices of a volume, a line, or bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ..engine.origins import Brain, Sound
from ..engine.summary import Summary, strongest
from ..engine.validation import as_choice, as_count
from ..runtime.untrusted import visible
from ..statistics import Array
from .brains import Brains, has_orientation
from .figures import INK, OUTSIDE, full_scale, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {2: "images", 3: "volumes", 1: "lines"}


@dataclass(frozen=True)
class Images:
    """A part as an image: white is zero, black is the maximum of the part. In colour, black is zero.

    Every look has a ``size``, the width and height of a part in inches, ``across``, the number of parts per row (None:
    about as many as rows), and `draw`, which returns a note to add to the label of a part. ``left`` and ``bottom`` say
    that the axis is in the first column, in the last row.
    """

    shape: tuple[int, ...]
    mask: Array | None = None
    across: ClassVar[int | None] = None

    @property
    def size(self) -> tuple[float, float]:
        """One inch wide."""
        return 1.0, 1.0 * self.shape[0] / self.shape[1]

    def filled(self, part: Array) -> Array:
        """The part in its image or volume shape; a masked array if there is a mask."""
        if self.mask is None:
            return part.reshape(self.shape)
        whole = np.ma.masked_array(np.zeros(self.shape, part.dtype), mask=~self.mask)
        whole.data[self.mask] = part
        return whole

    def pixels(self, part: Array) -> Array:
        """The pixels to draw, first row on top: weights, or colours in [0, 1]."""
        filled = self.filled(part)
        return filled if filled.ndim == 2 else filled / full_scale(part)

    def draw(self, axis: Axes, part: Array, left: bool, bottom: bool) -> str:
        """Draw ``part`` with a frame, without axes."""
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        pixels = self.pixels(part)
        height, width = pixels.shape[:2]
        colours = colormaps["gray_r"].with_extremes(bad=OUTSIDE)
        axis.imshow(pixels, cmap=colours, vmin=0, vmax=full_scale(part), interpolation="nearest")
        axis.add_patch(
            Rectangle((-0.5, -0.5), width, height, fill=False, edgecolor="0.75", linewidth=0.8, clip_on=False)
        )
        axis.set_axis_off()
        return ""


@dataclass(frozen=True)
class Volumes(Images):
    """A part as the slice of an array (x, y, z) through its peak; nothing is known about the directions of the axes."""

    @property
    def size(self) -> tuple[float, float]:
        """One and a half inches wide."""
        return 1.5, 1.5 * self.shape[1] / self.shape[0]

    def peak(self, part: Array) -> int:
        """The z index of the largest weight."""
        return int(np.unravel_index(int(np.argmax(self.filled(part))), self.shape)[2])

    def pixels(self, part: Array) -> Array:
        """The slice at the z of the peak: x to the right, y up."""
        return np.rot90(self.filled(part)[:, :, self.peak(part)])

    def draw(self, axis: Axes, part: Array, left: bool, bottom: bool) -> str:
        """Draw the slice; the note is its z index."""
        super().draw(axis, part, left, bottom)
        return self.note(part)

    def note(self, part: Array) -> str:
        """Which slice is drawn."""
        return f"z = {self.peak(part)}"


@dataclass(frozen=True)
class Lines:
    """A part as a line over its features: a spectrum, a time course."""

    x: Array
    x_label: str
    size: ClassVar[tuple[float, float]] = (2.6, 1.3)
    across: ClassVar[int | None] = 3

    def draw(self, axis: Axes, part: Array, left: bool, bottom: bool) -> str:
        """Draw the line, with the area below it filled; label only the outer axes."""
        axis.fill_between(self.x, part, color=INK, alpha=0.15, linewidth=0)
        axis.plot(self.x, part, color=INK, linewidth=0.9)
        axis.set_ylim(0, 1.05 * part.max() if part.any() else 1)
        if len(self.x) > 1:
            axis.set_xlim(self.x.min(), self.x.max())
        few_ticks(axis)
        axis.set_ylabel("weight" if left else "", fontsize=8)
        axis.set_xlabel(self.x_label if bottom else "", fontsize=8, parse_math=False)
        return ""


@dataclass(frozen=True)
class Bars:
    """A part as named bars of its strongest features."""

    summary: Summary
    top: int
    across: ClassVar[int | None] = 3

    @property
    def size(self) -> tuple[float, float]:
        """The height grows with the number of bars."""
        return 2.6, 0.55 + 0.16 * min(self.top, self.summary.n_features)

    def draw(self, axis: Axes, part: Array, left: bool, bottom: bool) -> str:
        """Draw the bars, longest on top; feature names are on every axis."""
        found = strongest(part, self.summary.feature_names, "feature", self.top)
        places = np.arange(len(found))
        axis.barh(places, [weight for _, weight in found], color=INK, height=0.72)
        axis.set_yticks(places, [shortened(name) for name, _ in found], parse_math=False)
        axis.set_ylim(min(self.top, self.summary.n_features) - 0.4, -0.6)
        axis.set_xlim(left=0)
        few_ticks(axis)
        axis.tick_params(axis="y", length=0)
        axis.set_xlabel("weight" if bottom else "", fontsize=8)
        return ""


Look: TypeAlias = Images | Brains | Lines | Bars


def few_ticks(axis: Axes) -> None:
    """A small axis: no frame, few ticks, small numbers."""
    open_frame(axis)
    axis.tick_params(labelsize=7)
    axis.locator_params(axis="x", nbins=4)


def shortened(name: str) -> str:
    """Shorten a name to 24 characters, and show control characters as escapes."""
    name = visible(name)
    return name if len(name) <= 24 else name[:23] + "…"


def look_of(
    summary: Summary,
    shape: Sequence[int] | None = None,
    *,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    x: npt.ArrayLike | None = None,
    x_label: str | None = None,
    top: int = 10,
) -> Look:
    """The `Look` for the parts of ``summary``, by ``kind``, by their shape, or as spectra."""
    given = shape is not None
    if x is None and isinstance(summary.origin, Sound):
        x, x_label = summary.origin.frequencies, x_label or "frequency (Hz)"
        kind = kind or (None if given else "lines")
    if mask is None and (not given or (summary.mask is not None and tuple(shape or ()) == summary.mask.shape)):
        mask = summary.mask
    mask = None if mask is None else as_mask(mask)
    shape = shape if given else mask.shape if mask is not None else summary.shape
    if shape is None or (not given and len(shape) not in KINDS):
        shape = (summary.n_features,)
    shape = tuple(as_count(n, "shape") for n in shape)
    if kind is None:
        if len(shape) not in KINDS:
            raise ValueError(f"shape={shape}: give (height, width), (height, width, 3), (x, y, z), or None for spectra")
        kind = "bars" if len(shape) == 1 and not given and summary.feature_names is not None else KINDS[len(shape)]
        if shape[2:] == (3,) and mask is None and not isinstance(summary.origin, Brain):
            kind = "images"
    as_choice(kind, "kind", (*KINDS.values(), "bars"))
    if kind in ("bars", "lines") and mask is not None and np.count_nonzero(mask) != summary.n_features:
        raise ValueError(
            f"mask has {np.count_nonzero(mask)} True entries for {summary.n_features} features: give one for each"
        )
    if kind == "bars":
        return Bars(summary, as_count(top, "top"))
    if kind == "lines":
        return Lines(as_abscissa(x, summary.n_features), x_label or "feature")
    if KINDS.get(len(shape)) != kind and not (kind == "images" and shape[2:] == (3,)):
        needed = "(height, width), or (height, width, 3) for colours" if kind == "images" else "(x, y, z)"
        raise ValueError(f"kind={kind!r} needs shape={needed}")
    check_fit(summary, shape, mask, kind)
    brain = summary.origin
    if isinstance(brain, Brain) and same_voxels(brain, shape, mask) and has_orientation(brain):
        return Brains(brain)
    return Images(shape, mask) if kind == "images" else Volumes(shape, mask)


def same_voxels(brain: Brain, shape: tuple[int, ...], mask: Array | None) -> bool:
    """Whether the features of a volume are those of ``brain``."""
    if mask is None or brain.mask is None:
        return shape == brain.shape and mask is brain.mask
    return np.array_equal(mask, brain.mask)


def as_mask(mask: npt.ArrayLike) -> Array:
    """``mask`` as a boolean array."""
    array = np.asarray(mask)
    if not np.isin(array, (0, 1)).all():
        raise ValueError("mask has values other than 0 and 1: give True at the features, False elsewhere")
    return array.astype(bool)


def check_fit(summary: Summary, shape: tuple[int, ...], mask: Array | None, kind: str) -> None:
    """Raise an error if the shape or the mask does not match the number of features."""
    if mask is not None and (mask.shape != shape or np.count_nonzero(mask) != summary.n_features):
        raise ValueError(
            f"mask has shape {mask.shape} and {np.count_nonzero(mask)} True entries, but {kind} of shape {shape} "
            f"with {summary.n_features} features are given: they must match"
        )
    if mask is None and math.prod(shape) != summary.n_features:
        sizes = " × ".join(map(str, shape)) + (" pixels" if kind == "images" else " voxels")
        raise ValueError(
            f"components of shape {summary.components.shape} do not fit {kind} of {sizes}: change shape, or give a mask"
        )


def as_abscissa(x: npt.ArrayLike | None, m: int) -> Array:
    """Positions of the ``m`` features on the x-axis; by default their numbers."""
    places = np.arange(m) if x is None else np.asarray(x)
    if places.shape != (m,) or places.dtype.kind not in "buif":
        raise ValueError(f"x has shape {places.shape} and dtype {places.dtype}: give {m} numbers, one per feature")
    return places

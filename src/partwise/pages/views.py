"""What a web page holds of a sample or a component, so that the browser can draw it and add several.

A view is linear: the view of a sum is the sum of the views. It may be smaller than the data; ``left_out`` then says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any

import numpy as np

from ..engine.origins import in_millimetres
from ..engine.summary import Names, Summary
from ..plotting.brains import ENDS, VIEWS, Brains, slices, upright
from ..plotting.looks import Images, Lines, Look, Volumes
from ..runtime.untrusted import visible
from ..statistics import Array

NUMBERS = 12_000_000  # at most so many weights of all components at all levels, about 10 MB
PIXELS, POINTS = 32, 120  # width and height of a thumbnail, and points of a small line, at most
PLANES = ("coronal", "sagittal", "axial")


@dataclass(frozen=True)
class View:
    """Features as they are, or some of them: ``kept``."""

    kind: str
    kept: Array
    facts: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def rows(self, values: Array) -> Array:
        """The view of samples or components (rows)."""
        return values[:, self.kept]

    def thumbnail(self) -> View | None:
        """A smaller view of the rows of this one, for small pictures; None if there are no pictures."""
        return None


@dataclass(frozen=True)
class Blocks(View):
    """Images, or lines, in which blocks of neighbouring features are averaged; zero outside a mask."""

    shape: tuple[int, ...] = ()
    block: int = 1

    def rows(self, values: Array) -> Array:
        """The means of the blocks, row by row."""
        whole = np.zeros((len(values), *self.shape))
        whole.reshape(len(values), -1)[:, self.kept] = values
        for axis in range(1, min(whole.ndim, 3) if self.block > 1 else 0):
            starts = np.arange(0, whole.shape[axis], self.block)
            counts = np.diff([*starts, whole.shape[axis]])
            whole = np.add.reduceat(whole, starts, axis=axis)
            whole /= counts.reshape([-1 if k == axis else 1 for k in range(whole.ndim)])
        return whole.reshape(len(values), -1)

    def thumbnail(self) -> View:
        """Means of larger blocks."""
        shape = tuple(self.facts.get("shape", [len(self.facts.get("x", []))]))
        block = ceil(max(shape[:2]) / (POINTS if self.kind == "lines" else PIXELS))
        facts = {"shape": [ceil(n / block) for n in shape[:2]] + [*shape[2:]]}
        return Blocks(self.kind, np.arange(np.prod(shape)), facts, (), shape, block)


@dataclass(frozen=True)
class Cuts(View):
    """Three slices of volumes through one place, and of components through their own peaks."""

    look: Volumes | Brains | None = None
    place: Array = field(default_factory=lambda: np.zeros(3))

    def planes(self, one: Array, place: Array) -> list[Array]:
        """The slices of a volume at ``place`` (a voxel, or in mm), first row on top; nan outside of the mask."""
        look = self.look
        if isinstance(look, Brains):
            volume, affine = upright(look.brain.volumes(one[None].astype(float))[0], look.brain.affine)
            if look.brain.mask is not None:
                volume = np.where(upright(look.brain.mask, look.brain.affine)[0], volume, np.nan)
            return [pixels[::-1] for pixels, _ in slices(volume, affine, place)]
        assert look is not None
        volume = np.ma.filled(look.filled(one.astype(float)), np.nan)
        x, y, z = (int(k) for k in place)
        return [np.rot90(volume[:, y, :]), np.rot90(volume[x, :, :]), np.rot90(volume[:, :, z])]

    def thumbnail(self) -> View:
        """Every so many pixels of the slices."""
        planes = self.facts["planes"]
        step = ceil(max(max(plane["height"], plane["width"]) for plane in planes) / PIXELS)
        first, kept, small = 0, [], []
        for plane in planes:
            places = np.arange(plane["height"] * plane["width"]).reshape(plane["height"], -1)[::step, ::step]
            kept.append(first + places.ravel())
            small.append({**plane, "height": places.shape[0], "width": places.shape[1]})
            first += plane["height"] * plane["width"]
        return View(self.kind, np.concatenate(kept), {"planes": small})

    def flat(self, one: Array, place: Array) -> Array:
        """The pixels of all slices."""
        return np.concatenate([plane.ravel() for plane in self.planes(one, place)])

    def rows(self, values: Array) -> Array:
        """The slices through the common place, zero outside of the mask."""
        return np.nan_to_num(np.stack([self.flat(one, self.place) for one in values]))

    def peak(self, part: Array) -> Array:
        """Where the largest weight of a component is."""
        if isinstance(self.look, Brains):
            return self.look.peak(part)
        assert self.look is not None
        return np.array(np.unravel_index(int(np.argmax(self.look.filled(part))), self.look.shape))

    def words(self, place: Array) -> str:
        """A place as text."""
        return in_millimetres(place) if isinstance(self.look, Brains) else f"voxel ({', '.join(map(str, place))})"


def view_of(look: Look, known: Summary, levels: Sequence[Array]) -> View:
    """The view of components, given those of all levels (r × features each)."""
    m, count = known.n_features, len(levels) * known.n_components
    if isinstance(look, Volumes | Brains):
        return cuts_of(look, m)
    if isinstance(look, Images):
        return images_of(look, count)
    if isinstance(look, Lines):
        return lines_of(look, m, count)
    return features_of(known, levels, max(NUMBERS // count, 1))


def features_of(known: Summary, levels: Sequence[Array], most: int) -> View:
    """The view of named features: all, or those with the largest weights relative to their component."""
    m, kept = known.n_features, np.arange(known.n_features)
    left_out: tuple[str, ...] = ()
    if m > most:
        peaks = (np.maximum(parts.max(axis=1, keepdims=True), np.finfo(float).tiny) for parts in levels)
        strength = np.max([(parts / peak).max(axis=0) for parts, peak in zip(levels, peaks, strict=True)], axis=0)
        kept = np.sort(np.argsort(-strength, kind="stable")[:most])
        left_out = (f"{m - most} of {m} features, which have the smallest weights in all components",)
    names = known.feature_names
    listed = [name_of(names, i, "feature") for i in kept.tolist()]
    return View("bars", kept, {"names": listed}, left_out)


def name_of(names: Names | None, i: int, kind: str) -> str:
    """The name of a sample or feature, control characters as escapes; its number if it has none."""
    return (visible(str(names[i])) if names is not None else "") or f"{kind} {i}"


def images_of(look: Images, count: int) -> Blocks:
    """The view of images; large ones are reduced."""
    height, width, *colours = look.shape
    block = max(ceil(sqrt(count * height * width * (3 if colours else 1) / NUMBERS)), 1)
    kept = np.arange(np.prod(look.shape)) if look.mask is None else np.flatnonzero(look.mask)
    facts = {"shape": [ceil(height / block), ceil(width / block), *colours]}
    view = Blocks("images", kept, facts, reduced(block, "pixels", "width and height"), look.shape, block)
    if look.mask is not None:
        view.facts["inside"] = np.flatnonzero(view.rows(np.ones((1, len(kept))))[0]).tolist()
    return view


def lines_of(look: Lines, m: int, count: int) -> Blocks:
    """The view of lines; long ones are averaged."""
    block = max(ceil(count * m / NUMBERS), 1)
    view = Blocks("lines", np.arange(m), {"label": look.x_label}, reduced(block, "features", "number"), (m,), block)
    view.facts["x"] = [round(float(x), 6) for x in view.rows(np.asarray(look.x, dtype=float)[None])[0]]
    return view


def reduced(block: int, what: str, by: str) -> tuple[str, ...]:
    """What a reduced view leaves out, in words."""
    return () if block == 1 else (f"the resolution of {what}: means of {block} neighbours ({by} ÷ {block})",)


def cuts_of(look: Volumes | Brains, m: int) -> Cuts:
    """The view of volumes: slices through the middle of the features."""
    sizes = look.brain.shape if isinstance(look, Brains) else look.shape
    mask = look.brain.mask if isinstance(look, Brains) else look.mask
    voxel = np.array(sizes) // 2 if mask is None else np.rint(np.argwhere(mask).mean(axis=0)).astype(int)
    place = look.brain.millimetres(voxel) if isinstance(look, Brains) else voxel
    left_out = ("the voxels of samples and models outside the three slices that are shown",)
    bare = Cuts("volumes", np.arange(m), {}, left_out, look, place)
    first = np.zeros(m)
    shapes = [plane.shape for plane in bare.planes(first, place)]
    if isinstance(look, Brains):
        extents = [extent for _, extent in look.slices(first)]
        spans = [(right - left, high - low) for left, right, low, high in extents]
        ends = [tuple(ENDS[across]) for _, across, _ in VIEWS]
        names: Sequence[str] = PLANES
    else:
        spans, ends, names = [(w, h) for h, w in shapes], [("", "")] * 3, ("xz", "yz", "xy")
    bare.facts["planes"] = [
        {"name": name, "height": h, "width": w, "across": float(a), "up": float(u), "ends": end}
        for name, (h, w), (a, u), end in zip(names, shapes, spans, ends, strict=True)
    ]
    bare.facts["place"] = bare.words(place)
    return bare

"""The gallery and the table of parts in a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data import Matrix
from ..engine.origins import Sound
from ..engine.summary import Summary, percent, strongest
from ..plotting.brains import Brains
from ..plotting.inline import as_png, slices_png
from ..plotting.looks import Bars, Images, Lines, Look, Volumes
from ..statistics import Array
from .frame import quoted

PLACES = 240  # maximum number of points of a line, the width of a thumbnail in pixels
PICTURES = {
    "Images": "{} is zero; each part is scaled to its largest weight.",
    "Volumes": "The slice at the z index of the largest weight of each part, x to the right and y up. Blank is zero.",
    "Brains": "Coronal, sagittal and axial slices through the largest weight of each part; L is left and P posterior. "
    "Each part is scaled to its largest weight.",
    "Lines": "The weight of each feature; each part has its own scale.",
    "Bars": "The features that are most specific to each part.",
}
SORTING = '<p class="hint">Click a heading to sort, and again to reverse the order; click a picture to enlarge it.</p>'


@dataclass(frozen=True)
class Pictures:
    """The parts of one model and how to draw them. ``data`` are the samples, if known; ``prefix`` begins all ids."""

    known: Summary
    look: Look
    data: Matrix | None = None
    prefix: str = ""

    def part(self, j: int) -> str:
        """A small plot of a part: an image, a line, or bars."""
        weights, name = self.known.components[j], f"part {j}"
        if isinstance(self.look, Brains):
            return f'<img class="slices" src="{slices_png(self.look, weights)}" alt="{name}">'
        if isinstance(self.look, Images):
            return image(self.look.pixels(weights), name, "pixels")
        if isinstance(self.look, Lines):
            return line(weights, name)
        return bars_html(most_specific(self.known, j, 6), "weights")

    def sample(self, i: int, part: int, name: str) -> str:
        """A small picture of a sample; slices are those through the peak of ``part``. Empty if it has no picture."""
        if self.data is None or isinstance(self.look, Bars):
            return ""
        values = np.nan_to_num(self.data.raw(np.array([i]))[0])
        if isinstance(self.look, Volumes):
            z = self.look.peak(self.known.components[part])
            return image(np.rot90(self.look.filled(values)[:, :, z]), name, "photo")
        if isinstance(self.look, Images):
            return image(self.look.pixels(values), name, "photo")
        if isinstance(self.look, Brains):
            return image(joined(self.look, values, self.known.components[part]), name, "photo")
        return line(values, name)


def joined(look: Brains, sample: Array, part: Array) -> Array:
    """The slices of a sample through the peak of a part, side by side."""
    from .views import Cuts

    planes = Cuts("volumes", np.arange(0), look=look).planes(sample, look.peak(part))
    tall = max(len(plane) for plane in planes)
    padded = [np.pad(p, ((tall - len(p), 0), (0, 2)), constant_values=np.nan) for p in planes]
    return np.ma.masked_invalid(np.concatenate(padded, axis=1))


def image(pixels: Array, name: str, tone: str) -> str:
    """An image: ``photo`` has black for zero, ``pixels`` white."""
    height, width = pixels.shape[:2]
    uri = as_png(pixels, photo=tone == "photo")
    return f'<img class="{tone}" src="{uri}" alt="{quoted(name)}" width="{width}" height="{height}">'


def line(weights: Array, name: str, kind: str = "") -> str:
    """An SVG line with the area below it filled; if there are many features, the maximum of each group is drawn."""
    starts = np.linspace(0, len(weights), min(len(weights), PLACES), endpoint=False).astype(int)
    heights = np.maximum.reduceat(weights, starts)
    top = float(heights.max()) or 1.0
    ys = 38 - 36 * heights / top
    xs = np.linspace(0, 100, len(ys)) if len(ys) > 1 else np.array([0.0])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return (
        f'<svg class="line {kind}" role="img" aria-label="{quoted(name)}" viewBox="0 0 100 40" '
        f'preserveAspectRatio="none"><polygon points="0,38 {points} 100,38"/><polyline points="{points}"/></svg>'
    )


def bar(value: float, most: float) -> str:
    """A bar relative to the longest one."""
    return f'<progress max="1" value="{max(value / (most or 1.0), 0):.3f}" aria-hidden="true"></progress>'


def bars_html(found: Sequence[tuple[str, float]], kind: str, pictures: Sequence[str] = ()) -> str:
    """A list of names with bars proportional to their values, and a picture for each, if there are any."""
    if not found:
        return '<span class="none">none</span>'
    drawn = pictures if any(pictures) else [""] * len(found)
    top = max(value for _, value in found)
    items = (
        f'<li title="{quoted(name)}: {value:.4g}">{picture}<span class="name">{quoted(name)}</span>'
        f"{bar(value, top)}</li>"
        for (name, value), picture in zip(found, drawn, strict=True)
    )
    return f'<ol class="bars {kind}{" pictured" if any(pictures) else ""}">{"".join(items)}</ol>'


def gallery_html(pictures: Pictures, order: Sequence[int | None] | None = None) -> str:
    """One card per part, linked to its row in the table; in this order, in which None leaves a place empty."""
    known, look = pictures.known, pictures.look
    kind = "volumes" if isinstance(look, Volumes) else type(look).__name__.lower()
    cards = []
    for j in range(known.n_components) if order is None else order:
        if j is None:
            cards.append("<div></div>")
            continue
        share = "" if known.explained is None else f"<span>{percent(float(known.explained[j]))}</span>"
        slice_ = f" <small>{look.note(known.components[j])}</small>" if isinstance(look, Volumes | Brains) else ""
        cards.append(
            f'<figure class="card"><a href="#{pictures.prefix}part-{j}">{pictures.part(j)}</a>'
            f"<figcaption>Part {j}{slice_}{share}</figcaption></figure>"
        )
    return f'<div class="gallery {kind}">{"".join(cards)}</div>'


def row_cells(pictures: Pictures, part: int, top: int) -> Iterator[tuple[str, float | str, str]]:
    """The row of a part in the table: for each column but the number its heading, its sort key and its HTML."""
    known = pictures.known
    sparsity, weights = float(known.sparsity[part]), known.components[part]
    yield "Sparsity", sparsity, f"{sparsity:.4f}"
    if known.asked is not None:
        lo, hi = known.asked[part].tolist()
        yield "Requested", lo, asked(lo, hi)
    if known.explained is not None:
        share, most = float(known.explained[part]), float(known.explained.max())
        yield "Explained", share, f'<span class="share">{percent(share)}{bar(share, most)}</span>'
    count = int(np.count_nonzero(weights))
    yield "Nonzero features", count, f"{count} <small>of {known.n_features}</small>"
    yield from strongest_cells(pictures, part, top)


def strongest_cells(pictures: Pictures, part: int, top: int) -> Iterator[tuple[str, float | str, str]]:
    """The cells with the strongest features and samples, as far as they mean something for this kind of data."""
    known, look, weights = pictures.known, pictures.look, pictures.known.components[part]
    if isinstance(look, Brains | Volumes):
        yield "Peak", look.note(weights), look.note(weights)
    elif isinstance(look, Lines):
        peaks = peaks_of(weights, top)
        words = [f"{look.x[i]:.6g}" for i in peaks]
        yield f"Peaks, {quoted(look.x_label)}", float(look.x[peaks[0]]) if peaks else np.nan, ", ".join(words)
    elif isinstance(look, Bars):
        for heading, features in (
            ("Strongest features", strongest(weights, known.feature_names, "feature", top)),
            ("Most specific", most_specific(known, part, top)),
        ):
            yield heading, features[0][0] if features else "", bars_html(features, "weights")
    if known.activations is None:
        return
    active = np.asarray(known.activations[:, part])
    if isinstance(known.origin, Sound):
        end = known.origin.times(len(active))[-1]
        course = line(active, f"activation of part {part} over {end:.3g} s", "course")
        peak = float(known.origin.times(len(active))[active.argmax()])
        yield "Over time", peak, f"{course}<small>0–{end:.3g} s, strongest at {peak:.3g} s</small>"
        return
    samples = known.strongest_samples(part, top)
    order = np.argsort(-active, kind="stable")[: len(samples)].tolist()
    drawn = [pictures.sample(i, part, name) for i, (name, _) in zip(order, samples, strict=True)]
    yield "Strongest samples", samples[0][0] if samples else "", bars_html(samples, "activations", drawn)


def most_specific(known: Summary, part: int, top: int) -> list[tuple[str, float]]:
    """The features that are most specific to a part, with their specificity."""
    return strongest(known.specificity[part], known.feature_names, "feature", top)


def peaks_of(weights: Array, top: int) -> list[int]:
    """The highest local maxima of a line, highest first."""
    padded = np.concatenate([[-1.0], weights, [-1.0]])
    higher = (padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]) & (weights > 0)
    found = np.flatnonzero(higher)
    return [int(i) for i in found[np.argsort(-weights[found], kind="stable")][:top]]


def asked(lo: float, hi: float) -> str:
    """Format a requested sparsity."""
    if np.isnan(lo):
        return "any"
    return f"{lo:g}" if lo == hi else f"{lo:g}–{hi:g}"


def table(pictures: Pictures, top: int) -> str:
    """The table of parts, sortable by column. The page's script copies the plots from the gallery into it."""
    known, look = pictures.known, pictures.look
    picture = '<span class="thumb"></span>' if isinstance(look, Images | Brains | Lines) else ""
    head = "".join(
        f'<th scope="col" role="columnheader" aria-sort="{"none" if k else "ascending"}">'
        f'<button type="button">{heading}</button></th>'
        for k, heading in enumerate(["Part", *(heading for heading, _, _ in row_cells(pictures, 0, top))])
    )
    rows = []
    for j in range(known.n_components):
        row = [f'<th scope="row" role="rowheader" data-key="{j}">{picture}{j}</th>']
        row += [
            f'<td role="cell" data-label="{heading}" data-key="{quoted(str(key))}"><div>{cell}</div></td>'
            for heading, key, cell in row_cells(pictures, j, top)
        ]
        rows.append(f'<tr role="row" id="{pictures.prefix}part-{j}">{"".join(row)}</tr>')
    return (
        f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def words_on_pictures(look: Look, known: Summary) -> str:
    """How to read the plots of parts."""
    if isinstance(look, Lines) and isinstance(known.origin, Sound):
        return f"Spectra from 0 to {known.origin.frequencies[-1]:g} Hz; each part has its own scale."
    zero = "Black" if isinstance(look, Images) and look.shape[2:] else "Blank"
    return PICTURES[type(look).__name__].format(zero)

"""The gallery and the table of parts in a report."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..engine.summary import Summary, percent
from ..plotting.inline import as_png
from ..plotting.looks import Images, Lines, Look, Volumes
from ..statistics import Array

PLACES = 240  # maximum number of points of a line, the width of a thumbnail in pixels


def thumbnail(look: Look, known: Summary, part: int) -> str:
    """A small plot of a part: an image, a line, or bars."""
    weights, name = known.components[part], f"part {part}"
    if isinstance(look, Images):
        pixels = look.pixels(weights)
        height, width = pixels.shape
        return (
            f'<img class="pixels" src="{as_png(pixels)}" alt="{name}" style="aspect-ratio: {width} / {height}" '
            'loading="lazy">'
        )
    if isinstance(look, Lines):
        return line(weights, name)
    return bars(known.strongest_features(part, 6), "weights")


def line(weights: Array, name: str) -> str:
    """An SVG line with the area below it filled; if there are many features, the maximum of each group is drawn."""
    starts = np.linspace(0, len(weights), min(len(weights), PLACES), endpoint=False).astype(int)
    heights = np.maximum.reduceat(weights, starts)
    top = float(heights.max()) or 1.0
    ys = 38 - 36 * heights / top
    xs = np.linspace(0, 100, len(ys)) if len(ys) > 1 else np.array([0.0])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return (
        f'<svg class="line" role="img" aria-label="{name}" viewBox="0 0 100 40" preserveAspectRatio="none">'
        f'<polygon points="0,38 {points} 100,38"/><polyline points="{points}"/></svg>'
    )


def bars(found: Sequence[tuple[str, float]], kind: str) -> str:
    """A list of names with bars proportional to their values."""
    if not found:
        return '<span class="none">none</span>'
    top = found[0][1]
    items = (
        f'<li title="{html.escape(name)}: {value:.4g}"><span class="name">{html.escape(name)}</span>'
        f'<span class="bar" style="--length: {100 * value / top:.1f}%"></span></li>'
        for name, value in found
    )
    return f'<ol class="bars {kind}">{"".join(items)}</ol>'


def gallery(known: Summary, look: Look) -> str:
    """One card per part, linked to its row in the table."""
    kind = "volumes" if isinstance(look, Volumes) else type(look).__name__.lower()
    cards = []
    for j in range(known.n_components):
        said = "" if known.explained is None else f"<span>{percent(float(known.explained[j]))}</span>"
        slice_ = f" <small>z = {look.peak(known.components[j])}</small>" if isinstance(look, Volumes) else ""
        cards.append(
            f'<figure class="card"><a href="#part-{j}">{thumbnail(look, known, j)}</a>'
            f"<figcaption>Part {j}{slice_}{said}</figcaption></figure>"
        )
    return f'<div class="gallery {kind}">{"".join(cards)}</div>'


@dataclass(frozen=True)
class Column:
    """A column of the table: its heading, and for each part a sort key and the HTML of its cell."""

    heading: str
    keys: Sequence[float | str]
    cells: Sequence[str]


def columns(known: Summary, top: int) -> Iterator[Column]:
    """All columns except the part number."""
    parts = range(known.n_components)
    yield Column("Sparsity", known.sparsity.tolist(), [f"{s:.4f}" for s in known.sparsity])
    if known.asked is not None:
        yield Column("Requested", known.asked[:, 0].tolist(), [asked(*row) for row in known.asked.tolist()])
    if known.explained is not None:
        most = float(known.explained.max()) or 1.0
        yield Column(
            "Explained",
            known.explained.tolist(),
            [
                f'<span class="share" style="--length: {max(100 * e / most, 0):.1f}%">{percent(e)}</span>'
                for e in known.explained.tolist()
            ],
        )
    counts = np.count_nonzero(known.components, axis=1).tolist()
    yield Column("Nonzero features", counts, [f"{c} <small>of {known.n_features}</small>" for c in counts])
    features = [known.strongest_features(j, top) for j in parts]
    yield Column("Strongest features", first_names(features), [bars(f, "weights") for f in features])
    if known.activations is not None:
        samples = [known.strongest_samples(j, top) for j in parts]
        yield Column("Strongest samples", first_names(samples), [bars(s, "activations") for s in samples])


def asked(lo: float, hi: float) -> str:
    """Format a requested sparsity."""
    if np.isnan(lo):
        return "any"
    return f"{lo:g}" if lo == hi else f"{lo:g}–{hi:g}"


def first_names(found: Sequence[Sequence[tuple[str, float]]]) -> list[str]:
    """The first name in each list, to sort by."""
    return [names[0][0] if names else "" for names in found]


def table(known: Summary, look: Look, top: int) -> str:
    """The table of parts, sortable by column. The page's script copies the plots from the gallery into it."""
    picture = '<span class="thumb"></span>' if isinstance(look, Images | Lines) else ""
    shown = [*columns(known, top)]
    headings = ["Part", *(column.heading for column in shown)]
    head = "".join(
        f'<th scope="col" role="columnheader" aria-sort="{"none" if k else "ascending"}">'
        f'<button type="button">{heading}</button></th>'
        for k, heading in enumerate(headings)
    )
    rows = []
    for j in range(known.n_components):
        cells = [f'<th scope="row" role="rowheader" data-key="{j}">{picture}{j}</th>']
        for column in shown:
            key = html.escape(str(column.keys[j]))
            cells.append(
                f'<td role="cell" data-label="{column.heading}" data-key="{key}"><div>{column.cells[j]}</div></td>'
            )
        rows.append(f'<tr role="row" id="part-{j}">{"".join(cells)}</tr>')
    return (
        f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )

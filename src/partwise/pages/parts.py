"""The gallery and the table of parts in a report."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

import numpy as np

from ..engine.summary import Summary, percent
from ..plotting.brains import Brains
from ..plotting.inline import as_png, slices_png
from ..plotting.looks import Images, Lines, Look, Volumes
from ..runtime.untrusted import visible
from ..statistics import Array

PLACES = 240  # maximum number of points of a line, the width of a thumbnail in pixels


def thumbnail(look: Look, known: Summary, part: int) -> str:
    """A small plot of a part: an image, a line, or bars."""
    weights, name = known.components[part], f"part {part}"
    if isinstance(look, Images):
        pixels = look.pixels(weights)
        height, width = pixels.shape[:2]
        return (
            f'<img class="pixels" src="{as_png(pixels)}" alt="{name}" style="aspect-ratio: {width} / {height}" '
            'loading="lazy">'
        )
    if isinstance(look, Brains):
        return f'<img class="slices" src="{slices_png(look, weights)}" alt="{name}" loading="lazy">'
    if isinstance(look, Lines):
        return line(weights, name)
    return bars_html(known.strongest_features(part, 6), "weights")


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


def quoted(text: str) -> str:
    """Text from a file for HTML, control characters as escapes."""
    return html.escape(visible(text))


def bars_html(found: Sequence[tuple[str, float]], kind: str) -> str:
    """A list of names with bars proportional to their values."""
    if not found:
        return '<span class="none">none</span>'
    top = max(value for _, value in found)
    items = (
        f'<li title="{quoted(name)}: {value:.4g}"><span class="name">{quoted(name)}</span>'
        f'<span class="bar" style="--length: {100 * value / top:.1f}%"></span></li>'
        for name, value in found
    )
    return f'<ol class="bars {kind}">{"".join(items)}</ol>'


def gallery_html(known: Summary, look: Look) -> str:
    """One card per part, linked to its row in the table."""
    kind = "volumes" if isinstance(look, Volumes) else type(look).__name__.lower()
    cards = []
    for j in range(known.n_components):
        share = "" if known.explained is None else f"<span>{percent(float(known.explained[j]))}</span>"
        slice_ = f" <small>{look.note(known.components[j])}</small>" if isinstance(look, Volumes | Brains) else ""
        cards.append(
            f'<figure class="card"><a href="#part-{j}">{thumbnail(look, known, j)}</a>'
            f"<figcaption>Part {j}{slice_}{share}</figcaption></figure>"
        )
    return f'<div class="gallery {kind}">{"".join(cards)}</div>'


def row_cells(known: Summary, part: int, top: int) -> Iterator[tuple[str, float | str, str]]:
    """The row of a part in the table: for each column but the number its heading, its sort key and its HTML."""
    sparsity, weights = float(known.sparsity[part]), known.components[part]
    yield "Sparsity", sparsity, f"{sparsity:.4f}"
    if known.asked is not None:
        lo, hi = known.asked[part].tolist()
        yield "Requested", lo, asked(lo, hi)
    if known.explained is not None:
        share, most = float(known.explained[part]), float(known.explained.max()) or 1.0
        length = f"--length: {max(100 * share / most, 0):.1f}%"
        yield "Explained", share, f'<span class="share" style="{length}">{percent(share)}</span>'
    count = int(np.count_nonzero(weights))
    yield "Nonzero features", count, f"{count} <small>of {known.n_features}</small>"
    features = known.strongest_features(part, top)
    yield "Strongest features", features[0][0] if features else "", bars_html(features, "weights")
    if known.activations is not None:
        samples = known.strongest_samples(part, top)
        yield "Strongest samples", samples[0][0] if samples else "", bars_html(samples, "activations")


def asked(lo: float, hi: float) -> str:
    """Format a requested sparsity."""
    if np.isnan(lo):
        return "any"
    return f"{lo:g}" if lo == hi else f"{lo:g}–{hi:g}"


def table(known: Summary, look: Look, top: int) -> str:
    """The table of parts, sortable by column. The page's script copies the plots from the gallery into it."""
    picture = '<span class="thumb"></span>' if isinstance(look, Images | Brains | Lines) else ""
    head = "".join(
        f'<th scope="col" role="columnheader" aria-sort="{"none" if k else "ascending"}">'
        f'<button type="button">{heading}</button></th>'
        for k, heading in enumerate(["Part", *(heading for heading, _, _ in row_cells(known, 0, top))])
    )
    rows = []
    for j in range(known.n_components):
        row = [f'<th scope="row" role="rowheader" data-key="{j}">{picture}{j}</th>']
        row += [
            f'<td role="cell" data-label="{heading}" data-key="{quoted(str(key))}"><div>{cell}</div></td>'
            for heading, key, cell in row_cells(known, j, top)
        ]
        rows.append(f'<tr role="row" id="part-{j}">{"".join(row)}</tr>')
    return (
        f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )

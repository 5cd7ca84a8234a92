"""Plots for embedding in HTML: PNG as a data URI, SVG with the colours and font of the page."""

from __future__ import annotations

import base64
import html
import io
import re
from typing import TYPE_CHECKING, Any

from ..statistics import Array
from .brains import Brains
from .figures import COLOURS, full_scale, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEMED = {"#000000": "currentColor", COLOURS[0]: "var(--accent)", COLOURS[1]: "var(--second)"}


def as_png(pixels: Array, photo: bool = False) -> str:
    """An image as a data URI: white for zero, black for the maximum (a ``photo``: reversed), clear where masked."""
    from matplotlib import colormaps
    from matplotlib.image import imsave

    file = io.BytesIO()
    unsigned: dict[str, Any] = {"Software": None}
    colours = colormaps["gray" if photo else "gray_r"].with_extremes(bad=(0, 0, 0, 0))
    imsave(file, pixels, cmap=colours, vmin=0, vmax=full_scale(pixels), format="png", metadata=unsigned)
    return as_uri(file)


def slices_png(look: Brains, part: Array) -> str:
    """The slices of a part as a data URI."""
    file, figure = io.BytesIO(), new_figure(*look.size)
    figure.set_layout_engine("none")
    look.draw(figure.add_axes((0, 0, 1, 1)), part, True, True)
    figure.savefig(file, format="png", facecolor=look.ground, metadata={"Software": None})
    return as_uri(file)


def as_uri(png: io.BytesIO) -> str:
    """A PNG file as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png.getvalue()).decode("ascii")


def as_svg(figure: Figure, label: str) -> str:
    """A figure as an ``svg`` element that fills its container; ``label`` describes it for screen readers.

    Text stays text. Black becomes ``currentColor``, and the first two colours of `COLOURS` become the CSS
    variables ``--accent`` and ``--second``, so that the plot is readable on dark pages.
    """
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z][\w.]*_\d+"', "", text)  # not unique across figures
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    for colour, themed in THEMED.items():
        text = re.sub(rf"(?<=: ){colour}\b", themed, text)
    text = re.sub(r' style="([^"]*)"', lambda found: as_attributes(found[1]), text)
    head = f'<svg role="img" aria-label="{html.escape(label)}" {box[0]} xmlns="http://www.w3.org/2000/svg"'
    return head + ' xmlns:xlink="http://www.w3.org/1999/xlink">' + text[text.index(">") + 1 :].rstrip()


def as_attributes(style: str) -> str:
    """The properties of a style as attributes of SVG, which a strict security policy allows.

    >>> as_attributes("fill: none; stroke: #000000; stroke-width: 0.8")
    ' fill="none" stroke="#000000" stroke-width="0.8"'
    """
    style = re.sub(r"\bfont: .*?([\d.]+px)[^;]*", r"font-size: \1", style)  # older versions of matplotlib
    pairs = (pair.split(":", 1) for pair in style.split(";") if pair.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)

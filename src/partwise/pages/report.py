"""Build the report of a fit as one HTML page."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.origins import Sound
from ..engine.summary import Model, Summary, summary
from ..engine.validation import as_count
from ..plotting import activations as activations_map
from ..plotting import convergence, new_figure, sparsity_histogram
from ..plotting.charts import distances
from ..plotting.inline import as_svg
from ..plotting.looks import Images, Lines, Look, Places, look_of
from ..runtime.files import replacing
from ..version import __version__
from .parts import gallery, quoted, table

CHART = (3.8, 2.8)  # inches: text has the size of the page's text, with three charts in a row and on a phone


def report(
    model: Model,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    shape: Sequence[int] | None = None,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    activations: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
    top: int = 5,
) -> str:
    """Write a report of a fit as one HTML file that needs neither Python nor a network connection.

    It shows the requested and achieved sparsity, a gallery of the parts, the loss during the fit, and a sortable table
    of the strongest features and samples of each part. It supports dark mode and phones. Activations, names and the
    shape of a part are taken from the model (``activations_``, ``sample_names_``, ``feature_names_in_``,
    ``part_shape_``) unless given.

    Parameters
    ----------
    model : Result, fitted estimator, or array of shape (r, features)
    path : str or path, optional
        File to write.
    title : str, optional
        By default the number of parts.
    shape, kind, mask
        How to plot a part, as in `partwise.plotting.gallery`.
    activations : array of shape (samples, r), optional
    feature_names, sample_names : sequences of str, optional
    top : int
        Number of features and samples listed per part.

    Returns
    -------
    str
        The page, as HTML.

    Examples
    --------
    >>> import numpy as np
    >>> page = report(np.eye(6), shape=(2, 3), title="Six <pixels>")
    >>> "<h1>Six &lt;pixels&gt;</h1>" in page, page.count('class="card"')
    (True, 6)
    """
    known = summary(model)
    given: dict[str, Any] = {"feature_names": feature_names, "sample_names": sample_names}
    if activations is not None:
        given["activations"] = np.asarray(activations)
        given["n_samples"] = len(given["activations"]) if known.n_samples is None else known.n_samples
    known = replace(known, **{name: value for name, value in given.items() if value is not None})
    look = look_of(known, shape, kind=kind, mask=mask)
    if known.feature_names is None and isinstance(look, Images):
        known = replace(known, feature_names=Places(look, known.n_features))
    heading = quoted(title if title is not None else f"{known.n_components} parts")
    parts = [
        f"<header><h1>{heading}</h1>{opening(known)}</header>",
        facts(known),
        "<h2>Parts</h2>",
        f"<p>{words_on_pictures(look, known)}</p>",
        gallery(known, look),
        charts(known),
        "<h2>Part by part</h2>",
        "<p>Click a heading to sort, and again to reverse the order.</p>",
        f'<div class="{type(look).__name__.lower()}">{table(known, look, as_count(top, "top"))}</div>',
        f"<footer>Made by Partwise {__version__}. One file; it loads nothing from the network.</footer>",
    ]
    page = framed(heading, "\n".join(parts))
    if path is not None:
        with replacing(path) as fresh:
            fresh.write_text(page, encoding="utf-8")
    return page


def framed(heading: str, body: str) -> str:
    """The complete page around ``body``. Its security policy blocks all loading, and all scripts but its own."""
    style, script = ((files(__package__) / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{heading}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""


PHRASES = ("data", "method", "stop reason")  # facts shown as text, not as figures
PICTURES = {
    "Images": "Blank is zero (black, in colour); each part is scaled to its largest weight.",
    "Volumes": "The slice at the z index of the largest weight of each part: x points right, y up. Blank is zero.",
    "Brains": "Coronal, sagittal and axial slices through the largest weight of each part; L is left and P posterior. "
    "Each part is scaled to its largest weight.",
    "Lines": "The weight of each feature; each part has its own scale.",
    "Bars": "The features with the largest weights.",
}


def opening(known: Summary) -> str:
    """The opening line: the data, the method, and why the fit stopped."""
    data, *rest = (html.escape(fact) for name, fact in known.facts().items() if name in PHRASES)
    return f"<p>{' · '.join([f'<strong>{data}</strong>', *rest])}</p>"


def facts(known: Summary) -> str:
    """The facts shown as figures, such as the requested and achieved sparsity."""
    boxes = []
    for name, fact in known.facts().items():
        if name not in PHRASES:
            long = ' class="words"' if len(fact) > 16 else ""
            boxes.append(f"<div><dt>{html.escape(name)}</dt><dd{long}>{html.escape(fact)}</dd></div>")
    return f'<dl class="facts">{"".join(boxes)}</dl>'


def words_on_pictures(look: Look, known: Summary) -> str:
    """How to read the plots of parts."""
    if isinstance(look, Lines) and isinstance(known.origin, Sound):
        return f"Spectra from 0 to {known.origin.frequencies[-1]:g} Hz; each part has its own scale."
    return PICTURES[type(look).__name__]


def charts(known: Summary) -> str:
    """Charts of the loss, the sparsity and the activations, as far as available."""
    drawn = {}
    if known.losses is not None:
        drawn["Loss"] = convergence(known, figure=new_figure(*CHART))
    if not np.isnan(known.sparsity).all():
        drawn["Sparsity" + words_on_sparsity(known)] = sparsity_histogram(known, title="", figure=new_figure(*CHART))
    if known.activations is not None:
        ordered = not isinstance(known.origin, Sound)  # sound is shown over time
        drawn["Activations"] = activations_map(known, ordered=ordered, figure=new_figure(*CHART))
    figures = (
        f'<figure class="chart"><figcaption>{label}</figcaption>{as_svg(picture, label)}</figure>'
        for label, picture in drawn.items()
    )
    return f'<h2>The fit</h2><div class="charts">{"".join(figures)}</div>' if drawn else ""


def words_on_sparsity(known: Summary) -> str:
    """How far the achieved sparsity is from the requested one."""
    if known.asked is None:
        return ""
    worst = float(np.nanmax(distances(known.sparsity, known.asked), initial=0.0))
    return ": as requested, up to rounding" if worst < 1e-9 else f": up to {worst:.2g} from the requested value"

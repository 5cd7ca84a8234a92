"""Build the report of a fit, or of several side by side, as one HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import Chunked, Matrix, as_data, is_lazy
from ..engine.metrics import match_parts
from ..engine.origins import Sound
from ..engine.summary import Model, Summary, summary
from ..engine.validation import as_count
from ..plotting import activations as activations_map
from ..plotting import convergence, new_figure, sparsity_histogram
from ..plotting.charts import as_named, distances
from ..plotting.inline import as_svg
from ..plotting.looks import look_of
from ..runtime.files import replacing
from ..runtime.untrusted import visible
from .frame import framed, quoted
from .packed import Arrays, safe_json
from .parts import SORTING, Pictures, gallery_html, table, words_on_pictures
from .provenance import provenance_html, provenance_of

CHART = (3.8, 2.8)  # inches: text has the size of the page's text, with three charts in a row and on a phone
NAMED = 20  # at most so many names of samples fit on a chart
WEIGHTS = 100_000  # at most so many weights can be downloaded from a report


def report(
    model: Model | Sequence[Model] | Mapping[Any, Model],
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    shape: Sequence[int] | None = None,
    kind: str | None = None,
    mask: npt.ArrayLike | None = None,
    activations: npt.ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
    data: Any = None,
    labels: Sequence[str] | None = None,
    top: int = 5,
) -> str:
    """Write a report of a fit as one HTML file that needs neither Python nor a network connection.

    It shows the requested and achieved sparsity, a gallery of the components, the loss during the fit, a sortable table
    of the strongest features and samples of each component, and where the result comes from (versions, seed,
    parameters). Several models are shown side by side, with components matched to those of the first. Activations,
    names and the shape of a component are taken from the model (``activations_``, ``sample_names_``,
    ``feature_names_in_``, ``part_shape_``) unless given.

    Parameters
    ----------
    model : Result, fitted estimator, array of shape (r, features), or a list or dict {label: model} of several
    path : str or path, optional
        File to write.
    title : str, optional
        By default the number of components.
    shape, kind, mask
        How to plot a component, as in `partwise.plotting.gallery`.
    activations : array of shape (samples, r), optional
    feature_names, sample_names : sequences of str, optional
    data : array or SciPy sparse matrix of shape (samples, features), optional
        X, for pictures of the strongest samples, and a digest that recognises it.
    labels : sequence of str, optional
        One for each of several models.
    top : int
        Number of features and samples listed per component.

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
    several = isinstance(model, Mapping) or (isinstance(model, list | tuple) and all(map(is_model, model)))
    named = as_named(model, labels) if several else [("", summary(model))]  # type: ignore[arg-type]
    models = [*model.values()] if isinstance(model, Mapping) else [*model] if several else [model]  # type: ignore[misc]
    given: dict[str, Any] = {"feature_names": feature_names, "sample_names": sample_names}
    top, X = as_count(top, "top"), None if data is None else as_samples(data, models)
    shown = []
    for k, (_, known) in enumerate(named):
        if activations is not None:
            given["activations"] = np.asarray(activations)
            given["n_samples"] = len(given["activations"]) if known.n_samples is None else known.n_samples
        known = replace(known, **{name: value for name, value in given.items() if value is not None})
        check_samples(X, known)
        look = look_of(known, shape, kind=kind, mask=mask)
        shown.append(Pictures(known, look, X, f"m{k}-" if len(named) > 1 else ""))
    count = shown[0].known.n_components
    usual = f"{count} part{'' if count == 1 else 's'}" if len(shown) == 1 else f"{len(shown)} models"
    heading = quoted(title if title is not None else usual)
    body = f"<header><h1>{heading}</h1>{opening(shown[0].known) if len(shown) == 1 else ''}</header>"
    if len(shown) > 1:
        body += side_by_side([label for label, _ in named], shown)
    for (label, _), pictures, one in zip(named, shown, models, strict=True):
        body += f"<h2>{quoted(label)}</h2>{opening(pictures.known)}" if len(shown) > 1 else ""
        body += details(pictures, top, provenance_of(one, X), alone=len(shown) == 1)
    page = framed(heading, body, ["page.js"], downloads(shown))
    if path is not None:
        with replacing(path) as fresh:
            fresh.write_text(page, encoding="utf-8")
    return page


def is_model(value: object) -> bool:
    """Whether this is a model rather than a row of an array."""
    return any(hasattr(value, name) for name in ("components_", "components"))


def as_samples(data: Any, models: Sequence[Any]) -> Matrix:
    """X, of which pictures of samples are drawn. It may have negative entries, unless the models refuse them."""
    otherwise = "error" if is_lazy(data) else "allow"  # a Result does not tell
    signed = any(getattr(model, "negative", otherwise) == "allow" for model in models)
    found = as_data(data, missing=True, signed=signed)
    if isinstance(found, Chunked):
        raise ValueError("data needs X in memory: give an array or a sparse matrix")
    return found


def check_samples(X: Matrix | None, known: Summary) -> None:
    """Refuse data that are not those of the model."""
    if X is None:
        return
    samples, features = X.shape
    fitted = known.n_samples if known.activations is None else len(known.activations)
    if features != known.n_features or fitted not in (None, samples):
        model = f"{'' if fitted is None else f'{fitted} samples and '}{known.n_features} features"
        raise ValueError(f"data have {samples} samples and {features} features, but the model has {model}: give its X")


def details(pictures: Pictures, top: int, facts: Mapping[str, str], alone: bool) -> str:
    """The sections about one model."""
    known, look = pictures.known, pictures.look
    level = 2 if alone else 3
    parts = [
        *([*gallery_of(pictures)] if alone else []),  # several models: side by side above
        charts(known, level),
        f"<h{level}>Part by part</h{level}>",
        SORTING,
        f'<div class="{type(look).__name__.lower()}">{table(pictures, top)}</div>',
        provenance_html(facts, level),
    ]
    return "\n".join(parts)


def gallery_of(pictures: Pictures) -> Iterator[str]:
    """The figures and the parts of one model."""
    yield figures(pictures.known)
    yield "<h2>Parts</h2>"
    yield f"<p>{words_on_pictures(pictures.look, pictures.known)}</p>"
    yield gallery_html(pictures)


def side_by_side(labels: Sequence[str], shown: Sequence[Pictures]) -> str:
    """The models in columns: their figures, and their parts next to those of the first model that they match."""
    first, columns = shown[0].known.components, []
    for label, pictures in zip(labels, shown, strict=True):
        known = pictures.known
        facts = "".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(fact)}</dd></div>"
            for name, fact in known.facts().items()
        )
        order = matched_order(first, known.components)
        gallery = gallery_html(pictures, order)
        columns.append(f'<section><h3>{quoted(label)}</h3><dl class="provenance">{facts}</dl>{gallery}</section>')
    words = " ".join(dict.fromkeys(words_on_pictures(pictures.look, pictures.known) for pictures in shown))
    return f'<p>{words}</p><div class="side-by-side">{"".join(columns)}</div>'


def matched_order(first: Any, parts: Any) -> list[int | None] | None:
    """For each part of the first model the one that matches it, or None; then the others. None if features differ."""
    if first.shape[1] != parts.shape[1]:
        return None
    pairs = match_parts(first, parts)
    match = dict(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    return [*map(match.get, range(len(first))), *(j for j in range(len(parts)) if j not in match.values())]


def downloads(shown: Sequence[Pictures]) -> dict[str, str]:
    """The weights, for the script to save as CSV; none if there are many."""
    if sum(pictures.known.components.size for pictures in shown) > WEIGHTS:
        return {}
    arrays, found = Arrays(), {}
    for pictures in shown:
        known = pictures.known
        named = known.feature_names
        names = None if named is None else [visible(str(named[i])) for i in range(known.n_features)]
        found[pictures.prefix] = {"weights": arrays.floats(known.components), "width": known.n_features, "names": names}
    return {"page-data": safe_json(found), "page-arrays": arrays.text()}


PHRASES = ("data", "method", "stop reason")  # facts shown as text, not as figures


def opening(known: Summary) -> str:
    """The opening line: the data, the method, and why the fit stopped."""
    data, *rest = (html.escape(fact) for name, fact in known.facts().items() if name in PHRASES)
    return f"<p>{' · '.join([f'<strong>{data}</strong>', *rest])}</p>"


def figures(known: Summary) -> str:
    """The facts shown as figures, such as the requested and achieved sparsity."""
    boxes = []
    for name, fact in known.facts().items():
        if name not in PHRASES:
            long = ' class="words"' if fact[0].isalpha() else ""
            boxes.append(f"<div><dt>{html.escape(name)}</dt><dd{long}>{html.escape(fact)}</dd></div>")
    return f'<dl class="facts">{"".join(boxes)}</dl>'


def charts(known: Summary, level: int = 2) -> str:
    """Charts of the loss, the sparsity and the activations, as far as available and of interest."""
    drawn = {}
    if known.losses is not None:
        drawn["Loss"] = convergence(known, figure=new_figure(*CHART))
    found = known.sparsity[~np.isnan(known.sparsity)]
    if found.size and np.ptp(found) > 1e-6:  # a single value is among the figures
        drawn["Sparsity" + words_on_sparsity(known)] = sparsity_histogram(known, title="", figure=new_figure(*CHART))
    if known.activations is not None:
        ordered = not isinstance(known.origin, Sound)  # sound is shown over time
        unnamed = known if len(known.activations) <= NAMED else replace(known, sample_names=None)
        drawn["Activations"] = activations_map(unnamed, ordered=ordered, figure=new_figure(*CHART))
    charts = (
        f'<figure class="chart"><figcaption>{label}</figcaption>{as_svg(picture, label)}</figure>'
        for label, picture in drawn.items()
    )
    return f'<h{level}>The fit</h{level}><div class="charts">{"".join(charts)}</div>' if drawn else ""


def words_on_sparsity(known: Summary) -> str:
    """How far the achieved sparsity is from the requested one."""
    if known.asked is None:
        return ""
    worst = float(np.nanmax(distances(known.sparsity, known.asked), initial=0.0))
    return ": as requested, up to rounding" if worst < 1e-9 else f": up to {worst:.2g} from the requested value"

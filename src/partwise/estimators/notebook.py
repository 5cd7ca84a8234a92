"""The display of an estimator in notebooks: scikit-learn's diagram, followed by the results of the fit."""

from __future__ import annotations

from typing import Any

from ..engine.summary import Summary, summary

MOST = 64  # components drawn at most


class Shown:
    """Adds the results of the fit to scikit-learn's diagram."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + results_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += results_html(self)
        return bundle


def results_html(model: Any) -> str:
    """A table about the fit, and the components if they are images; empty before the fit."""
    if not hasattr(model, "components_"):
        return ""
    known = summary(model)
    return known.to_html() + (small_gallery(known) if known.shape is not None or known.mask is not None else "")


def small_gallery(known: Summary) -> str:
    """The components as small images; empty if they are not images."""
    from ..plotting.brains import Brains
    from ..plotting.inline import as_png, slices_png
    from ..plotting.looks import Images, look_of

    look, drawn = look_of(known), known.components[:MOST]
    if not isinstance(look, Images | Brains):
        return ""
    pictures = [slices_png(look, part) if isinstance(look, Brains) else as_png(look.pixels(part)) for part in drawn]
    style = "height: 64px; image-rendering: pixelated; border: 1px solid #8884"
    images = (f'<img src="{uri}" alt="part {j}" style="{style}">' for j, uri in enumerate(pictures))
    more = known.n_components - len(pictures)
    rest = f"<span>and {more} more</span>" if more else ""
    return f'<div style="display: flex; flex-wrap: wrap; gap: 4px">{"".join(images)}{rest}</div>'

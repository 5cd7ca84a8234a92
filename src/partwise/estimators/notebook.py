"""What a notebook shows of an estimator: scikit-learn's diagram, and under it what was found."""

from __future__ import annotations

from typing import Any

from ..engine.summary import Summary, summary

MOST = 64  # parts that are drawn


class Shown:
    """Adds what was found to the diagram of a fitted estimator."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + found(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += found(self)
        return bundle


def found(model: Any) -> str:
    """What a fitted model has found, as a small table, with its parts where they are images; empty before the fit."""
    if not hasattr(model, "components_"):
        return ""
    known = summary(model)
    return known.to_html() + (small_gallery(known) if known.shape is not None else "")


def small_gallery(known: Summary) -> str:
    """The parts as small images in a row; empty where they are none, or matplotlib is missing."""
    from ..plotting.looks import Images, look_of

    look = look_of(known)
    if not isinstance(look, Images):
        return ""
    try:
        from ..plotting.inline import as_png

        pictures = [as_png(look.pixels(part)) for part in known.components[:MOST]]
    except ImportError:
        return ""
    style = "height: 64px; image-rendering: pixelated; border: 1px solid #8884"
    images = (f'<img src="{uri}" alt="part {j}" style="{style}">' for j, uri in enumerate(pictures))
    more = known.n_components - len(pictures)
    rest = f"<span>and {more} more</span>" if more else ""
    return f'<div style="display: flex; flex-wrap: wrap; gap: 4px">{"".join(images)}{rest}</div>'

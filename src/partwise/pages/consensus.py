"""The page of a consensus: stability and error over ranks, and the components of one rank."""

from __future__ import annotations

import html
from os import PathLike
from typing import Any

from ..engine.summary import summary
from ..plotting import clustergram, new_figure, ranks
from ..plotting.inline import as_svg
from ..plotting.looks import look_of
from ..runtime.files import replacing
from ..selection import Consensus, Programs
from ..selection.stability import HEADINGS, as_text
from .frame import framed, quoted
from .parts import SORTING, Pictures, gallery_html, table, words_on_pictures


def consensus_page(
    found: Consensus,
    path: str | PathLike[str],
    programs: Programs | None = None,
    *,
    title: str = "Consensus",
    shape: Any = None,
) -> None:
    """Write one HTML file with the table and the chart of all ranks and, if given, the programs of one rank."""
    heading = quoted(title)
    body = [
        f"<header><h1>{heading}</h1><p>{len(found.ranks)} ranks, {found.n_runs} runs each</p></header>",
        "<h2>Ranks</h2>",
        chart(as_svg(ranks(found, figure=new_figure(4.4, 3.8)), "stability and error")),
        rank_table(found),
    ]
    if programs is not None:
        known = summary(programs.model)
        pictures = Pictures(known, look_of(known, shape))
        drawn = as_svg(clustergram(programs, figure=new_figure(7.0, 4.0)), "distances between components of runs")
        body += [
            f"<h2>{programs.rank} components that recur</h2>",
            f"<p>{html.escape(programs.in_words().capitalize())}</p>",
            chart(drawn, " wide"),
            f"<p>{words_on_pictures(pictures.look, known)}</p>",
            gallery_html(pictures),
            "<h2>Part by part</h2>",
            SORTING,
            f'<div class="{type(pictures.look).__name__.lower()}">{table(pictures, 8)}</div>',
        ]
    with replacing(path) as fresh:
        fresh.write_text(framed(heading, "\n".join(body), ["page.js"]), encoding="utf-8")


def chart(drawn: str, width: str = "") -> str:
    """A chart by itself."""
    return f'<div class="charts"><figure class="chart{width}">{drawn}</figure></div>'


def rank_table(found: Consensus) -> str:
    """Stability, error and convergence of each rank."""
    shown = [name for name in HEADINGS if any(row[name] is not None for row in found.rows)]
    head = "".join(f'<th scope="col">{HEADINGS[name]}</th>' for name in shown)
    rows = ("".join(f"<td>{html.escape(as_text(name, row))}</td>" for name in shown) for row in found.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

"""``partwise show``: what a saved model has found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.files import replacing
from .common import PICTURES, check_losses

if TYPE_CHECKING:
    from ..engine.summary import Summary

PAGES = (".html", ".htm")


def add(commands: Any) -> None:
    """Add the command's parser."""
    show = commands.add_parser(
        "show",
        help="what a saved model has found: a table, a picture, a web page",
        description="Print a summary of a saved model and a table of its parts; draw them, or write everything as one "
        "web page that needs no network.",
        epilog="Example: partwise show parts.pw --png parts.png --html report.html",
    )
    show.add_argument("model", type=Path, metavar="MODEL", help="a file that partwise has saved (.pw)")
    show.add_argument(
        "--png", type=Path, metavar="FILE", help=f"draw the parts (the ending decides: {', '.join(PICTURES)})"
    )
    show.add_argument("--html", type=Path, metavar="FILE", help="write a report, one web page")
    show.add_argument("--shape", metavar="HxW", help="the shape of a part, for example 19x19, if the model has none")
    show.add_argument("--title", help="the title of the picture and of the report")
    show.add_argument("--top", type=int, default=5, metavar="K", help="features named for each part (default: 5)")
    show.add_argument("--json", action="store_true", help="print the summary as JSON instead")
    show.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load the model, show it."""
    from ..engine.summary import summary
    from ..engine.validation import as_count
    from ..estimators import load
    from ..io import check_target

    wanted = {"picture": (options.png, PICTURES), "report": (options.html, PAGES)}
    targets = {what: check_target(path, endings) for what, (path, endings) in wanted.items() if path is not None}
    check_losses(options, targets)
    model = load(options.model)
    known, shape, top = summary(model), as_shape(options.shape), as_count(options.top, "--top")
    written = []
    if "picture" in targets:
        from ..plotting import gallery

        with replacing(options.png) as fresh:
            gallery(model, shape, title=options.title).savefig(fresh)
        written.append(f"The parts are drawn in {options.png}")
    if "report" in targets:
        from ..pages import report

        title = options.title or f"{known.n_components} parts: {options.model.name}"
        report(model, options.html, shape=shape, title=title, top=top)
        written.append(f"The report is in {options.html}")
    if options.json:
        print(json.dumps(as_record(known, top), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print_tables(known, top)
        for line in written:
            print(line)
    return 0


def as_shape(text: str | None) -> tuple[int, ...] | None:
    """``"19x19"`` as (19, 19)."""
    if text is None:
        return None
    sizes = text.lower().replace("×", "x").split("x")
    if not all(size.strip().isdecimal() for size in sizes):
        raise ValueError(f"--shape {text}: give whole numbers with an x between them, for example 19x19")
    return tuple(map(int, sizes))


def print_tables(known: Summary, top: int) -> None:
    """The facts, and a row for each part."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..engine.summary import percent

    facts, parts = Table.grid(padding=(0, 2)), Table()
    for name, fact in known.facts().items():
        facts.add_row(f"[dim]{escape(name)}[/dim]", escape(fact))
    for heading in ("part", "sparsity", "explained", "nonzeros"):
        parts.add_column(heading, justify="right")
    parts.add_column("strongest features")
    for j in range(known.n_components):
        names = [name for name, _ in known.strongest_features(j, top)]
        if known.feature_names is None:  # numbers alone: the heading says what they count
            names = [name.removeprefix("feature ") for name in names]
        explained = "" if known.explained is None else percent(float(known.explained[j]))
        count = int((known.components[j] != 0).sum())
        parts.add_row(str(j), f"{known.sparsity[j]:.4f}", explained, str(count), escape(", ".join(names)))
    Console().print(facts, parts, sep="\n")


def as_record(known: Summary, top: int) -> dict[str, Any]:
    """The summary as JSON can say it; what is not a number is null."""
    return {
        "samples": known.n_samples,
        "features": known.n_features,
        "method": known.method,
        "asked_sparsity": known.asked_in_words,
        "relative_error": known.relative_error,
        "explained": known.explained_in_all,
        "iterations": known.n_iter,
        "stop_reason": known.stop_reason,
        "parts": [
            {
                "part": j,
                "sparsity": None if known.sparsity[j] != known.sparsity[j] else float(known.sparsity[j]),
                "explained": None if known.explained is None else float(known.explained[j]),
                "features": [list(pair) for pair in known.strongest_features(j, top)],
                "samples": [list(pair) for pair in known.strongest_samples(j, top)],
            }
            for j in range(known.n_components)
        ],
    }

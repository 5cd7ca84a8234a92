"""``partwise show``: a saved model as a table, a picture or an HTML report."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.files import replacing
from ..runtime.untrusted import visible
from .common import UsageError, add_max_bytes, load_matrix_model, plain, read_samples, with_features
from .outputs import PICTURES, add_force, check_targets
from .wording import with_flags

if TYPE_CHECKING:
    from ..engine.summary import Summary

SUMMARY = "Show a saved model as a table, a picture or an HTML report"
USAGE = "MODEL [MODEL …] [options]"
EXAMPLES = """\
  partwise show faces.pw
  partwise show faces.pw --png components.png --html report.html
  partwise show faces.pw --data faces/ --html report.html        with pictures of the strongest samples
  partwise show a.pw b.pw --html comparison.html                 two models side by side
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    parser.add_argument("model", type=Path, nargs="+", metavar="MODEL", help="model file (.pw)")
    add_max_bytes(parser)
    parser.add_argument(
        "--data", nargs="+", default=(), metavar="DATA", help="the data, for pictures of samples in the report"
    )
    group = parser.add_argument_group("Output")
    group.add_argument("--png", type=Path, metavar="FILE", help=f"draw the components: {', '.join(PICTURES)}")
    group.add_argument("--html", type=Path, metavar="FILE", help="write a report: one HTML page that needs no network")
    add_force(group)
    group.add_argument(
        "--shape", type=shape, metavar="HxW", help="shape of a component, such as 19x19 (default: stored in the model)"
    )
    group.add_argument("--title", type=visible, help="title of the picture and of the report")
    group.add_argument(
        "--top", type=int, default=5, metavar="K", help="features listed for each component (default: %(default)s)"
    )
    group.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Load the model, draw, write, print."""
    from ..engine.summary import summary
    from ..engine.validation import as_count

    targets = check_targets(options, {"picture": (options.png, PICTURES), "report": (options.html, (".html", ".htm"))})
    if len(options.model) > 1 and (options.png or options.html is None):
        raise UsageError("several models are compared in a report: give --html, without --png")
    models = [load_matrix_model(path) for path in options.model]
    known, top = [summary(model) for model in models], as_count(options.top, "top")
    if "picture" in targets:
        from ..plotting import gallery

        with replacing(targets["picture"]) as fresh:
            gallery(models[0], options.shape, title=options.title).savefig(fresh)
    if "report" in targets:
        write_report(options, models, targets["report"])
    if options.json:
        records = [as_record(one, top) for one in known]
        print(visible(json.dumps(plain(records[0] if len(records) == 1 else records), ensure_ascii=False, indent=1)))
    else:
        for one in known:
            print_tables(one, top)
        for what, path in targets.items():
            print(visible(f"{what}: {path}"))
    return 0


def write_report(options: argparse.Namespace, models: list[Any], target: Path) -> None:
    """Write the report of one model, or of several side by side."""
    from ..pages import report

    model, labels, data = models[0], [visible(path.name) for path in options.model], None
    if options.data:
        table = read_samples(options.data, getattr(model, "origin_", None), model.negative)
        data = with_features(table, getattr(model, "feature_names_in_", ()), model.n_features_in_, labels[0])
    title = f"{model.n_components_} components: {labels[0]}" if len(models) == 1 else f"{len(models)} models"
    report(
        model if len(models) == 1 else models,
        target,
        title=options.title or title,
        shape=options.shape,
        data=data,
        labels=None if len(models) == 1 else labels,
        top=options.top,
    )


def shape(text: str) -> tuple[int, ...]:
    """``"19x19"`` as (19, 19)."""
    return tuple(int(size) for size in text.lower().replace("×", "x").split("x"))


def print_tables(known: Summary, top: int) -> None:
    """Print the summary and a table of the components."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..engine.summary import percent

    facts, components = Table.grid(padding=(0, 2)), Table()
    for name, fact in known.facts().items():
        words = with_flags(fact) if name == "stop reason" else fact
        facts.add_row(f"[dim]{escape(name)}[/dim]", escape(visible(words)))
    for heading in ("component", "sparsity", "explained", "nonzeros"):
        components.add_column(heading, justify="right")
    components.add_column("strongest features")
    for j in range(known.n_components):
        names = [name for name, _ in known.strongest_features(j, top)]
        if known.feature_names is None:  # the heading says what the numbers are
            names = [name.removeprefix("feature ") for name in names]
        explained = "" if known.explained is None else percent(float(known.explained[j]))
        count = int((known.components[j] != 0).sum())
        components.add_row(str(j), f"{known.sparsity[j]:.4f}", explained, str(count), escape(visible(", ".join(names))))
    Console().print(facts, components, sep="\n")


def as_record(known: Summary, top: int) -> dict[str, Any]:
    """The summary for ``--json``."""
    return {
        "samples": known.n_samples,
        "features": known.n_features,
        "method": known.method,
        "requested_sparsity": known.asked_in_words,
        "relative_error": known.relative_error,
        "explained": known.explained_in_all,
        "iterations": known.n_iter,
        "stop_reason": known.stop_reason,
        "components": [
            {
                "component": j,
                "sparsity": known.sparsity[j],
                "explained": None if known.explained is None else known.explained[j],
                "features": known.strongest_features(j, top),
                "samples": known.strongest_samples(j, top),
            }
            for j in range(known.n_components)
        ],
    }

"""``partwise select``: compare numbers of components and sparsities. It recommends nothing."""

from __future__ import annotations

import argparse
import csv
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import FLAGS, Flag
from ..runtime.files import replacing
from ..runtime.untrusted import visible
from .common import (
    UsageError,
    add_data,
    add_verbosity,
    described,
    facts_about,
    print_results,
    read_data,
)
from .model_options import add_flags, level
from .outputs import PICTURES, add_force, check_targets, write_outputs

if TYPE_CHECKING:
    from ..selection import Selection

SUMMARY = "Compare numbers of components and sparsities on held-out entries"
USAGE = "DATA [DATA …] --components 2:10 --sparsity none 0.5 [options]"
EXAMPLES = """\
  partwise select counts.csv -r 2:10 -s none 0.3 0.5 0.7 --png choice.png
  partwise select faces/ -r 10:50:10 -s 0.5 0.7 --n-jobs -1 --checkpoint faces.json --out choice.csv

For each model: its error on entries hidden from the fit, and how similar the components
from different starts are. Repeat the command with the same --checkpoint to resume it.
"""

# parameters of `partwise.select`
OPTIONS: dict[str, Flag] = {
    "side": Flag(("components", "activations"), "the factor that is sparse", "components"),
    "holdout": Flag(float, "share of the entries to hide", "0.1"),
    "n_splits": Flag(int, "number of random sets of hidden entries", "3"),
    "n_init": Flag(int, "number of starts for each model", "3"),
    "init": Flag(("auto", "samples", "random", "gradual"), "start of the first fit in each series", "auto"),
    **{name: FLAGS[name] for name in ("loss", "max_iter", "tol", "missing", "negative")},
    "n_jobs": Flag(int, "number of processes; -1: one per core", "1"),
    "random_state": FLAGS["random_state"],
    "checkpoint": Flag(str, "save finished fits to this file and resume from it", metavar="FILE"),
}


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    group = parser.add_argument_group("Model")
    group.add_argument(
        "-r",
        "--components",
        "--ranks",
        nargs="+",
        type=components,
        required=True,
        metavar="R",
        help="numbers of components: 5, or a range 2:10 or 10:50:10, both ends included",
    )
    group.add_argument(
        "-s",
        "--sparsity",
        "--sparsities",
        nargs="+",
        type=level,
        default=[None],
        metavar="S",
        help="sparsities: 0.7, an interval 0.2:0.4, or none for no constraint (default: none)",
    )
    add_flags(parser.add_argument_group("Solver"), OPTIONS)
    group = parser.add_argument_group("Output")
    group.add_argument("-o", "--out", metavar="FILE", help="write the table: .csv or .tsv")
    group.add_argument("--png", metavar="FILE", help=f"draw the table: {', '.join(PICTURES)}")
    add_force(group)
    add_verbosity(parser)


def components(text: str) -> list[int]:
    """A number of components, "5", or a range, "2:10" or "10:50:10", both ends included."""
    try:
        numbers = [int(number) for number in text.split(":")]
        first, last, step = numbers if len(numbers) == 3 else (numbers[0], numbers[-1], 1)
        if len(numbers) > 3 or not 1 <= first <= last or step < 1:
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: give a whole number of at least 1, or a range FIRST:LAST or FIRST:LAST:STEP such as 10:50:10"
        ) from None
    return list(range(first, last + 1, step))


def run(options: argparse.Namespace) -> int:
    """Read, compare, write, print."""
    from ..selection import search

    targets = check_targets(options, {"table": (options.out, (".csv", ".tsv")), "picture": (options.png, PICTURES)})
    try:
        levels = search.as_levels(options.sparsity, "sparsity")
    except ValueError as error:
        raise UsageError(error) from error
    table = read_data(options)
    given = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    numbers = chain.from_iterable(options.components)
    found = search.select(table.X, numbers, levels, verbose=int(not options.quiet), **given)
    writers = {
        "table": lambda path: write_table(path, found),
        "picture": lambda path: draw_selection(path, found, visible(Path(table.source).name)),
    }
    files = write_outputs(targets, writers, options.debug)
    print_results(options, {**facts_about(table), "rows": found.rows}, [described(table), repr(found)], files)
    return 0 if files == targets else 1


def draw_selection(target: Path, found: Selection, title: str) -> None:
    """Draw the table."""
    from ..plotting import selection

    with replacing(target) as fresh:
        selection(found, title=title).savefig(fresh)


def write_table(target: Path, found: Selection) -> None:
    """Write one row per model; unknown values are empty."""
    from ..selection.result import HEADINGS, sparsity_in_words

    with replacing(target) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, list(HEADINGS), delimiter="\t" if target.suffix == ".tsv" else ",", lineterminator="\n"
        )
        writer.writeheader()
        for row in found.rows:
            known = {name: "" if value != value else value for name, value in row.items()}
            writer.writerow(known | {"sparsity": sparsity_in_words(row["sparsity"])})

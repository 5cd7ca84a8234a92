"""``partwise select``: which rank, which sparsity? It shows, and recommends nothing."""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import FLAGS, Flag
from ..runtime.files import replacing
from .asked import add_flags, level
from .common import UsageError, add_command, add_data, add_telling, check_losses, in_words, read_data, tell

if TYPE_CHECKING:
    from ..selection import Selection

EXAMPLES = """\
  partwise select counts.csv --ranks 2:10 --sparsities none 0.3 0.5 0.7 --png choice.png
  partwise select faces/ --ranks 10:50:10 --sparsities 0.5 0.7 --n-jobs -1 --checkpoint faces.json --out choice.csv

Of every model: its error on entries that it has not seen, and how alike the parts are that it
finds from different starts. The same command with the same --checkpoint goes on where it stopped.
"""

# what `partwise.select` takes
OPTIONS: dict[str, Flag] = {
    "side": Flag(("components", "activations"), "what the sparsity is asked of", "components"),
    "holdout": Flag(float, "share of the entries to hide", "0.1"),
    "n_splits": Flag(int, "random patterns of hidden entries", "3"),
    "n_init": Flag(int, "starts for each", "3"),
    "init": Flag(("samples", "random", "gradual"), "where the fits of the first sparsity start", "samples"),
    "max_iter": replace(FLAGS["max_iter"], usual="500"),
    "tol": replace(FLAGS["tol"], usual="1e-5"),
    "missing": FLAGS["missing"],
    "n_jobs": Flag(int, "processes; -1: one on each core", "1"),
    "random_state": FLAGS["random_state"],
    "checkpoint": Flag(str, "a file to keep finished fits in, and to go on from", metavar="FILE"),
}


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "select",
        select,
        summary="compare ranks and sparsities on entries that the fits have not seen",
        usage="DATA … --ranks 2:10 --sparsities none 0.5",
        examples=EXAMPLES,
    )
    add_data(parser)
    group = parser.add_argument_group("what to compare")
    group.add_argument(
        "--ranks", nargs="+", type=ranks, required=True, metavar="R", help="5, or 2:10, or 10:50:10, ends included"
    )
    group.add_argument(
        "--sparsities",
        nargs="+",
        type=asked,
        default=[None],
        metavar="S",
        help="none, 0.7, or an interval 0.2:0.4 (default: none, as it comes)",
    )
    add_flags(parser.add_argument_group("how"), OPTIONS)
    group = parser.add_argument_group("what to write")
    group.add_argument("-o", "--out", metavar="FILE", help="the table: .csv or .tsv")
    group.add_argument("--png", metavar="FILE", help="a picture of it")
    add_telling(parser)


def ranks(text: str) -> list[int]:
    """A rank, "5", or a range of them, "2:10" or "10:50:10", ends included."""
    numbers = [int(number) for number in text.split(":")]
    first, last, step = numbers if len(numbers) == 3 else (numbers[0], numbers[-1], 1)
    if len(numbers) > 3 or not 1 <= first <= last or step < 1:
        raise ValueError
    return list(range(first, last + 1, step))


def asked(text: str) -> Any:
    """A sparsity, an interval, or none."""
    return None if text.lower() == "none" else level(text)


asked.__name__ = "sparsity"  # as argparse calls it when it is wrong


def select(options: argparse.Namespace) -> int:
    """Read, compare, write, tell."""
    from ..io import check_target
    from ..selection import search

    wanted = {"table": (options.out, (".csv", ".tsv")), "picture": (options.png, (".png",))}
    targets = {what: check_target(path, endings) for what, (path, endings) in wanted.items() if path is not None}
    check_losses(options, targets)
    try:
        levels = search.as_levels(options.sparsities)
    except ValueError as error:
        raise UsageError(error) from error
    table = read_data(options)
    given = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    found = search.select(table.X, chain.from_iterable(options.ranks), levels, verbose=int(not options.quiet), **given)
    if "table" in targets:
        write_table(targets["table"], found)
    if "picture" in targets:
        from ..plotting import selection

        with replacing(targets["picture"]) as fresh:
            selection(found, title=Path(table.source).name).savefig(fresh)
    facts = {"data": table.source, "samples": table.shape[0], "features": table.shape[1], "rows": found.rows}
    files = {what: str(path) for what, path in targets.items()}
    lines = [in_words(table), repr(found), *(f"{what:<9}{path}" for what, path in files.items())]
    tell(options, facts | {"files": files}, lines)
    return 0


def write_table(target: Path, found: Selection) -> None:
    """A line for each rank and sparsity; what is not known is empty."""
    from ..selection.result import HEADINGS, sparsity_in_words

    with replacing(target) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, list(HEADINGS), delimiter="\t" if target.suffix == ".tsv" else ",", lineterminator="\n"
        )
        writer.writeheader()
        for row in found.rows:
            known = {name: "" if value != value else value for name, value in row.items()}
            writer.writerow(known | {"sparsity": sparsity_in_words(row["sparsity"])})

"""``partwise consensus``: components that recur over many runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from ..engine.options import FLAGS, Flag
from ..runtime.files import replacing
from ..runtime.untrusted import visible
from .common import (
    UsageError,
    add_data,
    add_verbosity,
    check_kept,
    described,
    facts_about,
    print_results,
    read_data,
    runs_in,
)
from .model_options import add_flags, level
from .outputs import PICTURES, add_force, check_targets, write_outputs
from .provenance import provenance
from .select import components

SUMMARY = "Find components that recur over many runs"
USAGE = "DATA [DATA …] --ranks 5:13 --runs 100 --out found.pw [options]"
EXAMPLES = """\
  partwise consensus counts.csv --ranks 5:13 --runs 100 --seed 14 --out found.pw --png ranks.png
  partwise consensus counts.csv --ranks 5:13 --runs 100 --seed 14 --out found.pw --at 10 --density 0.1 --html page.html
  partwise consensus cells.h5ad --top-genes 2000 --ranks 5:13 --runs 100 --seed 14 --out found.pw

Finished runs are saved to --out while the others run. The same command continues where it was interrupted, and does not
repeat finished runs: look at the table of ranks first, then add --at. It writes the components of that rank as a model,
found-10.pw, for partwise show, transform and convert. --force replaces the model, the picture and the page, but never
finished runs.

Raw counts of single cells need --top-genes: otherwise all genes are factorized as they are, and the most abundant ones
dominate.
"""

# parameters of `partwise.consensus`
OPTIONS: dict[str, Flag] = {
    "loss": FLAGS["loss"],
    "features_per_part": Flag(int, "largest number of nonzero features of a component, instead of a sparsity"),
    "holdout": Flag(float, "share of samples and features to hold out for a held-out error", "none"),
    "init": Flag(("random", "samples", "nndsvd", "auto"), "starting points", "random"),
    **{name: FLAGS[name] for name in ("max_iter", "tol", "missing", "negative")},
    **{name: FLAGS[name] for name in ("n_threads", "memory_limit", "random_state")},
}


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    group = parser.add_argument_group("Model")
    group.add_argument(
        "-r",
        "--ranks",
        "--components",
        nargs="+",
        type=components,
        required=True,
        metavar="R",
        help="numbers of components: 5, or a range 5:13 or 10:50:10, both ends included",
    )
    group.add_argument("--runs", dest="n_runs", type=int, default=100, metavar="N", help="runs per rank (default: 100)")
    group.add_argument(
        "--top-genes",
        type=int,
        metavar="N",
        help="for raw counts of cells: use the N most over-dispersed genes, scaled to unit variance, as in cNMF",
    )
    group.add_argument("-s", "--sparsity", type=level, metavar="S", help="sparsity: 0.7, or an interval 0.2:0.4")
    group.add_argument("--at", type=int, metavar="R", help="write the components of this rank as a model")
    group.add_argument(
        "--density",
        type=float,
        default=0.5,
        metavar="D",
        help="leave out components whose mean distance to their neighbours is at least this (default: 0.5)",
    )
    add_flags(parser.add_argument_group("Solver"), OPTIONS)
    group = parser.add_argument_group("Output")
    group.add_argument("-o", "--out", metavar="FILE", help="save all runs (.pw), and continue from it")
    group.add_argument("--model-out", metavar="FILE", help="with --at: the model (.pw; default: --out with the rank)")
    group.add_argument("--png", metavar="FILE", help=f"draw stability and error: {', '.join(PICTURES)}")
    group.add_argument("--html", metavar="FILE", help="write a page: one HTML file that needs no network")
    add_force(group)
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read, run, write, print."""
    from ..selection import consensus

    ranks = sorted(set(chain.from_iterable(options.ranks)))
    check_options(options, ranks)
    continued = options.out is not None and runs_in(options.out) is not None
    targets = check_targets(options, outputs(options, continued))
    table = read_data(options)
    if options.top_genes is not None:
        table = of_top_genes(table, options.top_genes)
    check_kept(table)
    given = {name: getattr(options, name) for name in OPTIONS if getattr(options, name) is not None}
    given |= {"sparsity": options.sparsity, "checkpoint": options.out, "verbose": int(not options.quiet)}
    given["overwrite"] = options.force and not continued
    try:
        found = consensus(table, ranks, options.n_runs, **given)
    except ValueError as error:
        raise ValueError(str(error).replace("checkpoint=", "out=")) from error
    programs = None if options.at is None else found.at(options.at, options.density)
    title = visible(Path(table.source).name)
    writers = {
        "model": lambda path: save_model(path, programs, table, provenance(options, table)),
        "picture": lambda path: draw(path, found, title),
        "page": lambda path: write_page(path, found, programs, title, table),
    }
    saved = {} if options.out is None else {"runs": Path(options.out)}  # written on the way
    left = {what: path for what, path in targets.items() if what != "runs"}
    files = write_outputs(left, writers, options.debug)
    lines = [described(table), repr(found), *([] if programs is None else ["", repr(programs)])]
    facts = {**facts_about(table), "rows": found.rows, **({} if programs is None else about(programs))}
    print_results(options, facts, lines, saved | files)
    return 0 if files == left else 1


def check_options(options: argparse.Namespace, ranks: Sequence[int]) -> None:
    """Refuse options that do not fit together, before anything is read."""
    from ..selection.clustering import as_threshold
    from ..selection.consensus import as_shape

    if options.at is None and options.model_out is not None:
        raise UsageError("--model-out needs --at, the rank whose components to write")
    if options.at is not None and options.at not in ranks:
        raise UsageError(f"--at {options.at} is not one of --ranks: {', '.join(map(str, ranks))}")
    try:
        as_threshold(options.density)
        as_shape(options.sparsity, options.features_per_part)
    except ValueError as error:
        raise UsageError(error) from error


def outputs(options: argparse.Namespace, continued: bool) -> dict[str, Any]:
    """The files to write, and their suffixes. The file of earlier runs is continued, not replaced."""
    model = options.model_out
    if options.at is not None and model is None and options.out is not None:
        model = Path(options.out).with_name(f"{Path(options.out).stem}-{options.at}.pw")
    if None not in (model, options.out) and Path(model).resolve() == Path(options.out).resolve():
        raise UsageError(f"two outputs are the same file ({options.out}): choose another --model-out")
    return {
        "runs": (None if continued else options.out, (".pw",)),
        "model": (model, (".pw",)),
        "picture": (options.png, PICTURES),
        "page": (options.html, (".html", ".htm")),
    }


def of_top_genes(table: Any, count: int) -> Any:
    """The over-dispersed genes of raw counts, divided by their standard deviation."""
    counts = import_module("partwise.cells.counts")
    try:
        ready = counts.prepared(table.X, table.samples, table.features, count)
    except ValueError as error:
        said = str(error).replace("n_top_genes", "top_genes")
        raise ValueError(f"{table.source}: {said.partition(', or check_counts')[0]}") from error
    kind = f"{table.kind}, {len(ready.chosen)} over-dispersed genes"
    return replace(table, X=ready.matrix, kind=kind, feature_names=tuple(ready.chosen_genes), home=None)


def about(programs: Any) -> dict[str, Any]:
    """The components of one rank for ``--json``."""
    names = ("rank", "density_threshold", "stability", "relative_error", "explained", "runs_kept")
    return {"at": {name: getattr(programs, name) for name in names}}


def save_model(target: Path, programs: Any, table: Any, facts: dict[str, str]) -> None:
    """Save the components as a model, with what is known about the data."""
    programs.model.keep(part_shape=table.part_shape, origin=table.origin, provenance=facts)
    programs.save(target)


def draw(target: Path, found: Any, title: str) -> None:
    """Draw stability and error."""
    with replacing(target) as fresh:
        found.plot(title=title).savefig(fresh)


def write_page(target: Path, found: Any, programs: Any, title: str, table: Any) -> None:
    """Write the page."""
    from ..pages import consensus_page

    consensus_page(found, target, programs, title=title, shape=table.part_shape)

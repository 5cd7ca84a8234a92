"""``partwise explore``: a page with a slider over sparsities."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Any

from ..runtime.untrusted import visible
from .common import UsageError, add_data, add_verbosity, described, facts_about, print_results, read_data
from .fixed import set_fixed
from .model_options import add_model_options, build_model
from .outputs import add_force, check_targets, write_outputs
from .provenance import repeating

SUMMARY = "Fit many sparsities, and write an HTML page with a slider over them"
USAGE = "DATA [DATA …] --components R --html FILE [options]"
EXAMPLES = """\
  partwise explore faces/ -r 16 -s 0.2:0.9:15 --html explore.html   15 sparsities from 0.2 to 0.9
  partwise explore cells.h5ad -r 20 -s 0.5 0.7 0.9 --holdout 0.1 --html cells.html

The page needs neither Python nor a network connection.
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    add_model_options(parser, add_sparsity)
    group = parser.add_argument_group("Output")
    group.add_argument("--html", metavar="FILE", required=True, help="page to write")
    add_force(group)
    group.add_argument("--title", type=visible, help="title of the page")
    group.add_argument(
        "--holdout",
        type=float,
        metavar="SHARE",
        help="also show the error on this share of the entries, hidden from a second series of fits",
    )
    add_verbosity(parser)


def add_sparsity(group: Any) -> None:
    """Add the sparsities of the slider."""
    group.add_argument(
        "-s",
        "--sparsity",
        "--sparsities",
        type=sparsities,
        nargs="+",
        metavar="S",
        help="sparsities of the components: numbers from 0 to 1, or FIRST:LAST:COUNT such as 0.2:0.9:15 (the default)",
    )


def sparsities(text: str) -> list[float]:
    """A sparsity, "0.7", or a range with both ends and the number of levels, "0.2:0.9:15"."""
    import numpy as np

    try:
        first, last, count = text.split(":") if ":" in text else (text, text, "1")
        if int(count) < 1:
            raise ValueError
        found: list[float] = np.linspace(float(first), float(last), int(count)).round(6).tolist()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: give a number from 0 to 1, or FIRST:LAST:COUNT such as 0.2:0.9:15"
        ) from None
    return found


def run(options: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    from ..pages.explore import LEVELS, explore
    from ..selection.levels import as_sparsities

    targets = check_targets(options, {"page": (options.html, (".html", ".htm"))})
    options.sparsity_file = options.resume_from = None
    try:
        levels = as_sparsities(
            LEVELS if options.sparsity is None else chain.from_iterable(options.sparsity), "sparsity"
        )
    except ValueError as error:
        raise UsageError(error) from error
    model = build_model(options, levels[-1])
    table = read_data(options)
    set_fixed(model, options, table)
    params = model.get_params(deep=False) | {"verbose": int(not options.quiet)}
    del params["n_components"], params["sparsity"]
    usual = type(model)().get_params(deep=False)
    found = explore(
        table.X,
        model.n_components,
        levels,
        holdout=options.holdout,
        title=options.title or f"{model.n_components} components: {visible(Path(table.source).name)}",
        part_shape=table.part_shape,
        feature_names=table.feature_names if table.origin is None else None,
        sample_names=table.sample_names,
        origin=table.origin,
        provenance={"source": table.source, **repeating(options)},
        **{name: value for name, value in params.items() if value is not usual[name]},
    )
    files = write_outputs(targets, {"page": lambda path: path.write_text(found.page, encoding="utf-8")}, options.debug)
    errors = dict(zip(map(str, found.sparsities), found.errors.tolist(), strict=True))
    facts = {"natural_sparsity": found.natural, "relative_errors": errors, "heldout_errors": found.heldout_errors}
    lines = [described(table), f"without a constraint, components have a sparsity of about {found.natural:.2f}"]
    print_results(options, {**facts_about(table), **facts}, lines, files)
    return 0 if files == targets else 1

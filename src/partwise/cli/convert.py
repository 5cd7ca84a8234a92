"""``partwise convert``: data from one format to another, and the parts of a model into tables."""

from __future__ import annotations

import argparse
from typing import Any

from .common import add_command, add_data, add_telling, check_losses, in_words, load_parts, read_data, tell

EXAMPLES = """\
  partwise convert counts.csv counts.npz           smaller, and sooner read
  partwise convert filtered_matrix/ cells.h5ad     10x to AnnData
  partwise convert large.csv large.npy             can stay on disk while it is fitted
  partwise convert parts.pw parts.csv              the parts of a model, a column each
"""


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "convert",
        convert,
        summary="write data (or the parts of a model) in another format",
        usage="DATA OUT",
        examples=EXAMPLES,
    )
    add_data(parser)
    parser.add_argument("out", metavar="OUT", help=".npy .npz .csv .tsv .mtx .mat .h5ad .zarr .h5")
    add_telling(parser)


def convert(options: argparse.Namespace) -> int:
    """Read and write."""
    from ..io import check_target, write
    from ..io import convert as write_table

    if options.data[0].endswith(".pw"):
        return parts_of(options)
    target = check_target(options.out, write.DATA)
    check_losses(options, {"converted data": target})
    table = read_data(options)
    write_table(table, target)
    facts = {
        "data": table.source,
        "samples": table.shape[0],
        "features": table.shape[1],
        "files": {"data": str(target)},
    }
    tell(options, facts, [in_words(table), f"written to {target}"])
    return 0


def parts_of(options: argparse.Namespace) -> int:
    """The parts of a model as a table."""
    from ..io import Table, check_target, write_parts
    from ..io.table import Rows

    model = load_parts(options.data[0])
    check_losses(options, {"parts": check_target(options.out)})
    names = tuple(map(str, getattr(model, "feature_names_in_", ()))) or None
    samples = tuple(getattr(model, "sample_names_", ())) or None
    activations: Any = getattr(model, "activations_", None)
    shape = (len(activations) if activations is not None else len(samples or "?"), model.n_features_in_)
    rows = Rows(shape, model.components_.dtype, lambda rows: activations[rows] @ model.components_)
    table = Table(rows, "model", options.data[0], samples, names)
    write_parts(options.out, model.components_, table, activations=activations)
    facts = {"data": options.data[0], "components": model.n_components_, "files": {"parts": options.out}}
    tell(options, facts, [f"{model.n_components_} parts of {options.data[0]} written to {options.out}"])
    return 0

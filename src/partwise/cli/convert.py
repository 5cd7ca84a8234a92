"""``partwise convert``: data, or the components of a model, in another format."""

from __future__ import annotations

import argparse
from typing import Any

from .common import (
    add_data,
    add_verbosity,
    described,
    facts_about,
    load_matrix_model,
    print_results,
    read_data,
)
from .outputs import add_force, check_targets

SUMMARY = "Convert data, or the components of a model, to another format"
USAGE = "DATA [DATA …] OUT [options]"
EXAMPLES = """\
  partwise convert counts.csv counts.npz           smaller and faster to read
  partwise convert filtered_matrix/ cells.h5ad     10x Genomics to AnnData
  partwise convert large.csv large.npy             can be fitted without loading it into memory
  partwise convert model.pw components.csv         the components of a model, one column each
  partwise convert faces.pw part_%d.png            an image per component, scaled to 0–255 by its maximum
  partwise convert faces.pw part_%02d.tif          the same with the values of the component, as float32
  partwise convert gm.pw components.nii.gz         the components of a model of brain images, one volume each
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    parser.add_argument(
        "out", metavar="OUT", help="output file: .npy .npz .csv .tsv .h5ad .zarr .h5; for models also .nii.gz .png .tif"
    )
    add_force(parser)
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read and write."""
    from ..io import convert, write

    if options.data[0].endswith(".pw"):
        return convert_model(options)
    targets = check_targets(options, {"data": (options.out, write.DATA)})
    table = read_data(options, negative="allow")
    convert(table, targets["data"])
    print_results(options, facts_about(table), [described(table)], targets)
    return 0


def convert_model(options: argparse.Namespace) -> int:
    """Write the components of a model."""
    from ..io import Table, write_components
    from ..io.table import LazyRows
    from ..io.write import IMAGES, check_components_target, ending, image_names

    model = load_matrix_model(options.data[0])
    names = tuple(map(str, getattr(model, "feature_names_in_", ()))) or None
    samples = tuple(getattr(model, "sample_names_", ())) or None
    activations: Any = getattr(model, "activations_", None)
    shape = (len(activations) if activations is not None else len(samples or "?"), model.n_features_in_)
    rows = LazyRows(shape, model.components_.dtype, lambda rows: activations[rows] @ model.components_)
    shape_and_origin = (getattr(model, name, None) for name in ("part_shape_", "origin_"))
    table = Table(rows, "model", options.data[0], samples, names, *shape_and_origin)
    files: dict[str, Any] = {"components": options.out}
    if ending(check_components_target(options.out, table), IMAGES):
        files = {f"part {k}": path for k, path in enumerate(image_names(options.out, model.n_components_))}
    targets = check_targets(options, {what: (path, ()) for what, path in files.items()})
    write_components(options.out, model.components_, table, activations=activations)
    facts = {"data": options.data[0], "components": model.n_components_}
    print_results(options, facts, [f"{options.data[0]}: model with {model.n_components_} components"], targets)
    return 0

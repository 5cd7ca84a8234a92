"""``partwise transform``: activations of new samples."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from .common import (
    add_data,
    add_verbosity,
    check_kept,
    described,
    facts_about,
    load_matrix_model,
    print_results,
    read_data,
    with_features,
)
from .outputs import add_force, check_targets, write_outputs

SUMMARY = "Compute the activations of new samples with a saved model"
USAGE = "MODEL DATA [DATA …] --out FILE [options]"
EXAMPLES = """\
  partwise transform cells.pw new-cells.csv --out activations.csv
  partwise transform subjects.pw 'new/*.nii.gz' --out activations.csv      the mask is stored in the model
  partwise transform song.pw new-song.wav --out when.csv      window and hop are stored in the model
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file written by partwise fit")
    add_data(parser)
    parser.add_argument(
        "--missing",
        choices=("error", "em"),
        help="empty cells and NaN are an error, or missing entries to skip (default: as in the fit)",
    )
    parser.add_argument(
        "--negative",
        choices=("error", "allow"),
        help="negative entries are an error, or fitted by the squared error (default: as in the fit)",
    )
    group = parser.add_argument_group("Output")
    group.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="activations, one row per sample: .csv, .tsv, .npy"
    )
    add_force(group)
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Load, read, solve, write, print."""
    from ..io import write_activations
    from ..io.write import ACTIVATIONS

    targets = check_targets(options, {"activations": (options.out, ACTIVATIONS)})
    model = load_matrix_model(options.model)
    model.set_params(**{name: getattr(options, name) for name in ("missing", "negative") if getattr(options, name)})
    table = read_data(options, getattr(model, "origin_", None), model.negative)
    check_kept(table)
    known = tuple(map(str, getattr(model, "feature_names_in_", ())))
    X = with_features(table, known, model.n_features_in_, options.model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # compared above
        activations = model.transform(X)
    writers = {"activations": lambda path: write_activations(path, activations, table.sample_names)}
    files = write_outputs(targets, writers, options.debug)
    facts = {**facts_about(table), "components": model.n_components_}
    print_results(options, facts, [described(table), f"{model.n_components_} components"], files)
    return 0 if files == targets else 1

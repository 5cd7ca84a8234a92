"""``partwise transform``: how much of each known part is in new samples."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from .common import add_command, add_data, add_telling, arranged, check_losses, in_words, load_parts, read_data, tell

EXAMPLES = """\
  partwise transform parts.pw new-cells.csv --out loadings.csv
  partwise transform parts.pw 'new/*.nii.gz' --mask mask.nii.gz --out loadings.csv
"""


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "transform",
        transform,
        summary="find how much of each part is in new samples",
        usage="MODEL DATA … --out FILE",
        examples=EXAMPLES,
    )
    parser.add_argument("model", metavar="MODEL", help="what partwise fit has written")
    add_data(parser)
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a row for each sample: .csv, .tsv, .npy")
    parser.add_argument(
        "--missing", choices=("error", "em"), help="what empty cells and NaN are (default: as the model)"
    )
    add_telling(parser)


def transform(options: argparse.Namespace) -> int:
    """Load, read, solve, write."""
    from ..io import check_target, write_loadings
    from ..io.write import LOADINGS

    target = check_target(options.out, LOADINGS)
    check_losses(options, {"loadings": target})
    model = load_parts(options.model)
    if options.missing is not None:
        model.set_params(missing=options.missing)
    table = read_data(options)
    known = tuple(map(str, getattr(model, "feature_names_in_", ())))
    X = arranged(table, known, model.n_features_in_, options.model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # they are compared above
        activations = model.transform(X)
    write_loadings(target, activations, table.sample_names)
    facts = {
        "data": table.source,
        "samples": table.shape[0],
        "features": table.shape[1],
        "components": model.n_components_,
        "files": {"loadings": str(target)},
    }
    tell(options, facts, [in_words(table), f"loadings of {model.n_components_} parts: {target}"])
    return 0

"""``partwise transform``: how much of each known part is in new samples."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from .common import add_command, add_data, add_telling, check_losses, in_words, read_data, tell

if TYPE_CHECKING:
    from ..io import Table

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
    from ..estimators import load
    from ..io import check_target, write_loadings
    from ..io.write import LOADINGS

    target = check_target(options.out, LOADINGS)
    check_losses(options, {"loadings": target})
    model = load(options.model)
    if options.missing is not None:
        model.set_params(missing=options.missing)
    table = read_data(options)
    X = arranged(table, model, options.model)
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


def arranged(table: Table, model: Any, name: str) -> Any:
    """X with its features in the order that the model knows them in."""
    known = tuple(map(str, getattr(model, "feature_names_in_", ())))
    if table.shape[1] == model.n_features_in_ and (not known or table.feature_names in (None, known)):
        return table.X
    if not known or table.feature_names is None or len(set(table.feature_names)) < table.shape[1]:
        raise ValueError(f"{table.source} has {table.shape[1]} features, and {name} knows {model.n_features_in_}")
    places = {feature: j for j, feature in enumerate(table.feature_names)}
    missing = [feature for feature in known if feature not in places]
    if missing:
        raise ValueError(
            f"{table.source} lacks {len(missing)} of the {len(known)} features that {name} knows, first {missing[0]!r}"
        )
    if table.lazy:
        raise ValueError(f"{table.source} has its features in another order than {name}, and stays on disk: convert it")
    return table.X[:, [places[feature] for feature in known]]

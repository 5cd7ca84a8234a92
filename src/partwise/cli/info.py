"""``partwise info``: describe a data set and suggest a sparsity to start from."""

from __future__ import annotations

import argparse
import math
from typing import Any

from ..engine.options import FLAGS
from .common import UsageError, add_data, add_verbosity, described, facts_about, print_results, read_data
from .model_options import add_flags

SUMMARY = "Describe a data set and suggest a sparsity to start from"
USAGE = "DATA [DATA …] [options]"
EXAMPLES = """\
  partwise info counts.csv
  partwise info 'faces/*.png' --components 25
  partwise info cells.h5ad --json | jq .zeros
"""
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    group = parser.add_argument_group("Model")
    group.add_argument(
        "-r",
        "--components",
        type=int,
        default=10,
        metavar="R",
        help="number of components of the unconstrained fit (default: %(default)s)",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: %(default)s)")
    add_flags(group, {"negative": FLAGS["negative"]})
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read, count, fit without a sparsity constraint, print."""
    from ..data import as_data
    from ..engine.natural import natural_fit
    from ..engine.validation import as_count, as_generator

    try:
        count = as_count(options.components, "n_components")
        as_generator(options.seed)
    except ValueError as error:
        raise UsageError(error) from error
    table = read_data(options)
    data = as_data(table.X, missing=True, signed=options.negative == "allow")
    zeros, largest, missing, unseen = counted(data)
    found = natural_fit(data, min(count, *data.shape), options.seed)
    natural = None if found is None else found.sparsity
    sizes = {level: features_at(level, table.shape[1]) for level in LEVELS}
    facts = {
        **facts_about(table),
        "dtype": str(table.X.dtype),
        "on_disk": table.lazy,
        "named": {"samples": table.sample_names is not None, "features": table.feature_names is not None},
        "part_shape": table.part_shape,
        "zeros": zeros,
        "missing": missing,
        "largest": largest,
        "unseen_features": unseen,
        "unconstrained_sparsity": natural,
        "unconstrained_samples": 0 if found is None else found.excerpt.shape[0],
        "features_at_least": sizes,
    }
    suggestion = "all values are 0: there is nothing to factorize"
    if found is not None and natural is not None:
        between = f"{natural.min():.2f} to {natural.max():.2f} (mean {natural.mean():.2f})"
        size = found.excerpt.shape[0]
        of = f", fitted to {size} samples," if size < data.shape[0] else ""
        suggestion = f"{len(natural)} components without a constraint{of} have sparsity {between}: start from there"
    disk = ", not loaded into memory" if table.lazy else ""
    lines = [
        described(table),
        f"{zeros:.1%} of the values are 0, the largest is {largest:g}; {table.X.dtype}{disk}",
        *([f"{missing} values are missing: fit the others with --missing em"] if missing else []),
        *([f"{unseen} features are missing in all samples: remove them"] if unseen else []),
        suggestion,
        "",
        "sparsity of a component   " + "".join(f"{level:>8}" for level in LEVELS),
        "smallest no. of features  " + "".join(f"{size:>8}" for size in sizes.values()),
    ]
    print_results(options, facts, lines)
    return 0


def counted(data: Any) -> tuple[float, float, int, int]:
    """The share of zeros, the largest value, the number of missing values, and of features without any value."""
    from ..data import Matrix

    data.check()
    nonzero = nonzeros(data) if isinstance(data, Matrix) else data.total(nonzeros)
    counts = data.counts(1)
    observed = int(counts.sum())
    missing = data.shape[0] * data.shape[1] - observed  # NaN, which counts as nonzero
    return 1 - (nonzero - missing) / max(observed, 1), float(data.peak), missing, int((counts == 0).sum())


def nonzeros(chunk: Any) -> int:
    """The number of nonzero values."""
    import numpy as np

    return int(np.count_nonzero(chunk.matrix if isinstance(chunk.matrix, np.ndarray) else chunk.matrix.data))


def features_at(level: float, m: int) -> int:
    """The smallest number of nonzero features at that sparsity: (√m − s(√m − 1))², rounded up."""
    root = float(m) ** 0.5
    return max(1, math.ceil((root - level * (root - 1)) ** 2 - 1e-12 * m))

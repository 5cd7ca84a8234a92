"""``partwise info``: what data is, and which sparsity to start from."""

from __future__ import annotations

import argparse
import math
from typing import Any

from .common import add_command, add_data, add_telling, in_words, read_data, tell

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SAMPLES = 2000  # that the unconstrained fit looks at, at most

EXAMPLES = """\
  partwise info counts.csv
  partwise info 'faces/*.png' --components 25
  partwise info cells.h5ad --json | jq .zeros
"""


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "info",
        info,
        summary="say what data is, and which sparsity to start from",
        usage="DATA …",
        examples=EXAMPLES,
    )
    add_data(parser)
    parser.add_argument(
        "-r", "--components", type=int, default=10, metavar="R", help="parts of the unconstrained fit (default: 10)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of its start (default: 0)")
    add_telling(parser)


def info(options: argparse.Namespace) -> int:
    """Read, look, fit without a constraint, tell."""
    from ..data import as_data

    table = read_data(options)
    data = as_data(table.X, missing=True)
    zeros, largest, missing, unseen = looked(data)
    some = sampled(data) if largest > 0 else None
    natural = None if some is None else unconstrained(some, options.components, options.seed)
    sizes = {level: features_at(level, table.shape[1]) for level in LEVELS}
    facts = {
        "data": table.source,
        "kind": table.kind,
        "samples": table.shape[0],
        "features": table.shape[1],
        "dtype": str(table.X.dtype),
        "on_disk": table.lazy,
        "named": {"samples": table.sample_names is not None, "features": table.feature_names is not None},
        "part_shape": table.part_shape,
        "zeros": zeros,
        "missing": missing,
        "largest": largest,
        "unseen_features": unseen,
        "unconstrained_sparsity": natural,
        "unconstrained_samples": 0 if some is None else some.shape[0],
        "features_at_least": sizes,
    }
    found = "there is nothing to find parts in"
    if natural is not None and some is not None:
        between = f"{natural.min():.2f} to {natural.max():.2f} (mean {natural.mean():.2f})"
        of = f" of {SAMPLES} of the samples" if some.shape[0] == SAMPLES else ""
        found = f"without a constraint, {len(natural)} parts{of} have sparsity {between}: start from there"
    disk = ", left on disk" if table.lazy else ""
    lines = [
        in_words(table),
        f"{zeros:.1%} of the values are 0, the largest is {largest:g}; {table.X.dtype}{disk}",
        *([f"{missing} values are missing: fit what is there with --missing em"] if missing else []),
        *([f"{unseen} features are missing in all samples: leave them out"] if unseen else []),
        found,
        "",
        "a part of sparsity    " + "".join(f"{level:>8}" for level in LEVELS),
        "has at least, features" + "".join(f"{size:>8}" for size in sizes.values()),
    ]
    tell(options, facts, lines)
    return 0


def looked(data: Any) -> tuple[float, float, int, int]:
    """Of all samples: the share of zeros, the largest value, how many values and how many features are missing."""
    from ..data import Matrix

    data.check()
    nonzero = nonzeros(data) if isinstance(data, Matrix) else data.total(nonzeros)
    counts = data.counts(1)
    observed = int(counts.sum())
    missing = data.shape[0] * data.shape[1] - observed  # NaN, and counted as not 0
    return 1 - (nonzero - missing) / max(observed, 1), float(data.peak), missing, int((counts == 0).sum())


def nonzeros(chunk: Any) -> int:
    """How many values of a matrix are not 0."""
    import numpy as np

    return int(np.count_nonzero(chunk.matrix if isinstance(chunk.matrix, np.ndarray) else chunk.matrix.data))


def sampled(data: Any) -> Any:
    """Evenly spaced samples of those that are not zero, at most 2000, and of these the features that they know."""
    import numpy as np

    from ..data import as_data

    filled = np.flatnonzero(data.sqnorms(0))
    some = data.subset(filled[np.linspace(0, len(filled) - 1, min(len(filled), SAMPLES)).astype(int)])
    if some.complete or (some.counts(1) > 0).all():
        return some
    return as_data(some.matrix[:, some.counts(1) > 0], missing=True)


def unconstrained(data: Any, components: int, seed: int) -> Any:
    """The sparsity that parts have by themselves."""
    import numpy as np

    from ..recipes import ssnmf

    result = ssnmf(data, min(components, *data.shape), max_iter=100, tol=1e-3, random_state=seed)
    return result.sparsity[np.isfinite(result.sparsity)]


def features_at(level: float, m: int) -> int:
    """The least number of features that a part of that sparsity has: (√m − s(√m − 1))², rounded up."""
    root = float(m) ** 0.5
    return max(1, math.ceil((root - level * (root - 1)) ** 2 - 1e-12 * m))

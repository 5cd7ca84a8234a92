"""Fixed components, fixed activations, and weights, read from files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import WEIGHTS
from .common import UsageError, with_features

if TYPE_CHECKING:
    from ..io import Table


def set_fixed(model: Any, options: argparse.Namespace, table: Table) -> None:
    """Read the fixed components and activations and check them against the data."""
    import numpy as np

    from ..engine.validation import as_known

    if options.fixed_components is not None:
        model.set_params(fixed_components=fixed_components(options.fixed_components, table, options.mask))
    if options.fixed_activations is not None:
        model.set_params(fixed_activations=read_whole(options.fixed_activations).X)
    for name, length in (("fixed_components", table.shape[1]), ("fixed_activations", table.shape[0])):
        try:
            as_known(getattr(model, name), model.n_components, length, name, np.dtype(float))
        except ValueError as error:
            raise UsageError(error) from error


def read_weights(options: argparse.Namespace, table: Table) -> dict[str, Any]:
    """The weights that the options name, in the order of the data."""
    import numpy as np

    from ..data.weighted import checked_weights

    names = dict(zip(WEIGHTS[1:], (table.sample_names, table.feature_names), strict=True))
    counts = dict(zip(WEIGHTS[1:], table.shape, strict=True))
    found: dict[str, Any] = {}
    for name in (name for name in WEIGHTS if getattr(options, name) is not None):
        path = getattr(options, name)
        try:
            if name in counts:
                found[name] = one_weight_each(path, names[name], counts[name], table.source, name)
            else:
                file = read_whole(path, options.mask)
                found[name] = one_weight_per_entry(file.transposed() if options.transpose else file, table)
            shape = (counts[name],) if name in counts else table.shape
            checked_weights(found[name], shape, name, np.dtype(float))
        except ValueError as error:
            raise UsageError(error) from error
    return found


def one_weight_per_entry(file: Table, table: Table) -> Any:
    """The weights in a file like the data. If both have names, these decide on the order of features and samples."""
    ordered = with_features(file, table.feature_names or (), table.shape[1], table.source)
    by_sample = replace(file, X=ordered, feature_names=None).transposed()
    return with_features(by_sample, table.sample_names or (), table.shape[0], table.source, "samples").T


def one_weight_each(path: Path, names: Sequence[str] | None, count: int, source: str, option: str) -> Any:
    """The weights in a file with one row or one column. If it and the data have names, these decide on the order."""
    from ..runtime.npy import mapped

    what = f"{option.split('_')[0]}s"
    if path.suffix == ".npy" and path.is_file() and len(mapped(path).shape) == 1:
        return mapped(path)
    file = read_whole(path)
    sides = [side for side in (file, file.transposed()) if side.shape[0] == 1]
    if not sides:
        shape = " × ".join(map(str, file.shape))
        raise UsageError(
            f"{file.source} is {shape}: give one weight for each of the {count} {what}, in a row or column"
        )
    return with_features(sides[0], names or (), count, source, what)[0]


def fixed_components(path: Path, table: Table, mask: str | None = None) -> Any:
    """The components in a file, one per row, with their features in the order of the data.

    The file may hold them as rows, or as columns like the tables of ``--components-out``. The side that matches the
    number of features, and their names if both files have names, decides. A square file without names is read by rows.
    """
    file, count = read_whole(path, mask), table.shape[1]
    sides, wrong = [], []
    for side in (file, file.transposed()):
        try:
            sides.append(replace(side, X=with_features(side, table.feature_names or (), count, table.source)))
        except ValueError as error:
            wrong += [error] if side.shape[1] == count else []
    if len(sides) == 2 and table.feature_names is None:
        sides = [side for side in sides if not named_as_components(side)] or sides
    if len(sides) == 2 and (file.sample_names or file.feature_names):
        raise UsageError(
            f"{path} is {count} × {count}, and its names do not show whether rows or columns are components: use the "
            f"feature names of {table.source}"
        )
    if not sides:
        shape = " × ".join(map(str, file.shape))
        raise UsageError(
            wrong[0] if wrong else f"{path} is {shape}: give each component as a row or a column of {count} values"
        )
    return sides[0].X


def read_whole(path: Path, mask: str | None = None) -> Table:
    """Read a file into memory; the mask applies to NIfTI images."""
    import numpy as np

    from ..io import read
    from ..io.write import NIFTI, ending

    table = read(path, mask=mask if ending(path, NIFTI) else None)
    return replace(table, X=np.concatenate([rows for _, rows in table.blocks()]))


def named_as_components(table: Table) -> bool:
    """Whether the columns have the names that ``--components-out`` writes."""
    from ..io.table import part_names

    return table.feature_names == part_names(table.shape[1])

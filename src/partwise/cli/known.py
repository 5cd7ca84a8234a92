"""Known parts and activations from files, as the fit takes them."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import UsageError, arranged

if TYPE_CHECKING:
    from ..io import Table


def give_known(model: Any, options: argparse.Namespace, table: Table) -> None:
    """Give a model the known parts and activations that the options name, found to fit the data."""
    import numpy as np

    from ..engine.validation import as_known

    if options.fixed_components is not None:
        model.set_params(fixed_components=known_parts(options.fixed_components, table, options.mask))
    if options.fixed_activations is not None:
        model.set_params(fixed_activations=whole(options.fixed_activations).X)
    for name, length in (("fixed_components", table.shape[1]), ("fixed_activations", table.shape[0])):
        try:
            as_known(getattr(model, name), model.n_components, length, name, np.dtype(float))
        except ValueError as error:
            raise UsageError(error) from error


def known_parts(path: Path, table: Table, mask: str | None = None) -> Any:
    """The parts in a file, one a row, with the features in the data's order.

    The file may have them by rows or by columns, as ``--parts-out`` writes tables: whichever side is as long as there
    are features, and has their names where both files have names. Where both sides are, and nothing has a name, rows.
    """
    file, count = whole(path, mask), table.shape[1]
    sides, wrong = [], []
    for side in (file, file.transposed()):
        try:
            sides.append(replace(side, X=arranged(side, table.feature_names or (), count, table.source)))
        except ValueError as error:
            wrong += [error] if side.shape[1] == count else []
    if len(sides) == 2 and table.feature_names is None:
        sides = [side for side in sides if not named_as_parts(side)] or sides
    if len(sides) == 2 and (file.sample_names or file.feature_names):
        raise UsageError(
            f"{path} is {count} × {count}, and its names do not say whether rows or columns are the parts: name the "
            f"features as {table.source} does"
        )
    if not sides:
        shape = " × ".join(map(str, file.shape))
        raise UsageError(wrong[0] if wrong else f"{path} is {shape}: give a row or a column of {count} for each part")
    return sides[0].X


def whole(path: Path, mask: str | None = None) -> Table:
    """A file's table, in memory; that of a brain inside of the mask."""
    import numpy as np

    from ..io import read
    from ..io.write import NIFTI, ending

    table = read(path, mask=mask if ending(path, NIFTI) else None)
    return replace(table, X=np.concatenate([rows for _, rows in table.blocks()]))


def named_as_parts(table: Table) -> bool:
    """Whether the columns have the names that ``--parts-out`` gives to parts."""
    from ..io.table import part_names

    return table.feature_names == part_names(table.shape[1])

"""The origin of a result, for reports."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from ..runtime.untrusted import visible

if TYPE_CHECKING:
    from ..io import Table


def provenance(options: argparse.Namespace, table: Table) -> dict[str, str]:
    """The versions, the data, and the command that repeats the result."""
    from ..data import Matrix, as_data
    from ..engine.validation import as_bytes
    from ..pages.provenance import described, versions

    facts = {"versions": versions(), "source": visible(table.source)}
    limit, signed = as_bytes(options.memory_limit, "memory_limit"), options.negative == "allow"
    data = as_data(table.X, limit, missing=True, signed=signed)
    if isinstance(data, Matrix):  # another pass over a large file would take long
        facts["data"] = described(data)
    return facts | repeating(options)


def repeating(options: argparse.Namespace) -> dict[str, str]:
    """The command line, as a shell needs it."""
    return {"command": visible(shlex.join(["partwise", *options.arguments]))}

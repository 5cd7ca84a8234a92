"""The result of a search: a table of measurements, without a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .paths import Level, Record

HEADINGS = {
    "rank": "rank",
    "sparsity": "sparsity",
    "heldout_error": "held-out error",
    "heldout_std": "±",
    "stability": "stability",
    "stability_std": "±",
    "train_error": "train error",
    "achieved_sparsity": "achieved",
    "dead_parts": "dead",
    "converged": "converged",
}


@dataclass(frozen=True, repr=False)
class Selection:
    """Models of several ranks and sparsities, compared on held-out entries.

    Attributes
    ----------
    rows : list of dict
        One per rank and sparsity, with

        - ``rank``, ``sparsity``: the model; sparsity None means unconstrained;
        - ``heldout_error``, ``heldout_std``: ‖X − model‖ / ‖X‖ over the held-out entries, for the start with the
          lowest training error; mean and standard deviation over the splits;
        - ``stability``, ``stability_std``: mean cosine between the matched components of two starts; NaN for a single
          start;
        - ``train_error``, ``achieved_sparsity``, ``dead_parts``: means over the same fits;
        - ``converged``: the share of all fits that converged.
    fits : list of dict
        One per fit: ``rank``, ``sparsity``, ``split``, ``restart`` and the measurements.
    side : {"components", "activations"}
        The factor that the sparsity applies to.
    """

    rows: list[Record]
    fits: list[Record] = field(default_factory=list)
    side: str = "components"

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas as pd

        columns = {name: [row[name] for row in self.rows] for name in HEADINGS}
        return pd.DataFrame({**columns, "sparsity": pd.Series(columns["sparsity"], dtype=object)})  # None stays None

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        head = "".join(f"<th>{heading}</th>" for heading in HEADINGS.values())
        lines = ("".join(f"<td>{as_text(name, row[name])}</td>" for name in HEADINGS) for row in self.rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        cells = [list(HEADINGS.values()), *([as_text(name, row[name]) for name in HEADINGS] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def as_text(name: str, value: Any) -> str:
    """Format one cell of the table."""
    if name == "sparsity":
        return sparsity_in_words(value)
    if name == "converged":
        return f"{value:.0%}"
    if value != value:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.1f}" if name == "dead_parts" else f"{value:.4f}"


def sparsity_in_words(value: Level) -> str:
    """Format a requested sparsity.

    >>> [sparsity_in_words(value) for value in (None, 0.5, (0.2, None))]
    ['none', '0.5', '0.2:']
    """
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ":".join("" if end is None else f"{end:g}" for end in value)
    return f"{value:g}"


def tabulate(records: Sequence[Record], sparsities: Sequence[Level], side: str) -> Selection:
    """Build the table from the records of all paths, ordered by rank and split."""
    rows, fits = [], []
    for rank in dict.fromkeys(record["rank"] for record in records):
        paths = [record for record in records if record["rank"] == rank]
        for level, sparsity in enumerate(sparsities):
            single = [
                {"rank": rank, "sparsity": sparsity, "split": path["split"], **fit}
                for path in paths
                for fit in path["fits"]
                if fit["level"] == level
            ]
            for fit in single:
                del fit["level"]  # the sparsity says it
            rows.append(row(rank, sparsity, single, [path["stability"][level] for path in paths]))
            fits += single
    return Selection(rows, fits, side)


def row(rank: int, sparsity: Level, fits: Sequence[Record], stability: Sequence[float | None]) -> Record:
    """Summarise all fits of one model: mean and standard deviation over the splits."""
    splits = dict.fromkeys(fit["split"] for fit in fits)
    best = [min((f for f in fits if f["split"] == split), key=lambda f: f["train_error"]) for split in splits]
    errors = [fit["heldout_error"] for fit in best]
    return {
        "rank": rank,
        "sparsity": sparsity,
        "heldout_error": mean(errors),
        "heldout_std": deviation(errors),
        "stability": mean(stability),
        "stability_std": deviation(stability),
        **{name: mean([f[name] for f in best]) for name in ("train_error", "achieved_sparsity", "dead_parts")},
        "converged": mean([fit["converged"] for fit in fits]),
    }


def mean(values: Sequence[float | None]) -> float:
    """The mean; NaN if any value is None."""
    return float(np.mean(np.array(values, dtype=float)))


def deviation(values: Sequence[float | None]) -> float:
    """The standard deviation; NaN for a single value."""
    return float(np.std(np.array(values, dtype=float), ddof=1)) if len(values) > 1 else float("nan")

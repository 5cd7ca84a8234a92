"""What a search has found: a table that shows, and recommends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from .paths import Record

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
    """Models of several ranks and sparsities, compared on entries that they have not seen.

    Attributes
    ----------
    rows : list of dict
        One for each rank and sparsity, with
        ``rank``, ``sparsity`` (what was asked; None: nothing),
        ``heldout_error``, ``heldout_std``: ‖X − model‖ / ‖X‖ over the held-out entries, of the start that fits what is
        seen best; mean and standard deviation over the splits,
        ``stability``, ``stability_std``: mean cosine of the parts that two starts find, matched one to one; NaN for a
        single start,
        ``train_error``, ``achieved_sparsity``, ``dead_parts``: of the same fits,
        ``converged``: the share of all fits that met their tolerance.
    fits : list of dict
        One for each single fit: ``rank``, ``sparsity``, ``split``, ``restart``, and what was measured.
    side : str
        What the sparsity is asked of: "components" or "activations".
    """

    rows: list[Record]
    fits: list[Record] = field(default_factory=list)
    side: str = "components"

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame; as they are, where there is no pandas."""
        try:
            pd: Any = import_module("pandas")
        except ImportError:
            return self.rows

        columns = {name: [row[name] for row in self.rows] for name in HEADINGS}
        return pd.DataFrame({**columns, "sparsity": pd.Series(columns["sparsity"], dtype=object)})  # None stays None

    def __repr__(self) -> str:
        cells = [list(HEADINGS.values()), *([as_text(name, row[name]) for name in HEADINGS] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def as_text(name: str, value: Any) -> str:
    """A cell as people read it."""
    if name == "sparsity":
        return sparsity_in_words(value)
    if name == "converged":
        return f"{value:.0%}"
    if value != value:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.1f}" if name == "dead_parts" else f"{value:.4f}"


def sparsity_in_words(value: Any) -> str:
    """What was asked, in a word.

    >>> [sparsity_in_words(value) for value in (None, 0.5, (0.2, None))]
    ['none', '0.5', '0.2:']
    """
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ":".join("" if end is None else f"{end:g}" for end in value)
    return f"{value:g}"


def tabulate(records: Sequence[Record], sparsities: Sequence[Any], side: str) -> Selection:
    """The table of finished paths, which come in the order of ranks and splits."""
    rows, fits = [], []
    for rank in dict.fromkeys(record["rank"] for record in records):
        paths = [record for record in records if record["rank"] == rank]
        for level, sparsity in enumerate(sparsities):
            single = [
                {"rank": rank, "sparsity": sparsity, "split": path["split"], **without_level(fit)}
                for path in paths
                for fit in path["fits"]
                if fit["level"] == level
            ]
            rows.append(row(rank, sparsity, single, [path["stability"][level] for path in paths]))
            fits += single
    return Selection(rows, fits, side)


def without_level(fit: Record) -> Record:
    """A fit as the table shows it, which names the sparsity itself."""
    return {name: value for name, value in fit.items() if name != "level"}


def row(rank: int, sparsity: Any, fits: Sequence[Record], stability: Sequence[float | None]) -> Record:
    """What several fits of one model say together."""
    splits = dict.fromkeys(fit["split"] for fit in fits)
    best = [min((f for f in fits if f["split"] == split), key=lambda f: f["train_error"]) for split in splits]

    def over_splits(name: str) -> list[float]:
        return [np.nan if fit[name] is None else fit[name] for fit in best]

    stable = [np.nan if value is None else value for value in stability]
    return {
        "rank": rank,
        "sparsity": sparsity,
        "heldout_error": mean(over_splits("heldout_error")),
        "heldout_std": spread(over_splits("heldout_error")),
        "stability": mean(stable),
        "stability_std": spread(stable),
        "train_error": mean(over_splits("train_error")),
        "achieved_sparsity": mean(over_splits("achieved_sparsity")),
        "dead_parts": mean(over_splits("dead_parts")),
        "converged": mean([float(fit["converged"]) for fit in fits]),
    }


def mean(values: Sequence[float]) -> float:
    """The mean, as a plain number."""
    return float(np.mean(values))


def spread(values: Sequence[float]) -> float:
    """The standard deviation between several; NaN for one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

"""Tables as lists of dicts, one per row of a CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
Rows = list[Row]


def pick(rows: Rows, **equal: Any) -> Rows:
    """Select the rows with these values.

    >>> pick([{"seed": 0, "error": 2.0}, {"seed": 1, "error": 3.0}], seed=1)
    [{'seed': 1, 'error': 3.0}]
    """
    return [row for row in rows if all(row[key] == value for key, value in equal.items())]


def distinct(rows: Rows, key: str) -> list[Any]:
    """The distinct values of a column, in order of appearance.

    >>> distinct([{"seed": 1}, {"seed": 0}, {"seed": 1}], "seed")
    [1, 0]
    """
    return list(dict.fromkeys(row[key] for row in rows))


def between(values: Iterable[float], form: str = ".3g") -> str:
    """Format the range of some numbers.

    >>> between([3.0, 1.5, 2.0]), between([2.0, 2.0])
    ('1.5–3', '2')
    """
    found = [float(value) for value in values]
    low, high = f"{min(found):{form}}", f"{max(found):{form}}"
    return low if low == high else f"{low}–{high}"

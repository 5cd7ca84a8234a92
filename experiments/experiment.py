"""An experiment, and the files it writes: numbers, a picture, and a one-line verdict."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import NAMES, find
from .rows import Rows, distinct

Tell = Callable[[float, str], Any]  # called with the share that is done, and a description of the next step

VERDICTS = ("does not hold", "holds in part", "holds")


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper.

    Attributes
    ----------
    name, title : str
    claim : str
        The paper's claim, in our words.
    full, quick : any
        The full size, and one that takes seconds and uses generated or bundled data only.
    run : callable
        ``run(size, tell)`` returns rows: dicts with the same keys, one of which is ``data``, the name of the dataset.
        Arrays among the values are used for the picture only.
    draw : callable
        ``draw(rows)`` returns a figure.
    verdict : callable
        ``verdict(rows)`` returns one line that begins with one of `VERDICTS`.
    """

    name: str
    title: str
    claim: str
    full: Any
    quick: Any
    run: Callable[[Any, Tell], Rows]
    draw: Callable[[Rows], Any]
    verdict: Callable[[Rows], str]


def judged(tests: Sequence[bool], measured: str) -> str:
    """The one-line verdict, by whether all tests hold, some, or none.

    >>> judged([True, False], "12 times faster, but not everywhere")
    'holds in part: 12 times faster, but not everywhere'
    """
    level = 2 if all(tests) else 1 if any(tests) else 0
    return f"{VERDICTS[level]}: {measured}"


def reproduce(experiment: Experiment, folder: Path, *, quick: bool, tell: Tell) -> str:
    """Run an experiment on one thread, write its CSV, PNG and verdict to ``folder``, and return the verdict."""
    with threadpool_limits(1):
        rows = experiment.run(experiment.quick if quick else experiment.full, tell)
    tell(1.0, "drawing")
    line = f"{experiment.verdict(rows)} (data: {'; '.join(distinct(rows, 'data'))})"
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(rows, folder / f"{experiment.name}.csv")
    experiment.draw(rows).savefig(folder / f"{experiment.name}.png")
    (folder / f"{experiment.name}.txt").write_text(line + "\n", encoding="utf-8")
    return line


def write_csv(rows: Rows, path: Path) -> None:
    """Write the rows without their arrays, with six digits per number."""
    columns = [key for key, value in rows[0].items() if not isinstance(value, np.ndarray)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([as_text(row[key]) for key in columns] for row in rows)


def as_text(value: Any) -> str:
    """Format a cell of the CSV."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_summary(folder: Path) -> Path:
    """Write a table of all verdicts in ``folder``, including those of earlier runs; return its path."""
    lines = ["| figure | the paper says | measured | verdict | command |", "|---|---|---|---|---|"]
    for name in NAMES:
        path = folder / f"{name}.txt"
        if path.is_file():
            verdict, _, measured = path.read_text(encoding="utf-8").strip().partition(": ")
            lines.append(f"| {name} | {find(name).claim} | {measured} | {verdict} | `make reproduce FIGURES={name}` |")
    summary = folder / "summary.md"
    summary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return summary

"""What an experiment is, and what it leaves behind: numbers, a picture, a line of verdict."""

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

Tell = Callable[[float, str], Any]  # is told the share that is done, and what comes next

VERDICTS = ("does not hold", "holds in part", "holds")


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper.

    Attributes
    ----------
    name, title : str
    claim : str
        What the paper says there, in our words.
    full, quick : any
        The size in earnest, and one that takes seconds and needs no data but what is generated or embedded.
    run : callable
        ``run(size, tell)`` gives rows, one dict a row, all with the same keys. Each has the ``data`` that it is about.
        Entries that are arrays are for the picture only.
    draw : callable
        ``draw(rows)`` gives a figure.
    verdict : callable
        ``verdict(rows)`` gives one line that begins with one of `VERDICTS`.
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
    """A line of verdict: all tests must hold, or some, or none does.

    >>> judged([True, False], "12 × sooner, but not everywhere")
    'holds in part: 12 × sooner, but not everywhere'
    """
    level = 2 if all(tests) else 1 if any(tests) else 0
    return f"{VERDICTS[level]}: {measured}"


def reproduce(experiment: Experiment, folder: Path, *, quick: bool, tell: Tell) -> str:
    """Run an experiment on one thread; its CSV, PNG and line of verdict go to ``folder``. The line."""
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
    """The rows without their arrays, six digits for every number."""
    columns = [key for key, value in rows[0].items() if not isinstance(value, np.ndarray)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([as_text(row[key]) for key in columns] for row in rows)


def as_text(value: Any) -> str:
    """A cell of the CSV."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_summary(folder: Path) -> Path:
    """A table of all verdicts in ``folder``, also those of earlier runs: one row a figure."""
    lines = ["| figure | the paper says | measured | verdict | command |", "|---|---|---|---|---|"]
    for name in NAMES:
        path = folder / f"{name}.txt"
        if path.is_file():
            verdict, _, measured = path.read_text(encoding="utf-8").strip().partition(": ")
            lines.append(f"| {name} | {find(name).claim} | {measured} | {verdict} | `make reproduce FIGURES={name}` |")
    summary = folder / "summary.md"
    summary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return summary

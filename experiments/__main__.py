"""``python -m experiments``, or ``make reproduce``: run the requested figures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from partwise.plotting import new_figure

from . import NAMES, find
from .experiment import Tell, reproduce, write_summary
from .sources import MissingDataError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the figures, skip those whose data is missing, and return the exit code."""
    options = parser().parse_args(arguments)
    try:
        prepare(options)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    skipped = []
    for name in dict.fromkeys(options.figures or NAMES):
        try:
            with bar(name) as tell:
                line = reproduce(find(name), options.out, quick=options.quick, tell=tell)
            print(f"{name} {line}", flush=True)
        except (ImportError, MissingDataError) as error:
            skipped.append(name)
            print(f"{name} is skipped: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            print(f"{name} was interrupted", file=sys.stderr)
            return 130
    print(f"Written to {options.out}; summary: {write_summary(options.out)}")
    return 1 if set(skipped) & set(options.figures) else 0


def parser() -> argparse.ArgumentParser:
    """The command line options."""
    options = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Run the experiments of 'Block Coordinate Descent for Sparse NMF' on one thread. Each writes "
        "FIGURE.csv, FIGURE.png and FIGURE.txt (a one-line verdict) to the results folder; summary.md lists all "
        "verdicts. All figures take about 40 minutes.",
        epilog=f"Figures: {', '.join(NAMES)}.",
    )
    options.add_argument("figures", nargs="*", metavar="FIGURE", help="figures to run (default: all)")
    options.add_argument("--quick", action="store_true", help="tiny synthetic data, a few seconds each")
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the paper's data (default: $PARTWISE_DATA, then the cache)"
    )
    options.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)"
    )
    return options


def prepare(options: argparse.Namespace) -> None:
    """Check the options and create the folder, so that mistakes are reported before the first fit."""
    for name in options.figures:
        find(name)
    if options.data is not None:
        if not options.data.is_dir():
            raise ValueError(f"--data {options.data} is not a folder: pass the folder of the paper's data")
        os.environ["PARTWISE_DATA"] = str(options.data)
    new_figure(1, 1)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {options.out} cannot be created ({error.strerror}): choose another folder") from None


@contextmanager
def bar(name: str) -> Iterator[Tell]:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn(name),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda share, what: progress.update(task, completed=share, description=what)


if __name__ == "__main__":
    sys.exit(main())

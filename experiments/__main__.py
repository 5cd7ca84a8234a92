"""``python -m experiments``, or ``make reproduce``: run the figures that are asked for."""

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
    """Run them; those whose data is missing are left out, with a line. The exit code."""
    options = parser().parse_args(arguments)
    try:
        prepare(options)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    left_out = []
    for name in dict.fromkeys(options.figures or NAMES):
        try:
            with bar(name) as tell:
                line = reproduce(find(name), options.out, quick=options.quick, tell=tell)
            print(f"{name} {line}", flush=True)
        except (ImportError, MissingDataError) as error:
            left_out.append(name)
            print(f"{name} is left out: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            print(f"{name} was interrupted", file=sys.stderr)
            return 130
    print(f"Written to {write_summary(options.out)} and beside it")
    return 1 if set(left_out) & set(options.figures) else 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Run the experiments of 'Block Coordinate Descent for Sparse NMF' on one thread. Each writes "
        "FIGURE.csv, FIGURE.png and FIGURE.txt (one line of verdict) to the results folder, and all together "
        "summary.md. All of them take about 40 minutes.",
        epilog=f"Figures: {', '.join(NAMES)}.",
    )
    options.add_argument("figures", nargs="*", metavar="FIGURE", help="which; all by default")
    options.add_argument("--quick", action="store_true", help="tiny sizes on stand-ins, seconds for each: does it run?")
    options.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the paper's data (default: $PARTWISE_DATA, then the cache)"
    )
    options.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)"
    )
    return options


def prepare(options: argparse.Namespace) -> None:
    """Whatever can go wrong before the first fit, goes wrong here."""
    for name in options.figures:
        find(name)
    if options.data is not None:
        if not options.data.is_dir():
            raise ValueError(f"--data {options.data} is not a folder: give the one with the paper's data")
        os.environ["PARTWISE_DATA"] = str(options.data)
    new_figure(1, 1)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {options.out} cannot be made ({error.strerror}): give another folder") from None


@contextmanager
def bar(name: str) -> Iterator[Tell]:
    """A progress bar on the terminal (standard error); where there is none, nothing is drawn."""
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

"""``partwise reproduce``: the experiments of the paper."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..experiments import NAMES
from .common import UsageError

if TYPE_CHECKING:
    from ..experiments.experiment import Tell


SUMMARY = "Run the experiments of the paper"
USAGE = "[FIGURE …] [options]"
EXAMPLES = f"  partwise reproduce {NAMES[0]}\n\nfigures: {', '.join(NAMES)}"


def add_options(show: Any) -> None:
    """Add the options of the command."""
    show.add_argument("figures", nargs="*", metavar="FIGURE", help="which; all by default")
    show.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)"
    )
    show.add_argument("--quick", action="store_true", help="tiny sizes on stand-ins, seconds for each: does it run?")
    show.add_argument("--data", type=Path, metavar="DIR", help="folder of the paper's data (default: $PARTWISE_DATA)")


def run(options: argparse.Namespace) -> int:
    """Run the figures asked for; those whose data is missing are left out, with a line."""
    for name in options.figures:
        if name not in NAMES:
            raise UsageError(f"{name!r} is not one of the figures {', '.join(NAMES)}")
    if options.data is not None:
        if not options.data.is_dir():
            raise ValueError(f"--data {options.data} is not a folder: give the one with the paper's data")
        os.environ["PARTWISE_DATA"] = str(options.data)

    from ..experiments import experiment as experiments
    from ..experiments import find
    from ..experiments.sources import MissingDataError
    from ..plotting import new_figure

    new_figure(1, 1)  # without matplotlib, an error now rather than after the first fit
    options.out.mkdir(parents=True, exist_ok=True)
    left_out = []
    for name in dict.fromkeys(options.figures or NAMES):
        try:
            with bar(name) as tell:
                line = experiments.reproduce(find(name), options.out, quick=options.quick, tell=tell)
            print(f"{name} {line}", flush=True)
        except (ImportError, MissingDataError) as error:
            left_out.append(name)
            print(f"partwise: {name} is left out: {error}", file=sys.stderr)
    print(f"Written to {experiments.write_summary(options.out)} and beside it")
    return 1 if set(left_out) & set(options.figures) else 0


@contextmanager
def bar(name: str) -> Iterator[Tell]:
    """A progress bar on the terminal (standard error); where there is none, nothing is drawn."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

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

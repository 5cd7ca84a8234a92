"""A progress line for a running fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from .factorize import Callback, Iteration


@contextmanager
def progress_line(label: str, console: Console | None = None) -> Iterator[Callback]:
    """A callback that keeps a line with iteration, relative error and time left on the terminal (standard error).

    Where standard error is neither a terminal nor a notebook, nothing is drawn.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("relative error {task.fields[error]:.4f}"),
        TimeRemainingColumn(),
    )
    console = console or Console(stderr=True)
    with Progress(*columns, console=console, disable=not (console.is_terminal or console.is_jupyter)) as bar:

        def tell(iteration: Iteration) -> None:
            if not bar.tasks:
                bar.add_task(label, error=1.0)
            bar.update(TaskID(0), completed=iteration.n_iter, total=iteration.max_iter, error=iteration.relative_error)

        yield tell
        if bar.tasks:
            bar.update(TaskID(0), total=bar.tasks[0].completed)

"""A progress line for a running fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .factorize import Callback, Iteration


@contextmanager
def progress_line(label: str, console: Console | None = None) -> Iterator[Callback]:
    """A callback that keeps a line with iteration, relative error and time left on the terminal (standard error)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("relative error {task.fields[error]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True)) as bar:
        task = bar.add_task(label, error=1.0)

        def tell(iteration: Iteration) -> None:
            bar.update(task, completed=iteration.n_iter, total=iteration.max_iter, error=iteration.relative_error)

        yield tell
        if bar.tasks[0].completed:
            bar.update(task, total=bar.tasks[0].completed)

"""A progress line for a running fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from ..projections import hoyer_sparsity
from ..statistics import Array
from .stopping import Callback, Iteration

PASSES = {"pass {task.fields[passes]}": 10}  # if X is read in chunks
MORE = {"sparsity {task.fields[sparsity]}": 19, "loss {task.fields[loss]:.3g}": 14}  # with their widths
BAR = 12
LINES = 20  # in a log
PLAIN_SECONDS = 10  # between two lines in a log
AddLine = Callable[[int], Callback]  # the number of a start → the callback of its line


def progress_lines(
    label: str, starts: int, console: Console | None = None, modes: Sequence[int] = (1,)
) -> AbstractContextManager[AddLine]:
    """Return a context that shows the progress of fits from several starts on standard error, each on its own line.

    It gives a function that adds the line of a start and returns the callback of its fit. The line shows the iteration,
    the relative error, the number of passes over X if it is read in chunks, the range of the sparsity in the factors of
    ``modes``, the loss, and the time left until max_iter. A narrow terminal shows less. If standard error is neither a
    terminal nor a notebook, a plain line is printed at the start, every ten seconds, and at the end.
    """
    console = console or Console(stderr=True)
    labels = [f"{label}, start {k + 1} of {starts}" for k in range(starts)] if starts > 1 else [label]
    return live_lines(labels, console, modes) if redrawable(console) else plain_lines(labels, console)


@contextmanager
def progress_line(label: str, console: Console | None = None, modes: Sequence[int] = (1,)) -> Iterator[Callback]:
    """The same for one fit: yield its callback."""
    with progress_lines(label, 1, console, modes) as line:
        yield line(0)


def redrawable(console: Console) -> bool:
    """Whether a line can be redrawn."""
    return console.is_terminal or console.is_jupyter


@contextmanager
def live_lines(labels: Sequence[str], console: Console, modes: Sequence[int]) -> Iterator[AddLine]:
    """Show lines that are redrawn."""
    with Progress(console=console) as bar:

        def line(k: int) -> Callback:
            task: TaskID | None = None

            def tell(iteration: Iteration) -> None:
                nonlocal task
                about: dict[str, Any] = {
                    "completed": iteration.n_iter,
                    "error": iteration.relative_error,
                    "loss": iteration.loss,
                    "passes": iteration.passes,
                    "sparsity": sparsity_range(*(iteration.factors[mode] for mode in modes)),
                }
                if task is None:  # a resumed fit does not start at 0
                    more = MORE if iteration.passes is None else PASSES | MORE
                    bar.columns = tuple(line_columns(console.width - len(labels[-1]), more))
                    task = bar.add_task(labels[k], total=iteration.max_iter, **about)
                bar.update(task, **about)

            return tell

        yield line
        for task in bar.tasks:
            bar.update(task.id, total=task.completed)


@contextmanager
def plain_lines(labels: Sequence[str], console: Console) -> Iterator[AddLine]:
    """Print a line for each fit from time to time, for a log."""
    left: dict[int, Iteration] = {}  # the last iteration of each fit, unless it was printed

    def show(k: int) -> None:
        one = left.pop(k)
        error = f"relative error {one.relative_error:.4f}"
        done = f"iteration {one.n_iter} of {one.max_iter}{'' if one.passes is None else f', pass {one.passes}'}"
        console.out(f"{labels[k]}: {done}, {error}, {one.seconds:.1f} s", highlight=False)

    def line(k: int) -> Callback:
        next_time = -np.inf

        def tell(iteration: Iteration) -> None:
            nonlocal next_time
            left[k] = iteration
            if iteration.seconds >= next_time:
                show(k)
                next_time = iteration.seconds + PLAIN_SECONDS

        return tell

    try:
        yield line
    finally:
        for k in [*left]:
            show(k)


@contextmanager
def counting_line(
    label: str, total: int, done: int = 0, console: Console | None = None
) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of ``total`` tasks. It shows their number on standard error.

    If standard error is neither a terminal nor a notebook, plain lines are printed, at most `LINES` of them.
    """
    console = console or Console(stderr=True)
    shown = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*shown, console=console, disable=not redrawable(console), speed_estimate_period=3600) as bar:
        task = bar.add_task(label, total=total, completed=done)

        def advance() -> None:
            nonlocal done
            done += 1
            bar.advance(task)
            if not redrawable(console) and done * LINES // total > (done - 1) * LINES // total:
                left = bar.tasks[task].time_remaining
                about = "" if left is None else f", about {timedelta(seconds=round(left))} left"
                console.out(f"{label}: {done} of {total}{about}", highlight=False)

        yield advance


def line_columns(room: int, more: Mapping[str, int]) -> list[ProgressColumn]:
    """The columns of the line, and those of ``more`` that fit into ``room`` characters next to its label."""
    shown: list[ProgressColumn] = [MofNCompleteColumn(), TextColumn("relative error {task.fields[error]:.4f}")]
    room -= 38
    for text, width in more.items():
        if room >= width:
            shown.append(TextColumn(text))
            room -= width
    bar = [BarColumn(min(room, 40))] if room >= BAR else []
    return [TextColumn("{task.description}"), *bar, *shown, TimeRemainingColumn()]


def sparsity_range(*factors: Array) -> str:
    """The range of the sparsity of all nonzero columns. Factors that are not in memory are left out."""
    columns = [hoyer_sparsity(factor, axis=0) for factor in factors if isinstance(factor, np.ndarray)]
    known = np.concatenate([[], *(c[~np.isnan(c)] for c in columns)])
    return f"{known.min():.2f}–{known.max():.2f}" if known.size else "none"

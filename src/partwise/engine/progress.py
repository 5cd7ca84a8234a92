"""A progress line for a running fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from .loop import Callback, Iteration

PASSES = {"pass {task.fields[passes]}": 10}  # if X is read in chunks
MORE = {"sparsity {task.fields[sparsity]}": 19, "loss {task.fields[loss]:.3g}": 14}  # with their widths
BAR = 12
PLAIN_SECONDS = 10  # between two lines in a log


def progress_line(
    label: str, console: Console | None = None, modes: Sequence[int] = (1,)
) -> AbstractContextManager[Callback]:
    """Return a context that gives a callback, which shows the progress of a fit on standard error.

    The line shows the iteration, the relative error, the number of passes over X if it is read in chunks, the range of
    the sparsity in the factors of ``modes``, the loss, and the time left until max_iter. A narrow terminal shows less.
    If standard error is neither a terminal nor a notebook, a plain line is printed at the start, every ten seconds, and
    at the end.
    """
    console = console or Console(stderr=True)
    return live_line(label, console, modes) if redrawable(console) else plain_lines(label, console)


def redrawable(console: Console) -> bool:
    """Whether a line can be redrawn."""
    return console.is_terminal or console.is_jupyter


@contextmanager
def live_line(label: str, console: Console, modes: Sequence[int]) -> Iterator[Callback]:
    """Show one line that is redrawn."""
    with Progress(console=console) as bar:

        def tell(iteration: Iteration) -> None:
            about: dict[str, Any] = {
                "error": iteration.relative_error,
                "loss": iteration.loss,
                "passes": iteration.passes,
                "sparsity": sparsity_range(*(iteration.factors[mode] for mode in modes)),
            }
            if not bar.tasks:  # a resumed fit does not start at 0
                more = MORE if iteration.passes is None else PASSES | MORE
                bar.columns = tuple(line_columns(console.width - len(label), more))
                bar.add_task(label, total=iteration.max_iter, completed=iteration.n_iter, **about)
            bar.update(TaskID(0), completed=iteration.n_iter, **about)

        yield tell
        if bar.tasks:
            bar.update(TaskID(0), total=bar.tasks[0].completed)


@contextmanager
def plain_lines(label: str, console: Console) -> Iterator[Callback]:
    """Print a line from time to time, for a log."""
    left: list[Iteration] = []  # the last iteration, unless it was printed
    next_time = -np.inf

    def show(one: Iteration) -> None:
        error = f"relative error {one.relative_error:.4f}"
        done = f"iteration {one.n_iter} of {one.max_iter}{'' if one.passes is None else f', pass {one.passes}'}"
        console.out(f"{label}: {done}, {error}, {one.seconds:.1f} s", highlight=False)

    def tell(iteration: Iteration) -> None:
        nonlocal next_time
        left[:] = [iteration]
        if iteration.seconds >= next_time:
            show(left.pop())
            next_time = iteration.seconds + PLAIN_SECONDS

    try:
        yield tell
    finally:
        for one in left:
            show(one)


@contextmanager
def counting_line(
    label: str, total: int, done: int = 0, console: Console | None = None
) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of ``total`` tasks. It shows their number on standard error.

    If standard error is neither a terminal nor a notebook, each call prints a plain line.
    """
    console = console or Console(stderr=True)
    shown = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*shown, console=console, disable=not redrawable(console)) as bar:
        task = bar.add_task(label, total=total, completed=done)

        def advance() -> None:
            nonlocal done
            done += 1
            bar.advance(task)
            if not redrawable(console):
                console.out(f"{label}: {done} of {total}", highlight=False)

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

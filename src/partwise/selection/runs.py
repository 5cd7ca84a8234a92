"""Many fits from different starts: what is kept of them, and the file from which they resume."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from ..data import Chunked, DenseData, Matrix, SparseData, as_data
from ..engine.natural import no_advice
from ..engine.result import Result
from ..recipes.many import fit_many
from ..runtime.archive import UnreadableError, read, write
from ..runtime.files import check_replaceable
from ..runtime.interrupts import interrupts
from ..statistics import Array

Run = tuple[int, int]  # (rank, number of the run)
BYTES, LEAST = 2**23, 12  # runs in a batch: so many bytes of factors, but at least this number
IDLE = 10  # the file is written again after this many times the seconds that writing takes


@dataclass
class Runs:
    """The components of finished runs, with their loss, number of iterations, and whether they converged.

    Parameters
    ----------
    settings : dict
        All that the runs depend on, as JSON can hold it.
    seed : int
        Run ``i`` of a rank starts from the seed (seed, rank, i), whatever other runs there are.
    """

    settings: dict[str, Any]
    seed: int
    components: dict[Run, Array] = field(default_factory=dict)
    facts: dict[Run, tuple[float, int, bool]] = field(default_factory=dict)

    def add(self, run: Run, result: Result) -> None:
        """Keep the components of a fit."""
        self.components[run] = np.ascontiguousarray(result.components)
        self.facts[run] = float(result.losses[-1]), result.n_iter, result.converged

    def spectra(self, rank: int, n_runs: int) -> Array:
        """The components of all runs of a rank, stacked."""
        return np.concatenate([self.components[rank, i] for i in range(n_runs)]).astype(float, copy=False)


def as_single(data: Matrix | Chunked) -> Matrix | Chunked:
    """The data in single precision, if they are a matrix in memory."""
    if not isinstance(data, DenseData | SparseData):
        return data
    return as_data(data.matrix.astype(np.float32), missing=not data.complete, signed=data.signed)


def fit_each(
    data: Matrix | Chunked, runs: Sequence[dict[str, Any]], options: dict[str, Any], done: Callable[[int, Result], None]
) -> None:
    """Fit the keywords of each of ``runs``, and hand each result to ``done(number of the run, result)``.

    The fits share passes over X. They are made in batches, because results hold activations, which are not needed. With
    a sparsity, a run is first fitted without it: a sparse component hardly changes its support, so that runs that start
    with the constraint end close to their starts, and do not agree.
    """
    most = max((run["n_components"] for run in runs), default=1)
    batch = max(BYTES // (8 * most * sum(data.shape)), LEAST)
    with interrupts() as interrupted, no_advice():
        for first in range(0, len(runs), batch):

            def finished(number: int, result: Result, first: int = first) -> None:
                if not interrupted:  # an unfinished fit is not comparable
                    done(first + number, result)

            some = runs[first : first + batch]
            if options.get("sparsity") is not None:
                free = fit_many(data, some, **{**options, "sparsity": None})
                some = [
                    {**run, "init": (fit.activations, fit.components)} for run, fit in zip(some, free, strict=False)
                ]
            if not interrupted:
                fit_many(data, some, done=finished, **options)
            if interrupted:
                raise KeyboardInterrupt


def fit_runs(
    data: Matrix | Chunked, runs: Runs, wanted: Sequence[Run], options: dict[str, Any], done: Callable[[], None]
) -> None:
    """Fit the ``wanted`` runs and add them to ``runs``; ``done`` is called after each."""
    starts = [{"n_components": run[0], "random_state": np.random.default_rng([runs.seed, *run])} for run in wanted]

    def add(number: int, result: Result) -> None:
        runs.add(wanted[number], result)
        done()

    fit_each(data, starts, options, add)


def write_runs(path: str | os.PathLike[str], runs: Runs, more: dict[str, Any], complete: bool) -> None:
    """Write all finished runs to a file, with ``more`` in its header."""
    listed = sorted(runs.components)
    arrays = {
        f"components.r{rank}": np.concatenate([runs.components[run] for run in listed if run[0] == rank])
        for rank in sorted({rank for rank, _ in listed})
    }
    facts = [[*run, *runs.facts[run]] for run in listed]
    header = {"kind": "consensus", "complete": complete, "settings": runs.settings, "seed": runs.seed, "runs": facts}
    write(path, header | more, arrays)


def read_runs(path: str | os.PathLike[str]) -> tuple[Runs, dict[str, Any]]:
    """The runs in a file, and its header; `UnreadableError` for any other file."""
    header, arrays = read(path)
    name = os.fspath(path)
    if header.get("kind") != "consensus":
        raise UnreadableError(f"{name} is a {header.get('kind')}, not the runs of a consensus")
    try:
        runs = Runs(dict(header["settings"]), int(header["seed"]))
        for rank in sorted({fact[0] for fact in header["runs"]}):
            numbers = [fact for fact in header["runs"] if fact[0] == rank]
            stacked = arrays[f"components.r{rank}"]
            if stacked.ndim != 2 or len(stacked) != rank * len(numbers) or stacked.dtype.kind != "f":
                raise ValueError(f"the components of rank {rank} do not match its runs")
            if not np.isfinite(stacked).all() or stacked.min() < 0:
                raise ValueError(f"the components of rank {rank} are not finite and nonnegative")
            for place, (_, number, loss, n_iter, converged) in enumerate(numbers):
                run = int(rank), int(number)
                runs.components[run] = stacked[place * rank : (place + 1) * rank]
                runs.facts[run] = float(loss), int(n_iter), bool(converged)
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableError(f"{name} is not a valid file of runs: {error}") from error
    return runs, header


def resumed(
    path: Path | None, settings: dict[str, Any], seed: int, random_state_given: bool, overwrite: bool = False
) -> Runs:
    """The runs of a checkpoint that belongs to the same settings, or none if there is no such file yet.

    With ``overwrite``, a file that is there does not count.
    """
    settings = json.loads(json.dumps(settings))  # as a file returns them
    fresh = Runs(settings, seed)
    if path is None or overwrite or not os.path.exists(path):
        return fresh
    name = f"checkpoint={os.fspath(path)!r}"
    try:
        found, _ = read_runs(path)
    except UnreadableError as error:
        raise ValueError(f"{name} cannot be resumed: {error}. Use another path") from error
    other = [key for key in settings | found.settings if found.settings.get(key) != settings.get(key)]
    other += ["random_state"] if random_state_given and found.seed != seed else []
    if other:
        raise ValueError(
            f"{name} belongs to a consensus with different {', '.join(sorted(other))}: use another path, or delete it"
        )
    return found


class Saver:
    """Writes a checkpoint when there are new runs, but spends at most about a tenth of the time on it.

    The file is untouched until then, but `ValueError` is raised at once if it could not be written.
    """

    def __init__(self, path: Path | None, runs: Runs, more: Callable[[], dict[str, Any]]) -> None:
        self.path, self.runs, self.more = path, runs, more
        self.wait, self.saved = 0.0, len(runs.components)
        self.last = monotonic()
        if path is not None:
            with self.explained():
                check_replaceable(path)

    def __call__(self, force: bool = False) -> None:
        """Write the file if there are new runs, unless it was written a moment ago."""
        now = monotonic()
        new = len(self.runs.components) > self.saved
        if self.path is None or not new or not (force or now - self.last >= self.wait):
            return
        with self.explained():
            write_runs(self.path, self.runs, self.more(), complete=False)
        self.saved = len(self.runs.components)
        self.last = monotonic()
        self.wait = IDLE * (self.last - now)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say which file cannot be written."""
        try:
            yield
        except OSError as error:
            raise ValueError(
                f"checkpoint={os.fspath(self.path or '')!r} cannot be written: {error.strerror}"
            ) from error

"""The search over ranks and sparsities: what is asked, checked; paths in parallel; a table."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, Literal

import joblib
import numpy as np

from ..engine.progress import counting_line
from ..engine.validation import as_amount, as_choice, as_columns, as_count, as_generator, as_jobs, as_path
from .heldout import Observed
from .paths import KEYWORDS, Plan, Record, go
from .records import Finished
from .result import Selection, tabulate


def select(
    X: Any,
    ranks: int | Iterable[int],
    sparsities: Any = (None,),
    *,
    side: Literal["components", "activations"] = "components",
    holdout: float = 0.1,
    n_splits: int = 3,
    n_init: int = 3,
    init: str | None = None,
    max_iter: int = 500,
    tol: float = 1e-5,
    missing: Literal["error", "em"] = "error",
    observed: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Selection:
    """Compare ranks and sparsities on entries of X that the fits have not seen. It shows, and recommends nothing.

    ``n_splits`` times a random ``holdout`` of the entries is hidden, the same ones from every model. Each rank is
    fitted to the rest from ``n_init`` starts, along the sparsities from low to high, each fit starting where the last
    one ended.

    Parameters
    ----------
    X : array or scipy sparse of shape (samples, features)
        Nonnegative, in memory. A sparse X without ``observed`` is zero where it stores nothing, and must be small
        enough to be made dense; with a sparse ``observed`` costs follow the observed entries.
    ranks : int, or several
    sparsities : several of None, float, (lo, hi)
        As ``sparsity`` of `partwise.ssnmf`; None asks for nothing.
    side : {"components", "activations"}
        What the sparsity is asked of.
    holdout : float
        Share of the observed entries that a split hides. Each row and column keeps one at least.
    n_splits, n_init : int
        Patterns of hidden entries; starts for each, which are compared with each other for ``stability``.
    init, max_iter, tol
        Of each fit, as in `partwise.ssnmf`; ``init`` is where the first sparsity starts.
    missing, observed
        Entries that nobody knows, as in `partwise.ssnmf`.
    random_state : int, Generator, RandomState or None
        The same one gives the same table, but for rounding, whatever ``n_jobs``.
    n_jobs : int
        Processes (joblib), each with one thread; −1: one on each core.
    checkpoint : path
        A file that each finished rank and split is written to. The same call goes on from there, and so does one with
        other ranks or more splits; another question is refused.
    verbose : int
        1: a progress line.

    Returns
    -------
    Selection
        ``table``, a pandas DataFrame if there is pandas; ``rows``, ``fits``. `partwise.plotting.selection` draws it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((40, 2)) @ rng.random((2, 20))
    >>> found = select(X, ranks=[1, 2], n_splits=2, n_init=2, random_state=0)
    >>> [round(row["heldout_error"], 1) for row in found.rows]
    [0.2, 0.0]
    """
    ranks, sparsities = as_ranks(ranks), as_levels(sparsities)
    n_splits, rng = as_count(n_splits, "n_splits"), as_generator(random_state)
    entries = Observed.of(X, as_choice(missing, "missing", ("error", "em")) == "em", observed)
    question = {
        "sparsities": sparsities,
        "side": as_choice(side, "side", tuple(KEYWORDS)),
        "holdout": as_share(holdout),
        "n_init": as_count(n_init, "n_init"),
        "init": None if init is None else as_choice(init, "init", ("samples", "random", "gradual")),
        "max_iter": as_count(max_iter, "max_iter"),
        "tol": as_amount(tol, "tol"),
    }
    seed = int(rng.integers(2**31))
    about = {"X": entries.digest(), "random_state": None if random_state is None else seed}
    finished = Finished(as_path(checkpoint, "checkpoint"), question | about, seed)
    plan = Plan(**question, seed=finished.seed)  # type: ignore[arg-type]
    wanted = [(rank, number) for rank in ranks for number in range(n_splits)]
    jobs = None if n_jobs is None else as_jobs(n_jobs, "n_jobs")
    left = [
        key for key in reversed(wanted) if key not in finished.records
    ]  # the largest ranks first: they take longest
    line = counting_line("select", len(wanted), len(wanted) - len(left)) if verbose else nullcontext(lambda: None)
    with line as advance:
        for record in gone(entries, plan, left, jobs):
            finished.add(record)
            advance()
    return tabulate([finished.records[key] for key in wanted], sparsities, plan.side)


def gone(observed: Observed, plan: Plan, keys: list[tuple[int, int]], jobs: int | None) -> Iterator[Record]:
    """The record of each path, as they come: the last one from this process, so that workers find what it compiles."""
    yield from (go(observed, plan, *key) for key in keys[-1:])
    run = joblib.Parallel(jobs, return_as="generator_unordered", mmap_mode="c")  # kernels are compiled for writable
    yield from run(joblib.delayed(go)(observed, plan, *key) for key in keys[:-1])


def as_ranks(ranks: Any) -> list[int]:
    """Ranks in order, each once."""
    several = [ranks] if isinstance(ranks, int | np.integer) or not isinstance(ranks, Iterable) else list(ranks)
    found = sorted({as_count(rank, "ranks") for rank in several})
    if not found:
        raise ValueError("ranks is empty: give at least one")
    return found


def as_levels(sparsities: Any) -> tuple[Any, ...]:
    """Sparsities from low to high, None first, each once."""
    alone = sparsities is None or isinstance(sparsities, float | int | np.number | str)
    several = [sparsities] if alone or not isinstance(sparsities, Iterable) else list(sparsities)
    if not several:
        raise ValueError("sparsities is empty: give at least one; None asks for nothing")
    return tuple(sorted({as_level(value) for value in several}, key=height))


def as_level(value: Any) -> Any:
    """None, a number, or an interval, as plain numbers."""
    if value is None:
        return None
    if isinstance(value, list | np.ndarray) and np.ndim(value):
        raise ValueError(
            f"sparsities holds {value!r}: one for each part does not fit all ranks; an interval is a tuple"
        )
    if not isinstance(value, tuple | numbers.Real):
        raise ValueError(f"sparsities holds {value!r}: give None, numbers, or intervals (lo, hi)")
    as_columns(value, 1, name="sparsities")
    return tuple(None if end is None else float(end) for end in value) if isinstance(value, tuple) else float(value)


def height(value: Any) -> tuple[float, float]:
    """Where a sparsity lies on the path: by its lower end, then by its upper one."""
    lo, hi = (-1.0, -1.0) if value is None else value if isinstance(value, tuple) else (value, value)
    return (0.0 if lo is None else lo), (1.0 if hi is None else hi)


def as_share(value: Any) -> float:
    """A share between 0 and 1."""
    share = as_amount(value, "holdout", 1)
    if not 0 < share < 1:
        raise ValueError(f"holdout={value!r}: give a share between 0 and 1, such as 0.1")
    return share

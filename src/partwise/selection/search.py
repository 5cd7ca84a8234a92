"""The search over ranks and sparsities: validate, fit the paths in parallel, tabulate."""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Literal, cast

import numpy as np

from ..engine.options import TABLE
from ..engine.validation import (
    Seed,
    as_amount,
    as_choice,
    as_columns,
    as_count,
    as_generator,
    as_jobs,
    as_loss,
    as_missing,
    as_path,
    as_signed,
    as_verbosity,
)
from ..projections import Hoyer, HoyerBetween
from ..recipes import RECIPES
from ..runtime.compiled import clock
from .heldout import Observed
from .paths import SIDES, SPARSE, Level, Plan, Record, fit_path
from .records import SearchRecords
from .result import Selection, tabulate

WORKERS = 2.0  # seconds: starting worker processes takes about as long


def select(
    X: Any,
    ranks: int | Iterable[int],
    sparsities: Level | Iterable[Level] = (None,),
    *,
    side: Literal["components", "activations"] = "components",
    holdout: float = 0.1,
    n_splits: int = 3,
    n_init: int = 3,
    init: str = "auto",
    loss: Literal["squared", "kullback-leibler", "kl"] = "squared",
    recipe: str = "ssnmf",
    recipe_params: dict[str, Any] | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    missing: Literal["error", "em"] = "error",
    negative: Literal["error", "allow"] = "error",
    observed: Any = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Selection:
    """Compare ranks and sparsities by their error on held-out entries of X. No model is recommended.

    Each of ``n_splits`` splits holds out a random share of the entries, the same for all models. Each rank is fitted to
    the remaining entries from ``n_init`` starts. From each start the sparsities are fitted from low to high, each fit
    warm-started from the previous one.

    Look at the held-out error and the stability together. The rank with the lowest held-out error is often too high. On
    word counts of documents, the error is mostly above 1, whatever the rank, which is worse than predicting zeros. The
    stability is easier to read: it falls where different starts begin to find different components.

    Parameters
    ----------
    X : array or scipy sparse of shape (samples, features)
        Nonnegative, unless ``negative="allow"``, and in memory. In a sparse X without ``observed``, entries that are
        not stored are zeros, and X is converted to dense. With a sparse ``observed``, time and memory scale with the
        observed entries.
    ranks : int or iterable of int
        Numbers of components.
    sparsities : iterable of None, float or (lo, hi)
        As ``sparsity`` of `partwise.ssnmf`; None means unconstrained.
    side : {"components", "activations"}
        The factor that the sparsity applies to.
    holdout : float
        Share of the observed entries held out in each split. At least one entry stays in each row and column.
    n_splits, n_init : int
        Number of splits, and of starts per split. ``stability`` compares the starts with each other.
    init : {"auto", "samples", "random", "gradual"}
        Start of the first sparsity of each path, by default as in `partwise.ssnmf`.
    loss : {"squared", "kullback-leibler", "kl"}
        As in `partwise.ssnmf`. Errors with the Kullback–Leibler divergence are √(divergence / divergence of the
        features' means); held-out entries are predicted by the model mixed with 1 % of these means, because a single
        count where the model is zero would make the divergence infinite.
    recipe, recipe_params : str, dict
        The method, and its own parameters other than the sparsity, as in `SparseNMF`. It must accept missing entries,
        because the held-out ones are missing.
    max_iter, tol
        As in the recipe, with the same defaults.
    missing, observed, negative
        Missing and negative entries, as in `partwise.ssnmf`.
    random_state : int, Generator, RandomState or None
        An int gives the same table in every run, up to rounding, for any ``n_jobs``.
    n_jobs : int
        Number of processes (joblib), each with one thread; −1: one per core.
    checkpoint : path
        File to which each finished rank and split is written. The same call resumes from it, and so does a call with
        other ranks or more splits. Any other change of the settings raises an error.
    verbose : int
        1 shows a progress line.

    Returns
    -------
    Selection
        ``table`` is a pandas DataFrame; ``rows`` and ``fits`` are lists of dicts.
        `partwise.plotting.selection` plots it.

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
    entries = Observed.of(X, as_missing(missing), observed, as_signed(negative))
    settings: dict[str, Any] = {
        "sparsities": sparsities,
        "side": as_choice(side, "side", SIDES),
        "holdout": as_share(holdout),
        "n_init": as_count(n_init, "n_init"),
        "init": as_choice(init, "init", ("auto", "samples", "random", "gradual")),
        "max_iter": None if max_iter is None else as_count(max_iter, "max_iter"),
        "tol": None if tol is None else as_amount(tol, "tol"),
        **as_method(recipe, recipe_params, sparsities, side),
    }
    if as_loss(loss):
        settings["loss"] = "kullback-leibler"
    seed = int(rng.integers(2**31))
    data = {"X": entries.digest(), "random_state": None if random_state is None else seed}
    finished = SearchRecords(as_path(checkpoint, "checkpoint"), settings | data, seed)
    plan = Plan(**settings, seed=finished.seed)
    wanted = [(rank, number) for rank in ranks for number in range(n_splits)]
    jobs = None if n_jobs is None else as_jobs(n_jobs, "n_jobs")
    left = [key for key in reversed(wanted) if key not in finished.records]  # slowest (largest rank) first
    from ..engine.progress import counting_line  # imports rich

    line = counting_line("select", len(wanted), len(wanted) - len(left))
    with line if as_verbosity(verbose) else nullcontext(lambda: None) as advance:
        for record in fit_paths(entries, plan, left, jobs):
            finished.add(record)
            advance()
    return tabulate([finished.records[key] for key in wanted], sparsities, plan.side)


def fit_paths(observed: Observed, plan: Plan, keys: list[tuple[int, int]], jobs: int | None) -> Iterator[Record]:
    """Yield the record of each path as it finishes.

    The last (smallest) one runs first and in this process, so that the workers find its compiled kernels in the cache.
    If all of them together are likely to take less time than starting workers, the others run in this process, too.
    """
    import joblib

    started = clock()
    yield from (fit_path(observed, plan, *key) for key in keys[-1:])
    if (clock() - started) * len(keys) < WORKERS:
        jobs = None
    run = joblib.Parallel(jobs, return_as="generator_unordered", mmap_mode="c")  # kernels expect writable arrays
    yield from run(joblib.delayed(fit_path)(observed, plan, *key) for key in keys[:-1])


def as_method(recipe: str, params: object, sparsities: Sequence[Level], side: str) -> dict[str, Any]:
    """Validate the recipe and its parameters. Returns the settings that differ from the defaults."""
    if not isinstance(params, dict | None):
        raise ValueError(f"recipe_params={params!r} is not a dict of parameters")
    if as_choice(recipe, "recipe", tuple(RECIPES)) == "ssnmf" and not params:
        return {}
    own = inspect.signature(RECIPES[recipe]).parameters
    name = SPARSE[side]
    allowed = set(own) - set(TABLE) - {"X", "n_components", *SPARSE.values()}
    unknown = set(params or {}) - allowed
    if unknown:
        raise ValueError(f"recipe {recipe} does not accept {sorted(unknown)} in recipe_params, only {sorted(allowed)}")
    needed = {n for n in allowed if own[n].default is inspect.Parameter.empty} - set(params or {})
    if needed:
        raise ValueError(f"recipe {recipe} needs {sorted(needed)}: give them in recipe_params")
    if name not in own and any(level is not None for level in sparsities):
        raise ValueError(f"recipe {recipe} has no {name}: omit sparsities")
    return {"recipe": recipe, "recipe_params": params or {}}


def listed(values: object) -> list[Any]:
    """Several values as a list, or one value as a list of one."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def as_ranks(ranks: int | Iterable[int], name: str = "ranks") -> list[int]:
    """Sorted unique ranks."""
    found = sorted({as_count(rank, name) for rank in listed(ranks)})
    if not found:
        raise ValueError(f"{name} is empty: give at least one rank")
    return found


def as_levels(sparsities: Level | Iterable[Level], name: str = "sparsities") -> tuple[Level, ...]:
    """Unique sparsities from low to high, None first."""
    found = {as_level(value, name) for value in listed(sparsities)}
    if not found:
        raise ValueError(f"{name} is empty: give at least one; None means unconstrained")
    return tuple(sorted(found, key=path_order))


def as_level(value: Any, name: str = "sparsities") -> Level:
    """Validate one sparsity: None, a float, or a (lo, hi) tuple."""
    if value is None:
        return None
    if isinstance(value, list | np.ndarray) and np.ndim(value):
        raise ValueError(f"{name}={value!r}: one sparsity per part does not fit all ranks; an interval is a tuple")
    if not isinstance(value, tuple | numbers.Real):
        raise ValueError(f"{name}={value!r}: give None, numbers, or intervals (lo, hi)")
    (level,) = as_columns(cast(Level, value), 1, name=name)
    return (level.lo, level.hi) if isinstance(level, HoyerBetween) else cast(Hoyer, level).sparsity


def path_order(level: Level) -> tuple[float, float]:
    """Sort key of a sparsity: its lower end, then its upper end; None comes first."""
    lo, hi = (-1.0, -1.0) if level is None else level if isinstance(level, tuple) else (level, level)
    return (0.0 if lo is None else lo), (1.0 if hi is None else hi)


def as_share(value: float) -> float:
    """Validate ``holdout``, strictly between 0 and 1."""
    share = as_amount(value, "holdout", 1)
    if not 0 < share < 1:
        raise ValueError(f"holdout={value!r}: give a share between 0 and 1, such as 0.1")
    return share

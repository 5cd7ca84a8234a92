"""Many fits to the same X, side by side, so that they share passes over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from ..data import at_once
from ..engine.options import TABLE, Keywords
from ..engine.result import Result
from ..engine.validation import as_choice, as_count
from ..runtime.together import job_of, side_by_side
from .registry import RECIPES
from .task import as_matrix


def fit_many(
    X: Any,
    runs: Iterable[Mapping[str, Any]],
    *,
    recipe: str = "ssnmf",
    done: Callable[[int, Result], None] | None = None,
    **shared: Any,
) -> list[Result]:
    """Fit several models to the same X. Each result is that of the recipe alone, up to rounding.

    The fits run side by side, as many as memory allows: one product X·[A₁ … A_B], or one pass over a file, serves all
    of them. A fit that has ended leaves, and the next one joins. Where X cannot be shared (missing entries, Dask), they
    run one after another.

    Parameters
    ----------
    X : matrix
        Whatever the recipe takes.
    runs : iterable of dicts
        The keyword arguments of each fit, n_components among them.
    recipe : str
        A name in `RECIPES`.
    done : callable, optional
        Called with the number of the run and its result when a fit has ended.
    **shared
        Keyword arguments of all fits.

    Returns
    -------
    list of Result
        In the order of ``runs``. After Ctrl-C, running fits end after their iteration, and the list ends early.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((30, 20))
    >>> fits = fit_many(X, [{"n_components": r, "random_state": 0} for r in (2, 3)], max_iter=5)
    >>> [fit.components.shape for fit in fits]
    [(2, 20), (3, 20)]
    """
    start = job_of(RECIPES[as_choice(recipe, "recipe", tuple(RECIPES))])
    options = {name: option.default for name, option in TABLE.items()} | shared
    data = as_matrix(X, cast(Keywords, options))
    listed = [{**shared, **run} for run in runs]
    lacking = [number for number, run in enumerate(listed) if "n_components" not in run]
    if lacking:
        raise ValueError(f"run {lacking[0]} has no n_components: give it in each run, or as a keyword of all")
    ranks = [as_count(run["n_components"], "n_components") for run in listed]
    starts = [partial(start, data, **run) for run in listed]
    return side_by_side(starts, at_once(data, max(ranks, default=1)), done)

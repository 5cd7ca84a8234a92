"""Names of samples and features: where data keep them, and how they are matched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data import frame_values
from ..statistics import Array


class Named(NamedTuple):
    """A matrix without its names, and the names of its samples and features, or None."""

    X: Any
    samples: Array | None
    features: Array | None


def named(X: Any) -> Named:
    """Split X into a matrix and its names: a DataFrame, an AnnData object, a `partwise.io.Table`, or anything else.

    >>> import pandas as pd
    >>> named(pd.DataFrame([[1.0, 2.0]], columns=["a", "b"])).features.tolist()
    ['a', 'b']
    """
    if hasattr(X, "var_names") and hasattr(X, "obs_names"):  # AnnData
        if X.X is None:
            raise ValueError("X is an AnnData object whose .X is None: give one of its layers")
        return Named(X.X, as_names(X.obs_names), as_names(X.var_names))
    if hasattr(X, "feature_names") and hasattr(X, "sample_names"):  # a table that was read from a file
        return Named(X.X, as_names(X.sample_names), as_names(X.feature_names))
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # pandas
        features = as_names(X.columns) if all(isinstance(name, str) for name in X.columns) else None
        samples = as_names(X.index) if all(isinstance(name, str) for name in X.index) else None
        return Named(frame_values(X), samples, features)
    return Named(X, None, None)


def as_names(names: Any) -> Array | None:
    """Names as an array of str; None stays None."""
    return None if names is None else np.array([str(name) for name in names], dtype=object)


def check_unique(names: Sequence[str] | Array | None, what: str, how: str = "") -> None:
    """Raise an error that says ``how`` to help, if a name occurs twice: features could not be matched by name."""
    seen: set[str] = set()
    twice = next((name for name in (() if names is None else names) if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    if twice is not None:
        raise ValueError(
            f"the feature name {twice!r} of {what} occurs more than once: make the names unique{how and f', {how}'}"
        )


def shared_places(first: Array, second: Array) -> tuple[Array, Array]:
    """Where the names that both have are in ``first`` and in ``second``, in the order of ``first``.

    >>> shared_places(np.array(["a", "b", "c"]), np.array(["c", "x", "a"]))
    (array([0, 2]), array([2, 0]))
    """
    for names, whose in ((first, "the model"), (second, "X")):
        check_unique(names, whose)
    places = {name: j for j, name in enumerate(second)}
    here = np.array([i for i, name in enumerate(first) if name in places], dtype=int)
    if not len(here):
        raise ValueError(
            f"the model and X have no feature name in common: the model has {first[0]!r}, …, and X has {second[0]!r}, …"
        )
    return here, np.array([places[first[i]] for i in here], dtype=int)

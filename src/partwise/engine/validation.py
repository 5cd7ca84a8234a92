"""Validation of user input. Every error message says what to do."""

from __future__ import annotations

import inspect
import numbers
import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..data import Chunked, Matrix, Tensor
from ..data.values import scale_limit
from ..projections import Hoyer, HoyerBetween, Method, Nonnegative, Projection
from ..projections.sparsity import as_sparsity, check_method
from ..runtime.arrays import ArrayLike, DType
from ..statistics import Array
from ..updates import Columns, Known
from .options import MISSING, NEGATIVE

OneSparsity: TypeAlias = float | tuple[float | None, float | None] | Projection | None
Sparsity: TypeAlias = OneSparsity | Sequence[OneSparsity] | Array
Penalty: TypeAlias = float | Sequence[float] | Array
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the first line outside of this package and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("partwise", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_names(asked: Iterable[str], names: Sequence[str], of: str) -> None:
    """Raise TypeError if a keyword is not among the ``names`` that a function takes, with the nearest of them."""
    for unknown in sorted(set(asked) - set(names)):
        near = get_close_matches(unknown, names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise TypeError(f"{of} does not take {unknown}{meant}; it takes {', '.join(names)}")


def as_count(value: object, name: str) -> int:
    """Return ``value`` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 1")
    return int(value)


def as_switch(value: object, name: str) -> bool:
    """Return ``value`` as True or False."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise ValueError(f"{name}={value!r}: give True or False")
    return bool(value)


def as_verbosity(value: object) -> bool:
    """Whether ``verbose``, an int of at least 0 or a bool, enables the progress line."""
    if not isinstance(value, numbers.Integral | np.bool_) or value < 0:
        raise ValueError(f"verbose={value!r}: give 0 for no output, or 1 for a progress line")
    return bool(value)


def as_jobs(value: object, name: str) -> int:
    """Return the number of threads or processes. As in joblib, −1 is one per core, −2 one fewer, and so on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 1, or -1 for one per core")
    return int(value) if value > 0 else max((os.cpu_count() or 1) + 1 + int(value), 1)


def as_amount(value: object, name: str, most: float = sys.float_info.max) -> float:
    """Return ``value`` as a float from 0 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= most:
        raise ValueError(
            f"{name}={value!r}: give a number of at least 0" + (f", at most {most:g}" if most <= 1 else "")
        )
    return float(value)


def as_bytes(value: object, name: str) -> int | None:
    """Return a number of bytes, given as a number or as a string such as "500 MB" or "2 GiB"; None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kMGT]?)(i?)B\s*", value)
        if found and found[1].count(".") <= 1 and found[1] != ".":
            return int(float(found[1]) * (1024 if found[3] else 1000) ** " kMGT".index(found[2] or " "))
    elif not isinstance(value, bool) and isinstance(value, int | float | np.number) and 1 <= value < 2**60:
        return int(value)
    raise ValueError(f"{name}={value!r}: give a number of bytes, or a string such as '500 MB' or '2 GiB'")


def as_path(value: object, name: str) -> Path | None:
    """Return ``value`` as a path; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ValueError(f"{name}={value!r}: give the path of a file")
    return Path(value)


def as_auto(value: object, name: str) -> bool:
    """Whether an option is left to the method: "auto" or, what some may write, True."""
    if not isinstance(value, str | bool | np.bool_) or value not in ("auto", True, False):
        raise ValueError(f"{name}={value!r}: give 'auto' or False")
    return bool(value)


def as_choice(value: object, name: str, choices: Sequence[str]) -> Any:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")
    return value


def as_loss(value: object) -> bool:
    """Whether the loss is the Kullback–Leibler divergence."""
    return bool(as_choice(value, "loss", ("squared", "kullback-leibler", "kl")) != "squared")


def as_missing(value: object) -> bool:
    """Whether entries of X may be missing."""
    return bool(as_choice(value, "missing", MISSING) == "em")


def as_signed(value: object) -> bool:
    """Whether entries of X may be negative."""
    return bool(as_choice(value, "negative", NEGATIVE) == "allow")


def as_side(value: object) -> int:
    """The mode of "activations" (0) or "components" (1)."""
    return ("activations", "components").index(as_choice(value, "side", ("activations", "components")))


def as_penalty(value: Penalty, name: str) -> tuple[float, float]:
    """Return a penalty as (on activations, on components). A single number applies to the activations."""
    pair = tuple(value) if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1 else (value, 0.0)
    numeric = [isinstance(p, numbers.Real) and not isinstance(p, bool) and 0 <= float(p) < np.inf for p in pair]
    if len(pair) != 2 or not all(numeric):
        raise ValueError(f"{name}={value!r}: give a number of at least 0, or a pair (on activations, on components)")
    return float(pair[0]), float(pair[1])


def as_penalties(l1: Penalty, l2: Penalty, sets: Sequence[Columns]) -> list[tuple[float, float]]:
    """Return (l1, l2) for each mode. Raises ValueError for a penalty on one side if the other side can grow instead."""
    penalties = list(zip(as_penalty(l1, "l1"), as_penalty(l2, "l2"), strict=True))
    for mode, name in ((0, "activations"), (1, "components")):
        if any(penalties[mode]) and not any(penalties[1 - mode]) and not sets[1 - mode].unit_norm:
            raise ValueError(
                f"a penalty on the {name} alone has no effect if the scale of the other side is free: one side would "
                "shrink and the other grow. Set a sparsity of the other side, which fixes its norm, or penalise it, too"
            )
    return penalties


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return a NumPy Generator, given a random state as in scikit-learn and NumPy."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None:
        return np.random.default_rng(int(np.random.default_rng().integers(2**31)))  # a seed that can be written down
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(f"random_state={random_state!r}: give None, a whole number of at least 0, or a NumPy generator")


def seed_of(rng: np.random.Generator, random_state: Seed) -> int | None:
    """The seed of ``rng``; None if ``random_state`` was a generator, which may have been used before."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return None
    return int(rng.bit_generator.seed_seq.entropy)  # type: ignore[attr-defined]


def as_columns(sparsity: Sparsity, r: int, method: Method = "fast", name: str = "sparsity") -> Columns:
    """Return the sets for a requested ``sparsity``, one for each of ``r`` columns.

    None is y ≥ 0. A number or a tuple (lo, hi) applies to all columns. A list or array has one entry for each column: a
    number, a pair, or None (unit norm, any sparsity).
    """
    check_method(method, "projection")
    if sparsity is None:
        return Columns.same(Nonnegative(), r)
    if isinstance(sparsity, list) or (isinstance(sparsity, np.ndarray) and sparsity.ndim):
        if len(sparsity) != r:
            raise ValueError(f"{name} has {len(sparsity)} values for n_components={r}: give one for each component")
        return Columns(tuple(_as_set(s, method, f"{name}[{j}]") for j, s in enumerate(sparsity)))
    return Columns.same(_as_set(sparsity, method, name), r)


def one_sided(activation_sparsity: Sparsity, sparsity: Sparsity, r: int, method: Method) -> list[Columns]:
    """Return the sets of activations and components, at most one of which has a sparsity."""
    if sparsity is not None and activation_sparsity is not None:
        raise ValueError(
            f"sparsity={sparsity!r} and activation_sparsity={activation_sparsity!r} are both given, but only one side "
            "can have unit norm; to constrain both sides, use recipe bisparse, which has a scale between them"
        )
    return [as_columns(activation_sparsity, r, method, "activation_sparsity"), as_columns(sparsity, r, method)]


def _as_set(value: object, method: Method, name: str) -> Projection:
    if isinstance(value, Projection) and not isinstance(value, type):
        return _own_set(value, name)
    if value is None:
        return HoyerBetween(None, None, method)
    if isinstance(value, tuple | list | np.ndarray) and np.ndim(value):
        if len(value) != 2:
            raise ValueError(
                f"{name}={value!r} has {len(value)} values: give an interval (lo, hi), or a list with one entry for "
                "each component"
            )
        lo, hi = value
        lo, hi = (None if end is None else as_sparsity(end, name) for end in (lo, hi))
        if lo is not None and hi is not None and lo > hi:
            raise ValueError(f"{name}=({lo:g}, {hi:g}) has lo > hi: give ({hi:g}, {lo:g})")
        return HoyerBetween(lo, hi, method)
    return Hoyer(as_sparsity(value.item() if isinstance(value, np.ndarray) else value, name), method)


def _own_set(value: Projection, name: str) -> Projection:
    """Return a user's set after checking that it can be called as set(b, near=None)."""
    try:
        inspect.signature(value).bind(None, near=None)
    except TypeError:
        raise ValueError(
            f"{name}={value!r} is neither a sparsity nor a set: give a number in [0, 1], a pair (lo, hi), a list of "
            "these, or a set that is called as set(b, near=None)"
        ) from None
    except ValueError:  # compiled code may have no signature
        pass
    return value


def as_known(
    value: ArrayLike | None, r: int, length: int, name: str, dtype: DType, data: Matrix | Chunked | Tensor | None = None
) -> Known | None:
    """Return the known rows of ``value``, which has a row for each of the first components. Rows of NaN are free.

    Their scale is checked against that of ``data``, because the other factor carries the ratio of the two.
    """
    if value is None:
        return None
    given = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    side = "row" if name == "fixed_components" else "column"
    rows = given if side == "row" or given.ndim != 2 else given.T
    if rows.ndim != 2 or rows.dtype.kind not in "buif" or rows.shape[1] != length:
        raise ValueError(
            f"{name} has shape {given.shape}: give one {side} of {length} numbers for each known component"
        )
    if len(rows) > r:
        raise ValueError(f"{name} has {len(rows)} {side}s for n_components={r}: raise n_components, or remove {side}s")
    which = np.flatnonzero(~np.isnan(rows).all(axis=1))
    for j in which.tolist():
        if np.isnan(rows[j]).any():
            raise ValueError(f"{side} {j} of {name} has some NaN: give all of its values, or set all of them to NaN")
        if not (np.isfinite(rows[j]).all() and rows[j].min() >= 0):
            raise ValueError(
                f"{side} {j} of {name} has negative or infinite values: values must be finite and nonnegative"
            )
        if not rows[j].any():
            raise ValueError(f"{side} {j} of {name} is all zero: remove it, or set it to NaN to learn it")
        if data is not None:
            limit, peak, top = scale_limit(dtype), data.peak or 1.0, float(rows[j].max())
            low, high = max(1, peak) / limit, min(1, peak) * limit
            if not low <= top <= high:
                raise ValueError(
                    f"{side} {j} of {name} has the largest value {top:g}, outside the range {low:.0e} to {high:.0e} "
                    f"that is safe in {dtype} beside this X: rescale it"
                )
    return Known(tuple(which.tolist()), rows[which].T.astype(dtype, order="F")) if which.size else None

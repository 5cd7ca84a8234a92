"""What users ask for, checked and turned into what the library works with. Every message says what to do."""

from __future__ import annotations

import inspect
import numbers
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..projections import FreeNorm, Hoyer, HoyerBetween, Method, Nonnegative, Projection
from ..projections.sets import as_sparsity, check_method, l1_norm
from ..statistics import Array
from ..updates import Columns, Known


class CapacityWarning(UserWarning):
    """The parts asked for are too small to cover the features of X."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside of this package and of scikit-learn: the user's own."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("partwise", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def as_count(value: Any, name: str) -> int:
    """``value`` as a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name}={value!r}: give a whole number of at least 1")
    return int(value)


def as_switch(value: Any, name: str) -> bool:
    """``value`` as True or False."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise ValueError(f"{name}={value!r}: give True or False")
    return bool(value)


def as_verbosity(value: Any) -> bool:
    """Whether ``verbose`` asks for a line: a whole number of at least 0, or True or False."""
    if not isinstance(value, numbers.Integral | np.bool_) or value < 0:
        raise ValueError(f"verbose={value!r}: give 0 for silence, or 1 for a progress line")
    return bool(value)


def as_jobs(value: Any, name: str) -> int:
    """A number of threads or processes: at least 1, or −1 for one on each core, −2 for one fewer, …, as in joblib."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0:
        raise ValueError(f"{name}={value!r}: give a whole number, or -1 for one on each core")
    return int(value) if value > 0 else max((os.cpu_count() or 1) + 1 + int(value), 1)


def as_amount(value: Any, name: str, most: float = sys.float_info.max) -> float:
    """``value`` as a number of at least 0, and at most ``most``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= most:
        raise ValueError(
            f"{name}={value!r}: give a number of at least 0" + (f", at most {most:g}" if most <= 1 else "")
        )
    return float(value)


def as_bytes(value: Any, name: str) -> int | None:
    """``value`` as a number of bytes: a whole number, or a text such as "500 MB" or "2 GiB"; None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kMGT]?)(i?)B\s*", value)
        if found and found[1].count(".") <= 1 and found[1] != ".":
            return int(float(found[1]) * (1024 if found[3] else 1000) ** " kMGT".index(found[2] or " "))
    elif not isinstance(value, bool) and isinstance(value, int | float | np.number) and 1 <= value < 2**60:
        return int(value)
    raise ValueError(f"{name}={value!r}: give a number of bytes, or a text such as '500 MB' or '2 GiB'")


def as_path(value: Any, name: str) -> Path | None:
    """``value`` as a path; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ValueError(f"{name}={value!r}: give the path of a file")
    return Path(value)


def as_choice(value: Any, name: str, choices: Sequence[str]) -> Any:
    """``value``, one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")
    return value


def as_side(value: Any) -> int:
    """The mode of "activations" (0) or "components" (1)."""
    return ("activations", "components").index(as_choice(value, "side", ("activations", "components")))


def as_penalty(value: Any, name: str) -> tuple[float, float]:
    """A penalty (on activations, on components); one number is meant for the activations."""
    pair = tuple(value) if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1 else (value, 0.0)
    numeric = [isinstance(p, numbers.Real) and not isinstance(p, bool) and 0 <= float(p) < np.inf for p in pair]
    if len(pair) != 2 or not all(numeric):
        raise ValueError(f"{name}={value!r}: give a number of at least 0, or a pair (on activations, on components)")
    return float(pair[0]), float(pair[1])


def as_penalties(l1: Any, l2: Any, sets: Sequence[Columns]) -> list[tuple[float, float]]:
    """(l1, l2) for each mode; refused on one side alone where the other side could grow instead."""
    penalties = list(zip(as_penalty(l1, "l1"), as_penalty(l2, "l2"), strict=True))
    for mode, name in ((0, "activations"), (1, "components")):
        if any(penalties[mode]) and not any(penalties[1 - mode]) and not sets[1 - mode].unit_norm:
            raise ValueError(
                f"a penalty on the {name} alone means nothing while the other side's scale is free: it would shrink "
                "the one and grow the other. Give the other side a sparsity (which fixes its norm) or a penalty too"
            )
    return penalties


def as_generator(random_state: Any) -> np.random.Generator:
    """A random generator from what scikit-learn and NumPy call a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(f"random_state={random_state!r}: give None, a whole number of at least 0, or a NumPy generator")


def as_columns(sparsity: Any, r: int, method: Method = "fast", name: str = "sparsity") -> Columns:
    """The sets that a ``sparsity`` asks for, one for each of ``r`` columns.

    None: y ≥ 0. A number or a tuple (lo, hi): the same for all. A list or array: one entry for each column, each a
    number, a pair, or None (unit norm, any sparsity).
    """
    check_method(method, "projection")
    if sparsity is None:
        return Columns.same(Nonnegative(), r)
    if isinstance(sparsity, list) or (isinstance(sparsity, np.ndarray) and sparsity.ndim):
        if len(sparsity) != r:
            raise ValueError(f"{name} has {len(sparsity)} values for n_components={r}: give one for each part")
        return Columns(tuple(_as_set(s, method, f"{name}[{j}]") for j, s in enumerate(sparsity)))
    return Columns.same(_as_set(sparsity, method, name), r)


def one_sided(activation_sparsity: Any, sparsity: Any, r: int, method: Method) -> list[Columns]:
    """The sets of activations and components, at most one of them with a sparsity."""
    if sparsity is not None and activation_sparsity is not None:
        raise ValueError(
            f"sparsity={sparsity!r} and activation_sparsity={activation_sparsity!r} are both given: with unit norms on "
            "both sides activations·components has no scale left; take bisparse, which puts a scale between them"
        )
    return [as_columns(activation_sparsity, r, method, "activation_sparsity"), as_columns(sparsity, r, method)]


def _as_set(value: Any, method: Method, name: str) -> Projection:
    if isinstance(value, Projection) and not isinstance(value, type):
        return _own_set(value, name)
    if value is None:
        return HoyerBetween(None, None, method)
    if isinstance(value, tuple | list | np.ndarray) and np.ndim(value):
        if len(value) != 2:
            raise ValueError(
                f"{name}={value!r}: an interval is a pair (lo, hi); one entry for each part goes in a list"
            )
        lo, hi = value
        lo, hi = (None if end is None else as_sparsity(end, name) for end in (lo, hi))
        if lo is not None and hi is not None and lo > hi:
            raise ValueError(f"{name}=({lo:g}, {hi:g}) is the wrong way round: give ({hi:g}, {lo:g})")
        return HoyerBetween(lo, hi, method)
    return Hoyer(as_sparsity(value.item() if isinstance(value, np.ndarray) else value, name), method)


def _own_set(value: Projection, name: str) -> Projection:
    """A set, found to be called as sets are: a function of something else is not meant."""
    try:
        inspect.signature(value).bind(None, near=None)
    except TypeError:
        raise ValueError(
            f"{name}={value!r} is neither a sparsity nor a set: give a number in [0, 1], a pair (lo, hi), a list of "
            "these, or a set that is called as set(b, near=None)"
        ) from None
    except ValueError:  # compiled code may not say how it is called
        pass
    return value


def as_known(value: Any, r: int, length: int, name: str, dtype: np.dtype[Any]) -> Known | None:
    """The rows of ``value`` (one for each of the first components) that are known; rows of NaN are free."""
    if value is None:
        return None
    rows = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    side = "row" if name == "fixed_components" else "column"
    rows = rows if side == "row" or rows.ndim != 2 else rows.T
    if rows.ndim != 2 or rows.dtype.kind not in "buif" or rows.shape[1] != length:
        raise ValueError(f"{name} has shape {np.shape(value)}: give one {side} of {length} numbers for each known part")
    if len(rows) > r:
        raise ValueError(f"{name} has {len(rows)} {side}s for n_components={r}: raise n_components, or give fewer")
    which = np.flatnonzero(~np.isnan(rows).all(axis=1))
    for j in which.tolist():
        if np.isnan(rows[j]).any():
            raise ValueError(f"{side} {j} of {name} has NaN among its values: a {side} is known, or all of it is NaN")
        if not (np.isfinite(rows[j]).all() and rows[j].min() >= 0):
            raise ValueError(f"{side} {j} of {name} has negative or infinite values: give nonnegative ones")
        if not rows[j].any():
            raise ValueError(f"{side} {j} of {name} is all zero, which can explain nothing: leave it out, or give NaN")
    return Known(tuple(which.tolist()), rows[which].T.astype(dtype, order="F")) if which.size else None


def warn_of_capacity(sets: Columns, data: Data, mode: int = 1) -> None:
    """Warn where the parts' effective sizes add up to less than the features that are not zero everywhere.

    A vector's effective size is (‖·‖₁/‖·‖₂)²: of d equal entries it is d, and entries that are small beside the others
    hardly count. Of a part it is k². Whether the parts can make up X nevertheless, since some of its features are small
    (a window leaks into all frequencies, a mask is loose), a theorem tells, and the warning with it. Let a be the norms
    of X's features. If X = activations·components, all nonnegative and components of unit norm, then Σ_j a_j ≤ Σ_i w_i
    k_i and ‖X‖² ≥ Σ_i w_i², w_i being the norms of the activations, so that by Cauchy and Schwarz the effective size of
    a is at most Σ_i k_i². Where it is more, X differs from every model by as much as a from the nearest such vector.
    """
    m, features = data.shape[mode], "features" if len(data.shape) == 2 else f"slices of mode {mode}"
    sizes = [s.l1_range(m)[1] ** 2 for s in sets if isinstance(s, Hoyer | HoyerBetween)]
    if len(sizes) < len(sets):
        return
    capacity = sum(sizes)
    norms = np.sqrt(data.sqnorms(mode)) if capacity < m else np.zeros(0)
    used, size = np.count_nonzero(norms), effective_size(norms)
    if capacity >= used:
        return
    verdict = "so they cannot cover X evenly, though they may cover what is large in it"
    if capacity < size:
        enough = FreeNorm(HoyerBetween((np.sqrt(m) - np.sqrt(capacity)) / (np.sqrt(m) - 1), None))
        least = float(np.linalg.norm(norms - enough(norms)) / np.linalg.norm(norms))
        error = f", and the relative error is at least {least:.2f}" if data.complete else ""
        verdict = f"so no such parts make up X{error}"
    even = max(1 - (np.sqrt(used / len(sets)) - 1) / (l1_norm(0.0, m) - 1), 0)
    warn_user(
        f"{len(sets)} parts of these sparsities have an effective size of {capacity:.0f} {features} in all, and X has "
        f"{used} {features} that are not zero (of {m}; their effective size is {size:.0f}), {verdict}. Ask for more "
        f"parts, or for a sparsity of at most {np.floor(100 * even) / 100:.2f}",
        CapacityWarning,
    )


def effective_size(vector: Array) -> float:
    """(‖·‖₁/‖·‖₂)²: how many equal entries would be as many. That of zero is 0."""
    square = float(vector @ vector)
    return float(vector.sum()) ** 2 / square if square > 0 else 0.0

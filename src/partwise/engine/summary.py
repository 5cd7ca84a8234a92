"""The summary of a fit: of a `Result`, a fitted estimator, or an array of components.

Plots, reports, notebooks and the command line read fits through `Summary`.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..projections import Hoyer, HoyerBetween, hoyer_sparsity
from ..statistics import Array
from .metrics import specificity
from .origins import Origin
from .validation import Sparsity, as_columns, as_count


class Names(Protocol):
    """One name for each feature or sample: a list, an array, or anything that can be indexed."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> object: ...


class FittedEstimator(Protocol):
    """A fitted estimator, as type checkers see it."""

    components_: Array


class HasComponents(Protocol):
    """A `Result` or a `Summary`, as type checkers see it."""

    @property
    def components(self) -> Array: ...


Model: TypeAlias = FittedEstimator | HasComponents | npt.ArrayLike


@dataclass(frozen=True)
class Summary:
    """The summary of a fit. Unknown values are None.

    ``asked`` has a row (lo, hi) with the requested sparsity of each component, nan if there is none. ``explained`` is
    the share of ‖X‖² that each component explains, and ``explained_in_all`` their sum, 1 − ``relative_error``².
    """

    components: Array
    sparsity: Array
    n_samples: int | None = None
    activations: Any = None
    asked: Array | None = None
    asked_in_words: str | None = None
    explained: Array | None = None
    relative_error: float | None = None
    losses: Array | None = None
    loss: str = "squared"
    times: Array | None = None
    n_iter: int | None = None
    stop_reason: str | None = None
    method: str | None = None
    shape: tuple[int, ...] | None = None
    mask: Array | None = None
    feature_names: Names | None = None
    sample_names: Names | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if self.activations is not None and np.shape(self.activations)[1:] != (self.n_components,):
            raise ValueError(
                f"activations have shape {np.shape(self.activations)}: give samples × {self.n_components} components"
            )
        for names, kind, count in (
            (self.feature_names, "feature", self.n_features),
            (self.sample_names, "sample", None if self.activations is None else len(self.activations)),
        ):
            if names is not None and count is not None and len(names) != count:
                raise ValueError(f"{len(names)} {kind} names for {count} {kind}s: give one for each")

    @property
    def n_components(self) -> int:
        """The number of components."""
        return len(self.components)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.components.shape[1])

    @property
    def loss_in_words(self) -> str:
        """The loss, as a label."""
        return "½‖X − model‖²" if self.loss == "squared" else "Kullback–Leibler divergence"

    @property
    def explained_in_all(self) -> float | None:
        """The share of ‖X‖² that the model explains."""
        return None if self.relative_error is None else 1 - self.relative_error**2

    def facts(self) -> dict[str, str]:
        """The fit in a few lines: names and values as text, without unknown ones."""
        samples = "" if self.n_samples is None else f"{self.n_samples} sample{'' if self.n_samples == 1 else 's'} × "
        facts = {
            "data": f"{samples}{self.n_features} features",
            "components": str(self.n_components),
            "method": self.method,
            "loss": None if self.loss == "squared" else self.loss_in_words,
            "requested sparsity": self.asked_in_words,
            "achieved sparsity": between(self.sparsity),
            "relative error": None if self.relative_error is None else f"{self.relative_error:.4g}",
            "explained share": None if self.explained_in_all is None else percent(self.explained_in_all),
            "iterations": None if self.n_iter is None else str(self.n_iter),
            "stop reason": self.stop_reason,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}

    def to_html(self) -> str:
        """`facts` as a small table, for notebooks."""
        rows = (
            f'<tr><th style="text-align: left; font-weight: normal; opacity: 0.7">{html.escape(name)}</th>'
            f'<td style="text-align: left">{html.escape(fact)}</td></tr>'
            for name, fact in self.facts().items()
        )
        return f'<table class="partwise">{"".join(rows)}</table>'

    def strongest_features(self, part: int, top: int = 5) -> list[tuple[str, float]]:
        """The strongest features of a component as (name, weight), without zeros.

        If names are known, these are the most specific ones (`specificity`), best first: words or genes that all
        components share say nothing about one. Otherwise those with the largest weights.
        """
        weights = self.components[part]
        if self.feature_names is None:
            return strongest(weights, None, "feature", top)
        which = np.flatnonzero(weights > 0)
        order = which[np.lexsort((-weights[which], -self.specificity[part][which]))][:top]
        return [(str(self.feature_names[i]), float(weights[i])) for i in order]

    @cached_property
    def specificity(self) -> Array:
        """How specific each feature is to each component."""
        return specificity(self.components)

    def strongest_samples(self, part: int, top: int = 5) -> list[tuple[str, float]]:
        """The samples with the largest activations of a component as (name, activation); empty if unknown."""
        if self.activations is None:
            return []
        return strongest(np.asarray(self.activations[:, part]), self.sample_names, "sample", top)


def summary(model: Model) -> Summary:
    """Summarise ``model``: a `Result`, a fitted estimator, or an array of components (r × features).

    >>> found = summary([[3.0, 0.0, 4.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> found.n_components, found.sparsity.round(3), found.strongest_features(0)
    (2, array([0.6, 1. ]), [('feature 2', 4.0), ('feature 0', 3.0)])
    """
    if isinstance(model, Summary):
        return model
    if hasattr(model, "components_"):
        return _of_estimator(model)
    if hasattr(model, "factors") and hasattr(model, "components"):
        return _of_result(model)
    for name in ("factors", "factors_"):
        if hasattr(model, name):
            raise ValueError(
                f"this {type(model).__name__} is of a tensor, whose components are not rows: give the transposed "
                f"factor of one mode ({name}[mode].T)"
            )
    parts = as_matrix(model)
    return Summary(parts, np.asarray(hoyer_sparsity(parts, axis=1)))


def _of_result(result: Any) -> Summary:
    same = ("sparsity", "activations", "losses", "loss", "times", "n_iter", "stop_reason")
    return Summary(
        as_matrix(result.components),
        n_samples=len(result.activations),
        relative_error=float(result.relative_error),
        **{name: getattr(result, name) for name in same},
    )


def _of_estimator(model: Any) -> Summary:
    parts = as_matrix(model.components_)
    explained, recipe = getattr(model, "explained_", None), getattr(model, "recipe", None)
    sparsity = getattr(model, "sparsity", None)
    if recipe == "grouped":
        asked, words = None, f"{sparsity:g} on average"
    else:
        asked = asked_intervals(sparsity, len(parts))
        words = in_words(asked)
    shape, origin = getattr(model, "part_shape_", None), getattr(model, "origin_", None)
    return Summary(
        parts,
        np.asarray(hoyer_sparsity(parts, axis=1)),
        n_samples=getattr(model, "data_shape_", (None,))[0],
        activations=getattr(model, "activations_", None),
        asked=asked,
        asked_in_words=words,
        explained=explained,
        relative_error=None if explained is None else error_of(explained, getattr(model, "reconstruction_err_", None)),
        losses=getattr(model, "loss_curve_", None),
        loss=getattr(model, "loss", "squared"),
        times=getattr(model, "time_curve_", None),
        n_iter=getattr(model, "n_iter_", None),
        stop_reason=getattr(model, "stop_reason_", None),
        method=type(model).__name__ + (f", recipe {recipe}" if recipe else ""),
        shape=None if shape is None else tuple(shape),
        mask=getattr(model, "part_mask_", None),
        feature_names=getattr(model, "feature_names_in_", getattr(origin, "feature_names", None)),
        sample_names=getattr(model, "sample_names_", None),
        origin=origin,
    )


def as_matrix(values: Any, name: str = "components", form: str = "components × features") -> Array:
    """Validate ``values``, which the user knows by ``name``, and return them as an array, finite and nonnegative."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if hasattr(values, "fit"):
        raise ValueError(f"this {type(values).__name__} is not fitted: call fit first")
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} are of type {type(values).__name__}: give a Result, a model, or an array of numbers")
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{name} have shape {array.shape}: give {form}")
    if not np.isfinite(array).all() or array.min() < 0:
        worst = array[~(array >= 0) | ~np.isfinite(array)][0]
        raise ValueError(f"{name} contain {worst}: they must be finite and nonnegative")
    return array if array.dtype.kind == "f" else array.astype(float)


def asked_intervals(sparsity: Sparsity, r: int) -> Array | None:
    """The requested sparsity of ``r`` components, a row (lo, hi) for each, nan if there is none; None if all are nan.

    >>> asked_intervals([0.5, (None, 0.4)], 2)
    array([[0.5, 0.5], [0. , 0.4]])
    """
    intervals = np.full((r, 2), np.nan)
    for j, one in enumerate(as_columns(sparsity, as_count(r, "r"))):
        if isinstance(one, Hoyer):
            intervals[j] = one.sparsity
        elif isinstance(one, HoyerBetween) and (one.lo, one.hi) != (None, None):
            intervals[j] = one.lo or 0.0, 1.0 if one.hi is None else one.hi
    return None if np.isnan(intervals).all() else intervals


def in_words(asked: Array | None) -> str:
    """Describe the requested sparsities in words.

    >>> in_words(asked_intervals(0.7, 3)), in_words(asked_intervals([0.5, (0.2, 0.4)], 2))
    ('0.7', 'between 0.2 and 0.5, one for each component')
    """
    if asked is None:
        return "no constraint"
    each = len({tuple(row) for row in asked.tolist() if row[0] == row[0]}) > 1 or bool(np.isnan(asked).any())
    return between(asked) + (", one for each component" if each else "")


def between(values: Array) -> str:
    """The smallest and the largest value in words, without nan; one number if they differ only by rounding."""
    known = values[~np.isnan(values)]
    if not known.size:
        return "none: all components are zero"
    lo, hi = float(known.min()), float(known.max())
    return f"{lo:.4g}" if hi - lo < 1e-6 else f"between {lo:.4g} and {hi:.4g}"


def percent(share: float) -> str:
    """A share in percent. Shares below 1 are never rounded up to 100 %."""
    return f"{100 * share:.1f} %" if share <= 0.9995 else f"{np.floor(1e6 * share) / 1e4:.6g} %"


def strongest(values: Array, names: Names | None, kind: str, top: int) -> list[tuple[str, float]]:
    """The ``top`` largest positive values with their names, largest first."""
    top = min(top, len(values))
    order = np.argpartition(-values, top - 1)[:top] if top < len(values) else np.arange(len(values))
    order = order[np.argsort(-values[order], kind="stable")]
    return [(f"{kind} {i}" if names is None else str(names[i]), float(values[i])) for i in order if values[i] > 0]


def error_of(explained: Array, distance: float | None) -> float:
    """The relative error, given what each component explains; 0 if the model is exact, as for an X of zeros."""
    return 0.0 if distance == 0 else float(np.sqrt(max(1 - float(np.sum(explained)), 0.0)))

"""The consensus of one rank: components that recur over the runs, and their activations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Chunked, Matrix
from ..engine.metrics import specificity
from ..engine.solving import solve_activations
from ..engine.summary import summary
from ..engine.validation import as_columns, as_count
from ..projections import AtMost
from ..statistics import Array, as_factor
from .clustering import (
    check_kept,
    clustered,
    distances_between,
    local_density,
    medians,
    neighbours,
    silhouettes,
    unit_rows,
)

Shape = AtMost | float | tuple[float | None, float | None] | None  # what the components are projected to


@dataclass(frozen=True, repr=False)
class Programs:
    """Components that recur over many runs, from `Consensus.at`.

    Attributes
    ----------
    components : array of shape (rank, features)
        The median of each cluster, projected to the requested sparsity if any (within its support where possible),
        with unit norm. Ordered by their share of the activations, largest first.
    activations : array of shape (samples, rank)
        The exact nonnegative least squares solution for these components, or that which minimises the divergence.
    density : array of shape (n_runs · rank,)
        Mean distance of each component of each run to its nearest neighbours, run by run.
    labels : array of shape (n_runs · rank,)
        The program that each of them belongs to; −1 if it was left out as isolated.
    runs_kept : array of shape (rank,)
        The number of runs in which each program was found.
    stability : float
        Mean silhouette of the clusters; nan for a single one.
    relative_error : float
        ‖X − activations · components‖ / ‖X‖; with the divergence, as `Result.relative_error`.
    explained : array of shape (rank,)
        Share of ‖X‖² that each program explains.
    specificity : array of shape (rank, features)
        See `partwise.specificity`.
    """

    rank: int
    components: Array
    activations: Array
    density: Array
    labels: Array
    density_threshold: float
    stability: float
    relative_error: float
    explained: Array
    loss: str = "squared"
    sparsity: Shape = None
    feature_names: Array | None = None
    sample_names: Array | None = None
    clusters: Array | None = None  # the k-means cluster of each program
    spectra: Array | None = None  # unit components of all runs, for the clustergram
    missing: str = "error"  # whether the samples may have missing entries, as in `partwise.SparseNMF`
    negative: str = "error"

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.density) // self.rank

    @property
    def kept(self) -> Array:
        """True for the components of runs that are below the density threshold."""
        return self.labels >= 0

    @property
    def runs_kept(self) -> Array:
        """The number of runs in which each program was found."""
        run = np.arange(len(self.labels)) // self.rank
        return np.array([len(np.unique(run[self.labels == j])) for j in range(self.rank)])

    @cached_property
    def specificity(self) -> Array:
        """How specific each feature is to each program."""
        return specificity(self.components)

    def features(self, program: int, top: int | None = None) -> Any:
        """The features of a program: its support, with weights.

        Parameters
        ----------
        program : int
        top : int, optional
            Only the first ones. By default all features whose weight is not zero.

        Returns
        -------
        DataFrame
            A row per feature, by name if names are known, with ``weight`` and ``specificity``; most specific first if
            names are known, otherwise in order of the weights.
        """
        import pandas as pd

        if not isinstance(program, int | np.integer) or not -self.rank <= program < self.rank:
            raise ValueError(f"program={program!r}: give a number from 0 to {self.rank - 1}")
        top = None if top is None else as_count(top, "top")
        weight, specific = self.components[program], self.specificity[program]
        which = np.flatnonzero(weight)
        keys = (weight[which], specific[which]) if self.feature_names is not None else (weight[which],)
        which = which[np.lexsort(keys)[::-1]][:top]
        names = which if self.feature_names is None else self.feature_names[which]
        return pd.DataFrame({"weight": weight[which], "specificity": specific[which]}, index=pd.Index(names))

    @cached_property
    def model(self) -> Any:
        """The programs as a fitted `partwise.SparseNMF`, which transforms new samples, and can be saved and drawn."""
        options = {"sparsity": self.sparsity, "loss": self.loss, "missing": self.missing, "negative": self.negative}
        model = as_model(self.components, self.feature_names, **options)
        model.data_shape_ = (len(self.activations), self.components.shape[1])
        model.explained_ = self.explained
        model.stop_reason_ = self.in_words()
        names = None if self.sample_names is None else list(self.sample_names)
        return model.keep(activations=self.activations, sample_names=names)

    def transform(self, X: Any, **options: Any) -> Array:
        """Activations of new samples, as `SparseNMF.transform`: ``align="names"`` uses the features that both have."""
        return self.model.transform(X, **options)  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the programs as a model for `partwise.load`, with activations and names."""
        self.model.save(path)

    def plot(self, **options: Any) -> Any:
        """Draw the clustergram of the components of all runs, with a histogram of their local density."""
        from ..plotting import clustergram

        return clustergram(self, **options)

    def in_words(self) -> str:
        """One sentence about the runs."""
        return (
            f"consensus of {self.n_runs} runs: {np.count_nonzero(self.kept)} of {len(self.kept)} components are kept "
            f"(density_threshold={self.density_threshold:g})"
        )

    def __repr__(self) -> str:
        known = summary(self.model)
        share = "share of ‖X‖²" if self.loss == "squared" else "explained"
        lines = [f"{self.rank} programs, {self.in_words()}", f"program  {share:>13}  runs  strongest features"]
        for j in range(self.rank):
            names = ", ".join(name for name, _ in known.strongest_features(j))
            lines.append(f"{j:7}  {self.explained[j]:13.1%}  {self.runs_kept[j]:4}  {names}")
        return "\n".join(lines)


def as_model(components: Array, names: Array | None, **options: Any) -> Any:
    """A fitted `partwise.SparseNMF` with these components."""
    from ..estimators import SparseNMF  # on the same floor

    model = SparseNMF(len(components), **options)
    model._store_parts(components)
    model.n_features_in_ = components.shape[1]
    if names is not None:
        model.feature_names_in_ = names
    return model


def assemble(
    data: Matrix | Chunked,
    spectra: Array,
    rank: int,
    threshold: float,
    size: float,
    sparsity: Shape,
    names: Sequence[Array | None] = (None, None),
) -> Programs:
    """Build the consensus of one rank from the stacked components of its runs."""
    unit = unit_rows(spectra)
    distances = distances_between(unit)
    density = local_density(unit, distances, neighbours(size, len(unit), rank))
    check_kept(density, threshold, rank)
    kept = density < threshold
    some = unit if kept.all() else unit[kept]
    distances = distances[np.ix_(kept, kept)]
    labels = clustered(some, distances, rank)
    stability = float(silhouettes(distances, labels).mean())
    parts = projected(medians(some, labels, rank), sparsity)
    solved = solve_activations(data, as_factor(parts.T))
    activations = np.asarray(solved.activations)
    order = np.argsort(-shares(activations, parts), kind="stable")
    everywhere = np.full(len(unit), -1)
    everywhere[kept] = np.argsort(order)[labels]
    return Programs(
        rank,
        parts[order],
        np.ascontiguousarray(activations[:, order]),
        density,
        everywhere,
        threshold,
        stability,
        solved.relative_error,
        solved.explained[order],
        "squared" if data.squared else "kullback-leibler",
        sparsity,
        names[1],
        names[0],
        order,
        unit,
        "error" if data.complete else "em",
        "allow" if data.signed else "error",
    )


def projected(parts: Array, sparsity: Shape) -> Array:
    """The nearest components of the requested sparsity, with unit norm.

    A median that is slightly too sparse would get a tiny weight everywhere. Features without a weight therefore get one
    only if the others cannot reach the sparsity.
    """
    if sparsity is None:
        return unit_rows(parts)
    sets = as_columns(sparsity, len(parts))  # type: ignore[arg-type]
    inside = np.where(parts > 0, parts, -1.0)
    return unit_rows(np.ascontiguousarray(sets.project(as_factor(inside.T)).T))


def shares(activations: Array, parts: Array) -> Array:
    """The mean share of each component in a sample, where components are scaled to sum 1, as in cNMF."""
    usage = activations * parts.sum(axis=1)
    total = usage.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(usage, total, out=np.zeros_like(usage), where=total > 0).mean(axis=0))

"""The result of a consensus: stability and error of each rank, and the runs behind them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Chunked, Matrix, as_data, with_divergence
from ..engine.names import as_names, named
from ..engine.validation import as_amount, as_count
from ..projections import AtMost
from ..runtime.packing import unpacked
from ..runtime.untrusted import UnreadableError
from ..statistics import Array
from .clustering import as_threshold
from .connectivity import Connectivity, connectivity
from .programs import Programs, Shape, assemble
from .runs import Runs, read_runs, write_runs

NO_FILTER = np.inf
HEADINGS = {
    "rank": "rank",
    "stability": "stability",
    "error": "error",
    "heldout_error": "held-out error",
    "converged": "runs converged",
}


@dataclass(frozen=True, repr=False)
class Consensus:
    """Runs of several ranks, from `partwise.consensus`. `at` gives the components that recur at one rank.

    Attributes
    ----------
    ranks : list of int
    spectra : dict
        For each rank, the components of all its runs: an array of shape (n_runs · rank, features), run by run.
    rows : list of dict
        One per rank: ``stability`` is the mean silhouette of the clusters over all runs (nan for rank 1), ``error`` is
        ‖X − model‖ / ‖X‖ for the medians of the clusters (with the Kullback–Leibler divergence, as
        `Result.relative_error`), ``heldout_error`` is None unless asked for, and ``converged`` of ``n_runs`` runs have
        converged.
    """

    spectra: Mapping[int, Array]
    rows: list[dict[str, Any]]
    sparsity: Shape = None
    feature_names: Array | None = None
    sample_names: Array | None = None
    runs: Runs | None = field(default=None, repr=False)
    data: Matrix | Chunked | None = field(default=None, repr=False)

    @property
    def ranks(self) -> list[int]:
        """The ranks, in increasing order."""
        return sorted(self.spectra)

    @cached_property
    def table(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def at(
        self,
        rank: int,
        density_threshold: float = 0.5,
        *,
        local_neighborhood_size: float = 0.3,
        X: Any = None,
    ) -> Programs:
        """The components that recur over the runs of one rank.

        The components of all runs are scaled to unit norm. Those whose mean distance to their nearest neighbours is
        at least ``density_threshold`` are isolated and left out. The others are clustered by k-means. The median of
        each cluster is projected to the sparsity, if any, and the activations are solved for exactly.

        Parameters
        ----------
        rank : int
        density_threshold : float
            Distances lie between 0 (the same) and 2. 2 keeps all.
        local_neighborhood_size : float
            Number of nearest neighbours, as a share of the runs.
        X : optional
            The data; needed only if the consensus was loaded from a file.

        Returns
        -------
        Programs
        """
        rank = as_count(rank, "rank")
        if rank not in self.spectra:
            raise ValueError(f"rank={rank} was not fitted; ranks are {', '.join(map(str, self.ranks))}")
        threshold = as_threshold(density_threshold)
        size = as_amount(local_neighborhood_size, "local_neighborhood_size", 1)
        names = (self.sample_names, self.feature_names)
        return assemble(self._data(X), self.spectra[rank], rank, threshold, size, self.sparsity, names)

    def connectivity(self, rank: int, *, X: Any = None) -> Connectivity:
        """How often two samples fall into the same class, over the runs of a rank, as in Brunet et al. (2004).

        A sample's class in a run is its largest activation. For at most 10,000 samples, because the result has an
        entry for every pair. See `Connectivity`.
        """
        if rank not in self.spectra:
            raise ValueError(f"rank={rank!r} was not fitted; ranks are {', '.join(map(str, self.ranks))}")
        return connectivity(self._data(X), self.spectra[rank], rank, self.sample_names)

    def plot(self, **options: Any) -> Any:
        """Draw stability and error over the rank."""
        from ..plotting import ranks

        return ranks(self, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save all runs to a file for `partwise.load`. X itself is not stored."""
        if self.runs is None:
            raise ValueError("a consensus from given spectra has no runs to save: save the result of at() instead")
        write_runs(path, self.runs, self._header(), complete=True)

    def _header(self) -> dict[str, Any]:
        names = {"features": self.feature_names, "samples": self.sample_names}
        listed = {key: None if values is None else list(values) for key, values in names.items()}
        return {"names": listed, "rows": finite(self.rows), "ranks": self.ranks, "n_runs": self.n_runs}

    @property
    def n_runs(self) -> int:
        """The number of runs of each rank; the smallest one, if they differ."""
        return min(len(spectra) // rank for rank, spectra in self.spectra.items())

    def _data(self, X: Any) -> Matrix | Chunked:
        if X is None and self.data is None:
            raise ValueError("the file of a consensus does not hold X, which the activations need: give X=")
        data = self.data if X is None else as_kind(named(X).X, self.runs.settings if self.runs else {})
        assert data is not None
        features = next(iter(self.spectra.values())).shape[1]
        if data.shape[1] != features:
            raise ValueError(f"X has {data.shape[1]} features, but the components have {features}")
        divergence = self.runs is not None and "loss" in self.runs.settings
        return with_divergence(data) if divergence and data.squared else data

    def __repr__(self) -> str:
        shown = [name for name in HEADINGS if any(row[name] is not None for row in self.rows)]
        cells = [[HEADINGS[name] for name in shown], *([as_text(name, row) for name in shown] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def as_kind(X: Any, settings: Mapping[str, Any], memory_limit: int | None = None) -> Matrix | Chunked:
    """X as data, of which ``settings`` say whether entries may be missing or negative."""
    missing, signed = settings.get("missing") == "em", settings.get("negative") == "allow"
    return as_data(X, memory_limit, missing, signed=signed)


def loaded(path: str | os.PathLike[str]) -> Consensus:
    """The consensus in a file; if it is a checkpoint of unfinished work, that of the ranks that are complete."""
    runs, header = read_runs(path)
    try:
        counts = {rank: sum(1 for other, _ in runs.components if other == rank) for rank in header["ranks"]}
        ranks = [rank for rank, count in counts.items() if count >= header["n_runs"]]
        names = {key: as_names(header["names"][key]) for key in ("features", "samples")}
        known = {row["rank"]: row for row in header["rows"] or ()}
        spectra = {rank: runs.spectra(rank, header["n_runs"]) for rank in ranks}
        shape = unpacked(header["settings"]["sparsity"], {}, {"AtMost": AtMost})
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableError(f"{os.fspath(path)} is not a valid consensus: {error}") from error
    if not ranks:
        raise UnreadableError(f"{os.fspath(path)} has no rank whose runs are complete: repeat the command to continue")
    rows = [unknown_row(rank, spectra[rank]) | known.get(rank, {}) for rank in ranks]
    for one in rows:
        one |= {name: float("nan") for name in ("stability", "error") if one[name] is None}
    return Consensus(spectra, rows, shape, names["features"], names["samples"], runs)


def row(data: Matrix | Chunked, rank: int, spectra: Array, sparsity: Shape) -> dict[str, Any]:
    """Stability and error of a rank, without leaving out any component."""
    found = unknown_row(rank, spectra)
    try:
        all_runs = assemble(data, spectra, rank, NO_FILTER, 0.3, sparsity)
    except ValueError:  # components of runs are zero or equal: fewer different ones than the rank
        return found
    return found | {"stability": all_runs.stability, "error": all_runs.relative_error}


def unknown_row(rank: int, spectra: Array) -> dict[str, Any]:
    """A row before anything is measured."""
    unknown: dict[str, Any] = {"stability": float("nan"), "error": float("nan"), "heldout_error": None}
    return {"rank": rank, **unknown, "converged": None, "n_runs": len(spectra) // rank}


def as_text(name: str, row: Mapping[str, Any]) -> str:
    """One cell of the table."""
    value = row[name]
    if value is None or value != value:
        return "–"
    if name == "converged":
        return f"{value} of {row['n_runs']}"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def finite(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows for JSON: nan becomes None."""
    return [{name: None if value != value else value for name, value in one.items()} for one in rows]

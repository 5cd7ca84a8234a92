"""Consensus over many runs: which components come back from different starts, for several ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Chunked, Matrix, as_data, checksum
from ..engine.names import as_names, named
from ..engine.progress import counting_line
from ..engine.summary import as_matrix
from ..engine.validation import Seed, as_amount, as_bytes, as_choice, as_count, as_generator, as_path, as_verbosity
from ..projections import AtMost
from ..runtime.packing import packed, unpacked
from ..runtime.untrusted import UnreadableError
from ..statistics import Array
from .bicross import heldout_error
from .connectivity import Connectivity, connectivity
from .programs import Programs, Shape, assemble
from .runs import Runs, Saver, as_single, fit_runs, read_runs, resumed, write_runs
from .search import as_level, as_ranks, as_share

TOPIC = re.compile(r"iter(\d+)_topic\d+")  # how cNMF names the rows of stacked spectra
NO_FILTER = np.inf
TOL = 0.05  # benchmarks/consensus.py: the mean objective is below that of scikit-learn at cNMF's tol=1e-4
PRECISIONS = ("same", "single")
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
        ‖X − model‖ / ‖X‖ for the medians of the clusters, ``heldout_error`` is None unless asked for, and
        ``converged`` of ``n_runs`` runs have converged.
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
        threshold = as_amount(density_threshold, "density_threshold", np.inf)
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
        data = self.data if X is None else as_data(named(X).X)
        assert data is not None
        features = next(iter(self.spectra.values())).shape[1]
        if data.shape[1] != features:
            raise ValueError(f"X has {data.shape[1]} features, but the components have {features}")
        return data

    def __repr__(self) -> str:
        shown = [name for name in HEADINGS if any(row[name] is not None for row in self.rows)]
        cells = [[HEADINGS[name] for name in shown], *([as_text(name, row) for name in shown] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in cells)


def consensus(
    X: Any,
    ranks: int | Iterable[int],
    n_runs: int = 100,
    *,
    sparsity: Any = None,
    features_per_part: int | None = None,
    holdout: float | None = None,
    init: str = "random",
    max_iter: int = 1000,
    tol: float = TOL,
    precision: str = "same",
    n_threads: int | None = None,
    memory_limit: int | str | None = None,
    random_state: Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Consensus:
    """Fit each rank from many starts, and find the components that recur.

    A single fit depends on its start. Components that most starts find are a property of the data. This is the
    procedure of cNMF (Kotliar et al. 2019) for any data: run, leave out isolated components, cluster, take medians,
    refit. All runs share the passes over X. No rank is recommended.

    Parameters
    ----------
    X : array, SciPy sparse matrix, DataFrame, AnnData, or data on disk, of shape (samples, features)
        Nonnegative. Sparse data are never made dense. Names are kept.
    ranks : int or iterable of int
        Numbers of components.
    n_runs : int
        Number of starts for each rank, at least 2.
    sparsity : None, float or (lo, hi)
        Hoyer sparsity of the components of all runs, and of the consensus.
    features_per_part : int, optional
        The largest number of nonzero features of each component, instead of a sparsity.
    holdout : float, optional
        Share of the samples, and of the features, that are held out together to measure ``heldout_error``
        (bi-cross-validation, Owen & Perry 2009): one further fit per rank. X must be in memory.
    init, max_iter, tol, n_threads, memory_limit
        As in `partwise.ssnmf`.
    precision : {"same", "single"}
        The precision of the runs. "single" is nearly twice as fast, and enough unless the error is below 0.001; X in
        memory is copied for it. The consensus itself is always computed in the precision of X.
    random_state : int, Generator, RandomState or None
        A run depends on this seed, its rank and its number only, so that more ranks or runs can be added.
    checkpoint : path, optional
        File to which finished runs are written. The same call resumes from it, also with more ranks or runs. It is a
        file that `partwise.load` reads.
    verbose : int
        1 shows a progress line.

    Returns
    -------
    Consensus
        ``print`` shows stability, error and convergence of each rank. ``at(rank)`` gives the components.

    References
    ----------
    D. Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with
    single-cell RNA-Seq", eLife 8 (2019).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 3)) ** 4 @ rng.random((3, 20)) ** 4
    >>> found = consensus(X, ranks=[2, 3], n_runs=5, random_state=0)
    >>> found.at(3).components.shape, bool(found.rows[1]["error"] < 0.1)
    ((3, 20), True)
    """
    asked, n_runs, rng = as_ranks(ranks), as_runs(n_runs), as_generator(random_state)
    wanted_shape = as_shape(sparsity, features_per_part)
    share = None if holdout is None else as_share(holdout)
    as_verbosity(verbose)
    matrix, samples, features = named(X)
    data = as_data(matrix, as_bytes(memory_limit, "memory_limit"))
    options = {
        "sparsity": wanted_shape,
        "init": init,
        "max_iter": as_count(max_iter, "max_iter"),
        "tol": as_amount(tol, "tol"),
    }
    run_data = as_single(data) if as_choice(precision, "precision", PRECISIONS) == "single" else data
    path = as_path(checkpoint, "checkpoint")
    shape = packed(wanted_shape, "sparsity", {}, {"AtMost": AtMost})
    settings = {**options, "sparsity": shape, "precision": precision, "X": checksum(data) if path else ""}
    seed = int(rng.integers(2**31))
    runs = resumed(path, settings, seed, random_state is not None)
    wanted = [(rank, number) for number in range(n_runs) for rank in asked]
    left = [run for run in wanted if run not in runs.components]
    names = {"features": features, "samples": samples}
    header = {key: None if values is None else list(values) for key, values in names.items()}
    saver = Saver(path, runs, lambda: {"names": header, "rows": None, "ranks": asked, "n_runs": n_runs})
    saver(force=True)  # fail now, not after the first fits, if the path is not writable
    line = counting_line("consensus", len(wanted), len(wanted) - len(left))
    with line if verbose else nullcontext(lambda: None) as advance:

        def done() -> None:
            saver()
            advance()

        fit_runs(run_data, runs, left, {**options, "n_threads": n_threads}, done)
    spectra = {rank: runs.spectra(rank, n_runs) for rank in asked}
    rows = [row(data, rank, spectra[rank], wanted_shape) for rank in asked]
    for one in rows:
        finished = [runs.facts[one["rank"], number] for number in range(n_runs)]
        one["converged"] = sum(converged for _, _, converged in finished)
        one["loss"] = float(np.mean([loss for loss, _, _ in finished]))  # of the runs themselves
        if share is not None:
            one["heldout_error"] = heldout_error(data, one["rank"], share, runs.seed, options)
    found = Consensus(spectra, rows, wanted_shape, features, samples, runs, data)
    if path is not None:
        found.save(path)
    return found


def from_spectra(
    spectra: Any,
    X: Any,
    *,
    rank: int | None = None,
    sparsity: Any = None,
    features_per_part: int | None = None,
) -> Consensus:
    """A `Consensus` from components that were found elsewhere, for example by cNMF.

    Parameters
    ----------
    spectra : array or DataFrame of shape (n_runs · rank, features), a list of arrays (rank, features), or a dict
        The components of all runs of a rank, stacked run by run; a list has one array for each run, of any rank; a dict
        has stacked components for each rank. The rows of cNMF's tables are named "iter0_topic1", …, which gives the
        rank.
    X : data of shape (samples, features)
        The matrix that was factorized.
    rank : int, optional
        The rank of stacked components, if their names do not give it.
    sparsity, features_per_part
        As in `consensus`: what the medians are projected to.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((9, 4))
    >>> from_spectra(np.tile(np.eye(4)[:2], (3, 1)), X, rank=2).at(2).components.round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """
    matrix, samples, features = named(X)
    data, shape = as_data(matrix), as_shape(sparsity, features_per_part)
    grouped = by_rank(spectra, rank)
    for k, stacked in grouped.items():
        if stacked.shape[1] != data.shape[1]:
            raise ValueError(f"spectra of rank {k} have {stacked.shape[1]} features, but X has {data.shape[1]}")
        if len(stacked) % k or len(stacked) < 2 * k:
            raise ValueError(
                f"spectra of rank {k} have {len(stacked)} rows: give {k} for each of at least two runs, run by run"
            )
    if features is None and hasattr(spectra, "columns"):
        features = named(spectra).features
    rows = [row(data, k, grouped[k], shape) for k in sorted(grouped)]
    return Consensus(grouped, rows, shape, features, samples, data=data)


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


consensus.from_spectra = from_spectra  # type: ignore[attr-defined]


def by_rank(spectra: Any, rank: int | None) -> dict[int, Array]:
    """Stacked components by rank."""
    if isinstance(spectra, Mapping):
        return {as_count(k, "rank"): as_matrix(v, "spectra", "runs · rank × features") for k, v in spectra.items()}
    if isinstance(spectra, Sequence) and not isinstance(spectra, str) and len(np.shape(spectra[0])) == 2:
        arrays = [as_matrix(one, "spectra", "rank × features") for one in spectra]
        kinds = sorted({len(one) for one in arrays})
        return {k: np.concatenate([one for one in arrays if len(one) == k]).astype(float) for k in kinds}
    if rank is None and hasattr(spectra, "index"):
        found = [TOPIC.fullmatch(str(name)) for name in spectra.index]
        if all(found):
            runs = [match[1] for match in found if match]
            rank = len(runs) // len(set(runs))
    if rank is None:
        raise ValueError("spectra are stacked: give rank=, the number of components of one run")
    return {as_count(rank, "rank"): as_matrix(spectra, "spectra", "runs · rank × features").astype(float)}


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


def as_runs(value: object) -> int:
    """Validate ``n_runs``."""
    count = as_count(value, "n_runs")
    if count < 2:
        raise ValueError(f"n_runs={count}: a consensus compares runs; give at least 2, better 20 to 100")
    return count


def as_shape(sparsity: Any, features_per_part: Any) -> Shape:
    """The set that components are projected to."""
    if features_per_part is None:
        return as_level(sparsity)
    if sparsity is not None:
        raise ValueError(f"sparsity={sparsity!r} and features_per_part={features_per_part!r}: give one of them")
    return AtMost(as_count(features_per_part, "features_per_part"))


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

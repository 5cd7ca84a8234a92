"""Consensus over many runs: which components come back from different starts, for several ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np

from ..data import Chunked, Matrix, checksum, with_divergence
from ..engine.names import check_unique, named
from ..engine.options import MISSING, NEGATIVE
from ..engine.summary import as_matrix
from ..engine.validation import (
    Seed,
    as_amount,
    as_bytes,
    as_choice,
    as_count,
    as_generator,
    as_loss,
    as_path,
    as_switch,
    as_verbosity,
)
from ..projections import AtMost
from ..runtime.packing import packed
from ..statistics import Array
from .bicross import check_block, heldout_error
from .programs import Shape
from .runs import Run, Runs, Saver, as_single, fit_runs, resumed
from .search import as_level, as_ranks, as_share
from .stability import Consensus, as_kind, row

TOPIC = re.compile(r"iter(\d+)_topic\d+")  # how cNMF names the rows of stacked spectra
TOL = 0.05  # benchmarks/consensus.py: the mean objective is below that of scikit-learn at cNMF's tol=1e-4
PRECISIONS = ("same", "single")


def consensus(
    X: Any,
    ranks: int | Iterable[int],
    n_runs: int = 100,
    *,
    sparsity: Any = None,
    features_per_part: int | None = None,
    holdout: float | None = None,
    loss: Literal["squared", "kullback-leibler", "kl"] = "squared",
    init: str = "random",
    max_iter: int = 1000,
    tol: float = TOL,
    missing: str = "error",
    negative: str = "error",
    precision: str = "same",
    n_threads: int | None = None,
    memory_limit: int | str | None = None,
    random_state: Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    verbose: int = 0,
) -> Consensus:
    """Fit each rank from many starts, and find the components that recur.

    A single fit depends on its start. Components that most starts find are a property of the data. This is the
    procedure of cNMF (Kotliar et al. 2019) for any data: run, leave out isolated components, cluster, take medians,
    refit. All runs share the passes over X. No rank is recommended.

    Parameters
    ----------
    X : array, SciPy sparse matrix, DataFrame, AnnData, or data on disk, of shape (samples, features)
        Nonnegative, unless ``negative="allow"``. Sparse data are never made dense. Names are kept.
    ranks : int or iterable of int
        Numbers of components.
    n_runs : int
        Number of starts for each rank, at least 2.
    sparsity : None, float or (lo, hi)
        Hoyer sparsity of the components of all runs, and of the consensus. Each run is first fitted without it.
    features_per_part : int, optional
        The largest number of nonzero features of each component, instead of a sparsity.
    holdout : float, optional
        Share of the samples, and of the features, that are held out together to measure ``heldout_error``
        (bi-cross-validation, Owen & Perry 2009): one further fit per rank. X must be in memory. For the squared loss.
    loss : {"squared", "kullback-leibler", "kl"}
        The loss of the runs and of the consensus. The Kullback–Leibler divergence suits counts.
    init, max_iter, tol, missing, negative, n_threads, memory_limit
        As in `partwise.ssnmf`. Runs with missing entries (``missing="em"``) share no passes over X; runs with the
        divergence share only passes over a file.
    precision : {"same", "single"}
        The precision of the runs. "single" is nearly twice as fast, and enough unless the error is below 0.001; X in
        memory is copied for it. The consensus itself is always computed in the precision of X.
    random_state : int, Generator, RandomState or None
        A run depends on this seed, its rank and its number only, so that more ranks or runs can be added.
    checkpoint : path, optional
        File to which finished runs are written. The same call resumes from it, also with more ranks or runs. It is a
        file that `partwise.load` reads.
    overwrite : bool
        Do not resume from an existing file, but replace it when the first run has finished.
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
    share, divergence = None if holdout is None else as_share(holdout), as_loss(loss)
    if divergence and share is not None:
        raise ValueError(f"holdout={share:g} needs the squared loss: omit it, or compare ranks by select")
    as_verbosity(verbose)
    matrix, samples, features = named(X)
    check_unique(features, "X")
    allowed = as_allowed(missing, negative)
    data = checked(matrix, allowed, as_bytes(memory_limit, "memory_limit"))
    if share is not None:
        check_block(data, share)
    options = {
        "sparsity": wanted_shape,
        **({"loss": "kullback-leibler"} if divergence else {}),
        "init": init,
        "max_iter": as_count(max_iter, "max_iter"),
        "tol": as_amount(tol, "tol"),
    }
    run_data = as_single(data) if as_choice(precision, "precision", PRECISIONS) == "single" else data
    path = as_path(checkpoint, "checkpoint")
    shape = packed(wanted_shape, "sparsity", {}, {"AtMost": AtMost})
    settings = {**options, **allowed, "sparsity": shape, "precision": precision, "X": checksum(data) if path else ""}
    seed = int(rng.integers(2**31))
    runs = resumed(path, settings, seed, random_state is not None, as_switch(overwrite, "overwrite"))
    wanted = [(rank, number) for number in range(n_runs) for rank in asked]
    names = {"features": features, "samples": samples}
    header = {key: None if values is None else list(values) for key, values in names.items()}
    saver = Saver(path, runs, lambda: {"names": header, "rows": None, "ranks": asked, "n_runs": n_runs})
    fit_missing(run_data, runs, wanted, {**options, "n_threads": n_threads}, saver, bool(verbose))
    spectra = {rank: runs.spectra(rank, n_runs) for rank in asked}
    fitted = with_divergence(data) if divergence else data
    rows = [row(fitted, rank, spectra[rank], wanted_shape) for rank in asked]
    for one in rows:
        finished = [runs.facts[one["rank"], number] for number in range(n_runs)]
        one["converged"] = sum(converged for _, _, converged in finished)
        one["loss"] = float(np.mean([loss for loss, _, _ in finished]))  # of the runs themselves
        if share is not None:
            one["heldout_error"] = heldout_error(data, one["rank"], share, runs.seed, options)
    found = Consensus(spectra, rows, wanted_shape, features, samples, runs, fitted)
    if path is not None:
        found.save(path)
    return found


def fit_missing(
    data: Matrix | Chunked,
    runs: Runs,
    wanted: Sequence[Run],
    options: dict[str, Any],
    saver: Saver,
    verbose: bool,
) -> None:
    """Fit the ``wanted`` runs that are not known yet, and save them on the way."""
    from ..engine.progress import counting_line  # imports rich

    left = [run for run in wanted if run not in runs.components]
    line = counting_line("consensus", len(wanted), len(wanted) - len(left))
    with line if verbose else nullcontext(lambda: None) as advance:

        def done() -> None:
            saver()
            advance()

        try:
            fit_runs(data, runs, left, options, done)
        finally:  # also after Ctrl-C
            saver(force=True)


def from_spectra(
    spectra: Any,
    X: Any,
    *,
    rank: int | None = None,
    sparsity: Any = None,
    features_per_part: int | None = None,
    missing: str = "error",
    negative: str = "error",
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
    missing, negative
        As in `consensus`.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((9, 4))
    >>> from_spectra(np.tile(np.eye(4)[:2], (3, 1)), X, rank=2).at(2).components.round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """
    matrix, samples, features = named(X)
    check_unique(features, "X")
    data, shape = checked(matrix, as_allowed(missing, negative)), as_shape(sparsity, features_per_part)
    grouped = by_rank(spectra, rank)
    for k, stacked in grouped.items():
        if stacked.shape[1] != data.shape[1]:
            raise ValueError(f"spectra of rank {k} have {stacked.shape[1]} features, but X has {data.shape[1]}")
        if len(stacked) % k or len(stacked) < 2 * k:
            raise ValueError(
                f"spectra of rank {k} have {len(stacked)} rows: give {k} for each of at least two runs, run by run"
            )
        if not stacked.any():
            raise ValueError(f"spectra of rank {k} are all zero: there is nothing to cluster")
    if features is None and hasattr(spectra, "columns"):
        features = named(spectra).features
    rows = [row(data, k, grouped[k], shape) for k in sorted(grouped)]
    return Consensus(grouped, rows, shape, features, samples, data=data)


consensus.from_spectra = from_spectra  # type: ignore[attr-defined]


def as_allowed(missing: object, negative: object) -> dict[str, str]:
    """Validate ``missing`` and ``negative``."""
    return {
        "missing": as_choice(missing, "missing", MISSING),
        "negative": as_choice(negative, "negative", NEGATIVE),
    }


def checked(X: Any, allowed: Mapping[str, str], memory_limit: int | None = None) -> Matrix | Chunked:
    """X as data, all of whose values are known to be finite and, unless ``allowed``, neither missing nor negative."""
    data = as_kind(X, allowed, memory_limit)
    data.check()
    return data


def by_rank(spectra: Any, rank: int | None) -> dict[int, Array]:
    """Stacked components by rank."""
    if isinstance(spectra, str) or (isinstance(spectra, Mapping | Sequence) and not spectra):
        raise ValueError(f"spectra={spectra!r}: give the components of at least two runs, as arrays of numbers")
    if isinstance(spectra, Mapping):
        return {as_count(k, "rank"): as_matrix(v, "spectra", "runs · rank × features") for k, v in spectra.items()}
    if isinstance(spectra, Sequence) and len(np.shape(spectra[0])) == 2:
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


def as_runs(value: object, name: str = "n_runs") -> int:
    """Validate the number of runs."""
    count = as_count(value, name)
    if count < 2:
        raise ValueError(f"{name}={count}: a consensus compares runs; give at least 2, better 20 to 100")
    return count


def as_shape(sparsity: Any, features_per_part: Any) -> Shape:
    """The set that components are projected to."""
    if features_per_part is None:
        return as_level(sparsity, "sparsity")
    if sparsity is not None:
        raise ValueError(f"sparsity={sparsity!r} and features_per_part={features_per_part!r}: give one of them")
    return AtMost(as_count(features_per_part, "features_per_part"))

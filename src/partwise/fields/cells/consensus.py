"""Gene programs that recur over many runs, from raw counts in AnnData."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.engine.names import check_unique
from partwise.engine.validation import as_choice, as_count, warn_user
from partwise.io.h5ad import gene_mask
from partwise.io.table import Table
from partwise.io.write_h5ad import all_genes
from partwise.selection import Consensus, Programs
from partwise.selection import consensus as consensus_of
from partwise.selection.clustering import as_threshold
from partwise.selection.programs import as_model
from partwise.selection.search import as_ranks

from .counts import UNIQUE, Prepared, as_counts, deviations, matrix_in, prepared, scaled_columns
from .frames import Frame
from .tables import Tables, data_frames, of_rows, tables

if TYPE_CHECKING:
    import pandas as pd

    from partwise.estimators import SparseNMF

REFITS = ("exact", "cnmf")


@dataclass(frozen=True, repr=False)
class CellPrograms:
    """Gene programs of one rank, with the three tables of cNMF.

    Attributes
    ----------
    programs : Programs
        The consensus over the over-dispersed genes: components, density, labels, and a model.
    usage : DataFrame of shape (cells, rank)
        Share of each program in each cell. Rows sum to 1.
    scores : DataFrame of shape (rank, genes)
        How much each gene rises with the usage of a program, in standard deviations: the largest are marker genes.
    tpm : DataFrame of shape (rank, genes)
        Each program in TPM.
    tables : Tables
        All tables as cNMF writes them.
    """

    programs: Programs
    tables: Tables

    @property
    def usage(self) -> pd.DataFrame:
        """Share of each program in each cell."""
        usage = self.tables.usage
        return Frame(of_rows(usage.to_numpy(float)), usage.index, usage.columns).pandas()

    @property
    def scores(self) -> pd.DataFrame:
        """Marker scores of all genes."""
        return self.tables.scores

    @property
    def tpm(self) -> pd.DataFrame:
        """The programs in TPM."""
        return self.tables.tpm

    def top_genes(self, n: int = 100) -> pd.DataFrame:
        """The marker genes of each program by score, best first: a column per program."""
        import pandas as pd

        n = as_count(n, "n")
        ranked = {j: scores.sort_values(ascending=False).index[:n] for j, scores in self.scores.iterrows()}
        return pd.DataFrame(ranked)

    def features(self, program: int, top: int | None = None) -> pd.DataFrame:
        """The gene set of a program: its support among the over-dispersed genes, as `Programs.features`.

        Programs are numbered from 1, as in the tables. Each gene has its ``weight``, its ``specificity`` and its marker
        ``score``.
        """
        if not isinstance(program, int | np.integer) or program not in self.scores.index:
            raise ValueError(f"program={program!r}: give a number from 1 to {self.programs.rank}, as in the tables")
        found = self.programs.features(int(program) - 1, top)
        found["score"] = self.scores.loc[program, found.index]
        return found

    @cached_property
    def reference(self) -> SparseNMF:
        """The reference of starCAT as a model of raw counts, each gene divided by its standard deviation."""
        starcat = self.tables.starcat
        return as_model(starcat.to_numpy(), np.asarray(starcat.columns, dtype=object))

    def transform(self, adata: Any, *, layer: str | None = None, check_counts: bool = True) -> pd.DataFrame:
        """Usages of these programs in other cells, as in starCAT, but solved exactly.

        Rows sum to 1, except for cells without any counts of these genes. The counts of each gene are divided by their
        standard deviation over the other cells: transform all cells of a data set at once. Genes are matched by name; a
        warning says how many are missing.

        Parameters
        ----------
        adata : AnnData
            Raw counts of two or more other cells.
        layer : str, optional
            Layer with the counts, instead of ``adata.X``.
        check_counts : bool
            Refuse counts that are not whole numbers.

        Returns
        -------
        DataFrame of shape (cells, rank)
        """
        import pandas as pd

        counts = as_counts(matrix_in(adata, layer, "reference.transform"), check_counts).astype(float)
        if counts.shape[0] < 2:
            raise ValueError(
                f"adata has {counts.shape[0]} cells, but the standard deviations of genes need at least 2: transform "
                "cells of the same data set together"
            )
        check_unique([str(name) for name in adata.var_names], "adata", UNIQUE)
        scaled = scaled_columns(counts, deviations(counts))
        table: Any = Table(scaled, "scaled counts", "adata", tuple(adata.obs_names), tuple(adata.var_names))
        usage = of_rows(self.reference.transform(table, align="names"))
        return pd.DataFrame(usage, adata.obs_names, self.scores.index)

    def plot(self, **options: Any) -> Any:
        """Draw the clustergram, as `Programs.plot`, with the numbers of the tables."""
        return self.programs.plot(**{"names": self.scores.index, **options})

    def __repr__(self) -> str:
        lines = [f"{self.programs.rank} programs, {self.programs.in_words()}", "program  usage  runs  marker genes"]
        share, genes = self.usage.mean(), self.top_genes(5)
        for place, j in enumerate(genes):
            runs = self.programs.runs_kept[place]
            lines.append(f"{j:7}  {share[j]:5.1%}  {runs:4}  {', '.join(genes[j])}")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class CellConsensus:
    """Runs on counts of single cells; `at` gives the programs of one rank and writes them to ``adata``."""

    found: Consensus
    ready: Prepared
    adata: Any = None
    key: str = "cnmf"
    refit: str = "exact"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Stability, error and convergence of each rank."""
        return self.found.rows

    def at(self, rank: int, density_threshold: float = 0.5, *, local_neighborhood_size: float = 0.3) -> CellPrograms:
        """The programs of one rank, as `Consensus.at`, also stored in ``adata`` in place of those of another rank."""
        programs = self.found.at(rank, density_threshold, local_neighborhood_size=local_neighborhood_size)
        cells = CellPrograms(programs, data_frames(tables(self.ready, programs, self.refit)))
        if self.adata is not None:
            store(self.adata, self.key, cells, self)
        return cells

    def plot(self, **options: Any) -> Any:
        """Draw stability and error over the rank."""
        return self.found.plot(**options)

    def __repr__(self) -> str:
        return repr(self.found)


def consensus(
    adata: Any,
    ranks: int | Iterable[int],
    n_runs: int = 100,
    *,
    n_top_genes: int | None = 2000,
    mask_var: Any = None,
    layer: str | None = None,
    at: int | None = None,
    density_threshold: float = 0.5,
    key_added: str = "cnmf",
    check_counts: bool = True,
    refit: str = "exact",
    **options: Any,
) -> CellConsensus:
    """Gene programs that recur over many runs: cNMF on raw counts, in one call.

    Over-dispersed genes are chosen, divided by their standard deviation and factorized from many starts. Programs that
    recur are then expressed in TPM of all genes, and scored for marker genes.

    Parameters
    ----------
    adata : AnnData
        Raw counts, cells × genes, without empty cells or genes. They stay sparse.
    ranks : int or iterable of int
        Numbers of programs.
    n_runs : int
        Number of runs for each rank.
    n_top_genes : int
        Number of over-dispersed genes to factorize.
    mask_var : str or array of bool, optional
        The genes to factorize instead: a boolean column of ``adata.var``, or an array.
    layer : str, optional
        Layer with the counts, instead of ``adata.X``.
    at : int, optional
        The rank to store. By default the most stable one, as a first look: choose with ``print(found)`` and
        ``found.plot()``, then call ``found.at(rank)``.
    density_threshold : float
        For the rank that is stored; see `partwise.Consensus.at`.
    key_added : str
        Name of the results.
    check_counts : bool
        Refuse counts that are not whole numbers.
    refit : {"exact", "cnmf"}
        Exact nonnegative least squares, or coordinate descent that stops early, as in cNMF.
    **options
        Further parameters of `partwise.consensus`, such as ``sparsity``, ``features_per_part``, ``random_state``,
        ``checkpoint`` and ``verbose``. ``precision`` is "single" by default.

    Returns
    -------
    CellConsensus
        ``adata`` then has ``obsm["X_cnmf"]`` (usages, rows sum to 1), ``varm["cnmf_scores"]`` (marker scores),
        ``varm["cnmf_tpm"]`` (programs in TPM), ``varm["cnmf_spectra"]`` (consensus components, 0 at genes that are not
        factorized), ``var["cnmf_genes"]`` (genes that are) and ``uns["cnmf"]`` (the table of ranks, and how the
        programs were found).

    Examples
    --------
    >>> import anndata, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rates = np.kron(np.eye(3), np.full(10, 8.0))[rng.integers(3, size=60)] + 0.2
    >>> adata = anndata.AnnData(rng.poisson(rates).astype("float32"))
    >>> found = consensus(adata, ranks=[2, 3, 4], n_runs=5, random_state=0)
    >>> found.at(3).top_genes(10).shape, adata.obsm["X_cnmf"].shape
    ((10, 3), (60, 3))
    """
    X = matrix_in(adata, layer)
    as_choice(refit, "refit", REFITS)
    ranks = as_ranks(ranks)
    as_threshold(density_threshold)
    if at is not None and at not in ranks:
        raise ValueError(f"at={at!r} is not one of the ranks {', '.join(map(str, ranks))}")
    mask = gene_mask(adata.var, mask_var)
    only = None if mask is None else adata.var_names[mask]
    ready = prepared(X, adata.obs_names, adata.var_names, n_top_genes, only, check_counts)
    matrix = Table(ready.matrix, "over-dispersed genes", "adata", tuple(ready.cells), tuple(ready.chosen_genes))
    found = consensus_of(matrix, ranks, n_runs, **{"precision": "single", **options})
    cells = CellConsensus(found, ready, adata, key_added, refit)
    try:
        cells.at(most_stable(found.rows) if at is None else at, density_threshold)
    except ValueError as error:  # the runs are not lost
        warn_user(f"no programs are stored in adata: {error}. Call at() of the result", UserWarning)
    return cells


def most_stable(rows: list[dict[str, Any]]) -> int:
    """The rank of the largest stability; the smallest rank if none is known."""
    return int(max(rows, key=lambda row: -1.0 if np.isnan(row["stability"]) else row["stability"])["rank"])


def store(adata: Any, key: str, cells: CellPrograms, found: CellConsensus) -> None:
    """Write programs to AnnData."""
    chosen = np.zeros(adata.n_vars, dtype=bool)
    chosen[found.ready.chosen] = True
    programs = cells.programs
    spectra = cells.tables.spectra.to_numpy()[:, np.argsort(found.ready.chosen)]
    adata.obsm[f"X_{key}"] = cells.usage.to_numpy()
    adata.varm[f"{key}_scores"] = cells.scores.to_numpy().T.copy()
    adata.varm[f"{key}_tpm"] = cells.tpm.to_numpy().T.copy()
    adata.varm[f"{key}_spectra"] = all_genes(spectra, chosen)
    adata.var[f"{key}_genes"] = chosen
    adata.uns[key] = {
        "rank": programs.rank,
        "density_threshold": programs.density_threshold,
        "stability": programs.stability,
        "relative_error": programs.relative_error,
        "density": programs.density,
        "labels": programs.labels,
        "runs_kept": programs.runs_kept,
        "starcat": cells.tables.starcat.T,
        "ranks": {
            name: np.array([np.nan if row.get(name) is None else row[name] for row in found.rows])
            for name in ("rank", "stability", "error", "heldout_error", "converged", "n_runs")
        },
    }

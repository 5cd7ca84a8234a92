"""cNMF's own interface: its methods, arguments and files, with our solver behind them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from partwise.data import as_data
from partwise.engine.validation import as_choice, as_count, warn_user
from partwise.io.table import Table
from partwise.io.write_h5ad import new_h5ad
from partwise.runtime.files import replacing
from partwise.runtime.untrusted import reading
from partwise.selection.consensus import TOL, as_runs, from_spectra
from partwise.selection.runs import as_single, fit_each
from partwise.selection.search import as_ranks, listed
from partwise.selection.stability import Consensus

from .counts import Prepared, moments, prepared, whole, with_tpm
from .frames import FILES, Frame, counts_of, read_frame, read_text, threshold_text, write_frame, write_text
from .tables import CNMF, tables

if TYPE_CHECKING:
    import pandas as pd

PLAN = ("n_components", "iter", "nmf_seed", "completed")
STATS = ("k", "local_density_threshold", "silhouette", "prediction_error")
TABLES = {  # file: name of the table
    "consensus_spectra": "spectra",
    "consensus_usages": "usage",
    "gene_spectra_tpm": "tpm",
    "gene_spectra_score": "scores",
}


class cNMF:  # noqa: N801 (its name)
    """cNMF with its own methods, arguments and files: change the import line, and nothing else.

    ``from partwise.cells import cNMF`` instead of ``from cnmf import cNMF``. It is faster, never makes the counts
    dense, and fits the last step exactly. One process needs neither workers nor `combine`. For new code,
    `partwise.cells.consensus` does all of it in one call.

    Parameters
    ----------
    output_dir : path
        Folder for the files.
    name : str, optional
        Name of the analysis, a folder in ``output_dir`` and the beginning of all file names; by default the date and
        random letters.

    References
    ----------
    Dylan Kotliar et al., eLife 8 (2019). https://github.com/dylkot/cNMF
    """

    def __init__(self, output_dir: str | os.PathLike[str] = ".", name: str | None = None) -> None:
        self.output_dir = os.fspath(output_dir)
        self.name = f"{datetime.now():%Y_%m_%d}_{uuid4().hex[:6]}" if name is None else name
        if Path(self.name).name != self.name:
            raise ValueError(f"name={self.name!r} is not the name of a file: give the folder as output_dir")
        home = Path(self.output_dir, self.name)
        (home / "cnmf_tmp").mkdir(parents=True, exist_ok=True)
        self.paths = {}
        for key, (folder, end) in FILES.items():
            start = str(home / folder / self.name)
            self.paths[key] = f"{start.replace('%', '%%') if '%' in end else start}.{end}"

    def prepare(
        self,
        counts_fn: Any,
        components: int | Iterable[int],
        n_iter: int = 100,
        densify: bool = False,
        tpm_fn: Any = None,
        seed: int | None = None,
        beta_loss: str = "frobenius",
        num_highvar_genes: int | None = 2000,
        genes_file: str | os.PathLike[str] | None = None,
        alpha_usage: float = 0.0,
        alpha_spectra: float = 0.0,
        init: str = "random",
        max_NMF_iter: int = 1000,
    ) -> None:
        """Read counts, choose over-dispersed genes, scale them, and draw the seeds of all runs.

        Parameters
        ----------
        counts_fn : path or AnnData
            Raw counts: .h5ad, .mtx in a 10x folder, a data frame in .npz, or tab-separated text.
        components : int or iterable of int
            Numbers of programs.
        n_iter : int
            Number of runs for each, at least 2.
        densify : bool
            Ignored: counts stay sparse.
        tpm_fn : path or AnnData, optional
            TPM, if they are not to be computed from the counts.
        seed, num_highvar_genes, genes_file, init, max_NMF_iter
            As in cNMF. ``init`` is "random" or "nndsvd".
        beta_loss : {"frobenius"}
            Other losses are not available.
        alpha_usage, alpha_spectra : float
            Penalties, which must be 0: use `partwise.cells.consensus` with a sparsity instead.
        """
        as_choice(beta_loss, "beta_loss", ("frobenius",))
        as_choice(init, "init", ("random", "nndsvd"))
        asked = listed(components)
        ranks, n_iter = as_ranks(asked, "components"), as_runs(n_iter, "n_iter")
        if alpha_usage or alpha_spectra:
            raise ValueError(
                f"alpha_usage={alpha_usage}, alpha_spectra={alpha_spectra}: penalties are not available; "
                "partwise.cells.consensus takes sparsity= or features_per_part="
            )
        counts, cells, genes = counts_of(counts_fn)
        only = None if genes_file is None else Path(genes_file).read_text(encoding="utf-8").rstrip().split("\n")
        if not whole(counts.data if hasattr(counts, "tocsr") else np.ravel(counts)):
            warn_user("counts contain numbers that are not whole: raw counts are expected", UserWarning)
        try:
            ready = prepared(counts, cells, genes, num_highvar_genes, only, check_counts=False)
        except ValueError as error:
            raise ValueError(str(error).replace("n_top_genes", "num_highvar_genes")) from error
        if tpm_fn is not None:
            ready = with_tpm(ready, *counts_of(tpm_fn)[::2])
        self._write_prepared(ready)
        self._write_plan(ranks, len(asked), n_iter, seed)
        settings = CNMF | {"init": init, "max_iter": as_count(max_NMF_iter, "max_NMF_iter"), "beta_loss": beta_loss}
        with replacing(self.paths["nmf_run_parameters"]) as fresh:
            fresh.write_text(json.dumps(settings | {"l1_ratio": 0.0}), encoding="utf-8")  # JSON is YAML

    def factorize(self, worker_i: int = 0, total_workers: int = 1, skip_completed_runs: bool = False) -> None:
        """Run the factorizations of this worker. Runs in one process share passes over the counts.

        Each run is written when it is finished. ``skip_completed_runs`` leaves out those whose files exist.
        """
        total = as_count(total_workers, "total_workers")
        if not isinstance(worker_i, int | np.integer) or not 0 <= worker_i < total:
            raise ValueError(f"worker_i={worker_i!r}: give a number from 0 to total_workers - 1 = {total - 1}")
        jobs = [(k, i, seed) for k, i, seed, *_ in self._plan()]
        if skip_completed_runs:
            jobs = [job for job in jobs if not os.path.exists(self.paths["iter_spectra"] % job[:2])]
        settings = json.loads(Path(self._made("nmf_run_parameters")).read_text(encoding="utf-8"))
        matrix, _, genes = self._matrix()
        mine = jobs[worker_i::total]
        options = {"init": settings["init"], "max_iter": settings["max_iter"], "tol": TOL}
        keywords = [{"n_components": k, "random_state": seed} for k, _, seed in mine]

        def done(number: int, result: Any) -> None:
            k, i, _ = mine[number]
            frame = Frame(result.components.astype(float), np.arange(1, k + 1), genes)
            write_frame(frame, self.paths["iter_spectra"] % (k, i))

        fit_each(as_single(as_data(matrix)), keywords, options, done)

    def combine(self, components: int | Iterable[int] | None = None, skip_missing_files: bool = False) -> None:
        """Stack the runs of each rank in one file. Only needed by other programs: `consensus` finds the runs itself."""
        for k in self._ranks() if components is None else as_ranks(components, "components"):
            write_frame(self._stacked(k, skip_missing_files), self.paths["merged_spectra"] % k)

    def k_selection_plot(self, close_fig: bool = False) -> Any:
        """Write stability and error of each rank to a picture and a table, and return the figure."""
        matrix = self._matrix()[0]
        rows = [
            row  # of one rank at a time, so that its spectra are not kept
            for k in self._ranks()
            for row in from_spectra(self._stacked(k, skip_missing=True).data, matrix, rank=k).rows
        ]
        stats = np.array([stats_of(row, 0.5, matrix) for row in rows])
        write_frame(Frame(stats, np.arange(len(stats)), np.array(STATS)), self.paths["k_selection_stats"])
        figure = Consensus({}, rows).plot()
        figure.savefig(self.paths["k_selection_plot"])
        return figure

    def consensus(
        self,
        k: int,
        density_threshold: float = 0.5,
        local_neighborhood_size: float = 0.30,
        show_clustering: bool = True,
        build_ref: bool = True,
        skip_density_and_return_after_stats: bool = False,
        close_clustergram_fig: bool = False,
        refit_usage: bool = True,
        normalize_tpm_spectra: bool = False,
        norm_counts: Any = None,
        *,
        refit: str = "exact",
    ) -> Any:
        """Find the programs that recur, and write all tables, the clustergram, and the reference of starCAT.

        The arguments are cNMF's. ``refit="cnmf"`` solves for the usages by coordinate descent that stops early, as cNMF
        does, instead of exactly. The density is computed anew for each ``local_neighborhood_size``. The clustergram is
        returned, so that a notebook shows it, unless ``close_clustergram_fig``.
        """
        as_choice(refit, "refit", ("exact", "cnmf"))
        k = as_count(k, "k")
        spectra, (matrix, cells, chosen) = self._stacked(k, skip_missing=True), self._matrix()
        found = from_spectra(spectra.data, matrix, rank=k)
        if skip_density_and_return_after_stats:
            stats = np.array(stats_of(found.rows[0], density_threshold, matrix))
            return Frame(stats[:, None], np.array(STATS), np.array(["stats"])).pandas()
        programs = found.at(k, density_threshold, local_neighborhood_size=local_neighborhood_size)
        made = tables(self._prepared(matrix, cells, chosen), programs, refit, refit_usage, normalize_tpm_spectra)
        where = (k, threshold_text(density_threshold))
        for file, name in (TABLES | {"starcat_spectra": "starcat"} if build_ref else TABLES).items():
            write_frame(made[name], self.paths[file] % where)
            write_text(made[name], self.paths[f"{file}__txt"] % where)
        density = Frame(programs.density[:, None], spectra.index, np.array(["local_density"]))
        write_frame(density, self.paths["local_density_cache"] % k)
        if not show_clustering:
            return None
        figure = programs.plot(names=made["usage"].columns)
        figure.savefig(self.paths["clustering_plot"] % where)
        return None if close_clustergram_fig else figure

    def load_results(
        self, K: int, density_threshold: float, n_top_genes: int = 100, norm_usage: bool = True
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Usages (cells × K), marker scores and TPM (genes × K), and the top genes of each program by score."""
        import pandas as pd

        where = (K, threshold_text(density_threshold))
        names = ("consensus_usages", "gene_spectra_score", "gene_spectra_tpm")
        usage, scores, tpm = (read_text(self.paths[f"{name}__txt"] % where) for name in names)
        if norm_usage:
            usage = usage.div(usage.sum(axis=1), axis=0)
        usage.columns = usage.columns.astype(int)
        top = {j: row.sort_values(ascending=False).index[:n_top_genes] for j, row in scores.iterrows()}
        return usage, scores.T, tpm.T, pd.DataFrame(top)

    def _plan(self) -> list[list[int]]:
        """The rank, number and seed of each run."""
        plan = read_frame(self._made("nmf_replicate_parameters"))
        with reading(self.paths["nmf_replicate_parameters"]):
            places = [plan.columns.tolist().index(name) for name in PLAN[:3]]
            return plan.data[:, places].astype(int).tolist()

    def _ranks(self) -> list[int]:
        return sorted({k for k, *_ in self._plan()})

    def _stacked(self, k: int, skip_missing: bool = False) -> Frame:
        """The spectra of all runs of a rank: from the files of runs or, if there are none, from the combined file."""
        wanted = [i for rank, i, _ in self._plan() if rank == k]
        if not wanted:
            raise ValueError(f"k={k} was not prepared; ranks are {', '.join(map(str, self._ranks()))}")
        files = {i: self.paths["iter_spectra"] % (k, i) for i in wanted}
        missing = [file for file in files.values() if not os.path.exists(file)]
        if len(missing) == len(files) and os.path.exists(self.paths["merged_spectra"] % k):
            return read_frame(self.paths["merged_spectra"] % k)
        if missing and (not skip_missing or len(missing) == len(files)):
            raise FileNotFoundError(
                f"{len(missing)} of {len(files)} runs of k={k} have no file, first {missing[0]}: run factorize first"
            )
        found = {i: read_frame(file) for i, file in files.items() if file not in missing}
        names = [f"iter{i}_topic{t + 1}" for i in found for t in range(k)]
        spectra = np.concatenate([frame.data for frame in found.values()])
        return Frame(spectra, np.array(names, dtype=object), next(iter(found.values())).columns)

    def _write_plan(self, ranks: list[int], asked: int, n_iter: int, seed: int | None) -> None:
        seeds = np.random.RandomState(seed).randint(1, 2**31 - 1, asked * n_iter)  # cNMF's, repeated ranks included
        rows = [
            [k, i, int(seeds[place]), os.path.exists(self.paths["iter_spectra"] % (k, i))]
            for place, (k, i) in enumerate(product(ranks, range(n_iter)))
        ]
        finished = sum(row[3] for row in rows)
        if finished:
            warn_user(
                f"{finished} runs exist already in {self.output_dir}/{self.name}: they are overwritten by factorize, "
                "unless skip_completed_runs=True",
                UserWarning,
            )
        plan = Frame(np.array(rows, dtype=int), np.arange(len(rows)), np.array(PLAN))
        write_frame(plan, self.paths["nmf_replicate_parameters"])

    def _write_prepared(self, ready: Prepared) -> None:
        for key, X, genes in (
            ("normalized_counts", ready.matrix, ready.chosen_genes),
            ("tpm", ready.tpm, ready.genes),
        ):
            with replacing(self.paths[key]) as fresh:
                new_h5ad(fresh, Table(X, key, "", tuple(ready.cells), tuple(genes)), X)
        stats = Frame(np.column_stack([ready.mean, ready.std]), ready.genes, np.array(["__mean", "__std"]))
        write_frame(stats, self.paths["tpm_stats"])
        with replacing(self.paths["nmf_genes_list"]) as fresh:
            fresh.write_text("\n".join(ready.chosen_genes), encoding="utf-8")

    def _matrix(self) -> tuple[Any, Any, Any]:
        """The scaled counts, and the names of the cells and of the chosen genes."""
        return counts_of(self._made("normalized_counts"))

    def _made(self, key: str) -> str:
        """The path of a file that `prepare` makes."""
        if not os.path.exists(self.paths[key]):
            raise FileNotFoundError(f"{self.paths[key]} does not exist: run prepare first")
        return self.paths[key]

    def _prepared(self, matrix: Any, cells: Any, chosen: Any) -> Prepared:
        """What `prepare` made, with TPM from their file: only the tables need these, which are most of the memory."""
        tpm, _, genes = counts_of(self._made("tpm"))
        places = {gene: j for j, gene in enumerate(genes)}
        mean, variance = moments(tpm)
        where = np.array([places[gene] for gene in chosen])
        return Prepared(matrix, tpm, where, mean, np.sqrt(variance), cells, genes)


def stats_of(row: dict[str, Any], threshold: float, matrix: Any) -> list[float]:
    """The numbers that cNMF gives for a rank."""
    norm = float(np.square(matrix.data).sum())
    return [float(row["rank"]), threshold, row["stability"], norm * row["error"] ** 2]

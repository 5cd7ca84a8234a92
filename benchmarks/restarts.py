"""Time of restarts that share passes over X, as a share of the time of as many single fits.

    python benchmarks/restarts.py [--quick] [--starts 10] [--iterations 50] [--data NAME …]

Fits from ten starts to blood cells (3,774 × 16,791 genes, log-normalised, sparse, rank 20), as they are, as a dense
array, and as files that are read in chunks, with the same number of iterations each. One thread. Single fits and shared
ones alternate, and the script prints medians of the shares over three rounds: of CPU time, and of wall time, in which a
file has to be waited for. "file" is a dense .npy file; if it is "not cached", the operating system forgets it after
each read, as it does with a file larger than memory. The .h5ad files contain a sparse matrix, and are read as if it did
not fit into memory. The largest difference of factors after 20 iterations is relative to their largest entry. The cells
are read from the folder given by PARTWISE_DATA, or from the user's cache.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

if sys.path[0] == str(Path(__file__).parent):
    del sys.path[0]  # Dask, which AnnData imports, would take sparse.py of this folder for a library
sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

import partwise as pw
from experiments.loaders.catalogue import data_sets
from partwise.io.h5ad import as_rows
from partwise.recipes.many import fit_many

KINDS = ("sparse", "dense", "file", "file, not cached", ".h5ad", ".h5ad, gzip")


class Forgotten:
    """A .npy file that the operating system does not keep in memory."""

    def __init__(self, path: Path) -> None:
        mapped = np.load(path, mmap_mode="r")
        self.shape, self.dtype, self.offset = mapped.shape, mapped.dtype, mapped.offset
        self.file = path.open("rb", buffering=0)

    def __getitem__(self, rows: slice) -> np.ndarray:
        width = self.shape[1] * self.dtype.itemsize
        place, size = self.offset + rows.start * width, (rows.stop - rows.start) * width
        os.posix_fadvise(self.file.fileno(), place, size, os.POSIX_FADV_DONTNEED)
        self.file.seek(place)
        return np.fromfile(self.file, self.dtype, size // self.dtype.itemsize).reshape(-1, self.shape[1])


def cells_file(X: Any, path: Path, compression: str | None) -> Any:
    """The rows of an .h5ad file with a sparse X, which stay on disk."""
    import anndata  # only for these rows

    anndata.AnnData(csr_array(X)).write_h5ad(path, compression=compression)
    return as_rows(anndata.read_h5ad(path, backed="r").X, limit=0)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, and the CPU and wall seconds."""
    cpu, wall = process_time(), perf_counter()
    result = work()
    return result, process_time() - cpu, perf_counter() - wall


def largest_difference(X: Any, runs: list[dict[str, Any]], **options: Any) -> float:
    """Of the factors of shared and single fits after 20 iterations."""
    shared = fit_many(X, runs, max_iter=20, tol=0, **options)
    pairs = zip(shared, (pw.ssnmf(X, max_iter=20, tol=0, **run, **options) for run in runs), strict=True)
    return max(
        float(np.abs(mine - its).max() / np.abs(its).max())
        for one, other in pairs
        for mine, its in zip(one.factors, other.factors, strict=True)
    )


def compare(name: str, X: Any, r: int, starts: int, rounds: int, **options: Any) -> None:
    """Print the row of one kind of data."""
    runs = [{"n_components": r, "random_state": seed} for seed in range(starts)]
    differ = largest_difference(X, runs[: max(starts // 3, 2)], **{k: v for k, v in options.items() if k != "max_iter"})
    shares, seconds = [], 0.0
    for _ in range(rounds):
        _, cpu, wall = timed(lambda: fit_many(X, runs, tol=0, **options))
        _, alone, waited = timed(lambda: [pw.ssnmf(X, tol=0, **run, **options) for run in runs])
        shares.append((cpu / alone, wall / waited))
        seconds = alone / starts
    cpu, wall = (median(column) for column in zip(*shares, strict=True))
    print(
        f"{name:17} {starts} starts together: {cpu:.2f} of the CPU time of single fits ({seconds:.2f} s each), "
        f"{wall:.2f} of the wall time; factors differ by {differ:.1e}",
        flush=True,
    )


def main() -> None:
    """Print a row for each kind of data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="digits, three starts, few iterations")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=KINDS, default=[*KINDS])
    options = parser.parse_args()
    starts, iterations, rounds = (3, 5, 1) if options.quick else (options.starts, options.iterations, options.rounds)
    name, r, limit = ("digits", 8, 4 * 10**5) if options.quick else ("cells, all genes", 20, 2**28)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for _, X, _ in data_sets([name]):
            dense = X if options.quick else X.toarray()
            path = Path(folder) / "X.npy"
            np.save(path, dense)
            kinds = {
                "sparse": lambda X=X: X,
                "dense": lambda dense=dense: dense,
                "file": lambda path=path: path,
                "file, not cached": lambda path=path: Forgotten(path),
                ".h5ad": lambda X=X, path=path: cells_file(X, path.with_suffix(".h5ad"), None),
                ".h5ad, gzip": lambda X=X, path=path: cells_file(X, path.with_suffix(".gzip.h5ad"), "gzip"),
            }
            for kind in options.data:
                compare(kind, kinds[kind](), r, starts, rounds, max_iter=iterations, memory_limit=limit, n_threads=1)


if __name__ == "__main__":
    main()

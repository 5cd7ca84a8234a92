"""Time, memory, objective and stability of a consensus, against cNMF 1.7.1 with the same steps.

    python benchmarks/consensus.py [--quick] [--peer PYTHON] [--ranks 5:13] [--runs 20] [--seed 14] [--data 14]

Generated counts of 4,000 cells × 16,000 genes (5 % stored) with 10 planted programs; 2,000 over-dispersed genes. Both
sides run prepare, factorize, combine, k_selection_plot and consensus in their own process, on one thread, and write
the same files. ``--peer`` is a Python with cNMF (``make peers`` sets up .venv-peers); without cNMF only our side is
measured. CPU time is that of the steps, without imports and compilation. Peak memory is that of the process; the memory
after importing is printed, too. Run it twice: the first process compiles kernels, which takes 50 MB more. The objective
is the mean over all runs of ‖X − usages · spectra‖² / ‖X‖² with the best usages for the spectra of each run, found by
exact nonnegative least squares for both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

if sys.path[0] == str(Path(__file__).parent):
    del sys.path[0]  # Dask, which AnnData imports, would take sparse.py of this folder for a library

THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")
PRECISIONS = ("float32", "float64")  # of the tiny counts for which kernels are compiled
FULL = {"cells": 4000, "genes": 16000, "chosen": 2000, "programs": 10, "depth": 850}
QUICK = {"cells": 80, "genes": 300, "chosen": 100, "programs": 3, "depth": 300}


def planted(cells: int, genes: int, programs: int, depth: float, seed: int = 14, **_: Any) -> sp.csr_matrix:
    """Counts with planted programs, made in blocks of cells."""
    rng = np.random.default_rng(seed)
    parts = rng.gamma(0.1, 1, (programs, genes))
    background = rng.gamma(0.5, 1, genes)
    parts, background = parts / parts.sum(axis=1, keepdims=True), background / background.sum()
    blocks = []
    for first in range(0, cells, 250):
        size = min(250, cells - first)
        usage = rng.dirichlet(np.full(programs, 0.2), size)
        rates = 0.5 * usage @ parts + 0.5 * background
        blocks.append(sp.csr_matrix(rng.poisson(depth * rates * rng.gamma(8, 1 / 8, (size, 1))), dtype=np.float32))
    counts = sp.vstack(blocks).tocsr()
    return counts[:, np.asarray(counts.sum(axis=0)).ravel() > 0]


def memory() -> float:
    """Peak memory of this process in MB; where the system does not tell, the larger of its own and its parent's."""
    import resource

    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    own = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return (own or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] / 1024


def analyse(side: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Run all steps of one side, and return its figures."""
    import matplotlib as mpl

    mpl.use("agg")
    warnings.simplefilter("ignore")
    if side == "ours":
        from partwise.cells import cNMF

        warm_up(cNMF, folder)
    else:
        from cnmf import cNMF
    before, start = memory(), process_time()
    steps = {}
    one = cNMF(str(folder), side)
    options = {"num_highvar_genes": settings["chosen"], "seed": settings["seed"]}
    work = {
        "prepare": lambda: one.prepare(
            str(folder / "counts.h5ad"), components=settings["ranks"], n_iter=settings["runs"], **options
        ),
        "factorize": one.factorize,
        "combine": one.combine,
        "k_selection_plot": lambda: one.k_selection_plot(close_fig=True),
        "consensus": lambda: one.consensus(settings["at"], 2.0, close_clustergram_fig=True),
    }
    with contextlib.redirect_stdout(io.StringIO()):
        for name, step in work.items():
            began = process_time()
            step()
            steps[name] = process_time() - began
    return {"seconds": process_time() - start, "steps": steps, "imported": before, "peak": memory()}


def warm_up(kind: Any, folder: Path) -> None:
    """Compile all kernels, or load them from the cache."""
    for dtype in PRECISIONS:
        one = kind(str(folder), f"warm {dtype}")
        one.prepare(str(folder / f"{dtype}.h5ad"), components=[2, 3], n_iter=3, num_highvar_genes=50, seed=0)
        one.factorize()
        one.consensus(2, 2.0)


def in_its_process(python: str, side: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The figures of one side, or None if it is not installed."""
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in THREADS}
    command = [python, __file__, "--side", side, "--folder", str(folder), "--settings", json.dumps(settings)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        print(f"{side}: not measured: {' '.join(last)}")
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def objectives(side: str, folder: Path, settings: dict[str, Any]) -> float:
    """The mean objective over all runs, with the best usages."""
    import anndata
    from partwise.cells.frames import read_frame

    from partwise.data import as_data
    from partwise.engine.solving import solve_activations

    home = folder / side / "cnmf_tmp"
    data = as_data(anndata.read_h5ad(home / f"{side}.norm_counts.h5ad").X)
    names = [f"{side}.spectra.k_{k}.iter_{i}.df.npz" for k in settings["ranks"] for i in range(settings["runs"])]
    spectra = (read_frame(home / name).data.astype(float) for name in names)
    return float(np.mean([solve_activations(data, one.T).relative_error ** 2 for one in spectra]))


def silhouettes(side: str, folder: Path) -> np.ndarray:
    """The stability of each rank."""
    from partwise.cells.frames import read_frame

    stats = read_frame(folder / side / f"{side}.k_selection_stats.df.npz").pandas()
    return stats["silhouette"].to_numpy(dtype=float)


def main() -> None:
    """Measure both sides and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny data")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has cNMF")
    parser.add_argument("--ranks", default=None, help="first:last (default: 5:13)")
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--seed", type=int, default=14, help="of the starts")
    parser.add_argument("--data", type=int, default=14, help="seed of the counts")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--settings", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(analyse(options.side, options.folder, options.settings)))
        return
    import anndata

    size = QUICK if options.quick else FULL
    first, last = map(int, (options.ranks or ("2:4" if options.quick else "5:13")).split(":"))
    ranks = list(range(first, last + 1))
    at = size["programs"] if size["programs"] in ranks else ranks[-1]
    runs = options.runs or (4 if options.quick else 20)
    settings = {"ranks": ranks, "runs": runs, "seed": options.seed, "at": at, **size}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = planted(**size, seed=options.data)
        share = counts.nnz / np.prod(counts.shape)
        anndata.AnnData(counts).write_h5ad(folder / "counts.h5ad")
        for dtype in PRECISIONS:
            anndata.AnnData(planted(**QUICK).astype(dtype)).write_h5ad(folder / f"{dtype}.h5ad")
        print(
            f"{counts.shape[0]} × {counts.shape[1]}, {share:.1%} stored; ranks {first}–{last}, {settings['runs']} runs"
        )
        found: dict[str, Any] = {}
        for side, python in (("ours", sys.executable), ("theirs", options.peer)):
            figures = in_its_process(python, side, folder, settings)
            if figures is None:
                continue
            figures["objective"] = objectives(side, folder, settings)
            figures["silhouette"] = silhouettes(side, folder)
            found[side] = figures
            steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in figures["steps"].items())
            print(
                f"{side:7} {figures['seconds']:8.2f} s CPU ({steps}); peak {figures['peak']:.0f} MB, "
                f"{figures['imported']:.0f} MB of it after importing; mean objective {figures['objective']:.6f}; "
                f"silhouette {np.round(figures['silhouette'], 3).tolist()}"
            )
        if len(found) == 2:
            compare(found["ours"], found["theirs"])


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Print the ratios."""
    apart = ours["silhouette"] - theirs["silhouette"]
    grown = (ours["peak"] - ours["imported"]) / (theirs["peak"] - theirs["imported"])
    print(f"cNMF ÷ ours, CPU time: {theirs['seconds'] / ours['seconds']:.2f}")
    print(f"ours ÷ cNMF, peak memory: {ours['peak'] / theirs['peak']:.2f}; beyond importing: {grown:.2f}")
    print(f"ours − cNMF, mean objective: {ours['objective'] - theirs['objective']:+.2e}")
    print(f"ours − cNMF, silhouette: {apart.mean():+.4f} on average, {apart.min():+.4f} at worst")


if __name__ == "__main__":
    main()

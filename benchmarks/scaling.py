"""The cost model of docs/scaling.md: fit its constants, test its predictions, and extrapolate to a large cluster.

    python benchmarks/scaling.py [--quick]

Seconds per iteration on one thread, with X read from a file in the system's cache:

    a·n·m·r + b·n·m + c·n·r² + d·m·r² + e·chunks·m·r

(matrix products; reading X; sweeps over the activations; sweeps over the components; summing statistics), and on Dask

    [a·n·m·r + b·n·m + c·n·r² + e·chunks·m·r] / workers + d·m·r² + f·chunks + g·m·r·workers

(f: a task in the scheduler; g: sending one number of the components and receiving one of the statistics). The constants
are fitted to some sizes by nonnegative least squares on relative errors, and tested on others. Target: within 25 %.
(BLAS processes components in groups of four or eight, so 30 cost as much as 40, and a model linear in r is off by 15 %
there.)
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

sys.path[:] = [p for p in sys.path if Path(p).resolve() != Path(__file__).parent]  # Dask looks for a module "sparse"

import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from distributed import Client, LocalCluster, wait  # noqa: E402
from scipy.optimize import nnls  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import partwise as pw  # noqa: E402

Size = tuple[int, int, int, int]  # samples, features, rank, chunks
FITTED: list[Size] = [
    (40_000, 500, 10, 4),
    (40_000, 500, 40, 4),
    (20_000, 2000, 20, 8),
    (60_000, 1000, 20, 4),
    (6000, 8000, 20, 4),
    (6000, 8000, 40, 16),
    (12_000, 4000, 10, 8),
    (4000, 16_000, 10, 4),
    (20_000, 1000, 30, 4),
    (3000, 20_000, 30, 4),
    (3000, 20_000, 30, 24),
]
CHECKED: list[Size] = [(40_000, 1500, 30, 8), (8000, 6000, 25, 6), (30_000, 1000, 40, 12), (4000, 15_000, 20, 8)]
ON_DASK: list[Size] = [(40_000, 1000, 20, 8), (40_000, 1000, 20, 64), (8000, 8000, 20, 8), (4000, 20_000, 30, 16)]
CHECKED_ON_DASK: list[Size] = [(40_000, 2000, 30, 16), (10_000, 6000, 25, 32)]
QUICK: list[Size] = [(2000, 100, 5, 2), (4000, 50, 10, 4), (1000, 400, 5, 4), (3000, 200, 8, 3)]


def made_up(n: int, m: int, r: int) -> np.ndarray:
    """Data of rank r plus noise."""
    rng = np.random.default_rng(0)
    X = rng.random((n, r)) ** 3 @ rng.random((r, m)) ** 4
    X += 0.1 * rng.random(m)
    return X


def seconds(X: object, r: int, **asked: object) -> float:
    """The shortest time of an iteration with one sweep over each factor."""
    sweeps = {"component_sweeps": 1, "activation_sweeps": 1}
    result = pw.ssnmf(X, r, sparsity=0.6, tol=0, max_iter=9, random_state=0, **sweeps, **asked)
    return float(np.min(np.diff(result.times)[1:]))


def from_file(size: Size, folder: str) -> float:
    """Seconds per iteration for a file read in chunks, on one thread."""
    n, m, r, chunks = size
    path = Path(folder) / "x.npy"
    np.save(path, made_up(n, m, r))
    return seconds(str(path), r, memory_limit=4 * 8 * m * -(-n // chunks), n_threads=1)


def on_dask(size: Size, client: Client) -> float:
    """Seconds per iteration on Dask workers that hold the chunks."""
    n, m, r, chunks = size
    bounds = [*range(0, n, -(-n // chunks)), n]
    blocks = [da.from_delayed(delayed(made_up)(b - a, m, r), (b - a, m), dtype=float) for a, b in pairwise(bounds)]
    X = client.persist(da.concatenate(blocks))
    wait(X)
    return seconds(X, r)


def best_of_two(measure: Callable[[Size], float], *lists: list[Size]) -> list[list[float]]:
    """The shorter of two times for each size; all sizes are measured in turn, since the load of the machine varies."""
    rounds = [[[measure(size) for size in sizes] for sizes in lists] for _ in range(2)]
    return [[min(pair) for pair in zip(*times, strict=True)] for times in zip(*rounds, strict=True)]


def terms(size: Size) -> np.ndarray:
    """The factors of the constants a … e."""
    n, m, r, chunks = map(float, size)
    return np.array([n * m * r, n * m, n * r**2, m * r**2, chunks * m * r])


def fitted(rows: list[np.ndarray], times: list[float]) -> np.ndarray:
    """Nonnegative constants that minimise the squared relative errors."""
    table = np.array(rows) / np.array(times)[:, None]
    scale = np.linalg.norm(table, axis=0)
    return nnls(table / scale, np.ones(len(times)))[0] / scale


def dask_terms(size: Size, workers: int) -> np.ndarray:
    """The factors of the constants f and g."""
    return np.array([size[3], size[1] * size[2] * workers], dtype=float)


def shared(size: Size, constants: np.ndarray, workers: int) -> float:
    """Seconds that a … e predict for an iteration on Dask; the work on chunks is divided among the workers."""
    a, b, c, d, e = constants * terms(size)
    return float((a + b + c + e) / workers + d)


def report(name: str, sizes: list[Size], predicted: list[float], measured: list[float], claim: bool) -> None:
    """Print predicted and measured times."""
    for size, p, t in zip(sizes, predicted, measured, strict=True):
        n, m, r, chunks = size
        verdict = f"{'meets' if abs(p / t - 1) <= 0.25 else 'MISSES'} ± 25 %" if claim else ""
        print(f"{name} {n:6} × {m:6}, r {r:2}, {chunks:2} chunks: predicted {p:.4f}, measured {t:.4f} s {verdict}")


def main() -> None:
    """Fit the constants, test the predictions, and extrapolate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, without checking the target")
    quick = parser.parse_args().quick
    fit, check = (QUICK, QUICK[:1]) if quick else (FITTED, CHECKED)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1):
        times, checked = best_of_two(lambda size: from_file(size, folder), fit, check)
        constants = fitted([terms(size) for size in fit], times)
        report("fitted ", fit, [float(terms(s) @ constants) for s in fit], times, False)
        report("checked", check, [float(terms(s) @ constants) for s in check], checked, not quick)
    fit, check = (QUICK[:2], QUICK[2:3]) if quick else (ON_DASK, CHECKED_ON_DASK)
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
    rows, left = [], []
    for workers in (1, 2):
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
            times, found = best_of_two(lambda size, client=client: on_dask(size, client), fit, check)
            rows += [dask_terms(size, workers) for size in fit]
            left += [max(t - shared(size, constants, workers), 1e-4) for t, size in zip(times, fit, strict=True)]
    extra = fitted(rows, left)
    predicted = [shared(s, constants, 2) + float(dask_terms(s, 2) @ extra) for s in check]
    report("on Dask", check, predicted, found, not quick)
    a, b, c, d, e = constants
    f, g = extra
    print(f"a {a:.2e}  b {b:.2e}  c {c:.2e}  d {d:.2e}  e {e:.2e}  f {f:.2e}  g {g:.2e} seconds")
    print(f"products: {4 / a / 1e9 if a else np.inf:.1f} Gflop/s per additional component; {1e3 * f:.1f} ms per task")
    for n, m, r, workers, rows_ in ((10**9, 10**5, 50, 100, 20_000), (10**7, 10**4, 50, 100, 20_000)):
        chunks = n / rows_
        size = (n, m, r, int(chunks))
        work, tasks = shared(size, constants, workers), f * chunks
        sent = 2 * 8 * m * r * workers
        print(
            f"{n:.0e} × {m:.0e}, r {r}, {workers} workers, chunks of {rows_} samples: per pass {work:.0f} s of work, "
            f"{tasks:.0f} s of scheduling, {sent / 1e9:.1f} GB sent ({g * m * r * workers:.1f} s on this machine), "
            f"{8 * n * m / workers / 1e9:.0f} GB of X per worker"
        )


if __name__ == "__main__":
    main()

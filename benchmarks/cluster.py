"""Dask: two workers compared with one, one worker with a fit without Dask, and passes to the error of a plain fit.

    python benchmarks/cluster.py [--quick] [--gigabytes 4]

Fits the same data (4 GB, float64, 2000 features, 20 components, sparsity 0.6) three times: on a LocalCluster with one
and with two single-threaded workers, which keep their chunks in memory, and without Dask, from a file in chunks on one
thread. The scheduler and the client share the machine's cores with the workers. Prints the median time of an iteration.
The three fits alternate. Targets: two workers ≥ 1.5 × as fast as one; one worker ≤ 1.25 × the time without Dask.

Then, on two workers and a tenth of the data, with noise of 0.3 of the signal (root mean square) for each entry, it
prints how many passes over X the default fit has made, start included, when it reaches the error of 60 plain iterations
(``accelerate=False``) from samples. Target: ≤ 15.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

sys.path[:] = [p for p in sys.path if Path(p).resolve() != Path(__file__).parent]  # Dask looks for a module "sparse"

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from distributed import Client, LocalCluster, wait  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

import partwise as pw  # noqa: E402

R = 20
FEATURES = 2000
CHUNK = 8000
PLAIN, PASSES = 60, 15


def block(first: int, end: int, noisy: bool = False) -> np.ndarray:
    """Samples ``first`` to ``end`` of data of rank R plus noise; the same values in every call."""
    rng = np.random.default_rng(first)
    parts = np.random.default_rng(0).random((R, FEATURES)) ** 4
    signal = rng.random((end - first, R)) ** 3 @ parts
    if noisy:
        return signal + 0.3 * np.sqrt(np.mean(signal**2)) * np.abs(rng.standard_normal(signal.shape))
    return signal + 0.1 * rng.random(FEATURES)


def seconds(X: object, iterations: int, **asked: object) -> tuple[float, np.ndarray]:
    """The median time of an iteration, and the components."""
    result = pw.ssnmf(X, R, sparsity=0.6, tol=0, max_iter=iterations, random_state=0, **asked)
    return float(np.median(np.diff(result.times)[1:])), result.components


def on_cluster(workers: int, bounds: list[int], iterations: int) -> tuple[float, np.ndarray]:
    """The same on a LocalCluster of single-threaded worker processes."""
    with on_workers(workers, bounds) as X:
        return seconds(X, iterations)


@contextmanager
def on_workers(workers: int, bounds: list[int], noisy: bool = False) -> Iterator[da.Array]:
    """The data, in the memory of the workers of a cluster."""
    options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
    with LocalCluster(n_workers=workers, memory_limit="16 GB", **options) as cluster, Client(cluster) as client:
        made = [(delayed(block)(a, b, noisy), (b - a, FEATURES)) for a, b in pairwise(bounds)]
        X = client.persist(da.concatenate([da.from_delayed(*one, dtype=float) for one in made]))
        wait(X)
        yield X


def count_passes(bounds: list[int], plain: int) -> None:
    """Print the passes in which the default fit reaches the error of the plain iteration."""
    shared = {"sparsity": 0.6, "tol": 0, "random_state": 0}
    seen: list[pw.Iteration] = []
    with on_workers(2, bounds, noisy=True) as X:
        target = pw.ssnmf(X, R, **shared, init="samples", accelerate=False, max_iter=plain)

        def reached(here: pw.Iteration) -> bool:
            seen.append(here)
            return here.loss <= target.losses[-1] or here.passes > 4 * PASSES

        pw.ssnmf(X, R, **shared, max_iter=PLAIN + 4 * PASSES, callback=reached)
    last, found = seen[-1], seen[-1].loss <= target.losses[-1]
    verdict = f": {'meets' if found and last.passes <= PASSES else 'MISSES'} ≤ {PASSES}" if plain == PLAIN else ""
    print(
        f"{bounds[-1]} × {FEATURES} with noise: {plain} plain iterations reach a relative error of "
        f"{target.relative_error:.5f}; the default fit {'reaches' if found else 'does not reach'} it: "
        f"{last.relative_error:.5f} after {last.passes} passes in all{verdict}"
    )


def main() -> None:
    """Write the file, run the three fits in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="32 MB, without checking the targets")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    asked = parser.parse_args()
    size, chunk = (0.032, 500) if asked.quick else (asked.gigabytes, CHUNK)
    rows = int(size * 1e9 / 8 / FEATURES)
    bounds = [*range(0, rows, chunk), rows]
    iterations, rounds = (2, 1) if asked.quick else (6, 2)
    times: dict[str, list[float]] = {"without Dask": [], "one worker": [], "two workers": []}
    found = []
    with tempfile.TemporaryDirectory() as folder, dask.config.set({"distributed.admin.tick.limit": "1h"}):
        path = Path(folder) / "x.npy"
        array = np.lib.format.open_memmap(path, "w+", np.float64, (rows, FEATURES))
        for a, b in pairwise(bounds):
            array[a:b] = block(a, b)
        array.flush()
        del array
        for _ in range(rounds):
            with threadpool_limits(limits=1):
                time, parts = seconds(str(path), iterations, memory_limit="500 MB" if not asked.quick else "5 MB")
            times["without Dask"].append(time)
            found.append(parts)
            for workers, name in ((1, "one worker"), (2, "two workers")):
                time, parts = on_cluster(workers, bounds, iterations)
                times[name].append(time)
                found.append(parts)
    print(f"{rows} × {FEATURES}, {len(bounds) - 1} chunks, {R} components; seconds per iteration")
    for name, measured in times.items():
        print(f"  {name:13} {np.median(measured):7.3f}  ({', '.join(f'{t:.3f}' for t in measured)})")
    alone, one, two = (float(np.median(t)) for t in times.values())
    verdicts = [f": {'meets' if good else 'MISSES'}" for good in (one / two >= 1.5, one / alone <= 1.25)]
    faster, cost = ("", "") if asked.quick else (f"{verdicts[0]} ≥ 1.5", f"{verdicts[1]} ≤ 1.25")
    print(f"one worker ÷ two workers: {one / two:.2f}{faster}")
    print(f"one worker ÷ without Dask: {one / alone:.2f}{cost}")
    print(f"components differ by at most {max(abs(parts - found[0]).max() for parts in found):.1e}")
    few = rows if asked.quick else rows // 10
    count_passes([*range(0, few, chunk), few], 20 if asked.quick else PLAIN)


if __name__ == "__main__":
    main()

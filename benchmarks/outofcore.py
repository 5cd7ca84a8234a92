"""A file larger than memory: what a pass costs beside reading it, and beside its matrix products.

    python benchmarks/outofcore.py [--quick] [--gigabytes 12] [--folder DIR]

Makes an array of 12 GB on disk and fits rank 20 to it at sparsity .6, in a process of its own whose private memory is
limited to 1.5 GB by the system (RLIMIT_DATA). Per pass over the file: the time of a plain sequential read of it, the
time of the two matrix products on as much data in memory, and the time of an iteration. Before each of these the
system is told to drop the file from its cache, since a file larger than memory would not be there. Must show: an
iteration ≤ 1.25 × the larger of the two.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

R = 20
FEATURES = 2000
LIMIT = 1_500_000_000
PASSES = 3


def make(path: Path, rows: int) -> None:
    """Write an array of rank R and noise, block by block."""
    rng = np.random.default_rng(0)
    parts = rng.random((R, FEATURES)) ** 4
    array = np.lib.format.open_memmap(path, "w+", np.float64, (rows, FEATURES))
    for first in range(0, rows, 10_000):
        block = array[first : first + 10_000]
        block[:] = rng.random((len(block), R)) ** 3 @ parts
        block += 0.1 * rng.random(FEATURES)
    array.flush()


def forget(path: Path) -> None:
    """Let the system drop the file from its cache."""
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> float:
    """Seconds of a plain read from the first byte to the last."""
    forget(path)
    buffer = bytearray(2**26)
    started = perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return perf_counter() - started


def multiply(rows: int) -> float:
    """Seconds of the products with that many rows, a piece of them being in memory."""
    rng = np.random.default_rng(0)
    piece = min(rows, 30_000)
    X, parts = rng.random((piece, FEATURES)), np.asfortranarray(rng.random((FEATURES, R)))
    activations = np.asfortranarray(rng.random((piece, R)))
    out = np.empty((piece, R), order="F"), np.empty((FEATURES, R), order="F")
    best = np.inf
    for _ in range(5):
        started = perf_counter()
        np.matmul(parts.T, X.T, out=out[0].T)
        np.matmul(activations.T, X, out=out[1].T)
        best = min(best, perf_counter() - started)
    return best * rows / piece


def fit(path: Path, iterations: int, memory_limit: str) -> None:
    """Print the seconds of each iteration, and the private memory at its largest: what the limited process does."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    import partwise as pw

    result = pw.ssnmf(
        str(path),
        R,
        sparsity=0.6,
        tol=0,
        max_iter=iterations,
        random_state=0,
        memory_limit=memory_limit,
        callback=lambda here: forget(path),
    )
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(result.relative_error, int(peak) / 1e6, *np.diff(result.times)[1:].tolist())


def main() -> None:
    """Make the file, and time reading, products and iterations in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 MB, and no claims")
    parser.add_argument("--gigabytes", type=float, default=12.0)
    parser.add_argument("--folder", help="where the file is made")
    parser.add_argument("--fit", nargs=3, metavar=("PATH", "ITERATIONS", "MEMORY"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit:
        fit(Path(asked.fit[0]), int(asked.fit[1]), asked.fit[2])
        return
    rows = int((0.04 if asked.quick else asked.gigabytes) * 1e9 / 8 / FEATURES)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "x.npy"
        make(path, rows)
        print(f"{rows} × {FEATURES} in float64: {path.stat().st_size / 1e9:.2f} GB, rank {R}", flush=True)
        reads, products, iterations = [], [], []
        for _ in range(1 if asked.quick else 2):
            reads.append(read(path))
            products.append(multiply(rows))
            forget(path)
            command = [sys.executable, __file__, "--fit", str(path), str(PASSES), "5 MB" if asked.quick else "400 MB"]
            done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)
            error, peak, *seconds = map(float, done.stdout.split())
            iterations += seconds
        larger = max(min(reads), min(products))
        print(f"plain read        {min(reads):8.2f} s  ({path.stat().st_size / 1e9 / min(reads):.2f} GB/s)")
        print(f"matrix products   {min(products):8.2f} s  on data in memory")
        print(f"an iteration      {np.median(iterations):8.2f} s  (best {min(iterations):.2f}), error {error:.4f}")
        ratio = float(np.median(iterations)) / larger
        verdict = "" if asked.quick else f": {'meets' if ratio <= 1.25 else 'MISSES'} ≤ 1.25"
        print(f"an iteration ÷ the larger of the two: {ratio:.2f}{verdict}")
        print(f"private memory limited to {LIMIT / 1e9:.1f} GB; resident at most {peak:.2f} GB, shared pages included")


if __name__ == "__main__":
    main()

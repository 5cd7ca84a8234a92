"""A file larger than memory: time of an iteration, compared with reading the file and with the matrix products.

    python benchmarks/outofcore.py [--quick] [--gigabytes 12] [--folder DIR]

Writes an array of 12 GB to disk and fits 20 components at sparsity 0.6, in a process whose private memory is limited to
1.5 GB (RLIMIT_DATA). Measures in turn a plain sequential read of the file, the two matrix products on the same amount
of data in memory, and an iteration. Before each read, the file is dropped from the system's cache, because a file
larger than memory would not be in it. Target: an iteration takes ≤ 1.25 × the larger of the other two (medians).
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


def make(path: Path, rows: int) -> None:
    """Write an array of rank R plus noise, block by block."""
    rng = np.random.default_rng(0)
    parts = rng.random((R, FEATURES)) ** 4
    array = np.lib.format.open_memmap(path, "w+", np.float64, (rows, FEATURES))
    for first in range(0, rows, 10_000):
        block = array[first : first + 10_000]
        block[:] = rng.random((len(block), R)) ** 3 @ parts
        block += 0.1 * rng.random(FEATURES)
    array.flush()


def forget(path: Path) -> None:
    """Drop the file from the system's cache."""
    with open(path, "rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path: Path) -> float:
    """Seconds of a plain sequential read of the file."""
    forget(path)
    buffer = bytearray(2**26)
    started = perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return perf_counter() - started


def multiply(rows: int) -> float:
    """Seconds of the matrix products for that many rows, extrapolated from rows that fit into memory."""
    rng = np.random.default_rng(0)
    piece = min(rows, 20_000)
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


def fit(path: Path, rows: int, memory_limit: str, iterations: int) -> None:
    """Fit with limited memory; between iterations, time a plain read and the matrix products."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    import partwise as pw

    seconds: dict[str, list[float]] = {"read": [], "multiply": [], "iteration": []}
    last = [0.0]

    def between(here: pw.Iteration) -> None:
        if here.n_iter > 1:
            seconds["iteration"].append(perf_counter() - last[0])
        seconds["read"].append(read(path))
        seconds["multiply"].append(multiply(rows))
        forget(path)
        last[0] = perf_counter()

    asked = {"tol": 0, "max_iter": iterations, "random_state": 0, "memory_limit": memory_limit, "callback": between}
    result = pw.ssnmf(str(path), R, sparsity=0.6, **asked)
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    labels = {"read": "plain read", "multiply": "matrix products, data in memory", "iteration": "an iteration"}
    for name, label in labels.items():
        print(f"{label:32} {np.median(seconds[name]):8.2f} s  (best {min(seconds[name]):.2f})")
    read_, multiply_, iteration = (float(np.median(seconds[name])) for name in labels)
    ratio = iteration / max(read_, multiply_)
    verdict = f": {'meets' if ratio <= 1.25 else 'MISSES'} ≤ 1.25" if iterations > 3 else ""
    print(f"an iteration ÷ the larger of the two: {ratio:.2f}{verdict}; relative error {result.relative_error:.4f}")
    print(f"private memory limited to {LIMIT / 1e9:.1f} GB; peak resident memory {int(peak) / 1e6:.2f} GB, with shared")


def main() -> None:
    """Write the file, and fit it in a process with limited memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 MB, without checking the target")
    parser.add_argument("--gigabytes", type=float, default=12.0)
    parser.add_argument("--folder", help="folder for the file")
    parser.add_argument("--fit", nargs=4, metavar=("PATH", "ROWS", "MEMORY", "ITERATIONS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit:
        fit(Path(asked.fit[0]), int(asked.fit[1]), asked.fit[2], int(asked.fit[3]))
        return
    rows = int((0.04 if asked.quick else asked.gigabytes) * 1e9 / 8 / FEATURES)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "x.npy"
        make(path, rows)
        print(f"{rows} × {FEATURES} in float64: {path.stat().st_size / 1e9:.2f} GB, {R} components", flush=True)
        fixed = [str(path), str(rows), "5 MB" if asked.quick else "400 MB", "3" if asked.quick else "5"]
        subprocess.run([sys.executable, __file__, "--fit", *fixed], check=True)


if __name__ == "__main__":
    main()

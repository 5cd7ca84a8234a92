"""A file larger than memory: time of an iteration, and passes over the file to the error of 60 plain iterations.

    python benchmarks/outofcore.py [--quick] [--gigabytes 12] [--folder DIR] [--what time parts faces]

Writes an array of 12 GB to disk and fits 20 components at sparsity 0.6, in a process whose private memory is limited to
1.5 GB (RLIMIT_DATA). Measures in turn a plain sequential read of the file, the two matrix products on the same amount
of data in memory, and an iteration. Before each read, the file is dropped from the system's cache, because a file
larger than memory would not be in it. Target: an iteration takes ≤ 1.25 × the larger of the other two (medians).

Then, for two kinds of data with structure, it compares the default fit with 60 plain iterations (``accelerate=False``)
from samples, and prints how many passes over the file the default fit has made, start included, when it reaches the
error of the plain one. "parts": 20 planted components plus noise of 0.3 of the signal (root mean square). "faces": ORL
faces (2000 pixels; from the folder given by PARTWISE_DATA) of varying brightness, with noise of a tenth of each pixel.
Target: ≤ 15 passes, within the same memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds experiments/

R = 20
PLAIN, PASSES = 60, 15
BLOCK = 10_000
FEATURES = 2000
LIMIT = 1_500_000_000


def low_rank(rng: np.random.Generator) -> Callable[[int], np.ndarray]:
    """Samples of rank R plus a constant."""
    parts = rng.random((R, FEATURES)) ** 4
    return lambda count: rng.random((count, R)) ** 3 @ parts + 0.1 * rng.random(FEATURES)


def planted(rng: np.random.Generator) -> Callable[[int], np.ndarray]:
    """Samples of R planted components, plus the absolute value of Gaussian noise."""
    parts = rng.random((R, FEATURES)) ** 4

    def samples(count: int) -> np.ndarray:
        signal = rng.random((count, R)) ** 3 @ parts
        noise = np.abs(rng.standard_normal(signal.shape))
        return signal + 0.3 * np.sqrt(np.mean(signal**2)) * noise

    return samples


def faces(rng: np.random.Generator) -> Callable[[int], np.ndarray]:
    """Faces, drawn with replacement, of varying brightness, with noise."""
    from experiments.loaders.faces import load_orl

    images = load_orl()[0]
    images = images[:, np.linspace(0, images.shape[1] - 1, FEATURES).astype(int)]

    def samples(count: int) -> np.ndarray:
        drawn = images[rng.integers(len(images), size=count)] * (0.7 + 0.6 * rng.random((count, 1)))
        return np.maximum(drawn * (1 + 0.1 * rng.standard_normal(drawn.shape)), 0)

    return samples


DATA = {"time": low_rank, "parts": planted, "faces": faces}


def make(path: Path, rows: int, what: str) -> None:
    """Write an array, block by block."""
    samples = DATA[what](np.random.default_rng(0))
    array = np.lib.format.open_memmap(path, "w+", np.float64, (rows, FEATURES))
    for first in range(0, rows, BLOCK):
        block = array[first : first + BLOCK]
        block[:] = samples(len(block))
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
    """Fit; between iterations, time a plain read and the matrix products."""
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
    labels = {"read": "plain read", "multiply": "matrix products, data in memory", "iteration": "an iteration"}
    for name, label in labels.items():
        print(f"{label:32} {np.median(seconds[name]):8.2f} s  (best {min(seconds[name]):.2f})")
    read_, multiply_, iteration = (float(np.median(seconds[name])) for name in labels)
    ratio = iteration / max(read_, multiply_)
    verdict = f": {'meets' if ratio <= 1.25 else 'MISSES'} ≤ 1.25" if iterations > 3 else ""
    print(f"an iteration ÷ the larger of the two: {ratio:.2f}{verdict}; relative error {result.relative_error:.4f}")


def count_passes(path: Path, memory_limit: str, plain: int) -> None:
    """Print the passes in which the default fit reaches the error of the plain iteration."""
    import partwise as pw

    shared: dict[str, Any] = {"sparsity": 0.6, "tol": 0, "random_state": 0, "memory_limit": memory_limit}
    started = perf_counter()
    target = pw.ssnmf(str(path), R, **shared, init="samples", accelerate=False, max_iter=plain)
    plainly, started = perf_counter() - started, perf_counter()
    seen: list[pw.Iteration] = []

    def reached(here: pw.Iteration) -> bool:
        seen.append(here)
        return here.loss <= target.losses[-1] or here.passes > 4 * PASSES

    pw.ssnmf(str(path), R, **shared, max_iter=PLAIN + 4 * PASSES, callback=reached)
    seconds, last = perf_counter() - started, seen[-1]
    found = last.loss <= target.losses[-1]
    verdict = f": {'meets' if found and last.passes <= PASSES else 'MISSES'} ≤ {PASSES}" if plain == PLAIN else ""
    print(f"{plain} plain iterations reach a relative error of {target.relative_error:.5f} in {plainly:.0f} s")
    print(
        f"the default fit {'reaches' if found else 'does not reach'} it: {last.relative_error:.5f} after {last.passes} "
        f"passes in all{verdict}; {seconds:.0f} s ({seen[0].relative_error:.5f} after {seen[0].passes} passes)"
    )


def limited(what: str, path: Path, rows: int, memory_limit: str, iterations: int) -> None:
    """Measure with limited memory, and print the peak."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    if what == "time":
        fit(path, rows, memory_limit, iterations)
    else:
        count_passes(path, memory_limit, iterations)
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"private memory limited to {LIMIT / 1e9:.1f} GB; peak resident memory {int(peak) / 1e6:.2f} GB, with shared")


def main() -> None:
    """Write each file, and fit it in a process with limited memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 MB, without checking the target")
    parser.add_argument("--gigabytes", type=float, default=12.0)
    parser.add_argument("--folder", help="folder for the file")
    parser.add_argument("--what", nargs="+", choices=DATA, default=[*DATA])
    names = ("WHAT", "PATH", "ROWS", "MEMORY", "ITERATIONS")
    parser.add_argument("--fit", nargs=5, metavar=names, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit:
        what, place, count, memory, iterations = asked.fit
        limited(what, Path(place), int(count), memory, int(iterations))
        return
    size = 0.04 if asked.quick else asked.gigabytes
    rows = int(size * 1e9 / 8 / FEATURES)
    # chunks, and a low-rank X, in a thirtieth of the file; the start reads samples in addition
    memory = f"{max(size * 1e3 / 30, 5):.0f} MB"
    for what in asked.what:
        iterations = {"time": 3 if asked.quick else 5}.get(what, 20 if asked.quick else PLAIN)
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            path = Path(folder) / "x.npy"
            try:
                make(path, rows, what)
            except FileNotFoundError as error:
                print(f"{what} is skipped: {error}")
                continue
            size_now = path.stat().st_size / 1e9
            print(f"{what}: {rows} × {FEATURES} in float64: {size_now:.2f} GB, {R} components", flush=True)
            fixed = [what, str(path), str(rows), memory, str(iterations)]
            subprocess.run([sys.executable, __file__, "--fit", *fixed], check=True)


if __name__ == "__main__":
    main()

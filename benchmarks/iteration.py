"""Time of an iteration relative to its two matrix products; peak memory; time to import.

    python benchmarks/iteration.py [--quick]

Random nonnegative data of rank r plus noise, in the shapes of ORL, CBCL and the paper's sMRI scans. An iteration
consists of both statistics, one sweep over each factor, the Gram matrices and the loss. The script prints the median
over many iterations of the time of an iteration ÷ the time of the two matrix products in it. "default" is the same with
the number of sweeps that `ssnmf` chooses. Then follow the speedup by a second thread, the peak memory of a fit, and the
time that a new process takes to import Partwise. Targets: ratio ≤ 1.35 (float64) and 1.7 (float32) on one thread;
second thread ≥ 1.6 × at the largest shape.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from partwise.data import DenseData
from partwise.engine.blocks import Block
from partwise.engine.running import WholeFit
from partwise.engine.starts import starting_factors
from partwise.engine.validation import as_columns
from partwise.recipes import Task, ssnmf
from partwise.runtime.threads import fitting_threads
from partwise.runtime.together import alone
from partwise.updates import Sequential

SHAPES = {"ORL": (10304, 400, 25), "CBCL": (361, 2429, 49), "sMRI": (613410, 269, 40)}  # features, samples, rank
QUICK = {"tiny": (300, 80, 7)}
LIMITS = {"float64": 1.35, "float32": 1.7}
GAIN = 1.6  # speedup by a second thread at the largest shape


def made_up(features: int, samples: int, r: int, dtype: str) -> np.ndarray:
    """Data of rank r plus noise, filled row by row to avoid a temporary array of its size."""
    rng = np.random.default_rng(0)
    parts = rng.random((r, features), dtype=np.float32) ** 4
    X = np.empty((samples, features), dtype=dtype)
    for row in X:
        row[:] = rng.exponential(size=r).astype(np.float32) @ parts
        row += 0.1 * rng.random(features, dtype=np.float32)
    return X


def iterate(fit: WholeFit) -> None:
    alone(fit.update(1))
    alone(fit.update(0))
    fit.loss(0)


def running_fit(data: DenseData, r: int, sparsity: float, default: bool) -> WholeFit:
    """A fit after six iterations, with one sweep over each factor or with the default number."""
    sets = [as_columns(None, r), as_columns(sparsity, r)]
    sweeps = [Task(data, r, {}).sweeps(mode) if default else 1 for mode in (0, 1)]
    blocks = [Block(Sequential(n), s) for n, s in zip(sweeps, sets, strict=True)]
    fit = WholeFit(data, starting_factors("random", data, r, sets, np.random.default_rng(0)), blocks, None)
    for _ in range(6):
        iterate(fit)
    return fit


class Clocked(DenseData):
    """Data that records the time of its matrix products."""

    spent = 0.0

    def multiply(self, rest: np.ndarray, mode: int, out: np.ndarray) -> None:
        start = time.perf_counter()
        super().multiply(rest, mode, out)
        self.spent += time.perf_counter() - start


def timed(fit: WholeFit) -> tuple[float, float]:
    """Seconds of an iteration, and of the two matrix products in it."""
    fit.data.spent = 0.0
    start = time.perf_counter()
    iterate(fit)
    return time.perf_counter() - start, fit.data.spent


def compare(name: str, shape: tuple[int, int, int], dtype: str, threads: int) -> None:
    """Print one line per sparsity."""
    features, samples, r = shape
    data = Clocked(made_up(features, samples, r, dtype))
    rounds = 15 if features * samples > 1e8 else 101
    for sparsity in (0.2, 0.5, 0.8):
        fits = [running_fit(data, r, sparsity, default) for default in (False, True)]
        times = np.array([[timed(fit) for fit in fits] for _ in range(rounds)])
        once, default = np.median(times[:, :, 0] / times[:, :, 1], axis=0)
        outcome = ""
        if threads == 1 and name in SHAPES:
            outcome = f"{'meets' if once <= LIMITS[dtype] else 'misses'} ≤ {LIMITS[dtype]}"
        print(
            f"{name:5} {dtype} threads: {threads} sparsity {sparsity}: products {1e3 * times[:, :, 1].min():7.2f} ms, "
            f"iteration ÷ products {once:.3f} {outcome:13} default ÷ products {default:.3f}",
            flush=True,
        )


def two_threads(name: str, shape: tuple[int, int, int], dtype: str) -> None:
    """Print the speedup of two threads over one; a few iterations of each in turn."""
    features, samples, r = shape
    fit = running_fit(Clocked(made_up(features, samples, r, dtype)), r, 0.5, default=False)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for threads in [1, 2] * 6:
        with fitting_threads(np.inf, threads):
            iterate(fit)  # allocates the scratch memory
            seconds[threads] += [timed(fit)[0] for _ in range(5)]
    gain = np.median(seconds[1]) / np.median(seconds[2])
    outcome = f"  {'meets' if gain >= GAIN else 'misses'} ≥ {GAIN}" if name == "sMRI" else ""
    print(f"{name:5} {dtype} two threads ÷ one: {gain:.2f} × as fast{outcome}", flush=True)


def memory(shape: tuple[int, int, int], dtype: str) -> None:
    """Print the peak memory of a fit beyond X and imports, relative to the factors; needs a process of its own."""
    features, samples, r = shape
    X = made_up(features, samples, r, dtype)
    ssnmf(X, r, sparsity=0.5, max_iter=3, random_state=0)  # loads the kernels
    ctypes.CDLL(None).malloc_trim(0)  # returns freed memory to the system
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = resident("VmRSS")
    ssnmf(X, r, sparsity=0.5, max_iter=3, random_state=0)
    unit = (features + samples) * r * X.itemsize
    peak = resident("VmHWM") - before
    print(f"peak memory beyond X ({X.nbytes / 1e6:.0f} MB): {peak / 1e6:.0f} MB = {peak / unit:.1f} × the factors")


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def startup(rounds: int) -> None:
    """Print the time of a new process that imports Partwise or prints the help."""
    for label, command in (
        ("python -c pass", ["-c", "pass"]),
        ("import partwise", ["-c", "import partwise"]),
        ("python -m partwise --help", ["-m", "partwise", "--help"]),
        ("import partwise; partwise.ssnmf", ["-c", "import partwise; partwise.ssnmf"]),
        ("import partwise; partwise.SparseNMF", ["-c", "import partwise; partwise.SparseNMF"]),
    ):
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        print(f"{label:36} {np.median(times):.3f} s")


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one tiny shape")
    parser.add_argument("--memory", nargs=2, metavar=("SHAPE", "DTYPE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    shapes = QUICK if options.quick else SHAPES
    if options.memory:
        memory((SHAPES | QUICK)[options.memory[0]], options.memory[1])
        return
    for threads in (1, 2):
        with fitting_threads(np.inf, threads):
            for name, shape in shapes.items():
                for dtype in LIMITS:
                    compare(name, shape, dtype, threads)
    for name, shape in shapes.items():
        for dtype in LIMITS:
            two_threads(name, shape, dtype)
    for name in shapes:
        for dtype in LIMITS:
            print(f"{name} {dtype}: ", end="", flush=True)
            subprocess.run([sys.executable, __file__, "--memory", name, dtype], check=True)
    startup(1 if options.quick else 5)


if __name__ == "__main__":
    main()

"""Two threads for the update of the components: parallel matrix products or pairs of columns.

    python benchmarks/columns.py [--quick]

The paper suggests parallel coordinate descent as future work: update several columns at once. Two columns that change
together may overshoot, so each step must be damped. Since ΔjᵀΔk ≤ ½(‖Δj‖² + ‖Δk‖²), the loss decreases if the weight of
column j is raised from G_jj to G_jj + G_jk. For the shapes of ORL and sMRI at sparsity 0.5, the script prints the loss
after ten iterations, relative to the sequential pass, and the time of one pass over the components, for

- the sequential pass, with one and with two threads for its matrix products (two threads for the rows of each column
  were tried too, without a gain: the pass is limited by memory bandwidth);
- pairs of columns, each column on its own thread, with damping and without (where the loss may increase).
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from partwise.data import as_data
from partwise.engine.blocks import Block
from partwise.engine.loop import factorize
from partwise.engine.starts import scale_to, starting_factors
from partwise.engine.validation import as_columns
from partwise.runtime.threads import fitting_threads
from partwise.statistics import Stats
from partwise.updates import Columns, Sequential

SHAPES = {"ORL": (10304, 400, 25), "sMRI": (613410, 269, 40)}
QUICK = {"quick": (300, 40, 6)}
POOL = ThreadPoolExecutor(2)


@dataclass(frozen=True)
class Pairs:
    """Update two columns at a time, each on its own thread."""

    damped: bool = True

    def __call__(self, factor: np.ndarray, stats: Stats, sets: Columns, state: dict) -> tuple[np.ndarray, dict]:
        """Update ``factor`` in place."""
        gram = stats.gram.astype(factor.dtype)

        def solve(j: int, other: int) -> np.ndarray:
            weight = gram[j, j] + (gram[j, other] if self.damped and other != j else 0)
            b = stats.cross[:, j] - factor @ gram[:, j]
            b /= weight
            b += factor[:, j]
            return sets[j](b, near=factor[:, j])

        r = factor.shape[1]
        for j in range(0, r, 2):
            pair = [j, min(j + 1, r - 1)]
            columns = list(POOL.map(solve, pair, pair[::-1]))
            for column, k in zip(columns, pair, strict=True):
                factor[:, k] = column
        return factor, state


def compare(name: str, shape: tuple[int, int, int]) -> None:
    """Print one line per variant."""
    features, samples, r = shape
    rng = np.random.default_rng(0)
    X = rng.random((samples, r)) ** 3 @ rng.random((r, features)) ** 3
    X += 0.05 * rng.random(features)
    data = as_data(X)
    sets = [as_columns(None, r), as_columns(0.5, r)]
    first = None
    variants = {"sequential": (Sequential(), 1), "two threads": (Sequential(), 2), "pairs, damped": (Pairs(), 1)}
    variants["pairs, undamped"] = (Pairs(damped=False), 1)
    for label, (update, threads) in variants.items():
        factors = starting_factors("random", data, r, sets, np.random.default_rng(0))
        scale_to(data, factors, 0)
        blocks = [Block(Sequential(), sets[0]), Block(update, sets[1])]
        times = []
        with threadpool_limits(limits=threads):
            result = factorize(data, factors, blocks, before=(0,), tol=0, max_iter=10, balance=False)
            grams = [f.T @ f for f in result.factors]
            stats = data.statistics(result.factors, grams, 1)
            with fitting_threads(np.inf):
                for _ in range(5):
                    started = perf_counter()
                    blocks[1](result.factors[1].copy(order="F"), stats, {})
                    times.append(perf_counter() - started)
        first = result.losses[-1] if first is None else first
        rises = int(np.count_nonzero(np.diff(result.losses) > 0))
        print(
            f"{name:5} {label:20} loss {100 * (result.losses[-1] / first - 1):+7.3f} % after 10 iterations "
            f"({rises} increases), one pass {min(times):.4f} s",
            flush=True,
        )


def main() -> None:
    """Compare the variants at each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one tiny shape")
    for name, shape in (QUICK if parser.parse_args().quick else SHAPES).items():
        compare(name, shape)


if __name__ == "__main__":
    main()

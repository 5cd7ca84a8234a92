"""Zero-one weights compared with EM for missing entries: observed loss and time from the same starts.

    python benchmarks/weights.py [--quick]

X has planted components and noise. Entries are missing at random. Both fits run from the same start, in turn, until
their components have settled. The table shows the means of the observed losses and of the CPU seconds, and for how many
seeds the loss with weights is no higher than that of EM (within 0.1 %).

Fits with weights take fewer iterations, and the default tolerance stops them sooner. The last columns therefore show
longer fits (tol=0.001): for how many seeds the one with weights reaches the loss at which EM stopped, and the mean CPU
seconds until then; and for how many seeds its loss at the end is no higher than that of EM with the same tolerance
(within 0.01 %). One thread.
"""

import argparse
import itertools
import time
from typing import Any

import numpy as np

import partwise as pw
from partwise.projections import Hoyer

TIGHT = 1e-3


def planted(seed: int, n: int, m: int, r: int) -> Any:
    rng = np.random.default_rng(seed)
    parts = np.array([Hoyer(0.6)(rng.random(m) ** 4) for _ in range(r)])
    return rng.random((n, r)) ** 2 @ parts + 0.01 * rng.random((n, m))


def timed(*args: Any, **options: Any) -> tuple[Any, float]:
    start = time.process_time()
    result = pw.ssnmf(*args, n_threads=1, **options)
    return result, time.process_time() - start


def compare(share: float, sparsity: float | None, seeds: int, n: int, m: int, r: int) -> str:
    losses, seconds, ends = np.empty((seeds, 2)), np.empty((seeds, 2)), np.empty((seeds, 2))
    reached = np.full(seeds, np.nan)
    for seed in range(seeds):
        X = planted(seed, n, m, r)
        seen = np.random.default_rng(seed).random(X.shape) >= share
        asked = {"sparsity": sparsity, "random_state": seed}
        for place, kind in enumerate(("observed", "weights")):
            fit, spent = timed(X, r, **asked, **{kind: seen})
            losses[seed, place], seconds[seed, place] = fit.losses[-1], spent
            fit, spent = timed(X, r, tol=TIGHT, **asked, **{kind: seen})
            ends[seed, place] = fit.losses[-1]
        there = np.flatnonzero(fit.losses <= losses[seed, 0])
        reached[seed] = spent * fit.times[there[0]] / fit.times[-1] if there.size else np.nan
    (em_loss, loss), (em_seconds, second) = losses.mean(axis=0), seconds.mean(axis=0)
    found = reached[np.isfinite(reached)]
    until = found.mean() if found.size else np.nan
    lower, same = int((losses[:, 1] <= 1.001 * losses[:, 0]).sum()), int((ends[:, 1] <= 1.0001 * ends[:, 0]).sum())
    return (
        f"{share:>8.0%}{sparsity!s:>10}{em_loss:>12.4g}{loss:>12.4g}{em_seconds:>10.3f}{second:>12.3f}"
        f"{lower:>7} of {seeds}{found.size:>4} of {seeds}{until:>10.3f}"
        f"{same:>7} of {seeds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small X, one seed")
    quick = parser.parse_args().quick
    size, seeds = ((40, 50, 3), 1) if quick else ((400, 300, 10), 3)
    pw.ssnmf(planted(0, 20, 30, 2), 2, sparsity=0.6, sample_weight=np.arange(20), max_iter=2)  # compiles
    print(f"{size[0]} × {size[1]}, {size[2]} components, {seeds} seeds")
    names = ("sparsity", "EM", "weights", "EM, s", "weights, s")
    widths = (10, 12, 12, 10, 12)
    print(f"{'missing':>8}", *(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)), sep="", end="")
    print("  no higher  reached  after, s  no higher")
    for share, sparsity in itertools.product((0.1, 0.5, 0.8), (None, 0.6)):
        print(compare(share, sparsity, seeds, *size), flush=True)


if __name__ == "__main__":
    main()

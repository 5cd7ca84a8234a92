"""Figure 2: the time of Sparse-opt and of Projection-Hoyer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from partwise.projections import sparse_opt
from partwise.projections.sparsity import l1_norm
from partwise.statistics import Array

from .curves import Line, Panel, curves
from .experiment import Experiment, Tell, judged
from .rows import Rows, between, distinct, pick

FAST, HOYER = "Sparse-opt, ours (linear time)", "Projection-Hoyer"
PRINTED = ("Sparse-opt, as printed (compiled)", "Sparse-opt, as printed (NumPy)")  # both sort the vector


def in_numpy(b: Array, k: float) -> Array:
    """Algorithm 2 as printed, with cumulative sums for its loop; for input without ties or extreme values."""
    a = np.sort(b)[::-1]
    first = math.floor(k * k)
    p = np.arange(first + 1, a.size + 1)
    s1, s2 = np.cumsum(a)[first:], np.cumsum(a * a)[first:]
    lam = -np.sqrt((p * s2 - s1 * s1) / (p - k * k))
    mu = -s1 / p - k / p * lam
    past = a[first:] < -mu
    last = int(past.argmax()) - 1 if past.any() else len(p) - 1
    return np.asarray(np.maximum(-(b + mu[last]) / lam[last], 0))


WAYS: dict[str, Callable[[Array, float], Array]] = {
    FAST: sparse_opt,
    PRINTED[0]: partial(sparse_opt, method="sorted"),
    PRINTED[1]: in_numpy,
    HOYER: partial(sparse_opt, method="hoyer"),
}


@dataclass(frozen=True)
class Size:
    """Vectors of 100·2^i entries for i below ``doublings``; ``problems`` vectors of each size."""

    doublings: int
    sparsities: tuple[float, ...]
    problems: int


def run(size: Size, tell: Tell) -> Rows:
    """Time each method on the same vectors, uniform in [0, 1]."""
    rng = np.random.default_rng(0)
    for way in WAYS.values():
        way(rng.random(200), 5.0)  # compiles
    rows: Rows = []
    for i in range(size.doublings):
        m = 100 * 2**i
        tell(2.0 ** (i - size.doublings), f"{m} entries")
        vectors = [rng.random(m) for _ in range(size.problems)]
        for sparsity in size.sparsities:
            for label, way in WAYS.items():
                times = [timed(vector, l1_norm(sparsity, m), way) for vector in vectors]
                low, high = np.quantile(times, [0.1, 0.9])
                rows.append(
                    {
                        "data": "uniform random vectors",
                        "method": label,
                        "sparsity": sparsity,
                        "size": m,
                        "problems": size.problems,
                        "mean_seconds": float(np.mean(times)),
                        "tenth_percentile": float(low),
                        "ninetieth_percentile": float(high),
                    }
                )
    return rows


def timed(vector: Array, k: float, way: Callable[[Array, float], Array]) -> float:
    """Seconds of one call, including the input checks of our functions."""
    began = perf_counter()
    way(vector, k)
    return perf_counter() - began


def draw(rows: Rows) -> Any:
    """Draw the mean time against size; the band contains 80 % of the problems."""
    panels = []
    for sparsity in distinct(rows, "sparsity"):
        lines = []
        for method in distinct(rows, "method"):
            own = pick(rows, sparsity=sparsity, method=method)
            columns = ("size", "mean_seconds", "tenth_percentile", "ninetieth_percentile")
            x, y, low, high = ([row[column] for row in own] for column in columns)
            lines.append(Line(method, x, y, low, high))
        panels.append(Panel(f"sparsity {sparsity:g}", lines))
    title = f"Nearest sparse vector: mean time of {rows[0]['problems']} random problems"
    return curves(panels, title=title, x="entries of the vector", y="time (s)", caption="band: 10th to 90th percentile")


def verdict(rows: Rows) -> str:
    """Sparse-opt is faster on average over all sizes and sparsities, as printed and in our version."""
    mean = {(r["method"], r["sparsity"], r["size"]): r["mean_seconds"] for r in rows}
    cases = [key[1:] for key in mean if key[0] == HOYER]
    largest = max(distinct(rows, "size"))

    def ahead(*ways: str) -> tuple[float, str]:
        """Speedup of the fastest of these over Projection-Hoyer: on average, and at the largest size."""
        ratios = {case: mean[HOYER, *case] / min(mean[way, *case] for way in ways) for case in cases}
        average = float(np.exp(np.mean(np.log(list(ratios.values())))))
        return average, between(ratio for case, ratio in ratios.items() if case[1] == largest)

    printed, ours = ahead(*PRINTED), ahead(FAST)
    growth = ", ".join(f"{way} m^{exponent(rows, way):.2f}" for way in WAYS)
    return judged(
        [printed[0] > 1, ours[0] > 1],
        f"time of Projection-Hoyer ÷ time of Sparse-opt, geometric mean over sizes and sparsities: as printed (the "
        f"faster of two implementations) {printed[0]:.2f} ({printed[1]} at m = {largest}), ours {ours[0]:.2f} "
        f"({ours[1]}); growth on these random problems: {growth}",
    )


def exponent(rows: Rows, way: str) -> float:
    """The slope of log time against log size, over the larger half of the sizes."""
    sizes = distinct(rows, "size")
    own = [row for row in pick(rows, method=way) if row["size"] in sizes[len(sizes) // 2 :]]
    x, y = (np.log([row[column] for row in own]) for column in ("size", "mean_seconds"))
    return float(np.polyfit(x, y, 1)[0])


EXPERIMENT = Experiment(
    name="figure2",
    title="Sparse-opt and Projection-Hoyer",
    claim="Sparse-opt is faster on average than Projection-Hoyer on random problems",
    full=Size(13, (0.2, 0.4, 0.6, 0.8), 40),
    quick=Size(5, (0.2, 0.8), 5),
    run=run,
    draw=draw,
    verdict=verdict,
)

"""Figure 2: the nearest sparse vector, by Sparse-opt and by Projection-Hoyer."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from ..plotting import Line, Panel, curves
from ..projections import Method, sparse_opt
from ..projections.sets import l1_norm
from .experiment import Experiment, Tell, judged
from .rows import Rows, between, distinct, pick

PRINTED, FAST, HOYER = "Sparse-opt, as printed (sorting)", "Sparse-opt, ours (linear time)", "Projection-Hoyer"
WAYS: dict[str, Method] = {FAST: "fast", PRINTED: "sorted", HOYER: "hoyer"}


@dataclass(frozen=True)
class Size:
    """Vectors of 100·2^i entries for i below ``doublings``, so many problems each."""

    doublings: int
    sparsities: tuple[float, ...]
    problems: int


def run(size: Size, tell: Tell) -> Rows:
    """Time each way on the same vectors, uniform in [0, 1]."""
    rng = np.random.default_rng(0)
    for way in WAYS.values():
        sparse_opt(rng.random(200), 5.0, method=way)  # compiles
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


def timed(vector: Any, k: float, way: Method) -> float:
    """Seconds of one call, checks of its input included."""
    began = perf_counter()
    sparse_opt(vector, k, method=way)
    return perf_counter() - began


def draw(rows: Rows) -> Any:
    """Mean time against size; the band holds eight problems of ten."""
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
    """Faster on average: over all sizes and sparsities, the printed one and ours."""
    mean = {(r["method"], r["sparsity"], r["size"]): r["mean_seconds"] for r in rows}
    cases = [key[1:] for key in mean if key[0] == HOYER]
    ratios = {way: np.array([mean[HOYER, *case] / mean[way, *case] for case in cases]) for way in (PRINTED, FAST)}
    average = {way: float(np.exp(np.mean(np.log(ratio)))) for way, ratio in ratios.items()}
    largest = max(distinct(rows, "size"))
    at_most = {way: between([mean[HOYER, *c] / mean[way, *c] for c in cases if c[1] == largest]) for way in ratios}
    growth = ", ".join(f"{way} m^{exponent(rows, way):.2f}" for way in WAYS)
    return judged(
        [average[PRINTED] > 1, average[FAST] > 1],
        f"time of Projection-Hoyer ÷ time of Sparse-opt, geometric mean over sizes and sparsities: as printed "
        f"{average[PRINTED]:.2f} ({at_most[PRINTED]} at m = {largest}), ours {average[FAST]:.2f} ({at_most[FAST]}); "
        f"growth on these random problems: {growth}",
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

"""Figure 1, right: half of the components in an interval of sparsity, the others at one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.plotting import new_figure

from .experiment import Experiment, Tell, judged
from .figure1_left import Size
from .mosaics import draw_mosaic
from .race import DEFAULT, PRINTED
from .rows import Rows, distinct, pick
from .sources import few_digits, orl

LOW, HIGH, FIXED = 0.2, 0.4, 0.7


def run(size: Size, tell: Tell) -> Rows:
    """Fit with both versions of SSNMF and each seed; one row per component."""
    source = size.data()
    half = size.rank // 2
    asked: list[Any] = [(LOW, HIGH)] * half + [FIXED] * (size.rank - half)
    rows: Rows = []
    for seed in range(size.seeds):
        for done, method in enumerate((DEFAULT, PRINTED)):
            tell((seed + done / 2) / size.seeds, f"seed {seed}: {method.label}")
            result = method.recipe(
                source.X,
                size.rank,
                sparsity=asked,
                max_iter=size.updates,
                tol=0.0,
                random_state=seed,
                n_threads=1,
                **method.options,
            )
            rows += [
                {
                    "data": source.name,
                    "method": method.label,
                    "seed": seed,
                    "part": j,
                    "asked": f"{FIXED:g}" if j >= half else f"{LOW:g} to {HIGH:g}",
                    "sparsity": float(result.sparsity[j]),
                    "zeros": float(np.mean(part == 0)),
                    "relative_error": float(result.relative_error),
                    "image": part.reshape(source.shape),
                }
                for j, part in enumerate(result.components)
            ]
    return rows


def draw(rows: Rows) -> Any:
    """Draw the components of the first seed, and a histogram of all sparsities."""
    shape = rows[0]["image"].shape
    methods = distinct(rows, "method")
    figure = new_figure(12, 5)
    axes = figure.subplots(1, 3)
    for axis, method in zip(axes, methods, strict=False):
        parts = np.array([row["image"].ravel() for row in pick(rows, method=method, seed=0)])
        draw_mosaic(axis, method, parts, shape)
    edges = np.arange(-0.01, 1.02, 0.02)  # 0.2, 0.4 and 0.7 are in the middle of a bin
    values = [[row["sparsity"] for row in pick(rows, method=method)] for method in methods]
    axes[2].axvspan(LOW, HIGH, color="0.9", label=f"asked: {LOW:g} to {HIGH:g}")
    axes[2].axvline(FIXED, color="0.7", linestyle="--", label=f"asked: {FIXED:g}")
    axes[2].hist(values, edges, label=methods, color=["#0072b2", "#d55e00"])
    axes[2].set_xlabel("achieved sparsity (Hoyer)")
    axes[2].set_ylabel(f"parts of {len(distinct(rows, 'seed'))} seeds")
    figure.legend(loc="outside lower right", ncols=4, fontsize=9)
    figure.suptitle(f"{rows[0]['data']}: half of the parts between {LOW:g} and {HIGH:g}, the others at {FIXED:g}")
    return figure


def verdict(rows: Rows) -> str:
    """Every component has the requested sparsity."""
    slack = 1e-6
    fixed = pick(rows, asked=f"{FIXED:g}")
    free = [row for row in rows if row["asked"] != f"{FIXED:g}"]
    at_fixed = [abs(row["sparsity"] - FIXED) < slack for row in fixed]
    inside = [LOW - slack < row["sparsity"] < HIGH + slack for row in free]
    ends = np.mean([min(abs(row["sparsity"] - LOW), abs(row["sparsity"] - HIGH)) < slack for row in free])
    return judged(
        [all(at_fixed), all(inside)],
        f"{sum(inside)} of {len(free)} components are in [{LOW:g}, {HIGH:g}] ({ends:.0%} of them at an end), "
        f"{sum(at_fixed)} of {len(fixed)} at {FIXED:g}; zeros: {np.mean([r['zeros'] for r in free]):.0%} of the pixels "
        f"of the former, {np.mean([r['zeros'] for r in fixed]):.0%} of the latter",
    )


EXPERIMENT = Experiment(
    name="figure1_right",
    title="Faces: an interval of sparsity for some parts, a value for others",
    claim="a trivial change to the sequential pass handles intervals of sparsity: half of the components in "
    "[0.2, 0.4], the others at 0.7, give global and local features",
    full=Size(orl, 25, 5, 100),
    quick=Size(few_digits, 6, 2, 10),
    run=run,
    draw=draw,
    verdict=verdict,
)

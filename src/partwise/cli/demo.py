"""``partwise demo``: the strokes of handwritten digits."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..runtime.files import replacing
from .common import PICTURES


def add(commands: Any) -> None:
    """Add the command's parser."""
    show = commands.add_parser(
        "demo",
        help="find the strokes of handwritten digits at three sparsities, and draw them",
        description="Fit the 1797 handwritten digits (8 × 8 pixels) that come with scikit-learn at each sparsity, "
        "print what was asked for and what was achieved, and draw the parts.",
    )
    show.add_argument("-r", "--components", type=int, default=16, metavar="R", help="number of parts (default: 16)")
    show.add_argument(
        "--sparsity", type=float, nargs="+", default=[0.4, 0.6, 0.8], metavar="S", help="0 is flat, 1 is one pixel"
    )
    show.add_argument("--seed", type=int, default=0)
    show.add_argument("--out", type=Path, default=Path("partwise-demo.png"), help="picture to write")
    show.set_defaults(run=demo)


def demo(options: argparse.Namespace) -> int:
    """Fit the digits at each sparsity; a table and a picture."""
    from rich.console import Console
    from rich.table import Table

    from ..datasets import load_digits
    from ..engine.progress import progress_line
    from ..io import check_target
    from ..plotting import gallery, new_figure
    from ..recipes import ssnmf

    picture = check_target(options.out if options.out.suffix else options.out.with_suffix(".png"), PICTURES)
    X, shape = load_digits()
    figure = new_figure(4.2 * len(options.sparsity), 4.5)
    panels = figure.subfigures(1, len(options.sparsity), squeeze=False)[0]
    table = Table(title=f"{len(X)} handwritten digits, {options.components} parts")
    for heading in ("requested sparsity", "achieved sparsity", "relative error", "iterations", "seconds"):
        table.add_column(heading, justify="right")
    with Console(stderr=True).status("Compiling kernels (once: the next run finds them in the cache)"):
        ssnmf(X[:20], 2, sparsity=0.1, max_iter=1)
    for sparsity, panel in zip(options.sparsity, panels, strict=True):
        with progress_line(f"sparsity {sparsity:g}") as callback:
            result = ssnmf(
                X, options.components, sparsity=sparsity, max_iter=500, random_state=options.seed, callback=callback
            )
        achieved = f"{result.sparsity.mean():.6f} ± {abs(result.sparsity - sparsity).max():.0e}"
        error, seconds = f"{result.relative_error:.4f}", f"{result.times[-1]:.2f}"
        table.add_row(f"{sparsity:g}", achieved, error, str(result.n_iter), seconds)
        title = f"sparsity {sparsity:g}, relative error {result.relative_error:.3f}"
        gallery(result, shape, labels=False, title=title, figure=panel)
        if "interrupted" in result.stop_reason:
            raise KeyboardInterrupt
    Console().print(table)
    with replacing(picture) as fresh:
        figure.savefig(fresh)
    print(f"The parts are drawn in {picture}")
    return 0

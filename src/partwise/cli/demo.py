"""``partwise demo``: handwritten digits at several sparsities."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..runtime.files import replacing
from ..runtime.untrusted import visible
from .outputs import PICTURES, add_force, check_targets

SUMMARY = "Fit handwritten digits at several sparsities and draw the components"
USAGE = "[options]"
EXAMPLES = """\
  partwise demo
  partwise demo --components 25 --sparsity 0.3 0.7 --out strokes.png

The data are the 1797 images (8 × 8 pixels) that come with scikit-learn.
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "-r", "--components", type=int, default=16, metavar="R", help="number of components (default: %(default)s)"
    )
    parser.add_argument(
        "-s",
        "--sparsity",
        type=float,
        nargs="+",
        default=[0.4, 0.6, 0.8],
        metavar="S",
        help="sparsities to fit, from 0 (flat) to 1 (a single pixel) (default: 0.4 0.6 0.8)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: %(default)s)")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("partwise-demo.png"),
        metavar="FILE",
        help="picture to write: .png, .pdf, .svg (default: %(default)s)",
    )
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    """Fit the digits at each sparsity; print a table and draw the components."""
    from rich.console import Console
    from rich.table import Table

    from ..datasets import load_digits
    from ..engine.natural import no_advice
    from ..engine.progress import progress_line
    from ..plotting import gallery, new_figure
    from ..recipes import ssnmf

    out = options.out if options.out.suffix else options.out.with_suffix(".png")
    picture = check_targets(options, {"picture": (out, PICTURES)})["picture"]
    X, shape = load_digits()
    figure = new_figure(4.2 * len(options.sparsity), 4.5)
    panels = figure.subfigures(1, len(options.sparsity), squeeze=False)[0]
    table = Table(title=f"{len(X)} handwritten digits, {options.components} components")
    for heading in ("requested sparsity", "achieved sparsity", "relative error", "iterations", "seconds"):
        table.add_column(heading, justify="right")
    with Console(stderr=True).status("Compiling (first run only; later runs use the cache)"), no_advice():
        ssnmf(X[:20], 2, sparsity=0.1, max_iter=1)
    for sparsity, panel in zip(options.sparsity, panels, strict=True):
        with progress_line(f"sparsity {sparsity:g}") as callback, no_advice():
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
    print(visible(f"picture: {picture}"))
    return 0

"""``partwise fit``: factorize data from files."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import FLAGS
from ..runtime.files import replacing
from .common import PICTURES, add_data, add_verbosity, check_targets, described, facts_about, print_results, read_data
from .fixed import set_fixed
from .model_options import CHECKPOINTING, add_flags, add_model_options, build_model

if TYPE_CHECKING:
    from ..io import Table

SUMMARY = "Factorize data into components of a given sparsity"
USAGE = "DATA [DATA …] --components R --sparsity S [options]"
EXAMPLES = """\
  partwise fit faces/ --components 25 --sparsity 0.7 --png components.png
  partwise fit counts.csv -r 12 -s 0.5:0.8 --components-out genes.csv --activations-out cells.csv
  partwise fit 'subjects/*.nii.gz' --mask mask.nii.gz -r 40 -s 0.8 --components-out components.nii.gz
  partwise fit cells.h5ad -r 20 -s 0.6 --components-out cells.h5ad   add the results to the AnnData file
  partwise fit large.npy -r 50 -s 0.7 --checkpoint fit.ckpt          save the state of the fit regularly
  partwise fit large.npy -r 50 -s 0.7 --resume fit.ckpt              continue after a crash
  partwise fit x.npz --recipe l0 --nonzeros 20                       at most 20 nonzeros per component
  partwise fit gaps.csv -r 8 --missing em                            treat empty cells as missing, not as 0
  partwise fit spectra.csv -r 8 --fixed-components known.csv         keep known components, find the others

Ctrl-C stops the fit after the current iteration and writes the results so far.
`partwise info DATA` suggests a sparsity to start from.
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    add_model_options(parser)
    group = parser.add_argument_group("Output")
    group.add_argument("-o", "--out", metavar="MODEL", help="model file (default: name of the data + .pw)")
    group.add_argument(
        "--components-out",
        metavar="FILE",
        help="write the components: .csv or .tsv (one column each), .nii.gz, .h5ad, .npy",
    )
    group.add_argument(
        "--activations-out", metavar="FILE", help="write the activations, one row per sample: .csv, .tsv, .npy"
    )
    group.add_argument("--png", metavar="FILE", help=f"draw the components: {', '.join(PICTURES)}")
    add_flags(parser.add_argument_group("Checkpointing"), {name: FLAGS[name] for name in CHECKPOINTING})
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    from ..io.write import ACTIVATIONS, COMPONENTS
    from ..runtime.interrupts import interrupts

    model = build_model(options)
    wanted = {
        "model": (options.out or f"{stem(options.data)}.pw", ()),
        "components": (options.components_out, COMPONENTS),
        "activations": (options.activations_out, ACTIVATIONS),
        "picture": (options.png, PICTURES),
    }
    targets = check_targets(options, wanted)
    table = read_data(options)
    check_writable(targets, table)
    set_fixed(model, options, table)
    model.set_params(verbose=int(not options.quiet))
    with interrupts() as interrupted:
        activations = model.fit_transform(table.X)
        model.set_params(verbose=0, checkpoint=None, resume_from=None)  # settings of this run, not of the saved model
        write(model, activations, table, targets)
        stopped = bool(interrupted)
    report(options, model, table, targets, stopped)
    if stopped:
        message = "interrupted after iteration %d: the results so far are in %s"
        logging.getLogger("partwise").warning(message, model.n_iter_, targets["model"])
    return 130 if stopped else 0


def check_writable(targets: dict[str, Path], table: Table) -> None:
    """Report outputs that cannot be written before a long fit rather than after it."""
    from ..io.write import check_components_target
    from ..plotting import new_figure

    if "components" in targets:
        check_components_target(targets["components"], table)
    if "picture" in targets:
        new_figure(1, 1)


def stem(data: list[str]) -> str:
    """The default name of the model: that of the data file, or of the folder of several files."""
    path = Path(data[0].split(":")[0])
    several = len(data) > 1 or any(sign in path.name for sign in "*?[")
    name = path.resolve().parent.name if several else path.resolve().name
    return name.lstrip(".").split(".")[0] or "model"


def write(model: Any, activations: Any, table: Table, targets: dict[str, Path]) -> None:
    """Write the outputs; the model first, so that a later failure cannot lose it."""
    import numpy as np

    from .. import cells
    from ..io import write_activations, write_components

    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.keep(activations, table.sample_names, table.part_shape, origin=table.origin)
    model.save(targets["model"])
    if "components" in targets:
        about = cells.fit_record(model)
        write_components(targets["components"], model.components_, table, activations=activations, about=about)
    if "activations" in targets:
        write_activations(targets["activations"], activations, table.sample_names)
    if "picture" in targets:
        draw(targets["picture"], model, table.feature_names or ("",))


def draw(path: Path, model: Any, names: tuple[str, ...]) -> None:
    """Draw the components as `gallery` does; those of a spectrogram over frequency."""
    from ..plotting import gallery

    audio: dict[str, Any] = {}
    if all(name.endswith(" Hz") for name in names):
        audio = {"kind": "lines", "x": [float(name[:-3]) for name in names], "x_label": "frequency (Hz)"}
    with replacing(path) as fresh:
        gallery(model, **audio).savefig(fresh)


def report(options: argparse.Namespace, model: Any, table: Table, targets: dict[str, Path], stopped: bool) -> None:
    """Print the results."""
    from ..engine.summary import between, summary

    error, seconds = summary(model).relative_error, model.time_curve_[-1]
    facts = {
        **facts_about(table),
        "components": model.n_components_,
        "sparsity": model.sparsity_,
        "relative_error": error,
        "explained": model.explained_,
        "iterations": model.n_iter_,
        "seconds": seconds,
        "stop_reason": model.stop_reason_,
        "interrupted": stopped,
    }
    lines = [
        described(table),
        f"{model.n_components_} components, sparsity {between(model.sparsity_)}, relative error {error:.4f}",
        f"{model.n_iter_} iterations in {seconds:.1f} s ({model.stop_reason_})",
    ]
    print_results(options, facts, lines, targets)

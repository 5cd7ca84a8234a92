"""``partwise fit``: factorize data from files."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import FLAGS, WEIGHTS
from ..runtime.files import replacing
from .common import (
    UsageError,
    add_data,
    add_verbosity,
    check_kept,
    described,
    facts_about,
    file_lines,
    print_results,
    read_data,
)
from .fixed import read_weights, set_fixed
from .model_options import CHECKPOINTING, add_flags, add_model_options, build_model, label
from .outputs import PICTURES, add_force, check_new, check_targets, write_outputs
from .provenance import provenance
from .wording import with_flags

if TYPE_CHECKING:
    from ..io import Table

SUMMARY = "Factorize data into components of a given sparsity"
USAGE = "DATA [DATA …] --components R --sparsity S [options]"
EXAMPLES = """\
  partwise fit faces/ --components 25 --sparsity 0.7 --png components.png
  partwise fit counts.csv -r 12 -s 0.5:0.8 --components-out genes.csv --activations-out cells.csv
  partwise fit 'subjects/*.nii.gz' --mask mask.nii.gz -r 40 -s 0.8 --components-out components.nii.gz
  partwise fit cells.h5ad -r 20 -s 0.6 --components-out cells.h5ad   add the results to the AnnData file
  partwise fit cells.h5ad --layer counts --mask-var highly_variable -r 20 -s 0.6
  partwise fit large.npy -r 50 -s 0.7 --checkpoint fit.ckpt          save the state of the fit regularly
  partwise fit large.npy -r 50 -s 0.7 --resume fit.ckpt              continue after a crash
  partwise fit faces/ -r 25 -s 0.4 0.6 0.8 --out faces.pw            three fits: faces-0.4.pw, faces-0.6.pw, …
  partwise fit faces/ -s 0.4,0.4,0.8                                 three components, each with its own sparsity
  partwise fit x.npz --recipe l0 --nonzeros 20                       at most 20 nonzeros per component
  partwise fit gaps.csv -r 8 --missing em                            treat empty cells as missing, not as 0
  partwise fit spectra.csv -r 8 --fixed-components known.csv         keep known components, find the others
  partwise fit spectra.csv -r 3 --activations simplex                mixtures: activations of a sample sum to 1
  partwise fit cells.csv -r 8 -s 0.6 --sample-weight weights.csv     samples of different weight

Ctrl-C stops the fit after the current iteration and writes the results so far.
`partwise info DATA` suggests a sparsity to start from.
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    add_data(parser)
    add_model_options(parser)
    add_flags(parser.add_argument_group("Weights"), {name: FLAGS[name] for name in WEIGHTS})
    group = parser.add_argument_group("Output")
    group.add_argument("-o", "--out", metavar="MODEL", help="model file (default: name of the data + .pw)")
    group.add_argument(
        "--components-out",
        metavar="FILE",
        help="write the components: .csv or .tsv (one column each), .nii.gz, .h5ad, .npy",
    )
    group.add_argument(
        "--obs-columns", action="store_true", help=".h5ad components: add the activations to .obs: nmf_0, nmf_1, …"
    )
    group.add_argument(
        "--activations-out", metavar="FILE", help="write the activations, one row per sample: .csv, .tsv, .npy"
    )
    group.add_argument("--png", metavar="FILE", help=f"draw the components: {', '.join(PICTURES)}")
    add_force(group)
    add_flags(parser.add_argument_group("Checkpointing"), {name: FLAGS[name] for name in CHECKPOINTING})
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    sparsities = [None] if options.sparsity is None else options.sparsity
    check_checkpoint(options, len(sparsities))
    fits = [(build_model(options, one), check_outputs(options, one, len(sparsities))) for one in sparsities]
    if len({targets["model"] for _, targets in fits}) < len(fits):
        raise UsageError(f"--sparsity {' '.join(map(label, sparsities))} lists the same value twice: remove one")
    table = read_data(options)
    check_kept(table)
    done: list[Any] = []
    for model, targets in fits:
        check_components(targets, table)
        set_fixed(model, options, table)
    weights = read_weights(options, table)
    for model, targets in fits:
        files, stopped = fit(model, table, weights, targets, options)
        done.append((model, files))
        if stopped:
            break
    (print_report if len(fits) == 1 else print_reports)(options, table, done, stopped)
    if stopped:
        message = "interrupted after iteration %d: the results so far are in %s"
        logging.getLogger("partwise").warning(message, model.n_iter_, files.get("model"))
        return 130
    return 0 if all(files == targets for (_, files), (_, targets) in zip(done, fits, strict=True)) else 1


def check_checkpoint(options: argparse.Namespace, count: int) -> None:
    """Check the checkpoint options before any work starts."""
    from ..io import check_target

    if count > 1 and (options.checkpoint or options.resume_from):
        raise UsageError("a checkpoint belongs to one fit: give one --sparsity")
    if options.checkpoint is not None:
        path = check_target(options.checkpoint)
        if options.resume_from is None or path.resolve() != Path(options.resume_from).resolve():
            check_new(path, options)


def check_outputs(options: argparse.Namespace, sparsity: Any, count: int) -> dict[str, Path]:
    """The output files of a fit, checked; with the sparsity in their names if there are several fits."""
    from ..io.write import ACTIVATIONS, COMPONENTS

    wanted: dict[str, tuple[str | None, Sequence[str]]] = {
        "model": (options.out or f"{stem(options.data)}.pw", ()),
        "components": (options.components_out, COMPONENTS),
        "activations": (options.activations_out, ACTIVATIONS),
        "picture": (options.png, PICTURES),
    }
    if options.obs_columns and not (options.components_out or "").lower().endswith(".h5ad"):
        raise UsageError("--obs-columns adds to an .h5ad file: name it with --components-out")
    if count > 1:
        end = f"-{label(sparsity)}"
        wanted = {what: (with_end(path, endings, end), endings) for what, (path, endings) in wanted.items()}
    return check_targets(options, wanted)


def with_end(path: str | None, endings: Sequence[str], end: str) -> str | None:
    """A path with ``end`` before its extension.

    >>> with_end("faces/p.nii.gz", (".nii.gz",), "-0.4")
    'faces/p-0.4.nii.gz'
    """
    from ..io.write import ending

    if path is None:
        return None
    extension = ending(Path(path), endings) or Path(path).suffix
    place = len(path) - len(extension)
    return path[:place] + end + path[place:]


def check_components(targets: dict[str, Path], table: Table) -> None:
    """Report components that cannot be written before a long fit rather than after it."""
    from ..io.write import check_components_target

    if "components" in targets:
        check_components_target(targets["components"], table)


def fit(
    model: Any, table: Table, weights: Mapping[str, Any], targets: dict[str, Path], options: argparse.Namespace
) -> tuple[dict[str, Path], bool]:
    """Fit and write; return where the outputs are, and whether the fit was interrupted."""
    from ..runtime.interrupts import interrupts

    model.set_params(verbose=int(not options.quiet))
    with interrupts() as interrupted:
        activations = model.fit_transform(table.X, **weights)
        model.set_params(verbose=0, checkpoint=None, resume_from=None)  # settings of this run, not of the saved model
        files = write_results(model, activations, table, targets, options)
        return files, bool(interrupted)


def stem(data: list[str]) -> str:
    """The default name of the model: that of the data file, or of the folder of several files."""
    path = Path(data[0].split(":")[0])
    several = len(data) > 1 or any(sign in path.name for sign in "*?[")
    name = path.resolve().parent.name if several else path.resolve().name
    return name.lstrip(".").split(".")[0] or "model"


def write_results(
    model: Any, activations: Any, table: Table, targets: dict[str, Path], options: argparse.Namespace
) -> dict[str, Path]:
    """Write the outputs, the model first, and return where they are."""
    import numpy as np

    from ..engine.origins import Sound
    from ..io import write_activations, write_components
    from ..io.write_h5ad import fit_record

    if table.feature_names is not None and not isinstance(table.origin, Sound):  # the origin of sound has its names
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    model.keep(
        activations,
        table.sample_names,
        table.part_shape,
        origin=table.origin,
        provenance=provenance(options, table),
    )
    writers: dict[str, Callable[[Path], Any]] = {
        "model": model.save,
        "components": lambda path: write_components(
            path,
            model.components_,
            table,
            activations=activations,
            about=fit_record(model, {"layer": options.layer, "mask_var": options.mask_var}),
            obs_columns=options.obs_columns,
        ),
        "activations": lambda path: write_activations(path, activations, table.sample_names),
        "picture": lambda path: draw_components(path, model),
    }
    return write_outputs(targets, writers, options.debug)


def draw_components(path: Path, model: Any) -> None:
    """Draw the components."""
    from ..plotting import gallery

    with replacing(path) as fresh:
        gallery(model).savefig(fresh)


def facts_of(model: Any, stopped: bool) -> dict[str, Any]:
    """The results of a fit for ``--json``."""
    from ..engine.summary import summary

    return {
        "components": model.n_components_,
        "sparsity": model.sparsity_,
        "relative_error": summary(model).relative_error,
        "explained": model.explained_,
        "iterations": model.n_iter_,
        "seconds": model.time_curve_[-1],
        "seed": model.seed_,
        "stop_reason": model.stop_reason_,
        "interrupted": stopped,
    }


def print_report(options: argparse.Namespace, table: Table, done: list[Any], stopped: bool) -> None:
    """Print the results of one fit."""
    from ..engine.summary import between

    ((model, files),) = done
    facts = facts_of(model, stopped)
    lines = [
        described(table),
        f"{model.n_components_} components, sparsity {between(model.sparsity_)}, "
        f"relative error {facts['relative_error']:.4f}",
        f"{model.n_iter_} iterations in {facts['seconds']:.1f} s ({with_flags(model.stop_reason_)})",
        *drawn_seed(model),
    ]
    print_results(options, {**facts_about(table), **facts}, lines, files)


def drawn_seed(model: Any) -> list[str]:
    """A line that says how to repeat a fit for which no seed was given."""
    drawn = model.random_state is None and model.seed_ is not None
    return [f"seed {model.seed_} was drawn: repeat with --seed {model.seed_}"] if drawn else []


def print_reports(options: argparse.Namespace, table: Table, done: list[Any], stopped: bool) -> None:
    """Print a table that compares several fits."""
    import numpy as np

    from ..engine.summary import between

    rows = [("sparsity", "achieved", "relative error", "nonzeros per component", "iterations")]
    fits = [{**facts_of(model, stopped and model is done[-1][0]), "files": files} for model, files in done]
    for (model, _), facts in zip(done, fits, strict=True):
        nonzeros = np.count_nonzero(model.components_, axis=1).mean()
        error = f"{facts['relative_error']:.4f}"
        rows.append((label(model.sparsity), between(model.sparsity_), error, f"{nonzeros:.1f}", str(model.n_iter_)))
        facts["nonzeros_per_component"] = nonzeros
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    files = [line for _, files in done for line in file_lines(files)]
    print_results(
        options, {**facts_about(table), "fits": fits}, [described(table), *lines, *drawn_seed(done[0][0]), *files]
    )

"""``partwise fit``: from files to parts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.options import FLAGS
from ..runtime.files import replacing
from .asked import BACK, add_asking, add_flags, asked_model
from .common import add_command, add_data, add_telling, check_losses, in_words, note, read_data, tell
from .known import give_known

if TYPE_CHECKING:
    from ..io import Table

EXAMPLES = """\
  partwise fit faces/ --components 25 --sparsity 0.7 --png parts.png
  partwise fit counts.csv -r 12 -s 0.5:0.8 --parts-out genes.csv --loadings-out cells.csv
  partwise fit 'subjects/*.nii.gz' --mask mask.nii.gz -r 40 -s 0.8 --parts-out parts.nii.gz
  partwise fit cells.h5ad -r 20 -s 0.6 --parts-out cells.h5ad      results go beside what is there
  partwise fit large.npy -r 50 -s 0.7 --checkpoint fit.ckpt        and after a crash:
  partwise fit large.npy -r 50 -s 0.7 --resume fit.ckpt
  partwise fit x.npz --recipe l0 --nonzeros 20
  partwise fit gaps.csv -r 8 --missing em                          empty cells are missing, not 0
  partwise fit spectra.csv -r 8 --fixed-components known.csv       these parts stay, the rest is found

Ctrl-C stops the fit after its iteration and writes the parts found so far. Start from
`partwise info DATA`, which tells how sparse parts are by themselves.
"""


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(
        commands,
        "fit",
        fit,
        summary="find the parts of data, each exactly as sparse as you say",
        usage="DATA … --components R --sparsity S",
        examples=EXAMPLES,
    )
    add_data(parser)
    add_asking(parser)
    group = parser.add_argument_group("what to write")
    group.add_argument("-o", "--out", metavar="MODEL", help="the model (default: the data's name, with .pw)")
    group.add_argument("--parts-out", metavar="FILE", help="parts: .csv or .tsv (a column each), .nii.gz, .h5ad, .npy")
    group.add_argument(
        "--loadings-out", metavar="FILE", help="how much of each part is in each sample: .csv, .tsv, .npy"
    )
    group.add_argument("--png", metavar="FILE", help="a picture of the parts")
    add_flags(parser.add_argument_group("coming back"), {name: FLAGS[name] for name in BACK})
    add_telling(parser)


def fit(options: argparse.Namespace) -> int:
    """Read, fit, write, tell."""
    from ..runtime.interrupts import interrupts

    coming_back = {"checkpoint": options.checkpoint or options.resume_from, "resume_from": options.resume_from}
    every = {} if options.checkpoint_every is None else {"checkpoint_every": options.checkpoint_every}
    model = asked_model(options, **coming_back, **every)
    targets = targets_of(options)
    table = read_data(options)
    check_before(targets, table)
    give_known(model, options, table)
    model.set_params(verbose=int(not options.quiet))
    with interrupts() as interrupted:
        activations = model.fit_transform(table.X)
        model.set_params(verbose=0, **dict.fromkeys(coming_back))  # they belong to this run, not to the model
        written = write(model, activations, table, targets)
        stopped = bool(interrupted)
    report(options, model, table, written, stopped)
    if stopped:
        note(options, f"interrupted after iteration {model.n_iter_}: the parts so far are in {written['model']}")
    return 130 if stopped else 0


def targets_of(options: argparse.Namespace) -> dict[str, Path]:
    """The files to write, found to be possible before the work begins."""
    from ..io import check_target
    from ..io.write import LOADINGS, PARTS

    asked = {
        "model": (options.out or f"{stem(options.data)}.pw", ()),
        "parts": (options.parts_out, PARTS),
        "loadings": (options.loadings_out, LOADINGS),
        "picture": (options.png, (".png",)),
    }
    targets = {what: check_target(path, endings) for what, (path, endings) in asked.items() if path is not None}
    check_losses(options, targets)
    return targets


def check_before(targets: dict[str, Path], table: Table) -> None:
    """Find out before a long fit that what is asked for cannot be written."""
    from ..io.write import check_parts_target
    from ..plotting import new_figure

    if "parts" in targets:
        check_parts_target(targets["parts"], table)
    if "picture" in targets:
        new_figure(1, 1)


def stem(data: list[str]) -> str:
    """What the data is called: a file by its name, several by that of their folder."""
    path = Path(data[0].split(":")[0])
    several = len(data) > 1 or any(sign in path.name for sign in "*?[")
    name = path.resolve().parent.name if several else path.resolve().name
    return name.lstrip(".").split(".")[0] or "parts"


def write(model: Any, activations: Any, table: Table, targets: dict[str, Path]) -> dict[str, str]:
    """Write the model first, so that nothing that goes wrong afterwards can lose it."""
    from .. import cells
    from ..io import write_loadings, write_parts
    from ..io.table import Brain

    if table.feature_names is not None:
        model.feature_names_in_ = as_objects(table.feature_names)
    place = table.home.mask if isinstance(table.home, Brain) else None
    model.keep(activations, table.sample_names, table.part_shape, place)
    model.save(targets["model"])
    if "parts" in targets:
        write_parts(targets["parts"], model.components_, table, activations=activations, about=cells.described(model))
    if "loadings" in targets:
        write_loadings(targets["loadings"], activations, table.sample_names)
    if "picture" in targets:
        draw(targets["picture"], model, table)
    return {what: str(path) for what, path in targets.items()}


def as_objects(names: Any) -> Any:
    """Names as scikit-learn keeps them."""
    import numpy as np

    return np.array(names, dtype=object)


def draw(path: Path, model: Any, table: Table) -> None:
    """A picture of the parts: images, slices or spectra where they are some, else their strongest features."""
    from ..io.table import Brain
    from ..plotting import gallery

    place = table.home if isinstance(table.home, Brain) else None
    shape, mask = (place.shape, place.mask) if place else (table.part_shape, None)
    names = table.feature_names or ("",)
    heard: dict[str, Any] = {}
    if all(name.endswith(" Hz") for name in names):
        heard = {"kind": "lines", "x": [float(name[:-3]) for name in names], "x_label": "frequency (Hz)"}
    with replacing(path) as fresh:
        gallery(model, shape, mask=mask, **heard).savefig(fresh)


def report(options: argparse.Namespace, model: Any, table: Table, written: dict[str, str], stopped: bool) -> None:
    """Say what came out."""
    sparsity = model.sparsity_
    error = float(max(1 - model.explained_.sum(), 0)) ** 0.5
    facts = {
        "data": table.source,
        "kind": table.kind,
        "samples": table.shape[0],
        "features": table.shape[1],
        "components": model.n_components_,
        "sparsity": sparsity,
        "relative_error": error,
        "explained": model.explained_,
        "iterations": model.n_iter_,
        "seconds": model.time_curve_[-1],
        "stop_reason": model.stop_reason_,
        "interrupted": stopped,
        "files": written,
    }
    between = f"{sparsity.min():.4f}" if sparsity.max() - sparsity.min() < 5e-5 else f"{sparsity.min():.4f} to "
    between += f"{sparsity.max():.4f}" if between.endswith("to ") else ""
    lines = [
        in_words(table),
        f"{model.n_components_} parts of sparsity {between}, relative error {error:.4f}",
        f"{model.n_iter_} iterations in {model.time_curve_[-1]:.1f} s: {model.stop_reason_}",
        *(f"{what:<9}{path}" for what, path in written.items()),
    ]
    tell(options, facts, lines)

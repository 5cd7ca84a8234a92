"""``partwise separate``: split a recording into components that add up to it."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from ..engine.options import FLAGS
from .common import UsageError, add_max_bytes, add_sound, add_verbosity, read_data
from .fit import check_checkpoint, print_report
from .fixed import set_fixed
from .model_options import CHECKPOINTING, add_flags, add_model_options, build_model
from .outputs import add_force, check_targets

SUMMARY = "Separate a recording into components, one .wav file each"
USAGE = "SOUND --components R --sparsity S --out-dir DIR [options]"
EXAMPLES = """\
  partwise separate song.wav -r 3 -s 0.8 --out-dir parts/
  partwise separate song.wav -r 8 -s 0.9 --window 4096 --hop 1024 --out-dir parts/   finer frequencies

The sum of the files is the recording. The model of the spectrogram is written to DIR/model.pw:
  partwise show parts/model.pw --html report.html
"""


def add_options(parser: Any) -> None:
    """Add the options of the command."""
    parser.add_argument("data", nargs=1, metavar="SOUND", help=".wav, .flac or .ogg file")
    group = parser.add_argument_group("Input options")
    add_max_bytes(group)
    add_sound(group)
    parser.set_defaults(transpose=False, mask=None, row_names=None, colour=None, layer=None, mask_var=None)
    add_model_options(parser)
    group = parser.add_argument_group("Output")
    group.add_argument(
        "-o",
        "--out-dir",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for part_0.wav, part_1.wav, …, model.pw",
    )
    add_force(group)
    add_flags(parser.add_argument_group("Checkpointing"), {name: FLAGS[name] for name in CHECKPOINTING})
    add_verbosity(parser)


def run(options: argparse.Namespace) -> int:
    """Read, fit, separate, write, print."""
    from .. import sound
    from ..io.sound import check_separable
    from ..runtime.interrupts import interrupts

    sparsity, *others = options.sparsity or [None]
    if others:
        raise UsageError("a recording is separated with one --sparsity; with commas, one for each component: 0.4,0.8")
    check_checkpoint(options, 1)
    model = build_model(options, sparsity)
    table = read_data(options)
    check_separable(table.origin, table.source)
    set_fixed(model, options, table)
    targets = check_folder(options, model.n_components)
    model.set_params(verbose=int(not options.quiet))
    with interrupts() as interrupted:
        activations = model.fit_transform(table.X)
        model.set_params(verbose=0, checkpoint=None, resume_from=None)  # settings of this run, not of the saved model
        model.keep(activations, table.sample_names, origin=table.origin)
        sound.separate_with(model, table.source, activations=activations).save(options.out_dir, force=True)
        stopped = bool(interrupted)
    print_report(options, table, [(model, targets)], stopped)
    if stopped:
        message = "interrupted after iteration %d: the results so far are in %s"
        logging.getLogger("partwise").warning(message, model.n_iter_, options.out_dir)
    return 130 if stopped else 0


def check_folder(options: argparse.Namespace, count: int) -> dict[str, Path]:
    """Create the output folder before any work starts, and check the files to write there."""
    from .. import sound

    options.out_dir.mkdir(parents=True, exist_ok=True)
    return check_targets(options, {path.stem: (path, ()) for path in sound.separated_files(options.out_dir, count)})

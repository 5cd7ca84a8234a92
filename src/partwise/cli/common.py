"""What the commands share: input options, and how results are printed."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.untrusted import visible

if TYPE_CHECKING:
    from ..engine.origins import Origin
    from ..io import Table

FORMATS = """\
DATA formats (rows are samples, columns are features; see --transpose):
  .npy .npz .mat .csv .tsv .txt (.gz)     arrays and tables, .txt also as np.savetxt writes it; .npz may be scipy sparse
  .mtx (.gz), folder with matrix.mtx      Matrix Market; 10x Genomics output
  .h5ad, .zarr                            AnnData; see --layer and --mask-var
  .zarr, file.h5:/path                    arrays, read from disk in chunks if they are large
  folder, 'faces/*.png', a.png b.png …    images of equal size (PNG, JPEG, TIFF, …); image or page = sample
  'subjects/*.nii.gz' --mask mask.nii.gz  NIfTI images, one volume per sample
  .wav .flac .ogg                         audio, as a spectrogram with one frame per sample
"""


class UsageError(ValueError):
    """The options do not make sense: exit code 2."""


def add_data(parser: Any) -> None:
    """Add the options that describe the input."""
    parser.add_argument("data", nargs="+", metavar="DATA", help="file, folder, glob pattern, or several image files")
    group = parser.add_argument_group("Input options")
    group.add_argument("--transpose", action="store_true", help="columns of the file are samples, rows are features")
    group.add_argument("--mask", metavar="NIFTI", help="brain mask for NIfTI images (default: use all voxels)")
    group.add_argument(
        "--row-names",
        action=argparse.BooleanOptionalAction,
        help="whether the first column of a table holds row names (default: detect)",
    )
    group.add_argument("--layer", metavar="NAME", help="AnnData: layer to use (default: X)")
    group.add_argument(
        "--mask-var", metavar="COLUMN", help="AnnData: use the genes where this column of .var is True: highly_variable"
    )
    group.add_argument(
        "--colour", action="store_true", default=None, help="images: keep colours (default: convert to grey)"
    )
    add_max_bytes(group)
    add_sound(group)


def add_sound(group: Any) -> None:
    """Add the options of sound."""
    group.add_argument("--window", type=int, metavar="N", help="audio: frame length in samples (default: 1024)")
    group.add_argument("--hop", type=int, metavar="N", help="audio: distance between frames in samples (default: 256)")


def add_max_bytes(group: Any) -> None:
    """Add ``--max-bytes``, which `main` passes on to all readers."""
    group.add_argument(
        "--max-bytes",
        metavar="SIZE",
        help="most memory that a file may take, such as '8 GB' (default: 1000 times the file's size, but at most half "
        "of the free memory)",
    )


def add_verbosity(parser: Any) -> None:
    """Add ``--quiet`` and ``--json``."""
    group = parser.add_argument_group("Verbosity")
    group.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    group.add_argument("--json", action="store_true", help="print the results as JSON")


def read_data(options: argparse.Namespace, origin: Origin | None = None, negative: str | None = None) -> Table:
    """Read the data that the options name; sound and NIfTI images like those of ``origin``, if any.

    ``negative`` is that of a model; by default it is an option, if the command has it.
    """
    from ..engine.origins import Brain, Sound
    from ..io import read
    from ..io.formats import files_of
    from ..io.sound import SOUNDS
    from ..io.write import NIFTI, ending

    for name in options.data:
        if name.endswith(".pw"):
            raise UsageError(runs_in(name) or f"{name} is a model, not data: `partwise show {name}` describes it")
    names = ("mask", "row_names", "colour", "layer", "mask_var", "window", "hop")
    settings = {name: getattr(options, name) for name in names}
    if isinstance(origin, Sound) and options.data[0].lower().endswith(SOUNDS):
        settings |= {name: value for name, value in vars(origin).items() if settings.get(name) is None}
    source = options.data[0] if len(options.data) == 1 else options.data
    if isinstance(origin, Brain) and options.mask is None and ending(files_of(source)[0], NIFTI):
        settings["mask"] = origin
    negative = negative or getattr(options, "negative", None) or "error"
    return read(source, transpose=options.transpose, negative=negative, **settings)


def read_samples(data: Sequence[str], origin: Origin | None, negative: str) -> Table:
    """Read data with default settings, or those of ``origin``."""
    blank: dict[str, Any] = dict.fromkeys(("mask", "row_names", "colour", "layer", "mask_var", "window", "hop"))
    return read_data(argparse.Namespace(data=[*data], transpose=False, **blank), origin, negative)


def load_matrix_model(path: str | os.PathLike[str]) -> Any:
    """Load a model; models of tensors are refused."""
    from ..estimators import load

    runs = runs_in(path)
    if runs is not None:
        raise ValueError(runs)
    model = load(path)
    if not hasattr(model, "components_"):
        raise ValueError(f"{path} holds a {type(model).__name__}, a tensor model: use partwise.load in Python")
    return model


def runs_in(path: str | os.PathLike[str]) -> str | None:
    """A sentence about a file that holds the runs of a consensus; None if it does not."""
    from ..runtime.archive import kind_of

    try:
        if kind_of(path) != "consensus":
            return None
    except (OSError, ValueError):
        return None
    return (
        f"{path} holds the runs of a consensus: `partwise consensus DATA … --out {path} --at R` makes a model of the "
        "components of rank R"
    )


def check_kept(table: Table) -> None:
    """Refuse names and shapes that could not be stored with the results, before there are any."""
    from ..estimators.attached import kept_names, kept_origin, kept_shape

    try:
        for names in (table.sample_names, table.feature_names):
            if names is not None:
                kept_names(names)
        if table.part_shape is not None:
            kept_shape(table.part_shape, table.shape[1])
        if table.origin is not None:
            kept_origin(table.origin, table.shape[1])
    except ValueError as error:
        raise ValueError(f"{table.source}: {error}") from error


def with_features(table: Table, features: Sequence[str], count: int, name: str, what: str = "features") -> Any:
    """X with its features in the order of ``name``, which has ``count`` of them, possibly unnamed.

    ``what`` are the features in messages.
    """
    from ..io.table import with_columns

    known = tuple(features)
    if table.shape[1] == count and (not known or table.feature_names in (None, known)):
        return table.X
    if not known or table.feature_names is None or len(set(table.feature_names)) < table.shape[1]:
        raise ValueError(f"{table.source} has {table.shape[1]} {what}, but {name} has {count}")
    places = {feature: j for j, feature in enumerate(table.feature_names)}
    missing = [feature for feature in known if feature not in places]
    if missing:
        raise ValueError(f"{table.source} lacks {len(missing)} of the {count} {what} of {name}, first {missing[0]!r}")
    return with_columns(table.X, [places[feature] for feature in known])


def described(table: Table) -> str:
    """One line about the data."""
    return f"{table.source}: {table.shape[0]} samples × {table.shape[1]} features ({table.kind})"


def facts_about(table: Table) -> dict[str, Any]:
    """The same for ``--json``."""
    return {"data": table.source, "kind": table.kind, "samples": table.shape[0], "features": table.shape[1]}


def print_results(
    options: argparse.Namespace,
    facts: Mapping[str, Any],
    lines: Sequence[str],
    targets: Mapping[str, Path] | None = None,
) -> None:
    """Print results and the files written: as lines, as JSON with ``--json``, not at all with ``--quiet``."""
    files = {what: str(path) for what, path in (targets or {}).items()}
    if options.json:
        print(visible(json.dumps(plain({**facts, "files": files} if files else facts), ensure_ascii=False)))
    elif not options.quiet:
        print(visible("\n".join([*lines, *file_lines(files)])))


def file_lines(files: Mapping[str, Any]) -> list[str]:
    """A line for each file."""
    return [f"{what + ':':<13}{path}" for what, path in files.items()]


def plain(value: Any) -> Any:
    """A value that JSON can represent; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)

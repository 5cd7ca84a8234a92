"""What commands share: how data is named, how results are told, and what is wrong with what was asked."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..io import Table

FORMATS = """\
DATA (rows are samples, columns are features; --transpose exchanges them):
  .npy .npz .mat .csv .tsv .txt (.gz)     arrays and tables; .npz also scipy sparse
  .mtx (.gz), folder with matrix.mtx      Matrix Market; 10x cells × genes
  .h5ad, file.h5ad:layers/counts          AnnData
  .zarr, file.h5:/path                    arrays that stay on disk
  folder, 'faces/*.png', a.png b.png …    images of one size (PNG, PGM, JPEG, …), an image a sample
  'subjects/*.nii.gz' --mask mask.nii.gz  NIfTI, a volume a sample
  .wav .flac .ogg                         sound, as a spectrogram: a frame a sample
"""
READ = ("model", "mask", "per_part")  # options that name a file to read
READ_AS_DATA = ("fixed_components", "fixed_activations")  # in any way that data is named
PICTURES = (".png", ".pdf", ".svg")


class UsageError(ValueError):
    """What was asked for cannot be meant: exit code 2."""


def add_command(commands: Any, name: str, run: Any, *, summary: str, usage: str, examples: str) -> Any:
    """A parser for a command that reads data, with examples and the formats below its options."""
    parser = commands.add_parser(
        name,
        help=summary,
        usage=f"partwise {name} {usage} [options]",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}\n{FORMATS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_data(parser: Any) -> None:
    """The arguments that name data."""
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="a file, a folder, a glob, or several images; see below"
    )
    group = parser.add_argument_group("reading")
    group.add_argument("--transpose", action="store_true", help="columns of the file are samples")
    group.add_argument("--mask", metavar="NIFTI", help="voxels to take, of NIfTI images (default: all)")
    group.add_argument(
        "--row-names",
        action=argparse.BooleanOptionalAction,
        help="whether the first column of a table has names (default: if it looks like it)",
    )
    group.add_argument("--window", type=int, metavar="N", help="samples in a frame of sound (default: 1024)")
    group.add_argument("--hop", type=int, metavar="N", help="samples from one frame to the next (default: 256)")


def add_telling(parser: Any) -> None:
    """How much is said."""
    group = parser.add_argument_group("saying")
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    group.add_argument("--json", action="store_true", help="say it as JSON, for programs")


def read_data(options: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from ..io import read

    settings = {name: getattr(options, name) for name in ("mask", "row_names", "window", "hop")}
    source = options.data[0] if len(options.data) == 1 else options.data
    return read(source, transpose=options.transpose, **settings)


def load_parts(path: str | os.PathLike[str]) -> Any:
    """The model in a file, which must be one of a matrix."""
    from ..estimators import load

    model = load(path)
    if not hasattr(model, "components_"):
        raise ValueError(
            f"{path} holds a {type(model).__name__}, a model of a tensor: use it in Python (partwise.load)"
        )
    return model


def check_losses(options: argparse.Namespace, targets: Mapping[str, Path]) -> None:
    """Refuse to write over what is read (but for parts that go into their .h5ad), or twice to one file.

    What is read may hide behind a folder, a glob or a name such as ``file.h5:/path``, and a store is a folder itself.
    """
    from ..io.formats import files_of

    def given(names: Iterable[str]) -> list[Any]:
        return [name for name in (getattr(options, name, None) for name in names) if name is not None]

    places = {what: path.resolve() for what, path in targets.items()}
    data = {file.resolve() for name in getattr(options, "data", ()) for file in files_of(name)}
    taken = data | {file.resolve() for name in given(READ_AS_DATA) for file in files_of(name)}
    taken |= {Path(name).resolve() for name in given(READ)}
    for what, place in places.items():
        beside = what == "parts" and place.suffix == ".h5ad" and place in data and not options.transpose
        if not beside and not taken.isdisjoint((place, *place.parents)):
            raise UsageError(f"{targets[what]} is read too, and would be lost: give another name for the {what}")
    for name in given(("checkpoint", "resume")):
        if Path(name).resolve() in places.values():
            raise UsageError(f"{name} is the checkpoint, and would be lost: give another name for the rest")
    if len(set(places.values())) < len(places):
        raise UsageError(f"{', '.join(map(str, targets.values()))}: two of these are the same file")


def arranged(table: Table, features: Sequence[str], count: int, name: str) -> Any:
    """X with its features in the order in which ``name`` has them: ``count`` of them, with or without names."""
    known = tuple(features)
    if table.shape[1] == count and (not known or table.feature_names in (None, known)):
        return table.X
    if not known or table.feature_names is None or len(set(table.feature_names)) < table.shape[1]:
        raise ValueError(f"{table.source} has {table.shape[1]} features, and {name} has {count}")
    places = {feature: j for j, feature in enumerate(table.feature_names)}
    missing = [feature for feature in known if feature not in places]
    if missing:
        raise ValueError(
            f"{table.source} lacks {len(missing)} of the {count} features that {name} has, first {missing[0]!r}"
        )
    if table.lazy:
        raise ValueError(f"{table.source} has its features in another order than {name}, and stays on disk: convert it")
    return table.X[:, [places[feature] for feature in known]]


def in_words(table: Table) -> str:
    """What was read, in a line."""
    return f"{table.source}: {table.shape[0]} samples × {table.shape[1]} features ({table.kind})"


def tell(options: argparse.Namespace, facts: Mapping[str, Any], lines: list[str]) -> None:
    """Say what came out: as lines, as JSON, or not at all."""
    if options.json:
        print(json.dumps(plain(facts), ensure_ascii=False))
    elif not options.quiet:
        print("\n".join(lines))


def note(options: argparse.Namespace, line: str) -> None:
    """Say something beside the results, on standard error."""
    if not options.quiet:
        print(f"partwise: {line}", file=sys.stderr)


def plain(value: Any) -> Any:
    """A value as JSON knows it; NaN and infinity are null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)

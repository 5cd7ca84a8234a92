"""Output files: checked before the work starts, and written so that no result is lost."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import Any

from ..engine.options import WEIGHTS
from .common import UsageError

READ = ("model", "mask", "sparsity_file")  # options that name an input file
READ_AS_DATA = ("fixed_components", "fixed_activations", *WEIGHTS)  # input files in any of the data formats
PICTURES = (".png", ".pdf", ".svg")


def add_force(group: Any) -> None:
    """Add ``--force``."""
    group.add_argument("-f", "--force", action="store_true", help="overwrite output files that exist")


def check_targets(options: argparse.Namespace, wanted: Mapping[str, tuple[Any, Sequence[str]]]) -> dict[str, Path]:
    """Check the output files before any work starts.

    ``wanted`` has a (path or None, file extensions) for each output. No output may overwrite an input (except that
    components may be added to their own .h5ad file), another output or, without ``--force``, any file. An input may be
    a folder, a glob pattern or a name such as ``file.h5:/path``, and a store such as .zarr is a folder itself.
    """
    from ..io import check_target
    from ..io.formats import files_of

    def given(names: Iterable[str]) -> list[Any]:
        return [name for name in (getattr(options, name, None) for name in names) if name is not None]

    targets = {what: check_target(path, endings) for what, (path, endings) in wanted.items() if path is not None}
    places = {what: path.resolve() for what, path in targets.items()}
    data = {file.resolve() for name in getattr(options, "data", ()) for file in files_of(name)}
    inputs = data | {file.resolve() for name in given(READ_AS_DATA) for file in files_of(name)}
    inputs |= {
        Path(name).resolve() for names in given(READ) for name in (names if isinstance(names, list) else [names])
    }
    own = {path for path in data if path.suffix == ".h5ad" and not getattr(options, "transpose", True)}
    new = {what: place for what, place in places.items() if what != "components" or place not in own}
    for what, place in new.items():
        if not inputs.isdisjoint((place, *place.parents)):
            raise UsageError(
                f"{targets[what]} is an input and would be overwritten: choose another file for the {what}"
            )
    for name in given(("checkpoint", "resume_from")):
        if Path(name).resolve() in places.values():
            raise UsageError(f"{name} is the checkpoint and would be overwritten: choose another output file")
    if len(set(places.values())) < len(places):
        raise UsageError(f"two outputs are the same file ({', '.join(map(str, targets.values()))}): rename one")
    for what in new:
        check_new(targets[what], options)
    return targets


def check_new(path: Path, options: argparse.Namespace) -> None:
    """Refuse to overwrite a file without ``--force``."""
    if path.exists() and not options.force:
        raise UsageError(f"{path} exists: choose another name, or overwrite it with --force")


def write_outputs(
    targets: Mapping[str, Path], writers: Mapping[str, Callable[[Path], Any]], debug: bool = False
) -> dict[str, Path]:
    """Write the outputs in the order of ``targets`` and return where they are.

    If a file cannot be written, because the disk is full for example, the output goes elsewhere, and an error says so.
    The other outputs are written nevertheless.
    """
    files = {}
    for what, target in targets.items():
        try:
            writers[what](target)
            files[what] = target
        except Exception as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
            other = written_elsewhere(target, writers[what]) if isinstance(error, OSError) else None
            message = f"cannot write the {what} to {target}: {reason.splitlines()[0]}"
            if other is not None:
                files[what], message = other, f"{message}. It was written to {other} instead"
            logging.getLogger("partwise").error(message, exc_info=debug)
    return files


def written_elsewhere(target: Path, write: Callable[[Path], Any]) -> Path | None:
    """Write an output beside its target, to the current folder or to that of temporary files, and return its path."""
    folders: tuple[Callable[[], Any], ...] = (lambda: target.parent, Path.cwd, gettempdir)
    for folder in folders:
        with suppress(OSError):
            other = Path(folder(), f"rescued-{token_hex(4)}-{target.name[-200:]}").absolute()
            write(other)
            return other
    return None

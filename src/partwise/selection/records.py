"""Finished paths of a search, kept in a JSON checkpoint from which the search resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..runtime.files import check_replaceable, replacing
from .paths import Record

FORMAT = 1
FIT = {"level", "restart", "heldout_error", "train_error", "achieved_sparsity", "dead_parts", "n_iter", "converged"}


class SearchRecords:
    """Records of finished paths by rank and split, stored in a file if a path is given.

    Parameters
    ----------
    path : Path or None
    settings : dict
        The file is reused only if its settings equal these. ``random_state=None`` takes the seed of the file.
    seed : int
        Used for a new file.
    """

    def __init__(self, path: Path | None, settings: Record, seed: int) -> None:
        self.path, self.settings, self.seed = path, json.loads(json.dumps(settings)), seed
        self.records: dict[tuple[int, int], Record] = {}
        if path is not None:
            with writing(path):  # fail now, not after the first fits
                check_replaceable(path)
            if path.exists():
                self._resume(path)
            else:
                self._write(path)

    def add(self, record: Record) -> None:
        """Add the record of a path and write the file."""
        self.records[record["rank"], record["split"]] = record
        if self.path is not None:
            self._write(self.path)

    def _resume(self, path: Path) -> None:
        found = read(path)
        if found["settings"] != self.settings:
            other = sorted(name for name, value in self.settings.items() if found["settings"].get(name) != value)
            raise ValueError(
                f"checkpoint={os.fspath(path)!r} belongs to a search with different {', '.join(other)}: "
                "use another path, or delete the file"
            )
        self.seed = found["seed"]
        self.records = {(record["rank"], record["split"]): record for record in found["paths"]}

    def _write(self, path: Path) -> None:
        content = {
            "kind": "partwise selection",
            "format": FORMAT,
            "settings": self.settings,
            "seed": self.seed,
            "paths": [self.records[key] for key in sorted(self.records)],
        }
        with writing(path), replacing(path) as fresh:
            fresh.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into a ValueError that names the parameter."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"checkpoint={os.fspath(path)!r} cannot be written: {error.strerror}") from error


def read(path: Path) -> Record:
    """Read and validate a checkpoint."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        valid = (
            (found["kind"], found["format"]) == ("partwise selection", FORMAT)
            and isinstance(found["seed"], int)
            and all(_is_path(record, found["settings"]) for record in found["paths"])
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        valid = False
    if not valid:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r} is not a search checkpoint, or is damaged; it was left unchanged: use "
            "another path"
        )
    return dict(found)


def _is_path(record: Any, settings: Record) -> bool:
    """Whether a record has every fit and field that the table needs."""
    levels, starts = len(settings["sparsities"]), settings["n_init"]
    return (
        isinstance(record["rank"], int)
        and isinstance(record["split"], int)
        and len(record["stability"]) == levels
        and sorted((fit["level"], fit["restart"]) for fit in record["fits"])
        == [(level, restart) for level in range(levels) for restart in range(starts)]
        and all(set(fit) == FIT for fit in record["fits"])
    )

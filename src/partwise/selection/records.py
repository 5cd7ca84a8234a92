"""What a search has finished, in a file from which it goes on: JSON, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..runtime.files import replacing
from .paths import Record

FORMAT = 1
FIT = {"level", "restart", "heldout_error", "train_error", "achieved_sparsity", "dead_parts", "n_iter", "converged"}


class Finished:
    """The paths that are finished, by rank and split; kept in a file, if there is one.

    Parameters
    ----------
    path : Path or None
    question : dict
        What must be the same for a finished path to be of use; a seed of None takes the file's.
    seed : int
        For a new file.
    """

    def __init__(self, path: Path | None, question: Record, seed: int) -> None:
        self.path, self.question, self.seed = path, json.loads(json.dumps(question)), seed
        self.records: dict[tuple[int, int], Record] = {}
        if path is not None and path.exists():
            self._go_on(path)
        elif path is not None:
            self._write(path)  # a place that cannot be written to is found out before the work begins

    def add(self, record: Record) -> None:
        """Enter a path, and write the file."""
        self.records[record["rank"], record["split"]] = record
        if self.path is not None:
            self._write(self.path)

    def _go_on(self, path: Path) -> None:
        found = read(path)
        if found["question"] != self.question:
            other = sorted(name for name, value in self.question.items() if found["question"].get(name) != value)
            raise ValueError(
                f"checkpoint={os.fspath(path)!r} belongs to another search ({', '.join(other)} differ): "
                "give another path, or delete it"
            )
        self.seed = found["seed"]
        self.records = {(record["rank"], record["split"]): record for record in found["paths"]}

    def _write(self, path: Path) -> None:
        whole = {
            "kind": "partwise selection",
            "format": FORMAT,
            "question": self.question,
            "seed": self.seed,
            "paths": [self.records[key] for key in sorted(self.records)],
        }
        try:
            with replacing(path) as fresh:
                fresh.write_text(json.dumps(whole, allow_nan=False), encoding="utf-8")
        except OSError as error:
            raise ValueError(f"checkpoint={os.fspath(path)!r} cannot be written: {error.strerror}") from error


def read(path: Path) -> Record:
    """What a file holds, which must be a search's."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found["kind"] == "partwise selection" and found["format"] == FORMAT
        known = known and isinstance(found["question"], dict) and isinstance(found["seed"], int)
        known = known and all(_is_path(record, found["question"]) for record in found["paths"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        known = False
    if not known:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r} holds no search, or a damaged one, and would be lost: give another path"
        )
    return dict(found)


def _is_path(record: Any, question: Record) -> bool:
    """Whether a record has what the table needs."""
    levels, starts = len(question["sparsities"]), question["n_init"]
    return (
        isinstance(record["rank"], int)
        and isinstance(record["split"], int)
        and len(record["stability"]) == levels
        and sorted((fit["level"], fit["restart"]) for fit in record["fits"])
        == [(level, restart) for level in range(levels) for restart in range(starts)]
        and all(set(fit) == FIT for fit in record["fits"])
    )

"""Finished paths of a search, kept in a checkpoint from which the search resumes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..runtime.archive import UnreadableError, read, write
from .paths import Record

NUMBER, MAYBE = (int, float), (int, float, type(None))
MEASURED = {
    **dict.fromkeys(("heldout_error", "train_error", "dead_parts", "n_iter"), NUMBER),
    **{"achieved_sparsity": MAYBE, "converged": (bool,)},
}


def check_record(record: Record, levels: int, starts: int) -> None:
    """Raise an error unless this is the record of a path: all measurements of each start at each sparsity."""
    fits, stability = record["fits"], record["stability"]
    places = [(fit["restart"], fit["level"]) for fit in fits]
    if (
        any(type(record[name]) is not int for name in ("rank", "split"))
        or len(fits) != starts * levels
        or places != [(i, j) for i in range(starts) for j in range(levels)]
        or any(type(fit[name]) not in kinds for fit in fits for name, kinds in MEASURED.items())
        or len(stability) != levels
        or any(type(value) not in MAYBE for value in stability)
    ):
        raise ValueError(f"the record of rank {record['rank']} is not complete")


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
        self.path, self.seed = path, seed
        self.settings = json.loads(json.dumps(settings))  # as a file returns them
        self.records: dict[tuple[int, int], Record] = {}
        if path is not None and os.path.exists(path):  # False for a name that is too long
            self._resume(path)
        else:
            self._write()  # fail now, not after the first fits, if the path is not writable

    def add(self, record: Record) -> None:
        """Add the record of a path and write the file."""
        self.records[record["rank"], record["split"]] = record
        self._write()

    def _resume(self, path: Path) -> None:
        name = f"checkpoint={os.fspath(path)!r}"
        try:
            found, _ = read(path)
            if found["kind"] != "search":
                raise UnreadableError(f"it is a {found['kind']}")
            settings, seed = dict(found["settings"]), int(found["seed"])
            records = {(record["rank"], record["split"]): record for record in found["paths"]}
            other = [key for key, value in self.settings.items() if settings.get(key) != value]
            for record in () if other else records.values():
                check_record(record, len(settings["sparsities"]), settings["n_init"])
        except (UnreadableError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{name} is not a search checkpoint, or is damaged: {error}. Use another path") from error
        if other:
            raise ValueError(
                f"{name} belongs to a search with different {', '.join(sorted(other))}: use another path, or delete "
                "the file"
            )
        self.seed, self.records = seed, records

    def _write(self) -> None:
        if self.path is None:
            return
        paths = [self.records[key] for key in sorted(self.records)]
        try:
            write(self.path, {"kind": "search", "settings": self.settings, "seed": self.seed, "paths": paths}, {})
        except OSError as error:
            raise ValueError(f"checkpoint={os.fspath(self.path)!r} cannot be written: {error.strerror}") from error

"""Checkpoints: save a running fit to a file, and resume it bit for bit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Chunked, Data
from ..runtime.archive import UnreadableError, kind_of, read, write
from ..runtime.files import check_replaceable
from ..runtime.packing import packed, unpacked
from ..statistics import Array, as_factor
from ..updates import Known
from .problem import CLASSES, Problem, difference
from .running import Fit
from .starts import Factors, Given
from .validation import warn_user

FORMAT = 4  # of the file; raised when files written before can no longer be resumed


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written. The fit continues."""


class Checkpoint:
    """Writes the state of a fit to a file, every ``every`` iterations.

    `check_place` rejects a path that cannot be written. A checkpoint that cannot be written later, for example because
    the disk is full, is reported by one warning, and the fit continues.

    Parameters
    ----------
    path : path
    every : int
        Iterations.
    problem : Problem
    random : dict
        The states of the random generator, before the start was drawn and after.
    """

    def __init__(self, path: Path, every: int, problem: Problem, random: Mapping[str, object]) -> None:
        self.path, self.every, self.failed = path, every, False
        self.problem, self.random = problem.packed(), dict(random)

    def due(self, n_iter: int) -> bool:
        """Whether to write after this iteration."""
        return n_iter % self.every == 0

    def write(self, fit: Fit, history: Mapping[str, object]) -> None:
        """Write the state after an iteration."""
        arrays: dict[str, Array] = {}
        state = {"random": self.random, "fit": fit.snapshot(), "history": dict(history)}
        header = {"kind": "checkpoint", "checkpoint_format": FORMAT, "problem": self.problem}
        header |= {name: packed(value, name, arrays) for name, value in state.items()}
        try:
            write(self.path, header, arrays)
        except OSError as error:
            if not self.failed:
                warn_user(f"no checkpoint can be written to {self.path}: {error}; the fit continues", CheckpointWarning)
            self.failed = True


def check_place(path: Path) -> None:
    """Raise ValueError for a path that cannot be written, or a file that is not a checkpoint."""
    if path.exists():
        try:
            kind = kind_of(path)
        except UnreadableError:
            kind = None
        if kind != "checkpoint":
            raise ValueError(f"checkpoint={os.fspath(path)!r} exists and is not a checkpoint: give another path")
    try:
        check_replaceable(path)
    except OSError as error:
        raise ValueError(f"checkpoint={os.fspath(path)!r} cannot be written: {error.strerror}") from error


@dataclass(frozen=True)
class Resumed:
    """The state of a fit, read from a file."""

    path: Path
    problem: Problem
    random: Mapping[str, Any]
    fit: Mapping[str, Any]
    history: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Resumed:
        """Read a checkpoint."""
        if not path.exists():
            raise ValueError(f"resume_from={os.fspath(path)!r} does not exist: give a checkpoint, or start without it")
        header, arrays = read(path)
        if header.get("kind") != "checkpoint":
            raise UnreadableError(f"{path} is not a checkpoint: partwise.load reads models")
        if header.get("checkpoint_format") != FORMAT:
            raise UnreadableError(
                f"{path} is a checkpoint in format {header.get('checkpoint_format', 1)}, but this version of partwise "
                f"resumes only from format {FORMAT}: take the version that has written it ({header.get('written_by')})"
            )
        try:
            state = {name: dict(unpacked(header[name], arrays)) for name in ("random", "fit", "history")}
            resumed = cls(path, problem=unpacked(header["problem"], arrays, CLASSES), **state)
            resumed.check_state()
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UnreadableError(f"{path} is not the state of a fit: {error}") from error
        return resumed

    @property
    def seed(self) -> int | None:
        """The seed of the fit, if it is known."""
        found = self.random.get("seed")
        return found if isinstance(found, int) else None

    def check_state(self) -> None:
        """Raise ValueError for an invalid state."""
        if not isinstance(self.problem, Problem):
            raise ValueError("the problem is missing")
        if not all(isinstance(text, str) for text in (self.problem.X, self.problem.dtype, self.problem.init)):
            raise ValueError("the problem is invalid")
        shape, r = self.problem.shape, self.problem.n_components
        factors, grams, states = (self.fit[name] for name in ("factors", "grams", "states"))
        losses, times = self.history["losses"], self.history["times"]
        if not len(factors) == len(grams) == len(states) >= len(shape) >= 2 or type(self.fit["revivals"]) is not int:
            raise ValueError("factors are missing")
        if [f.shape for f in factors[: len(shape)]] != [(n, r) for n in shape] or any(
            g.shape != (f.shape[1],) * 2 for f, g in zip(factors, grams, strict=True)
        ):
            raise ValueError("the factors do not match the problem")
        if not all(np.isfinite(f).all() and f.min() >= 0 for f in factors) or not all(
            isinstance(s, dict) for s in states
        ):
            raise ValueError("the factors are negative or not finite")
        if (
            losses.shape != times.shape
            or losses.ndim != 1
            or len(losses) < 2
            or type(self.history["residual"]) is not float
        ):
            raise ValueError("the history is invalid")
        with np.errstate(over="ignore"):
            sizes = [np.einsum("ij,ij->j", f, f, dtype=float) for f in factors]
        if not all(np.allclose(size, g.diagonal(), rtol=1e-3) for size, g in zip(sizes, grams, strict=True)):
            raise ValueError("the factors do not match their Gram matrices")
        self.check_extrapolation([f.shape for f in factors])
        before = self.history.get("compressed", 0)
        since, past = self.history.get("since", before), self.history.get("past", [])
        known = {f.shape for f in factors[: len(shape)]}
        if (
            type(since) is not int
            or type(before) is not int
            or not 0 <= before <= since < before + len(losses)
            or not {array.shape for array in past} <= known
        ):
            raise ValueError("the history is invalid")

    def check_extrapolation(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise ValueError for an invalid state of an accelerated fit. ``shapes`` are those of the factors."""
        r = shapes[0][1]
        known = {"ahead": {*shapes}, "product": {*shapes}, "ahead_sums": {*shapes, (r, r)}, "last": {*shapes, (r, r)}}
        for name, allowed in known.items():
            found = self.fit.get(name, [])
            for array in [found] if isinstance(found, np.ndarray) else found:
                if array.shape not in allowed or not np.abs(array).max() < np.finfo(array.dtype).max ** 0.5:
                    raise ValueError(f"{name} is invalid")
        if len(self.fit.get("ahead", shapes)) != len(shapes):
            raise ValueError("ahead is incomplete")
        if "totals" in self.fit and not np.isfinite(self.fit["totals"]).all():
            raise ValueError("the sums are not finite")
        if "count" in self.fit:
            count, cap, value = self.fit["count"], self.fit["cap"], self.fit["value"]
            if (
                type(count) is not int
                or count < 1
                or not 0 <= cap <= 1
                or not isinstance(value, float)
                or value != value
            ):
                raise ValueError("the momentum is invalid")

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless the checkpoint is of the same problem."""
        problem.packed()
        if self.problem != problem:
            what = difference(self.problem, problem)
            raise ValueError(f"resume_from={os.fspath(self.path)!r} is a checkpoint of another fit: {what}")

    def check_known(self, known: Sequence[Known | None]) -> None:
        """Raise ValueError if known columns differ from those in the file."""
        for mode, columns in enumerate(known):
            if columns is not None and not columns.are_in(self.fit["factors"][mode]):
                name = ("fixed_activations", "fixed_components")[mode]
                raise ValueError(f"resume_from={os.fspath(self.path)!r} is a checkpoint of another fit: {name} differs")

    def set_generator(self, rng: np.random.Generator, when: str, must_agree: bool = False) -> None:
        """Restore the generator's state "before" or "after" the start was drawn."""
        now, name = rng.bit_generator.state, os.fspath(self.path)
        try:
            rng.bit_generator.state = self.random[when]
            agrees = same(rng.bit_generator.state, now)
        except (LookupError, TypeError, ValueError, OverflowError):
            raise ValueError(f"resume_from={name!r} has another kind of generator than random_state") from None
        if must_agree and not agrees:
            raise ValueError(f"resume_from={name!r} was started with another random_state: give the same one, or None")

    def factors(self, data: Data) -> Factors:
        """The factors to resume with."""
        factors: Factors = [as_factor(f) for f in self.fit["factors"]]
        if isinstance(data, Chunked):
            factors[0] = data.hold(Given(factors[0]), factors[0].shape[1])
        return factors


def same(a: Any, b: Any) -> bool:
    """Whether two states of a generator are equal, arrays in them included."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))

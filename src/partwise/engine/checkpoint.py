"""Checkpoints: a running fit in a file, from which it goes on as if it had never stopped, bit for bit."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from ..data import Chunked, Data
from ..runtime.archive import UnreadableError, kind_of, read, write
from ..runtime.files import check_replaceable, leftovers
from ..runtime.packing import packed, unpacked
from ..statistics import Array
from ..updates import Known
from .blocks import Block
from .running import Fit
from .starts import Factors, Given
from .validation import warn_user

PROBLEM = {"shape": "X's shape", "dtype": "X's precision", "n_components": "n_components", "method": "the method"}


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the fit goes on."""


def problem_of(data: Data, r: int, blocks: Sequence[Block], order: Sequence[int]) -> dict[str, Any]:
    """What a fit is about, as far as a checkpoint must agree with it: not how long it goes on."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr((list(blocks), tuple(order))))  # where a set of the user's own lies
    method = hashlib.sha256(text.encode()).hexdigest()
    return {"shape": list(data.shape), "dtype": data.dtype.name, "n_components": r, "method": method}


class Checkpoint:
    """Writes the state of a fit to one file, every so many iterations.

    `check_place` refuses a path that cannot be written to. A checkpoint that cannot be written later, because the disk
    is full for example, is warned of once, and costs no more than itself.

    Parameters
    ----------
    path : path
    every : int
        Iterations.
    about : dict
        What else the file shall say: the problem, and the state of the random generator.
    """

    def __init__(self, path: Path, every: int, about: Mapping[str, Any]) -> None:
        self.path, self.every, self.about, self.failed = path, every, about, False
        for unfinished in leftovers(path):
            rmtree(unfinished, ignore_errors=True)

    def due(self, n_iter: int) -> bool:
        """Whether this iteration is one to write after."""
        return n_iter % self.every == 0

    def write(self, fit: Fit, history: Mapping[str, Any]) -> None:
        """Write the state after an iteration."""
        arrays: dict[str, Array] = {}
        state = {**self.about, "fit": fit.snapshot(), "history": dict(history)}
        header = {"kind": "checkpoint", **{name: packed(value, name, arrays) for name, value in state.items()}}
        try:
            write(self.path, header, arrays)
        except OSError as error:
            if not self.failed:
                warn_user(f"no checkpoint can be written to {self.path}: {error}; the fit goes on", CheckpointWarning)
            self.failed = True


def check_place(path: Path) -> None:
    """Refuse a path where no checkpoint can be written, or where something else would be lost."""
    if path.exists():
        try:
            kind = kind_of(path)
        except UnreadableError:
            kind = None
        if kind != "checkpoint":
            raise ValueError(
                f"checkpoint={os.fspath(path)!r} is not a checkpoint, and would be lost: give another path"
            )
    try:
        check_replaceable(path)
    except OSError as error:
        raise ValueError(f"checkpoint={os.fspath(path)!r} cannot be written: {error.strerror}") from error


@dataclass(frozen=True)
class Resumed:
    """The state of a fit, read from a file."""

    path: Path
    problem: Mapping[str, Any]
    random: Mapping[str, Any]
    fit: Mapping[str, Any]
    history: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Resumed:
        """The state in a file, which must be a checkpoint."""
        if not path.exists():
            raise ValueError(f"resume_from={os.fspath(path)!r} does not exist: give a checkpoint, or start without it")
        header, arrays = read(path)
        if header.get("kind") != "checkpoint":
            raise UnreadableError(f"{path} is not a checkpoint: partwise.load reads models")
        try:
            names = ("problem", "random", "fit", "history")
            resumed = cls(path, **{name: dict(unpacked(header[name], arrays)) for name in names})
            resumed.check_state()
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UnreadableError(f"{path} does not hold the state of a fit: {error}") from error
        return resumed

    def check_state(self) -> None:
        """Refuse a state that no fit can have."""
        shape, r = self.problem["shape"], self.problem["n_components"]
        factors, grams, states = (self.fit[name] for name in ("factors", "grams", "states"))
        losses, times = self.history["losses"], self.history["times"]
        if not len(factors) == len(grams) == len(states) >= len(shape) >= 2 or type(self.fit["revivals"]) is not int:
            raise ValueError("its factors are not complete")
        if [f.shape for f in factors[: len(shape)]] != [(n, r) for n in shape] or any(
            g.shape != (f.shape[1],) * 2 for f, g in zip(factors, grams, strict=True)
        ):
            raise ValueError("its factors do not fit the problem")
        if not all(np.isfinite(f).all() and f.min() >= 0 for f in factors) or not all(
            isinstance(s, dict) for s in states
        ):
            raise ValueError("its factors are negative or not finite")
        if (
            losses.shape != times.shape
            or losses.ndim != 1
            or len(losses) < 2
            or type(self.history["residual"]) is not float
        ):
            raise ValueError("its history is not one of a fit")

    def check(self, problem: Mapping[str, Any]) -> None:
        """Refuse to go on with another problem."""
        for name, what in PROBLEM.items():
            if self.problem.get(name) != problem[name]:
                there = "" if name == "method" else f" ({self.problem.get(name)} there, {problem[name]} here)"
                raise ValueError(
                    f"resume_from={os.fspath(self.path)!r} is a checkpoint of another fit: {what} differs{there}"
                )

    def check_known(self, known: Sequence[Known | None]) -> None:
        """Refuse to go on with other known columns: those of the file would stay in their place."""
        for mode, columns in enumerate(known):
            if columns is not None and not columns.are_in(self.fit["factors"][mode]):
                name = ("fixed_activations", "fixed_components")[mode]
                raise ValueError(f"resume_from={os.fspath(self.path)!r} is a checkpoint of another fit: {name} differs")

    def set_generator(self, rng: np.random.Generator, when: str, must_agree: bool = False) -> None:
        """Set a generator to where it was ``when``: "before" the start was drawn, or "after"."""
        now, name = rng.bit_generator.state, os.fspath(self.path)
        try:
            rng.bit_generator.state = self.random[when]
            agrees = same(rng.bit_generator.state, now)
        except (LookupError, TypeError, ValueError, OverflowError):
            raise ValueError(f"resume_from={name!r} was drawn by another kind of generator than random_state") from None
        if must_agree and not agrees:
            raise ValueError(f"resume_from={name!r} was drawn with another random_state: give the same, or None")

    def factors(self, data: Data) -> Factors:
        """The factors to go on with."""
        activations, *others = self.fit["factors"]
        if isinstance(data, Chunked):
            activations = data.hold(Given(activations), activations.shape[1])
        return [activations, *others]

    def restore(self, fit: Fit, mode: int) -> None:
        """Give a fit, made of `factors`, the rest of its state; ``mode`` is what it updates next.

        That the data is the same shows in the loss: it must be what it was.
        """
        fit.restore(self.fit)
        loss, known, data = fit.first_loss(mode), float(self.history["losses"][-1]), fit.data
        size = data.sqnorm if data.squared else abs(known)
        if not abs(loss - known) <= np.sqrt(np.finfo(data.dtype).eps) * size:
            raise ValueError(
                f"resume_from={os.fspath(self.path)!r} is a checkpoint of another fit: its factors leave a loss of "
                f"{known:g} there, and of {loss:g} for this X and these parameters"
            )
        fit.restore(self.fit)  # where X comes in chunks, the pass has summed up anew


def same(a: Any, b: Any) -> bool:
    """Whether two states of a generator are equal, arrays in them included."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))

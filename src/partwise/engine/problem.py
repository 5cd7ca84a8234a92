"""The identity of a fit, which a checkpoint records, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from itertools import chain
from typing import Any

from ..data import Data, DenseData, Held, checksum
from ..projections import AtMost, HoyerBetween
from ..runtime.packing import StorageError, packed
from ..statistics import Array
from ..updates import Columns, Kept, Partly, Sets
from .blocks import Block
from .starts import Factors


@dataclass(frozen=True)
class Problem:
    """The identity of a fit, as named fields. A fit can be resumed from a checkpoint if all of them are equal.

    A new field, here or in a class that occurs in a problem, needs a default that describes earlier fits: files without
    it can then be resumed, and the format of checkpoints stays the same.

    Parameters
    ----------
    shape, dtype
        Those of X.
    X : str
        A checksum of its values.
    n_components, blocks, order, before, balance
        As in `factorize`.
    revives : bool
        Whether dead components are restarted.
    accelerated : bool
        Whether both factors are extrapolated.
    init : str
        The name of the start, or checksums of the factors that the user has given.
    parameters : dict
        Parameters of the recipe that the blocks do not show.
    compressed : bool
        Whether the fit may begin on a low-rank X.
    """

    shape: tuple[int, ...]
    dtype: str
    X: str
    n_components: int
    blocks: tuple[Block, ...]
    order: tuple[int, ...]
    before: tuple[int, ...]
    balance: bool
    revives: bool
    accelerated: bool
    init: str
    parameters: dict[str, Any]
    compressed: bool = False

    def packed(self) -> Any:
        """The problem for a file. Raises ValueError for custom sets, which a file cannot describe."""
        arrays: dict[str, Array] = {}
        try:
            return packed(self, "problem", arrays, CLASSES)
        except StorageError as error:
            raise ValueError(
                f"checkpoint and resume_from do not support custom sets, which cannot be compared with those in a file "
                f"({error}): fit without them, or use sets of partwise"
            ) from error


def values_checksum(data: Data) -> str:
    """The field ``X`` of a problem."""
    return f"values with checksum {checksum(data)}"


def factors_checksum(factors: Factors) -> str:
    """The field ``init`` of a problem, for factors that the user has given."""
    arrays = [f.collected() if isinstance(f, Held) else f for f in factors]
    return f"factors with checksums {', '.join(checksum(DenseData(a, check=False)) for a in arrays)}"


ROOMS = [vars(import_module(f"partwise.{room}")) for room in ("projections", "updates")]
CLASSES = {  # classes that may occur in a problem
    kind.__name__: kind
    for kind in (Problem, Block, *chain.from_iterable(room.values() for room in ROOMS))
    if isinstance(kind, type) and is_dataclass(kind)
}


SPARSITIES = {"activations": "activation_sparsity", "components": "sparsity"}
SWEEPS = ("sweeps", "steps", "repeats")  # what the option is called by the updates


def difference(there: Problem, here: Problem) -> str:
    """What differs between the problem of a checkpoint and another one, in terms of the options of a fit."""
    before, now = dict(terms(there)), dict(terms(here))
    for name in before | now:
        if before.get(name) != now.get(name):
            return f"{name} was {before.get(name)} in the checkpoint and is {now.get(name)} now"
    return "the method or one of its options was another in the checkpoint"


def terms(problem: Problem) -> Iterator[tuple[str, object]]:
    """Yield the settings of a fit as users know them, those on which others depend first."""
    yield "the shape of X", problem.shape
    yield "the dtype of X", problem.dtype
    yield "the checksum of X", problem.X.removeprefix("values with checksum ")
    yield "n_components", problem.n_components
    yield from ({"loss": "squared"} | problem.parameters).items()
    modes = tuple(SPARSITIES) if len(problem.shape) == 2 else [f"mode {k}" for k in range(len(problem.shape))]
    sides = list(zip([*modes, "middle"], problem.blocks, strict=False))
    for side, block in sides:
        fixed = [j for j, s in enumerate(each(block.sets)) if isinstance(s, Kept)]
        yield f"fixed_{side}", f"given for components {fixed}" if fixed else None
    for side, block in sides:
        levels = [level(s) for s in each(block.sets)]
        yield SPARSITIES.get(side, f"sparsity ({side})"), levels[0] if len(set(levels)) == 1 else levels
    yield "projection", next((s.method for _, block in sides for s in each(block.sets) if hasattr(s, "method")), None)
    yield "faithful", any(getattr(block.update, "order", "fixed") == "random" for _, block in sides)
    for side, block in sides:
        yield from update_terms(block.update, side)
        yield from ((f"{name} ({side})", getattr(block, name)) for name in ("l1", "l2"))
        yield f"the penalty of the rows ({side})", block.rows
    yield "accelerate", problem.accelerated
    yield "init", problem.init
    yield "compress", problem.compressed


def each(sets: Sets) -> tuple[Any, ...]:
    """The set of each column, or the one set that joins them."""
    return sets.sets if isinstance(sets, Columns) else (sets,)


def level(one: Any) -> object:
    """The sparsity that a set stands for: a number, an interval, or a text."""
    for name in ("unit", "row", "group"):  # sets that wrap another one
        one = getattr(one, name, one)
    if isinstance(one, AtMost):
        return f"at most {one.nonzeros} nonzeros"
    return (one.lo, one.hi) if isinstance(one, HoyerBetween) else getattr(one, "sparsity", None)


def update_terms(update: Any, side: str) -> Iterator[tuple[str, object]]:
    """Yield the solver of a side and its settings."""
    while isinstance(update, Partly):
        update = update.update
    kind = type(update).__name__.lower()
    yield f"solver ({side})", "hals" if kind == "sequential" else kind
    for one in fields(update):
        name = "sweeps" if one.name in SWEEPS else one.name
        yield f"{name} ({side})", getattr(update, one.name)

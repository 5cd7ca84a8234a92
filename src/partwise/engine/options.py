"""The options that all fits take: one table, from which defaults, signatures, docstrings and command-line flags come.

It imports nothing heavy, so that the command line can read it before it knows whether there is anything to compute.
"""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

if TYPE_CHECKING:
    from .loop import Callback

Kind = TypeVar("Kind", bound=type)
STARTS = ("samples", "random", "nndsvd", "gradual")
MISSING = ("error", "em")


@dataclass(frozen=True)
class Flag:
    """How the command line takes a parameter.

    Parameters
    ----------
    kind : callable or tuple of str
        What turns a text into a value; bool, for ``--name`` and ``--no-name``; or the texts to choose from.
    help : str
    usual : str
        The default in words, if there is one.
    metavar : str
    also : str
        A second name.
    """

    kind: Callable[[str], Any] | tuple[str, ...]
    help: str
    usual: str = ""
    metavar: str = "N"
    also: str = ""


def about(kind: str, text: str, flag: Flag | None = None) -> dict[str, Any]:
    """What docstrings say of an option, its type and its meaning; and its flag, if it has one."""
    return {"kind": kind, "text": text, "flag": flag}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options that all fits take."""

    init: Any = field(
        default=None,
        metadata=about(
            '{"samples", "random", "nndsvd", "gradual"} or (activations, components)',
            "Where the fit starts: from far-apart samples of X, from the paper's random start, from a truncated SVD, "
            "or from a few iterations at each of several lower sparsities. By default, what the method starts from.",
            Flag(STARTS, "starting point (default: chosen by the recipe)"),
        ),
    )
    max_iter: int = field(
        default=200,
        metadata=about("int", "The largest number of iterations.", Flag(int, "maximum number of iterations")),
    )
    tol: float | None = field(
        default=None,
        metadata=about(
            "float",
            "Stop when the relative decrease of the loss in an iteration is at most ``tol``. By default the method's "
            "own, mostly 1e-4; 0 never stops.",
            Flag(float, "stop when the relative decrease of the loss is at most this", "1e-4"),
        ),
    )
    kkt_tol: float = field(
        default=0.0,
        metadata=about(
            "float",
            "Stop when no column would move by more than this share of its norm; 0: not measured.",
            Flag(float, "stop when the relative fixed-point residual of every column is at most this", "off"),
        ),
    )
    max_time: float | None = field(
        default=None,
        metadata=about(
            "float",
            "Stop after this many seconds, not counting those spent on compiling.",
            Flag(float, "time limit in seconds"),
        ),
    )
    random_state: Any = field(
        default=None,
        metadata=about(
            "int, Generator or RandomState",
            "The seed or the generator of whatever is random.",
            Flag(int, "random seed", also="seed"),
        ),
    )
    callback: Callback | None = field(
        default=None, metadata=about("callable", "Called with each `Iteration`; the fit stops if it returns True.")
    )
    memory_limit: int | str | None = field(
        default=None,
        metadata=about(
            "int or str",
            'Bytes of memory ("2 GB") for an X that is not in memory: a .npy path, a memory map, zarr, HDF5. An X '
            "that takes more (1 GiB by default) stays where it is, and each iteration reads it once, in chunks of "
            "samples.",
            Flag(str, "data files larger than this, such as '2 GB', are read in chunks", "1 GiB", "SIZE"),
        ),
    )
    n_threads: int | None = field(
        default=None,
        metadata=about(
            "int",
            "Threads for matrix products and kernels; −1 is one on each core. By default as many as BLAS may take. The "
            "answer does not depend on it, but for rounding.",
            Flag(int, "number of threads; -1: one per core"),
        ),
    )
    checkpoint: str | os.PathLike[str] | None = field(
        default=None,
        metadata=about(
            "path",
            "A file that the state of the fit is written to, whole or not at all, every ``checkpoint_every`` "
            "iterations and at the end: a fit that is killed can go on from it.",
            Flag(str, "save the state of the fit to this file", metavar="FILE"),
        ),
    )
    checkpoint_every: int = field(
        default=10,
        metadata=about(
            "int", "The number of iterations between two checkpoints.", Flag(int, "iterations between two checkpoints")
        ),
    )
    resume_from: str | os.PathLike[str] | None = field(
        default=None,
        metadata=about(
            "path",
            "A checkpoint to go on from: with the same X and parameters the answer is, bit for bit, that of a fit "
            "that was never stopped. ``max_iter``, ``max_time``, tolerances and the callback may differ. It may be "
            "the file that ``checkpoint`` names.",
            Flag(str, "continue from this checkpoint and keep updating it", metavar="FILE", also="resume"),
        ),
    )
    fixed_components: Any = field(
        default=None,
        metadata=about(
            "array of shape (at most n_components, features)",
            "The first components, where they are known: they stay as they are, whatever their sparsity and their "
            "norm. A row of NaN, and each row that is not there, is a component to be found.",
            Flag(
                Path,
                "file of known components to keep unchanged, as rows or as columns; a row of NaN is a component to "
                "find. Features are matched by name if both files have names",
                metavar="FILE",
            ),
        ),
    )
    fixed_activations: Any = field(
        default=None,
        metadata=about(
            "array of shape (samples, at most n_components)",
            "The activations of the first components, likewise by columns.",
            Flag(
                Path,
                "file of known activations of the first components, one row per sample",
                metavar="FILE",
            ),
        ),
    )
    missing: Literal["error", "em"] = field(
        default="error",
        metadata=about(
            '{"error", "em"}',
            "What NaN in a dense X means: an error, or a missing entry, for which the fit takes what its own model "
            "says (EM). The loss and all errors are then those of the observed entries.",
            Flag(MISSING, "treat empty cells and NaN as an error, or as missing entries"),
        ),
    )
    observed: Any = field(
        default=None,
        metadata=about(
            "array or scipy sparse of the shape of X",
            "True (or 1) where X is observed, False (or 0) where it is missing, whatever stands there.",
        ),
    )


class Keywords(TypedDict, total=False):
    """The same as keywords of a function, for type checkers, which read no tables; the tests compare."""

    init: Any
    max_iter: int
    tol: float | None
    kkt_tol: float
    max_time: float | None
    random_state: Any
    callback: Callback | None
    memory_limit: int | str | None
    n_threads: int | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int
    resume_from: str | os.PathLike[str] | None
    fixed_components: Any
    fixed_activations: Any
    missing: Literal["error", "em"]
    observed: Any


TABLE = {one.name: one for one in fields(Options)}
FLAGS: dict[str, Flag] = {
    name: replace(flag, usual=flag.usual or ("" if one.default is None else str(one.default)))
    for name, one in TABLE.items()
    if (flag := one.metadata["flag"])
}


def parameters() -> list[inspect.Parameter]:
    """The options as keywords of a signature."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, keyword, default=one.default, annotation=one.type) for name, one in TABLE.items()]


def described(doc: str | None, signature: inspect.Signature) -> str | None:
    """A docstring with all options of the signature among its parameters: those that it does not describe itself."""
    if doc is None:  # python -OO
        return None
    before, heading, rest = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    own, blank, after = rest.partition("\n\n")
    told = {name for line in own.splitlines() if line[:1].strip() for name in re.findall(r"\w+", line.split(" :")[0])}
    entries = [entry(p.name, p.default) for p in signature.parameters.values() if p.name in TABLE.keys() - told]
    return before + heading + "\n".join([own, *entries]) + blank + after


def entry(name: str, default: Any) -> str:
    """An option as docstrings describe it."""
    kind, text = (TABLE[name].metadata[part] for part in ("kind", "text"))
    usual = "optional" if default is None else f"default={default!r}"
    indent = "    "
    lines = textwrap.fill(text, 112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return f"{name} : {kind}, {usual}\n{lines}"


def with_options(kind: Kind) -> Kind:
    """A class whose docstring describes the options that its constructor takes."""
    kind.__doc__ = described(kind.__doc__, inspect.signature(kind))
    return kind

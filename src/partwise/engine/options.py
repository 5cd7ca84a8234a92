"""The options of all fits: one table for defaults, signatures, docstrings and command-line flags.

It imports nothing heavy, so that the command line starts fast.
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
    """A parameter on the command line.

    Parameters
    ----------
    kind : callable or tuple of str
        Converts a string to a value; bool, for ``--name`` and ``--no-name``; or the choices.
    help : str
    usual : str
        The default, as text.
    metavar : str
    also : str
        An alternative name.
    """

    kind: Callable[[str], Any] | tuple[str, ...]
    help: str
    usual: str = ""
    metavar: str = "N"
    also: str = ""


def about(kind: str, text: str, flag: Flag | None = None) -> dict[str, Any]:
    """Metadata of an option: type and description for docstrings, and its flag, if any."""
    return {"kind": kind, "text": text, "flag": flag}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The options of all fits."""

    init: Any = field(
        default=None,
        metadata=about(
            '{"samples", "random", "nndsvd", "gradual"} or (activations, components)',
            "Starting point: samples of X that are far apart, the paper's random start, a truncated SVD, or a few "
            "iterations at each of several lower sparsities. The default depends on the method.",
            Flag(STARTS, "starting point (default: chosen by the recipe)"),
        ),
    )
    max_iter: int = field(
        default=200,
        metadata=about("int", "Maximum number of iterations.", Flag(int, "maximum number of iterations")),
    )
    tol: float | None = field(
        default=None,
        metadata=about(
            "float",
            "Stop when the relative decrease of the loss in an iteration is at most ``tol``. The default "
            "depends on the method and is mostly 1e-4; 0 disables this.",
            Flag(float, "stop when the relative decrease of the loss is at most this", "1e-4"),
        ),
    )
    kkt_tol: float = field(
        default=0.0,
        metadata=about(
            "float",
            "Stop when the relative fixed-point residual of every column is at most ``kkt_tol``; 0 disables this.",
            Flag(float, "stop when the relative fixed-point residual of every column is at most this", "off"),
        ),
    )
    max_time: float | None = field(
        default=None,
        metadata=about(
            "float",
            "Time limit in seconds, without compilation.",
            Flag(float, "time limit in seconds"),
        ),
    )
    random_state: Any = field(
        default=None,
        metadata=about(
            "int, Generator or RandomState",
            "Random seed or generator.",
            Flag(int, "random seed", also="seed"),
        ),
    )
    callback: Callback | None = field(
        default=None,
        metadata=about(
            "callable", "Called with an `Iteration` after each iteration. The fit stops if it returns True."
        ),
    )
    memory_limit: int | str | None = field(
        default=None,
        metadata=about(
            "int or str",
            'Largest X to load into memory from disk (a .npy path, a memory map, zarr, HDF5), for example "2 GB"; '
            "1 GiB by default. A larger X is read once per iteration, in chunks of samples.",
            Flag(str, "data files larger than this, such as '2 GB', are read in chunks", "1 GiB", "SIZE"),
        ),
    )
    n_threads: int | None = field(
        default=None,
        metadata=about(
            "int",
            "Number of threads; −1 is one per core. By default as many as BLAS uses. Results differ only by rounding.",
            Flag(int, "number of threads; -1: one per core"),
        ),
    )
    checkpoint: str | os.PathLike[str] | None = field(
        default=None,
        metadata=about(
            "path",
            "File to save the state of the fit to, every ``checkpoint_every`` iterations and at the end. An "
            "interrupted fit can continue from it.",
            Flag(str, "save the state of the fit to this file", metavar="FILE"),
        ),
    )
    checkpoint_every: int = field(
        default=10,
        metadata=about(
            "int", "Number of iterations between two checkpoints.", Flag(int, "iterations between two checkpoints")
        ),
    )
    resume_from: str | os.PathLike[str] | None = field(
        default=None,
        metadata=about(
            "path",
            "Checkpoint to continue from. With the same X and parameters the result is bit-identical to that of an "
            "uninterrupted fit. ``max_iter``, ``max_time``, tolerances and the callback may differ. It may be the "
            "same file as ``checkpoint``.",
            Flag(str, "continue from this checkpoint and keep updating it", metavar="FILE", also="resume"),
        ),
    )
    fixed_components: Any = field(
        default=None,
        metadata=about(
            "array of shape (at most n_components, features)",
            "Known components, which the fit keeps unchanged, with their own sparsity and norm. Rows of NaN, and "
            "components beyond the last row, are fitted.",
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
            "Known activations, likewise: one column per component.",
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
            "Treat NaN in a dense X as an error, or as a missing entry that the fit estimates (EM). The loss and all "
            "errors then refer to the observed entries.",
            Flag(MISSING, "treat empty cells and NaN as an error, or as missing entries"),
        ),
    )
    observed: Any = field(
        default=None,
        metadata=about(
            "array or scipy sparse of the shape of X",
            "True (or 1) where X is observed, False (or 0) where it is missing. Missing values of X are ignored.",
        ),
    )


class Keywords(TypedDict, total=False):
    """`Options` as keyword arguments, for type checkers. A test compares the two."""

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
    """The options as keyword-only parameters."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, keyword, default=one.default, annotation=one.type) for name, one in TABLE.items()]


def completed_docstring(doc: str | None, signature: inspect.Signature) -> str | None:
    """A docstring completed by the options of the signature that it does not describe itself."""
    if doc is None:  # python -OO
        return None
    before, heading, rest = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    own, blank, after = rest.partition("\n\n")
    told = {name for line in own.splitlines() if line[:1].strip() for name in re.findall(r"\w+", line.split(" :")[0])}
    entries = [entry(p.name, p.default) for p in signature.parameters.values() if p.name in TABLE.keys() - told]
    return before + heading + "\n".join([own, *entries]) + blank + after


def entry(name: str, default: object) -> str:
    """The docstring entry of an option."""
    kind, text = (TABLE[name].metadata[part] for part in ("kind", "text"))
    usual = "optional" if default is None else f"default={default!r}"
    indent = "    "
    lines = textwrap.fill(text, 112, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return f"{name} : {kind}, {usual}\n{lines}"


def with_options(kind: Kind) -> Kind:
    """Complete the docstring of a class by the options of its constructor."""
    kind.__doc__ = completed_docstring(kind.__doc__, inspect.signature(kind))
    return kind

"""The options of all fits: one table for defaults, signatures, docstrings and command-line flags.

It imports nothing heavy, so that the command line starts fast.
"""

import inspect
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar

if TYPE_CHECKING:
    from .stopping import Callback

Kind = TypeVar("Kind", bound=type)
TOL, MAX_ITER = 0.05, 1000  # measured by benchmarks/settling.py
STARTS = ("auto", "samples", "random", "nndsvd", "gradual")
MISSING = ("error", "em")
LOSSES = ("squared", "kullback-leibler", "kl")
NEGATIVE = ("error", "allow")
WEIGHTS = ("weights", "sample_weight", "feature_weight")
FIRST = {  # parameters of all recipes
    "X": "X : array or SciPy sparse matrix of shape (samples, features)\n    Nonnegative.",
    "n_components": "n_components : int",
}


@dataclass(frozen=True)
class Flag:
    """A parameter on the command line."""

    kind: Callable[[str], Any] | tuple[str, ...]  # converts a string; bool: ``--name`` and ``--no-name``; or choices
    help: str
    usual: str = ""  # the default
    metavar: str = "N"
    also: str = ""  # an alternative name


@dataclass(frozen=True)
class Option:
    """An option: its default, its type and description in docstrings, and its flag, if any."""

    default: Any
    kind: str
    text: str
    flag: Flag | None = None


class Keywords(TypedDict, total=False):
    """The options of all fits as keyword arguments: their types, annotated with the values of an `Option`."""

    loss: Annotated[
        Literal["squared", "kullback-leibler", "kl"],
        "squared",
        '{"squared", "kullback-leibler", "kl"}',
        "The loss: ½‖X − model‖², or the Kullback–Leibler divergence Σ x·log(x / model) − x + model, which suits "
        "counts (only in ssnmf and nsnmf). Relative errors are then √(divergence / divergence of the features' means).",
        Flag(LOSSES, "squared error, or Kullback–Leibler divergence for counts (ssnmf, nsnmf)"),
    ]
    init: Annotated[
        Any,
        "auto",
        '{"auto", "samples", "random", "nndsvd", "gradual"} or (activations, components)',
        "Starting point: samples of X that are far apart, the paper's random start, a truncated SVD, or a few "
        "iterations at each of several lower sparsities. With 'auto', the method chooses: ssnmf starts from samples "
        "or, with a sparsity, from a short fit without the constraint.",
        Flag(STARTS, "starting point"),
    ]
    max_iter: Annotated[
        int, MAX_ITER, "int", "Maximum number of iterations.", Flag(int, "maximum number of iterations")
    ]
    tol: Annotated[
        float | None,
        None,
        "float",
        "Stop when the components have settled: if the fit continued at its present speed for as many iterations "
        "again, no component would change by more than ``tol``, relative to its distance from the component that is "
        f"most like it, nor the loss, relative to its size. The default is {TOL} (0 in ssnmf with ``faithful``); 0 "
        "disables this.",
        Flag(float, "stop when as many further iterations would change no component by more than this share", str(TOL)),
    ]
    kkt_tol: Annotated[
        float,
        0.0,
        "float",
        "Stop when the relative fixed-point residual of every column is at most ``kkt_tol``; 0 disables this.",
        Flag(float, "stop when the relative fixed-point residual of every column is at most this", "off"),
    ]
    max_time: Annotated[
        float | None,
        None,
        "float",
        "Time limit in seconds. Compilation does not count.",
        Flag(float, "time limit in seconds"),
    ]
    random_state: Annotated[
        Any, None, "int, Generator or RandomState", "Random seed or generator.", Flag(int, "random seed", also="seed")
    ]
    callback: Annotated[
        "Callback | None",
        None,
        "callable",
        "Called with an `Iteration` after each iteration. The fit stops if it returns True.",
    ]
    memory_limit: Annotated[
        int | str | None,
        None,
        "int or str",
        'Largest X to load into memory from disk (a .npy path, a memory map, zarr, HDF5), for example "2 GB"; '
        "1 GiB by default. A larger X is read once per iteration, in chunks of samples.",
        Flag(str, "data files larger than this, such as '2 GB', are read in chunks", "1 GiB", "SIZE"),
    ]
    n_threads: Annotated[
        int | None,
        None,
        "int",
        "Number of threads; −1 is one per core. By default as many as BLAS uses. Results differ only by rounding.",
        Flag(int, "number of threads; -1: one per core"),
    ]
    checkpoint: Annotated[
        str | os.PathLike[str] | None,
        None,
        "path",
        "File to save the state of the fit to, every ``checkpoint_every`` iterations and at the end. An "
        "interrupted fit can continue from it.",
        Flag(str, "save the state of the fit to this file", metavar="FILE"),
    ]
    checkpoint_every: Annotated[
        int, 10, "int", "Number of iterations between two checkpoints.", Flag(int, "iterations between two checkpoints")
    ]
    resume_from: Annotated[
        str | os.PathLike[str] | None,
        None,
        "path",
        "Checkpoint to continue from. With the same X and parameters the result is bit-identical to that of an "
        "uninterrupted fit. ``max_iter``, ``max_time``, tolerances and the callback may differ. It may be the "
        "same file as ``checkpoint``.",
        Flag(str, "continue from this checkpoint and keep updating it", metavar="FILE", also="resume"),
    ]
    fixed_components: Annotated[
        Any,
        None,
        "array of shape (at most n_components, features)",
        "Known components, which the fit keeps unchanged, with their own sparsity and norm. Rows of NaN, and "
        "components beyond the last row, are fitted. Not available in bisparse, grouped and nsnmf.",
        Flag(
            Path,
            "file of known components to keep unchanged, as rows or as columns; a row of NaN is a component to "
            "find. Features are matched by name if both files have names",
            metavar="FILE",
        ),
    ]
    fixed_activations: Annotated[
        Any,
        None,
        "array of shape (samples, at most n_components)",
        "Known activations in the same way: one column per component.",
        Flag(
            Path,
            "file of known activations of the first components, one row per sample",
            metavar="FILE",
        ),
    ]
    missing: Annotated[
        Literal["error", "em"],
        "error",
        '{"error", "em"}',
        "Treat NaN in a dense X as an error, or as a missing entry that the fit estimates (EM). The loss and all "
        "errors then refer to the observed entries.",
        Flag(MISSING, "treat empty cells and NaN as an error, or as missing entries"),
    ]
    negative: Annotated[
        Literal["error", "allow"],
        "error",
        '{"error", "allow"}',
        "Treat negative entries of X as an error, or fit them by the squared loss like all others: for noise about "
        "zero, as in background-subtracted images. Activations and components stay nonnegative.",
        Flag(NEGATIVE, "treat negative entries as an error, or fit them by the squared error"),
    ]
    weights: Annotated[
        Any,
        None,
        "array of the shape of X",
        "Weights v ≥ 0 of the entries of a dense X in memory (ssnmf only): the loss is ½Σ v·(x − model)². Entries of "
        "weight 0, and NaN, are not fitted. Weights that are all equal change nothing. Weights of 0 and one other "
        "value have the effect of ``observed``, in all recipes that accept missing entries.",
        Flag(Path, "file of weights of all entries, of the shape of DATA", metavar="FILE"),
    ]
    sample_weight: Annotated[
        Any,
        None,
        "array of shape (samples,)",
        "Weights of the samples, as ``weights`` that are the same in all entries of a row. X may also be sparse or "
        "chunked, unless the activations have a constraint or a penalty.",
        Flag(Path, "file of weights of the samples, a row or a column", metavar="FILE"),
    ]
    feature_weight: Annotated[
        Any,
        None,
        "array of shape (features,)",
        "Weights of the features, which are multiplied by ``sample_weight``. X may also be sparse or chunked, unless "
        "the components have a sparsity or a penalty.",
        Flag(Path, "file of weights of the features, a row or a column", metavar="FILE"),
    ]
    observed: Annotated[
        Any,
        None,
        "array or scipy sparse of the shape of X",
        "True (or 1) where X is observed, False (or 0) where it is missing. Missing values of X are ignored.",
    ]


TABLE = {name: Option(*hint.__metadata__) for name, hint in Keywords.__annotations__.items()}
FLAGS = {
    name: replace(option.flag, usual=option.flag.usual or ("" if option.default is None else str(option.default)))
    for name, option in TABLE.items()
    if option.flag
}


def parameters() -> list[inspect.Parameter]:
    """The options as keyword-only parameters."""
    types = {name: hint.__origin__ for name, hint in Keywords.__annotations__.items()}
    types["callback"] = types["callback"].__forward_arg__
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, keyword, default=TABLE[name].default, annotation=types[name]) for name in TABLE]


def full_docstring(doc: str | None, first: Mapping[str, str], last: Mapping[str, str], returns: str = "") -> str | None:
    """A docstring with these entries before and after its own parameters, and ``returns``, unless it has them."""
    if doc is None:  # python -OO
        return None
    before, heading, rest = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    own, _, after = rest.partition("\n\n")
    told = {name for line in own.splitlines() if line[:1].strip() for name in re.findall(r"\w+", line.split(" :")[0])}
    above, below = ([text for name, text in more.items() if name not in told] for more in (first, last))
    returned = f"Returns\n-------\n{returns}\n\n" if returns and not after.startswith("Returns\n") else ""
    return before + heading + "\n".join([*above, own, *below]) + "\n\n" + returned + after


def entries(signature: inspect.Signature) -> dict[str, str]:
    """The docstring entries of the options in a signature."""
    return {name: entry(name, p.default) for name, p in signature.parameters.items() if name in TABLE}


def entry(name: str, default: object) -> str:
    """The docstring entry of an option."""
    usual = (
        "optional"
        if default is None
        else f'default="{default}"'
        if isinstance(default, str)
        else f"default={default!r}"
    )
    lines = textwrap.fill(TABLE[name].text, 108, break_on_hyphens=False)
    return f"{name} : {TABLE[name].kind}, {usual}\n{textwrap.indent(lines, '    ')}"


def with_options(kind: Kind) -> Kind:
    """Complete the docstring of a class by the options of its constructor."""
    kind.__doc__ = full_docstring(kind.__doc__, {}, entries(inspect.signature(kind)))
    return kind

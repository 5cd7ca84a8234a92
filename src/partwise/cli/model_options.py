"""The options of a fit on the command line, and the estimator they define."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..engine.options import FLAGS, WEIGHTS, Flag
from .common import UsageError

SPARSITY = "a number from 0 to 1 such as 0.7, an interval such as 0.2:0.4, 0.2: or :0.4, or none for no constraint"
RECIPES = ("ssnmf", "nmfsc", "tpc", "nnsc", "snmf", "nsnmf", "l0", "l0_path", "bisparse", "grouped")


def level(text: str) -> Any:
    """A sparsity, "0.7"; an interval, "0.2:0.4", "0.2:" or ":0.4"; "none"; or a list of these, "0.4,0.2:,none"."""
    try:
        each = [one_level(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a sparsity: give {SPARSITY}. DATA comes before the options"
        ) from None
    return each if len(each) > 1 else each[0]


def one_level(text: str) -> Any:
    """One sparsity; ValueError if it is none."""
    if text.strip().lower() in ("none", "any"):
        return None
    ends = [float(end) if end.strip() else None for end in text.split(":")]
    if len(ends) > 2 or ends == [None]:
        raise ValueError
    return ends[0] if len(ends) == 1 else tuple(ends)


def label(value: Any) -> str:
    """A sparsity in a file name.

    >>> [label(value) for value in (0.4, (None, 0.5), [0.4, None])]
    ['0.4', '0-0.5', '0.4,none']
    """
    if isinstance(value, list):
        return ",".join(map(label, value))
    if isinstance(value, tuple):
        return "-".join(label(end if end is not None else usual) for end, usual in zip(value, (0, 1), strict=True))
    return "none" if value is None else f"{value:.15g}"


def penalty(text: str) -> Any:
    """A number, or a pair "activations,components"."""
    numbers = [float(number) for number in text.split(",")]
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


penalty.__name__ = "penalty"  # its name in messages of argparse

CHECKPOINTING = ("checkpoint", "checkpoint_every", "resume_from")

# parameters of the estimator
FIT: dict[str, Flag] = {
    "activation_sparsity": Flag(level, "sparsity of each component's activations over the samples", metavar="S"),
    "l1": Flag(penalty, "ℓ1 penalty on the activations; A,B: A on the activations, B on the components"),
    "l2": Flag(penalty, "squared ℓ2 penalty, like --l1"),
    "activations": Flag(("nonnegative", "simplex"), "simplex: the activations of each sample sum to 1", "nonnegative"),
    "max_activation": Flag(float, "upper bound of all activations; the components carry the scale"),
    "n_init": Flag(int, "number of starts; the best fit is kept", "1"),
    "accelerate": Flag(bool, "ssnmf: extrapolate both factors, for fewer iterations", "where possible"),
    "compress": Flag(bool, "ssnmf: make the first iterations on a low-rank X", "where it pays"),
    **{name: flag for name, flag in FLAGS.items() if name not in (*CHECKPOINTING, *WEIGHTS, "kkt_tol")},
}
MODEL = (
    "loss",
    "activation_sparsity",
    "activations",
    "max_activation",
    "l1",
    "l2",
    "fixed_components",
    "fixed_activations",
    "missing",
    "negative",
)
# parameters of recipes
RECIPE: dict[str, Flag] = {
    "faithful": Flag(bool, "ssnmf: follow the paper's Algorithm 4 exactly"),
    "solver": Flag(
        ("hals", "multiplicative", "gradient", "greedy", "pivot"), "ssnmf: update of the factor without sparsity"
    ),
    "projection": Flag(("fast", "sorted", "hoyer"), "ssnmf, nmfsc, bisparse: algorithm of the sparse projection"),
    "component_sweeps": Flag(int, "ssnmf: sweeps over the components per iteration"),
    "activation_sweeps": Flag(int, "ssnmf: sweeps over the activations per iteration"),
    "nonzeros": Flag(int, "l0, l0_path: maximum number of nonzeros"),
    "side": Flag(("activations", "components"), "l0, l0_path, nnsc, snmf, grouped: the factor that is sparse"),
    "method": Flag(("prune", "sequential", "forward", "reverse", "hoyer"), "l0, nnsc: algorithm"),
    "every": Flag(int, "l0: iterations between two selections of the nonzeros"),
    "refit": Flag(bool, "l0_path: solve again without the penalty"),
    "middle": Flag(("diagonal", "full"), "bisparse: form of the matrix between activations and components"),
    "middle_solver": Flag(("nnls", "multiplicative"), "bisparse: update of that matrix"),
    "theta": Flag(float, "nsnmf: smoothing, from 0 to 1"),
    "beta": Flag(float, "snmf: penalty on the sparse factor"),
    "eta": Flag(float, "snmf: penalty on the other factor"),
    "kkt_tol": FLAGS["kkt_tol"],
}


def add_model_options(parser: Any, add_sparsity: Callable[[Any], None] | None = None) -> None:
    """Add the options of a fit. ``add_sparsity`` adds that of the sparsity, by default one or several for `fit`."""
    group = parser.add_argument_group("Model")
    group.add_argument("-r", "--components", type=int, metavar="R", help="number of components (default: 10)")
    (add_sparsity or add_sparsities)(group)
    group.add_argument("--recipe", choices=RECIPES, default="ssnmf", help="method (default: %(default)s)")
    add_flags(group, {name: FIT[name] for name in MODEL})
    add_flags(parser.add_argument_group("Solver"), {name: flag for name, flag in FIT.items() if name not in MODEL})
    add_flags(parser.add_argument_group("Options of some recipes only"), RECIPE)


def add_sparsities(group: Any) -> None:
    """Add the sparsity of one fit or several."""
    sparsity = group.add_mutually_exclusive_group()
    sparsity.add_argument(
        "-s",
        "--sparsity",
        type=level,
        nargs="+",
        metavar="S",
        help=f"Hoyer sparsity of each component, from 0 (flat) to 1 (a single feature): {SPARSITY} (default: none). "
        "With commas, one for each component: 0.4,0.4,0.8. With spaces, one fit for each: 0.4 0.6 0.8 writes a model "
        "for each, with the sparsity in its name, and compares them",
    )
    sparsity.add_argument(
        "--sparsity-file",
        type=Path,
        metavar="FILE",
        help="text file with one sparsity per line, for each component",
    )


def add_flags(group: Any, table: Mapping[str, Flag]) -> None:
    """Add a flag for each entry of a table."""
    for name, flag in table.items():
        names = [f"--{text.replace('_', '-')}" for text in (name, flag.also) if text]
        text = f"{flag.help} (default: {flag.usual})" if flag.usual else flag.help
        if flag.kind is bool:
            group.add_argument(*names, dest=name, action=argparse.BooleanOptionalAction, help=text)
        elif isinstance(flag.kind, tuple):
            group.add_argument(*names, dest=name, choices=flag.kind, help=text)
        else:
            group.add_argument(*names, dest=name, type=flag.kind, metavar=flag.metavar, help=text)


def build_model(options: argparse.Namespace, sparsity: Any) -> Any:
    """The estimator for the options and a sparsity, validated. Fixed components and activations are read later."""
    from ..engine.validation import as_columns, as_count
    from ..estimators import SparseNMF

    count = options.components
    if options.sparsity_file is not None:
        sparsity = read_sparsities(options.sparsity_file)
    if isinstance(sparsity, list) and count is None:
        count = len(sparsity)
    given = {name: value for name, value in vars(options).items() if value is not None}
    own = {name: given[name] for name in RECIPE if name in given}
    names = [name for name in (*FIT, *CHECKPOINTING) if name in given and not isinstance(given[name], Path)]
    params = {"checkpoint": options.resume_from} | {name: given[name] for name in names}
    try:
        model = SparseNMF(
            10 if count is None else count,
            sparsity=sparsity,
            recipe=options.recipe,
            recipe_params=own or None,
            **params,
        )
        model._recipe()
        for value in (model.sparsity, model.activation_sparsity):
            as_columns(value, as_count(model.n_components, "n_components"))
    except ValueError as error:
        raise UsageError(error) from error
    return model


def read_sparsities(path: Path) -> list[Any]:
    """The sparsities in a file, one per line. ``any`` or ``none`` stands for no constraint, # starts a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = "not a text file (UTF-8)" if isinstance(error, ValueError) else error.strerror
        raise OSError(f"cannot read {path}: {why}; give a text file with one sparsity per line") from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if text:
            try:
                found.append(one_level(text))
            except ValueError:
                raise UsageError(
                    f"{path}, line {number}: {text!r} is not a sparsity; give a number, an interval lo:hi, or any"
                ) from None
    if not found:
        raise UsageError(f"{path} contains no sparsity: give one per line, one for each component")
    return found

"""Every option of a fit on the command line, and the estimator that they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine.options import FLAGS, Flag
from .common import UsageError

RECIPES = ("ssnmf", "nmfsc", "tpc", "nnsc", "snmf", "nsnmf", "l0", "l0_path", "bisparse", "grouped")


def level(text: str) -> Any:
    """A sparsity, "0.7", or an interval of them, "0.2:0.4", one end of which may be left open."""
    ends = [float(end) if end.strip() else None for end in text.split(":")]
    if len(ends) == 1 and ends[0] is not None:
        return ends[0]
    if len(ends) != 2:
        raise ValueError
    return tuple(ends)


def penalty(text: str) -> Any:
    """A number, or a pair "on activations,on components"."""
    numbers = [float(number) for number in text.split(",")]
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


level.__name__, penalty.__name__ = "sparsity", "penalty"  # as argparse calls them when they are wrong

BACK = ("checkpoint", "checkpoint_every", "resume_from")  # options that belong to a run, not to a model

# what the estimator takes
FIT: dict[str, Flag] = {
    "activation_sparsity": Flag(level, "the same for activations, over the samples", metavar="S"),
    "l1": Flag(penalty, "ℓ1 penalty on the activations, or a pair (activations,components)"),
    "l2": Flag(penalty, "squared ℓ2 penalty, likewise"),
    "n_init": Flag(int, "fits from as many starts; the best is kept", "1"),
    **{name: flag for name, flag in FLAGS.items() if name not in (*BACK, "kkt_tol")},
}
RECIPE: dict[str, Flag] = {
    "faithful": Flag(bool, "ssnmf: exactly the paper's Algorithm 4"),
    "solver": Flag(("hals", "multiplicative", "gradient", "greedy", "pivot"), "ssnmf: for the side without sparsity"),
    "projection": Flag(("fast", "sorted", "hoyer"), "ssnmf, nmfsc, bisparse: how the nearest sparse vector is found"),
    "component_sweeps": Flag(int, "ssnmf: passes over the parts for every product with X"),
    "activation_sweeps": Flag(int, "ssnmf: passes over the activations"),
    "extrapolate": Flag(bool, "ssnmf: mostly faster, but the loss may rise now and then"),
    "nonzeros": Flag(int, "l0, l0_path: nonzeros at most"),
    "side": Flag(("activations", "components"), "l0, l0_path, nnsc, snmf, grouped: which side is sparse"),
    "method": Flag(("prune", "sequential", "forward", "reverse", "hoyer"), "l0, nnsc: which algorithm"),
    "every": Flag(int, "l0: choose supports in every so-many-th iteration"),
    "refit": Flag(bool, "l0_path: solve again without the penalty"),
    "middle": Flag(("diagonal", "full"), "bisparse: what stands between activations and parts"),
    "middle_solver": Flag(("nnls", "multiplicative"), "bisparse: how it is solved"),
    "theta": Flag(float, "nsnmf: how much is smoothed, 0 to 1"),
    "loss": Flag(("squared", "kl"), "nsnmf: what is minimised"),
    "beta": Flag(float, "snmf: penalty for sparsity"),
    "eta": Flag(float, "snmf: penalty on the other side's size"),
    "kkt_tol": FLAGS["kkt_tol"],
}


def add_asking(parser: Any) -> None:
    """All options of a fit."""
    group = parser.add_argument_group("what to find")
    group.add_argument("-r", "--components", type=int, metavar="R", help="number of parts (default: 10)")
    sparsity = group.add_mutually_exclusive_group()
    sparsity.add_argument(
        "-s",
        "--sparsity",
        type=level,
        metavar="S",
        help="of every part: 0.7, or an interval 0.2:0.4, 0.2: or :0.4. 0 is flat, 1 is a single feature "
        "(default: as it comes)",
    )
    sparsity.add_argument(
        "--per-part", type=Path, metavar="FILE", help="a text with a sparsity for each part, one a line"
    )
    group.add_argument("--recipe", choices=RECIPES, default="ssnmf", help="the method (default: ssnmf)")
    add_flags(parser.add_argument_group("how to find it"), FIT)
    add_flags(parser.add_argument_group("options of single recipes"), RECIPE)


def add_flags(group: Any, table: Mapping[str, Flag]) -> None:
    """A flag for each line of a table."""
    for name, flag in table.items():
        names = [f"--{text.replace('_', '-')}" for text in (name, flag.also) if text]
        text = f"{flag.help} ({flag.usual})" if flag.usual else flag.help
        if flag.kind is bool:
            group.add_argument(*names, dest=name, action=argparse.BooleanOptionalAction, help=text)
        elif isinstance(flag.kind, tuple):
            group.add_argument(*names, dest=name, choices=flag.kind, help=text)
        else:
            group.add_argument(*names, dest=name, type=flag.kind, metavar=flag.metavar, help=text)


def asked_model(options: argparse.Namespace, **more: Any) -> Any:
    """The estimator that the options ask for (known parts, which files hold, apart), found to make sense."""
    from ..engine.validation import as_columns, as_count
    from ..estimators import SparseNMF

    sparsity, count = options.sparsity, options.components
    if options.per_part is not None:
        sparsity = per_part(options.per_part)
        count = len(sparsity) if count is None else count
    given = {name: getattr(options, name) for name in (*FIT, *RECIPE) if getattr(options, name) is not None}
    own = {name: given[name] for name in RECIPE if name in given}
    more |= {name: value for name, value in given.items() if name in FIT and FIT[name].kind is not Path}
    try:
        model = SparseNMF(
            10 if count is None else count, sparsity=sparsity, recipe=options.recipe, recipe_params=own or None, **more
        )
        model._recipe()
        for value in (model.sparsity, model.activation_sparsity):
            as_columns(value, as_count(model.n_components, "n_components"))
    except ValueError as error:
        raise UsageError(error) from error
    return model


def per_part(path: Path) -> list[Any]:
    """The sparsities in a file, one a line; ``any`` leaves a part free, and what follows # is a remark."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is no text (UTF-8)" if isinstance(error, ValueError) else error.strerror
        raise OSError(f"{path} cannot be read: {why}; give a text with a sparsity for each part, one a line") from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        if text:
            try:
                found.append(None if text == "any" else level(text))
            except ValueError:
                raise UsageError(f"{path}, line {number} is {text!r}: give a number, lo:hi, or any") from None
    if not found:
        raise UsageError(f"{path} has no sparsity in it: give one for each part, one a line")
    return found

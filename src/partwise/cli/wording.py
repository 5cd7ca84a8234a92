"""Messages of the library in the terms of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..engine.options import FLAGS
from .model_options import FIT, RECIPE

# parameters whose name in messages of the library is not that of the option
RENAMED = {
    "n_components": "--components",
    "n_runs": "--runs",
    "density_threshold": "--density",
    "random_state": "--seed",
    "resume_from": "--resume",
    "recipe_params": "the recipe options",
    "tol": "--tol",
}


def with_flags(message: str, names: Iterable[str] = ()) -> str:
    """A message with the names of parameters, of a fit or ``names``, replaced by options.

    >>> with_flags("max_iter=0 is too small: give max_iter a value of at least 1, or set missing='em'")
    '--max-iter 0 is too small: give --max-iter a value of at least 1, or set --missing em'
    >>> with_flags("sparsity=0.8 is too low: use sparsity=(0.8, None)", ["sparsity"])
    '--sparsity 0.8 is too low: use --sparsity 0.8:'
    """
    names = {*names, *FLAGS, *FIT, *RECIPE} - {"components"}
    flags = {name: f"--{name.replace('_', '-')}" for name in names} | RENAMED
    known = "|".join(flags)
    words = "|".join(name for name in flags if "_" in name or name in RENAMED)  # the others may be plain English
    message = re.sub(rf"\b({known})=True\b", lambda match: flags[match[1]], message)
    message = (
        re.sub(r"(?:(?<=sparsity=)|(?<=hi: give ))\((\S+), (\S+)\)", r"\1:\2", message)
        .replace("=None:", "=:")
        .replace(":None", ":")
    )
    message = re.sub(rf"\b({known})='(\w+)'", lambda match: f"{flags[match[1]]} {match[2]}", message)
    pattern = rf"\b({known})=|'({known})'|(?<![\w./'-])({words})(?![\w/'-]|\.\w)"
    return re.sub(pattern, lambda match: flags[match[match.lastindex or 0]] + " " * (match.lastindex == 1), message)

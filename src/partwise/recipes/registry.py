"""The recipes by name, with the options that all of them share in their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec

from ..engine.options import FIRST, entries, full_docstring, parameters
from ..engine.result import Result
from ..engine.validation import check_names
from ..runtime.together import single

P = ParamSpec("P")
RECIPES: dict[str, Callable[..., Result]] = {}


def recipe(function: Callable[P, Coroutine[Any, Any, Result]]) -> Callable[P, Result]:
    """Register a function as a recipe for matrices, and add the options to its signature and docstring."""
    checked = spelled_out(function)
    RECIPES[function.__name__] = checked
    return checked


def spelled_out(function: Callable[P, Coroutine[Any, Any, Result]], without: Sequence[str] = ()) -> Callable[P, Result]:
    """Add the options, except those in ``without``, to the signature and docstring of a recipe, and make it `single`.

    X, n_components and the result are added to the docstring, too. Unknown options raise TypeError.
    """
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shared = [p for p in parameters() if p.name not in without]
    names = [p.name for p in own + shared]

    @single
    @wraps(function)
    async def checked(*args: P.args, **options: P.kwargs) -> Result:
        check_names(options, names, function.__name__)
        return await function(*args, **options)

    signature = signature.replace(parameters=own + shared)
    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked.__doc__ = full_docstring(function.__doc__, FIRST, entries(signature), "Result")
    return checked

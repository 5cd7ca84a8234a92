"""Where a result comes from, as a methods section needs it: versions, data, parameters, seed, and how to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ..data import Chunked, Matrix
from ..data.values import digest
from ..version import __version__
from .frame import quoted

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def versions() -> str:
    """The versions that decide about the numbers."""
    others = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Partwise {__version__}, Python {platform.python_version()}, {others}"


def described(data: Matrix | Chunked) -> str:
    """X in words, with a digest that recognises it."""
    return f"{data.shape[0]} samples × {data.shape[1]} features, {data.dtype.name}, SHA-256 {digest(data)}"


def provenance_of(model: Any, data: Matrix | None) -> dict[str, str]:
    """What is known about the origin of a model, from the model and, if given, its data."""
    facts = dict(getattr(model, "provenance_", {}))
    seed = getattr(model, "seed_", getattr(model, "seed", None))
    if data is not None:
        facts["data"] = described(data)
    if seed is not None:
        facts["seed"] = str(seed)
    if hasattr(model, "get_params") and hasattr(model, "n_iter_"):  # not a consensus, nor learnt from batches
        facts["call"] = call(f"partwise.{type(model).__name__}", changed(model), seed) + ".fit(X)"
    if "versions" not in facts:
        facts["versions of this report"] = versions()
    return facts


def changed(model: Any) -> dict[str, Any]:
    """The parameters of an estimator that are not at their defaults."""
    usual = type(model)().get_params(deep=False)
    return {name: value for name, value in model.get_params(deep=False).items() if repr(value) != repr(usual[name])}


def call(function: str, options: Mapping[str, Any], seed: int | None) -> str:
    """A call with its options; the seed that repeats it replaces what was given."""
    given = {**options, **({} if seed is None else {"random_state": seed})}
    return f"{function}({', '.join(f'{name}={short(value)}' for name, value in given.items() if name != 'verbose')})"


def short(value: object) -> str:
    """A value as Python writes it; long ones, such as arrays, by their type."""
    text = repr(value)
    return text if len(text) <= 160 and "\n" not in text else f"<{type(value).__name__}>"


def provenance_html(facts: Mapping[str, str], level: int = 2) -> str:
    """The facts as a list under a heading."""
    items = "".join(f"<div><dt>{quoted(name)}</dt><dd>{quoted(fact)}</dd></div>" for name, fact in facts.items())
    return f'<h{level}>Provenance</h{level}><dl class="provenance">{items}</dl>'

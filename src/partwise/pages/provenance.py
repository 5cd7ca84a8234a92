"""Where a result comes from, as a methods section needs it: versions, data, parameters, seed, and how to repeat it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version

from ..version import __version__
from .frame import quoted

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def versions() -> str:
    """The versions that decide about the numbers."""
    others = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Partwise {__version__}, Python {platform.python_version()}, {others}"


def provenance_html(facts: Mapping[str, str]) -> str:
    """The facts as a list under a heading."""
    items = "".join(f"<div><dt>{quoted(name)}</dt><dd>{quoted(fact)}</dd></div>" for name, fact in facts.items())
    return f'<h2 id="provenance">Provenance</h2><dl class="provenance">{items}</dl>'

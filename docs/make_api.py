"""Writes api.md from the docstrings' first lines: ``python docs/make_api.py``. The tests compare.

The site makes a page for each of these names (conf.py).
"""

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).with_name("api.md")
MODULES = ("", ".io", ".plotting", ".brain", ".cells", ".sound", ".datasets")
OPENED = (
    "SparseNMF",
    "MiniBatchSparseNMF",
    "SparseCP",
    "Result",
    "Consensus",
    "Programs",
    "Families",
    "cNMF",
    "BrainNMF",
    "Separation",
)  # classes whose methods are listed, too
CONSTANTS = {"__version__": "The version, as text.", "FORMATS": "The formats that `read` knows, as a tuple."}

HEAD = """\
# API

This page lists every public name. Use `help(pw.ssnmf)` for parameters, mathematics and an example. All names are
available after `import partwise as pw`, for example `pw.SparseNMF` and `pw.plotting.gallery`. Modules are imported when
first used.

*Generated from the docstrings by `python docs/make_api.py`. The tests check that it is up to date.*
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(import_module(f"partwise{name}")) for name in MODULES)])


def section(module: ModuleType) -> str:
    """A module: what it is for, and a table of its names."""
    rows = [row for name in public(module) for row in described(name, getattr(module, name))]
    return "\n".join(
        [f"## {module.__name__}", "", first_line(module), "", "| name | what it is |", "|---|---|", *rows, ""]
    )


def public(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def names() -> dict[str, list[str]]:
    """The public names of each module."""
    modules = [import_module(f"partwise{name}") for name in MODULES]
    return {module.__name__: public(module) for module in modules}


def directive(title: str) -> str:
    """What Sphinx needs to write the page about a name, such as ``partwise.io.read``."""
    module, _, name = title.rpartition(".")
    value = getattr(import_module(module), name)
    if inspect.ismodule(value):
        rows = [
            f"- `{title}.{inner}`: {first_line(getattr(value, inner))}"
            for inner in public(value)
            if inner not in CONSTANTS
        ]
        return "\n".join([f".. automodule:: {title}", "", *rows])
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
        return f".. auto{kind}:: {title}\n   :members: {', '.join(members(value))}"
    return f".. autofunction:: {title}" if callable(value) else f".. py:data:: {title}\n\n   {CONSTANTS[name]}"


def described(name: str, value: Any) -> list[str]:
    """A row for a name, and, if it is a class that is opened, one for each of its methods and properties."""
    rows = [f"| `{name}` | {CONSTANTS.get(name) or first_line(value)} |"]
    if inspect.isclass(value) and name in OPENED:
        rows += [f"| `{name}.{inner}` | {first_line(getattr(value, inner))} |" for inner in members(value)]
    return rows


def members(kind: type) -> list[str]:
    """The public methods and properties that come from this package and say what they do."""
    ours = [vars(base) for base in kind.__mro__ if base.__module__.startswith("partwise")]
    found = {name: value for space in reversed(ours) for name, value in space.items() if not name.startswith("_")}
    return [n for n, v in found.items() if (inspect.isfunction(v) or isinstance(v, property)) and inspect.getdoc(v)]


def first_line(value: Any) -> str:
    """What a docstring begins with."""
    return (inspect.getdoc(value) or "").split("\n")[0].replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

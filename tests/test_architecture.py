"""The house's order, read from the sources: imports point down only, one room draws, one room prints."""

import ast
from pathlib import Path

import pytest

import partwise

HOME = Path(partwise.__file__).parent
FLOORS = [  # lowest first; a room may use what lies below it
    {"compiled", "version", "threads", "plain"},
    {"archive"},
    {"projections"},
    {"statistics"},
    {"updates"},
    {"metrics", "data"},
    {"ask", "start"},
    {"interrupts", "summary", "slices"},
    {"blocks"},
    {"fit", "middle"},
    {"stream", "running"},
    {"checkpoint"},
    {"factorize"},
    {"recipes"},
    {"progress", "io"},
    {"selection"},
    {"plotting"},
    {"estimators", "report", "datasets"},
    {"brain", "cells", "experiments"},
    {"cli"},
]
ONLY = {"data": {"statistics", "compiled", "threads"}}
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(HOME.rglob("*.py"))}
ROOMS = {path: path.relative_to(HOME).parts[0].removesuffix(".py") for path in SOURCES}


def floor(room):
    levels = [level for level, rooms in enumerate(FLOORS) if room in rooms]
    assert levels, f"{room} is a new room: say in FLOORS where it lies"
    return levels[0]


def imported(path):
    """The dotted names that a module imports, those inside of functions included, relative ones made absolute."""
    package = ("partwise", *path.relative_to(HOME).parts[:-1])
    for node in ast.walk(SOURCES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *filter(None, [node.module])))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def rooms_used(path):
    names = (name.split(".") for name in imported(path))
    return {parts[1] for parts in names if parts[0] == "partwise" and len(parts) > 1} - {ROOMS[path]}


def test_imports_point_down():
    for path, room in ROOMS.items():
        used = rooms_used(path)
        if room not in ("__init__", "__main__"):
            assert all(floor(other) < floor(room) for other in used), (path, used)
            assert used <= ONLY.get(room, used), path
            assert room != "updates" or "data" not in used, path


def test_one_room_draws_and_one_prints():
    for path, source in SOURCES.items():
        uses = {name.split(".")[0] for name in imported(path)}
        assert "matplotlib" not in uses or ROOMS[path] == "plotting", path
        calls = [node.func for node in ast.walk(source) if isinstance(node, ast.Call)]
        prints = [c for c in calls if "print" in (getattr(c, "id", ""), getattr(c, "attr", ""))]
        assert not prints or ROOMS[path] == "cli", path


def test_what_is_public_says_what_it_is():
    for path, source in SOURCES.items():
        public = [
            node
            for node in source.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
        assert ast.get_docstring(source), path
        assert not [node.name for node in public if not ast.get_docstring(node)], path


def test_public_names_are_there():
    assert dir(partwise) == sorted(partwise.__all__)
    assert all(getattr(partwise, name).__doc__ for name in partwise.__all__ if name != "__version__")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        partwise.nonsense  # noqa: B018

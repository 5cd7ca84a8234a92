"""The house's order, read from the sources: imports point down only, one room draws, one room prints."""

import ast
import importlib
import operator
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import partwise

HOME = Path(partwise.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "ARCHITECTURE.md"
FLOORS = [  # lowest first; a room may use what lies below it
    {"runtime"},
    {"projections", "statistics"},
    {"updates", "data"},
    {"engine"},
    {"recipes"},
    {"estimators", "selection"},
    {"io", "plotting", "datasets"},
    {"pages", "fields"},
    {"cli"},
]
ONLY = {"data": {"statistics", "runtime"}}
UPWARD = {  # functions that import upwards, each time they are called
    "estimators/base.py": {"plot", "report", "save"},
    "estimators/notebook.py": {"small_gallery"},
}
FIELDS = {"brain", "cells", "sound"}  # modules of the package, though their files lie in fields/
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(HOME.rglob("*.py"))}
ROOMS = {path: path.relative_to(HOME).parts[0].removesuffix(".py") for path in SOURCES}


def floor(room):
    levels = [level for level, rooms in enumerate(FLOORS) if room in rooms]
    assert levels, f"{room} is a new room: say in FLOORS where it lies"
    return levels[0]


def nodes(path):
    """What a module is made of, but for the functions that may import upwards."""
    left, exempt = [SOURCES[path]], UPWARD.get(path.relative_to(HOME).as_posix(), set())
    while left:
        node = left.pop()
        if not (isinstance(node, ast.FunctionDef) and node.name in exempt):
            yield node
            left += ast.iter_child_nodes(node)


def imported(path):
    """The dotted names that a module imports, those inside of functions included, relative ones made absolute."""
    package = ("partwise", *path.relative_to(HOME).parts[:-1])
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *filter(None, [node.module])))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def rooms_used(path):
    names = (name.split(".") for name in imported(path))
    used = {parts[1] for parts in names if parts[0] == "partwise" and len(parts) > 1}
    return {"fields" if room in FIELDS else room for room in used} - {ROOMS[path]}


def test_there_are_few_rooms():
    rooms = {*ROOMS.values()} - {"__init__", "__main__", "version"}
    assert rooms == set.union(*FLOORS)
    assert len(rooms) <= 15
    assert len(FLOORS) <= 9


def test_imports_point_down():
    for path, room in ROOMS.items():
        used = rooms_used(path) - {"version"}
        if room not in ("__init__", "__main__"):
            assert all(floor(other) < floor(room) for other in used), (path, used)
            assert used <= ONLY.get(room, used), path


def inner(room):
    """For each file of a room the others of it that it imports."""
    files = {path.stem: path for path, other in ROOMS.items() if other == room and path.stem != "__init__"}
    used = {name: {parts[2] for parts in (n.split(".") for n in imported(path)) if parts[:2] == ["partwise", room]
                   and len(parts) > 2} for name, path in files.items()}  # fmt: skip
    return {name: (others & set(files)) - {name} for name, others in used.items()}


@pytest.mark.parametrize("room", sorted(set.union(*FLOORS) - {"statistics"}))
def test_files_of_a_room_have_an_order_too(room):
    left = inner(room)
    while left:
        free = [name for name, others in left.items() if not others & set(left)]
        assert free, f"{room}: these import each other: {left}"
        left = {name: others for name, others in left.items() if name not in free}


def test_the_package_does_without_the_paper():
    for path in SOURCES:  # tests find experiments/, users do not
        assert "experiments" not in {name.split(".")[0] for name in imported(path)}, path


def test_one_room_draws_and_one_prints():
    for path, source in SOURCES.items():
        uses = {name.split(".")[0] for name in imported(path)}
        assert "matplotlib" not in uses or ROOMS[path] == "plotting", path
        calls = [node.func for node in ast.walk(source) if isinstance(node, ast.Call)]
        prints = [c for c in calls if "print" in (getattr(c, "id", ""), getattr(c, "attr", ""))]
        assert not prints or ROOMS[path] == "cli", path


def test_a_class_has_a_name_of_its_own():
    """One name, one meaning; a type alias may be repeated where the same is meant."""
    classes, aliases = [], set()
    for source in SOURCES.values():
        classes += [node.name for node in source.body if isinstance(node, ast.ClassDef)]
        targets = [target for node in source.body if isinstance(node, ast.Assign) for target in node.targets]
        aliases |= {target.id for target in targets if isinstance(target, ast.Name)}
    assert sorted(set(classes)) == sorted(classes)
    assert not aliases & set(classes)


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


WALKS = re.findall(r"^### (.*?)\n(.*?)(?=^#|\Z)", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("kind", "text"), WALKS, ids=[kind for kind, _ in WALKS])
def test_the_walks_lead_through_what_is_there(kind, text):
    steps = re.findall(r"^\d+\. `(\S+)\.py` `(\S+)`: ", text, re.MULTILINE)
    assert len(steps) >= 4
    files = [file for file, _ in steps]
    left = sum(file in files[:i] and file != files[i - 1] for i, file in enumerate(files))
    assert len({*files}) <= 20
    assert left <= 6
    for file, name in steps:
        module = importlib.import_module("partwise." + file.removesuffix("/__init__").replace("/", "."))
        assert operator.attrgetter(name)(module), (file, name)


def test_every_room_and_file_is_on_the_page():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert not [room for room in set.union(*FLOORS) if f"`{room}" not in page]
    named = ("runtime", "projections", "engine", "data", "selection", "estimators")
    files = [path for path, room in ROOMS.items() if room in named and path.stem != "__init__"]
    assert not [str(path) for path in files if f"`{path.name}`" not in page]


@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "text"), WALKS, ids=[kind for kind, _ in WALKS])
def test_a_fit_runs_through_no_other_files(kind, text):
    X, seen = np.random.default_rng(0).random((40, 20)), set()
    if kind == "A sparse matrix":
        X = sp.csr_array(X)
    elif kind == "A Dask array":
        X = pytest.importorskip("dask.array").from_array(X, chunks=(10, 20))

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(f"{HOME}{os.sep}"):
            seen.add(Path(frame.f_code.co_filename).relative_to(HOME).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        partwise.SparseNMF(3, sparsity=0.5, max_iter=3, tol=0).fit(X)
    finally:
        sys.setprofile(before)
    assert len(seen) > 20
    named = set(re.findall(r"`(\S+\.py)`", text + WALKS[0][1]))
    assert {file for file in seen if not file.startswith("runtime/")} <= named

"""Import rules, read from the sources: rooms import lower floors only; one room draws, one prints."""

import ast
import importlib
import operator
import os
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import partwise

HOME = Path(partwise.__file__).parent
ARCHITECTURE = Path(__file__).parents[1] / "ARCHITECTURE.md"
FLOORS = [  # lowest first; a room may import lower floors
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
    "estimators/saved.py": {"load"},
    "estimators/tensor.py": {"plot"},
    "selection/connectivity.py": {"plot"},
    "selection/programs.py": {"as_model", "plot"},
    "selection/stability.py": {"plot"},
}
FIELDS = {"brain", "cells", "sound"}  # public modules whose files are in fields/
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(HOME.rglob("*.py"))}
ROOMS = {path: path.relative_to(HOME).parts[0].removesuffix(".py") for path in SOURCES}


def floor(room):
    levels = [level for level, rooms in enumerate(FLOORS) if room in rooms]
    assert levels, f"{room} is a new room: say in FLOORS where it lies"
    return levels[0]


def nodes(path):
    """The syntax nodes of a module, except functions that may import upwards."""
    left, exempt = [SOURCES[path]], UPWARD.get(path.relative_to(HOME).as_posix(), set())
    while left:
        node = left.pop()
        if not (isinstance(node, ast.FunctionDef) and node.name in exempt):
            yield node
            left += ast.iter_child_nodes(node)


def imported(path):
    """The dotted names that a module imports, including those inside functions; relative names made absolute."""
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


def test_number_of_rooms_is_limited():
    rooms = {*ROOMS.values()} - {"__init__", "__main__", "version"}
    assert rooms == set.union(*FLOORS)
    assert len(rooms) <= 15
    assert len(FLOORS) <= 9


def test_rooms_import_lower_floors_only():
    for path, room in ROOMS.items():
        used = rooms_used(path) - {"version"}
        if room not in ("__init__", "__main__"):
            assert all(floor(other) < floor(room) for other in used), (path, used)
            assert used <= ONLY.get(room, used), path


def inner(room):
    """For each file of a room, the other files of the room that it imports."""
    files = {path.stem: path for path, other in ROOMS.items() if other == room and path.stem != "__init__"}
    used = {name: {parts[2] for parts in (n.split(".") for n in imported(path)) if parts[:2] == ["partwise", room]
                   and len(parts) > 2} for name, path in files.items()}  # fmt: skip
    return {name: (others & set(files)) - {name} for name, others in used.items()}


@pytest.mark.parametrize("room", sorted(set.union(*FLOORS)))
def test_files_of_a_room_have_no_circular_imports(room):
    left = inner(room)
    while left:
        free = [name for name, others in left.items() if not others & set(left)]
        assert free, f"{room}: these import each other: {left}"
        left = {name: others for name, others in left.items() if name not in free}


def test_package_does_not_import_experiments():
    for path in SOURCES:  # experiments/ is not installed
        assert "experiments" not in {name.split(".")[0] for name in imported(path)}, path


def unconditional(node):
    """The packages that a module imports outside of ``if`` and ``try``."""
    if isinstance(node, ast.Import):
        yield from (name.name.split(".")[0] for name in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module.split(".")[0]
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.If | ast.Try):
            yield from unconditional(child)


def test_a_plain_installation_has_what_is_imported():
    declared = tomllib.loads((ARCHITECTURE.parent / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w-]+", text)[0] for text in declared}
    installed = {{"pillow": "PIL", "scikit-learn": "sklearn"}.get(name, name) for name in names}
    known = installed | sys.stdlib_module_names | {"partwise"}
    found = {(path.name, name) for path, source in SOURCES.items() for name in unconditional(source)}
    given = {("cluster.py", "dask"), ("workers.py", "dask"), ("workers.py", "distributed"), ("brain.py", "nilearn")}
    assert {(file, name) for file, name in found if name not in known} == given  # X is of that library already


def test_only_plotting_uses_matplotlib_and_only_cli_prints():
    for path, source in SOURCES.items():
        uses = {name.split(".")[0] for name in imported(path)}
        assert "matplotlib" not in uses or ROOMS[path] == "plotting", path
        calls = [node.func for node in ast.walk(source) if isinstance(node, ast.Call)]
        prints = [c for c in calls if "print" in (getattr(c, "id", ""), getattr(c, "attr", ""))]
        assert not prints or ROOMS[path] == "cli", path


def test_class_names_are_unique():
    """A type alias with the same meaning may be repeated."""
    classes, aliases = [], set()
    for source in SOURCES.values():
        classes += [node.name for node in source.body if isinstance(node, ast.ClassDef)]
        targets = [target for node in source.body if isinstance(node, ast.Assign) for target in node.targets]
        aliases |= {target.id for target in targets if isinstance(target, ast.Name)}
    assert sorted(set(classes)) == sorted(classes)
    assert not aliases & set(classes)


def test_public_names_have_docstrings():
    for path, source in SOURCES.items():
        public = [
            node
            for node in source.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
        assert ast.get_docstring(source), path
        assert not [node.name for node in public if not ast.get_docstring(node)], path


def test_public_names_exist():
    assert dir(partwise) == sorted(partwise.__all__)
    assert all(getattr(partwise, name).__doc__ for name in partwise.__all__ if name != "__version__")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        partwise.nonsense  # noqa: B018


WALKS = re.findall(r"^### (.*?)\n(.*?)(?=^#|\Z)", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("kind", "text"), WALKS, ids=[kind for kind, _ in WALKS])
def test_walks_name_existing_functions(kind, text):
    steps = re.findall(r"^\d+\. `(\S+)\.py` `(\S+)`: ", text, re.MULTILINE)
    assert len(steps) >= 4
    files = [file for file, _ in steps]
    left = sum(file in files[:i] and file != files[i - 1] for i, file in enumerate(files))
    assert len({*files}) <= 20
    assert left <= 6
    for file, name in steps:
        module = importlib.import_module("partwise." + file.removesuffix("/__init__").replace("/", "."))
        assert operator.attrgetter(name)(module), (file, name)


def test_architecture_page_names_every_room_and_file():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    assert not [room for room in set.union(*FLOORS) if f"`{room}" not in page]
    named = ("runtime", "projections", "statistics", "engine", "data", "selection", "estimators")
    files = [path for path, room in ROOMS.items() if room in named and path.stem != "__init__"]
    assert not [str(path) for path in files if f"`{path.name}`" not in page]


@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "text"), WALKS, ids=[kind for kind, _ in WALKS])
def test_fit_uses_only_the_files_of_its_walk(kind, text):
    X, seen = np.random.default_rng(0).random((40, 20)), set()
    if kind == "A sparse matrix":
        X = sp.csr_array(X)
    elif kind == "A Dask array":
        X = pytest.importorskip("dask.array").from_array(X, chunks=(10, 20))

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(f"{HOME}{os.sep}"):
            seen.add(Path(frame.f_code.co_filename).relative_to(HOME).as_posix())

    model = partwise.SparseNMF(3, sparsity=0.5, max_iter=3, tol=0)
    model.fit(X)  # what is imported at the first use is not part of the walk
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(X)
    finally:
        sys.setprofile(before)
    assert len(seen) > 20
    named = set(re.findall(r"`(\S+\.py)`", text + WALKS[0][1]))
    short = {"engine/natural.py", "recipes/staged.py"}  # fits through the same files
    assert {file for file in seen if not file.startswith("runtime/")} - short <= named

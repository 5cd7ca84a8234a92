"""Kernels are compiled once, found again, compiled anew when any source changes, and need no place to be kept."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise
from partwise import compiled

pytestmark = pytest.mark.compiled
PACKAGE = Path(partwise.__file__).parent
GRAM = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 5.0]])
FACTOR = f"""
import json, logging
logging.basicConfig(level=logging.DEBUG, format="%(message)s")
logging.getLogger("numba").setLevel(logging.WARNING)
import numpy as np, partwise
from partwise.updates.pivot import cholesky
factor = np.zeros((3, 3))
cholesky(np.array({GRAM.tolist()}), np.ones(3, dtype=bool), factor)  # a small kernel that calls another
print(json.dumps([partwise.__file__, factor.tolist()]))
"""


SWEEP = """
import json
import numpy as np, partwise
from partwise.updates.sequential import sweep_tiles
rng = np.random.default_rng(0)
factor, cross, rest = (np.asfortranarray(rng.random((m, 7))) for m in (1037, 1037, 20))
sweep_tiles(factor.T, 5 * cross.T, rest.T @ rest, np.arange(14).reshape(2, 7) % 7, 0, 1037)
print(json.dumps([partwise.__file__, factor.tolist()]))
"""


@pytest.fixture(name="home")
def copied(tmp_path):
    """A folder with a copy of the package's sources."""
    shutil.copytree(PACKAGE, tmp_path / "lib" / "partwise", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(home, code=FACTOR, **environment):
    """Run code with the copied package; nothing of this process's caches is found."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    settings = {"PYTHONPATH": str(home / "lib"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=kept | settings, capture_output=True, text=True, timeout=300
    )


def answer(done, home):
    assert done.returncode == 0, done.stderr
    path, factor = json.loads(done.stdout)
    assert Path(path).is_relative_to(home)
    np.testing.assert_allclose(factor, np.linalg.cholesky(GRAM), atol=1e-12)
    return factor


def indexes(cache):
    """The index of each kernel in the cache."""
    return {path.name: path.read_bytes() for path in cache.rglob("*.nbi")}


def test_a_second_process_finds_the_kernels_and_a_changed_source_does_not(home):
    cache = home / "cache"
    first = answer(run(home, NUMBA_CACHE_DIR=str(cache)), home)
    kept = indexes(cache)
    binaries = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}
    assert kept
    assert binaries
    assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    assert indexes(cache) == kept
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")} == binaries
    with (home / "lib" / "partwise" / "version.py").open("a") as file:  # a file without kernels
        file.write("# changed\n")
    assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    assert indexes(cache).keys() == kept.keys()
    assert all(index != kept[name] for name, index in indexes(cache).items())


@pytest.mark.slow
def test_kernels_from_the_cache_give_the_same_bits_as_those_just_compiled(home):
    compiled_now, found = (run(home, SWEEP, NUMBA_CACHE_DIR=str(home / "cache")) for _ in range(2))
    assert compiled_now.returncode == 0, compiled_now.stderr
    assert compiled_now.stdout == found.stdout


def test_where_nothing_can_be_written_kernels_still_work(home):
    """For root too, whom permissions do not bind: files stand where the cache's folders would be made."""
    for folder in [home / "lib" / "partwise", *(home / "lib" / "partwise").glob("*/")]:
        (folder / "__pycache__").write_text("not a folder")
    before = sorted(home.rglob("*"))
    done = run(home, HOME="/dev/null", USERPROFILE="/dev/null", LOCALAPPDATA="/dev/null")
    answer(done, home)
    assert "is compiled anew" in done.stderr
    assert sorted(home.rglob("*")) == before


def test_the_stamp_tells_any_change_of_any_source(home, monkeypatch):
    stamp = compiled.sources.__wrapped__  # without its memory
    seen = {stamp()}
    monkeypatch.setattr(compiled, "__file__", str(home / "lib" / "partwise" / "compiled.py"))
    assert stamp() in seen
    files = sorted((home / "lib" / "partwise").rglob("*.py"))
    for path in files:
        path.write_bytes(path.read_bytes() + b"\n")
        seen.add(stamp())
    (home / "lib" / "partwise" / "updates" / "other.py").write_text("x = 1\n")
    seen.add(stamp())
    assert len(seen) == 1 + len(files) + 1


def test_kernels_are_plain_functions_too(home):
    done = run(home, NUMBA_DISABLE_JIT="1", NUMBA_CACHE_DIR=str(home / "cache"))
    answer(done, home)
    assert not (home / "cache").exists()

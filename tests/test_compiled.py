"""Kernels are compiled once, cached, recompiled when their sources change, and work without a cache."""

import ast
import errno
import importlib
import json
import logging
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache

import partwise
from partwise import sparse_opt
from partwise.projections import alternating
from partwise.runtime import compiled

pytestmark = pytest.mark.compiled
PACKAGE = Path(partwise.__file__).parent
B, K = [0.3, 0.9, 0.1, 0.5, 0.7], 1.6
PROJECT = f"""
import json, logging
logging.basicConfig(level=logging.DEBUG, format="%(message)s")
logging.getLogger("numba").setLevel(logging.WARNING)
import numpy as np, partwise
from partwise.projections.alternating import alternate
v = np.array({B})
assert alternate(v, {K})  # a small kernel with pieces from another file
print(json.dumps([partwise.__file__, v.tolist()]))
"""
SWEEP = """
import json
import numpy as np, partwise
from partwise.updates.sequential import sweep_rows
rng = np.random.default_rng(0)
factor, cross, rest = (np.asfortranarray(rng.random((m, 7))) for m in (1037, 1037, 20))
sweep_rows(factor, 5 * cross, rest.T @ rest, np.arange(14).reshape(2, 7) % 7)
print(json.dumps([partwise.__file__, factor.tolist()]))
"""


@pytest.fixture(name="home")
def copied(tmp_path):
    """A folder with a copy of the package's sources."""
    shutil.copytree(PACKAGE, tmp_path / "lib" / "partwise", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def started(home, code=PROJECT, **environment):
    """Run code with the copied package, without the caches of this process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    settings = {"PYTHONPATH": str(home / "lib"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=kept | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(home, code=PROJECT, **environment):
    process = started(home, code, **environment)
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def answer(done, home):
    assert done.returncode == 0, done.stderr
    path, y = json.loads(done.stdout)
    assert Path(path).is_relative_to(home)
    np.testing.assert_allclose(y, sparse_opt(B, K, method="sorted"), atol=1e-12)
    return y


def indexes(cache):
    """The index of each kernel in the cache."""
    return {path.name: path.read_bytes() for path in cache.rglob("*.nbi")}


def test_a_second_process_finds_the_kernels_until_their_sources_change(home):
    cache, package = home / "cache", home / "lib" / "partwise"
    first = answer(run(home, NUMBA_CACHE_DIR=str(cache)), home)
    kept = indexes(cache)
    binaries = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}
    assert any("alternate" in name for name in kept)
    assert binaries
    for unrelated in ("version.py", "cli/fit.py", "updates/pivot.py"):  # the last has kernels, but none that are used
        with (package / unrelated).open("a") as file:
            file.write("# changed\n")
    assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    assert indexes(cache) == kept
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")} == binaries
    with (package / "projections" / "fast.py").open("a") as file:  # where the pieces are
        file.write("# changed\n")
    assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    changed = [name for name, index in indexes(cache).items() if index != kept.get(name)]
    assert any("alternate" in name for name in changed)


@pytest.mark.slow
def test_a_damaged_cache_is_replaced(home):
    cache = home / "cache"
    first = answer(run(home, NUMBA_CACHE_DIR=str(cache)), home)
    for ending in ("*.nbi", "*.nbc"):
        for path in cache.rglob(ending):
            path.write_bytes(path.read_bytes()[:-20])
        assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    kept = indexes(cache)
    assert answer(run(home, NUMBA_CACHE_DIR=str(cache)), home) == first
    assert indexes(cache) == kept


FIT = """
import json
import numpy as np, partwise
X = np.random.default_rng(0).random((30, 20))
print(json.dumps(partwise.ssnmf(X, 3, sparsity=0.5, random_state=0, max_iter=3, tol=0).losses.tolist()))
"""


@pytest.mark.slow
def test_a_cache_whose_files_are_cut_off_anywhere_stops_no_fit(home, rng):
    cache = home / "cache"
    first = run(home, FIT, NUMBA_CACHE_DIR=str(cache))
    assert first.returncode == 0, first.stderr
    for _ in range(3):
        files = sorted([*cache.rglob("*.nbi"), *cache.rglob("*.nbc")])
        assert len(files) > 10
        for path in files:
            os.truncate(path, rng.integers(path.stat().st_size))
        again = run(home, FIT, NUMBA_CACHE_DIR=str(cache))
        assert again.returncode == 0, again.stderr
        assert again.stdout == first.stdout


@pytest.mark.slow
def test_kernels_from_the_cache_give_the_same_bits_as_those_just_compiled(home):
    compiled_now, found = (run(home, SWEEP, NUMBA_CACHE_DIR=str(home / "cache")) for _ in range(2))
    assert compiled_now.returncode == 0, compiled_now.stderr
    assert compiled_now.stdout == found.stdout


@pytest.mark.slow
def test_processes_that_compile_at_once_all_work(home):
    processes = [started(home, NUMBA_CACHE_DIR=str(home / "cache")) for _ in range(3)]
    for process in processes:
        stdout, stderr = process.communicate(timeout=300)
        answer(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr), home)
    answer(run(home, NUMBA_CACHE_DIR=str(home / "cache")), home)


def test_cached_kernel_for_other_types_is_not_used(monkeypatch):
    """Two processes that write at the same time can leave an index that points to the wrong version."""

    class Found:
        class signature:  # noqa: N801
            args = (numba.float32,)

    own, context = alternating.alternate._cache, alternating.alternate.targetctx
    monkeypatch.setattr(compiled.FunctionCache, "_load_overload", lambda *_: Found)
    assert own.load_overload((numba.float64,), context) is None
    assert own.load_overload((numba.float32,), context) is Found


def test_full_disk_does_not_stop_a_fit(monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compiled.FunctionCache, "save_overload", fail)
    monkeypatch.setattr(compiled.FunctionCache, "flush", fail)
    assert alternating.alternate._cache.save_overload(("float64",), None) is None


def test_kernels_work_without_a_writable_cache(home):
    """Works for root too, who ignores permissions: files take the place of the cache folders."""
    for folder in [home / "lib" / "partwise", *(home / "lib" / "partwise").glob("*/")]:
        (folder / "__pycache__").write_text("not a folder")
    before = sorted(home.rglob("*"))
    done = run(home, HOME="/dev/null", USERPROFILE="/dev/null", LOCALAPPDATA="/dev/null")
    answer(done, home)
    assert "is compiled anew in every process" in done.stderr
    assert sorted(home.rglob("*")) == before


def kernels():
    """All compiled functions."""
    for module in pkgutil.walk_packages(partwise.__path__, "partwise."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if hasattr(value, "targetoptions") and value.py_func.__module__ == module.name:
                    yield value


@cache
def assigned(path):
    """The names assigned at the top level of a file."""
    statements = [
        node for node in ast.parse(Path(path).read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)
    ]
    return {name.id for node in statements for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)}


def globals_of(function):
    return {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}


def test_stamp_covers_all_sources_and_kernels_do_not_call_each_other():
    seen = 0
    for kernel in kernels():
        for name, value in globals_of(kernel.py_func).items():
            if hasattr(value, "files"):
                seen += 1
                assert value.files <= kernel.files, (kernel, name)
                options = value.targetoptions
                assert options.get("inline") == "always" or options.get("forceinline"), f"{kernel} calls {name}"
            elif isinstance(value, int | float):  # a constant that is frozen into it
                assert any(name in assigned(file) for file in kernel.files), (kernel, name)
    assert seen > 20


def test_clock_stops_during_compilation():
    compiling = compiled.Compiling()
    compiling.timed(time.sleep)(0.05)
    assert compiling.seconds >= 0.05
    before, began = compiled.clock(), time.perf_counter()
    compiled.compiling.timed(time.sleep)(0.2)
    assert time.perf_counter() - began >= 0.2
    assert compiled.clock() - before < 0.15


def test_a_cold_fit_with_little_time_is_the_same_as_a_warm_one(home):
    """Compilation does not count against max_time."""
    code = """
import numpy as np, partwise
result = partwise.ssnmf(np.random.default_rng(0).random((30, 20)), 3, sparsity=0.5, max_time=1, tol=0, max_iter=50)
print(result.n_iter, result.times[-1])
"""
    done = run(home, code, NUMBA_CACHE_DIR=str(home / "cache"))
    assert done.returncode == 0, done.stderr
    n_iter, seconds = done.stdout.split()
    assert n_iter == "50"
    assert float(seconds) < 1


def test_compilation_is_announced_once(monkeypatch, caplog, capsys):
    def compile_two(terminal):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        compiling = compiled.Compiling()
        for _ in range(2):
            compiling.timed(lambda: compiling.on_start(None))()

    with caplog.at_level(logging.INFO, "partwise"):
        compile_two(terminal=False)
        assert [record.message for record in caplog.records] == [compiled.WAIT]
        assert not capsys.readouterr().err
        compile_two(terminal=True)
        assert capsys.readouterr().err == f"partwise: {compiled.WAIT}\n"
    with caplog.at_level(logging.ERROR, "partwise"):
        compile_two(terminal=True)
        assert not capsys.readouterr().err


def test_kernels_are_plain_functions_too(home):
    done = run(home, NUMBA_DISABLE_JIT="1", NUMBA_CACHE_DIR=str(home / "cache"))
    answer(done, home)
    assert not (home / "cache").exists()


@pytest.mark.parametrize(("decorate", "told"), [(compiled.loop, False), (compiled.apart, True)])
def test_numba_is_told_that_vectors_are_apart(decorate, told):
    def add(row, y):
        for a in range(y.size):
            row[a] += y[a]

    function, vector = decorate(add), numba.float64[::1]
    function._cache = NullCache()
    function.compile((vector, vector))
    (found,) = function.overloads.values()
    assert found.fndesc.noalias == told

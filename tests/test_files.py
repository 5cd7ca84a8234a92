"""Files are written completely or not at all, by one writer."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise as pw
from partwise.cli.fit import draw_components
from partwise.engine.origins import Brain
from partwise.io import Table, check_target
from partwise.io.write import DATA, convert, write_activations, write_components
from partwise.runtime import archive
from partwise.runtime.files import MACHINE, check_replaceable, replacing

X = np.random.default_rng(0).random((8, 6))
BRAIN = Brain(np.eye(4), (3, 2, 1))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.csv"


def test_an_error_leaves_the_old_file(path):
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(TypeError, match="float"), replacing(path) as fresh, fresh.open("w") as file:
            file.writelines(["half of", 1.0])
        assert (path.read_bytes() if path.exists() else None) == before
        assert os.listdir(path.parent) == ([path.name] if before else [])


WRITERS = {
    "model": lambda path: pw.SparseNMF(2, random_state=0, max_iter=2, tol=0).fit(X).save(path),
    "archive": lambda path: archive.write(path, {"number": 1}, {"x": X}),
    "selection": lambda path: pw.select(X, 1, checkpoint=path, n_splits=2, n_init=1, random_state=0),
    "table": lambda path: write_activations(path, X),
    "report": lambda path: pw.report(X, path),
    "components": lambda path: write_components(path, X, Table(X, "array", "x")),
    "volumes": lambda path: write_components(path.with_suffix(".nii"), X, Table(X, "NIfTI", "x", origin=BRAIN)),
    "annotated": lambda path: write_components(path.with_suffix(".h5ad"), X, Table(X, "array", "x")),
    "picture": lambda path: draw_components(path.with_suffix(".png"), X),
    **{
        f"data{ending}": lambda path, ending=ending: convert(Table(X, "array", "x"), path.with_suffix(ending))
        for ending in DATA
        if ending != ".zarr"  # a folder
    },
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_flushes_before_it_replaces(path, monkeypatch, name):
    calls, really = [], {call: getattr(os, call) for call in ("fsync", "replace")}

    def fsync(number):
        calls.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        really["fsync"](number)

    def replace(source, target):
        if Path(target).parent == path.parent:  # else it is a compiled kernel
            calls.append("replace")
        really["replace"](source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    WRITERS[name](path)
    assert "".join(calls).startswith("filefolderreplacefolder")
    assert len(os.listdir(path.parent)) == 1


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(path, monkeypatch, name, call):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    WRITERS[name](path)
    (written,) = path.parent.iterdir()
    before = written.read_bytes()
    if name == "selection":
        written.unlink()  # a search that is done writes no more
    monkeypatch.setattr(os, call, full)
    with pytest.raises((OSError, ValueError), match="No space left"):
        WRITERS[name](path)
    assert [file.read_bytes() for file in path.parent.iterdir()] == ([] if name == "selection" else [before])


def test_a_new_file_has_the_mode_of_the_old_one(path):
    def mode():
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(0o027)
    try:
        for old in (None, 0o600, 0o444, 0o664):
            if old is not None:
                path.chmod(old)
            with replacing(path) as fresh:
                fresh.write_text("new")
            assert mode() == (0o640 if old is None else old)
    finally:
        os.umask(before)


def test_nobody_else_can_write_to_the_temporary_file(path):
    with replacing(path) as one, replacing(path) as other:
        assert one.parent != other.parent  # random names, of new folders
        assert stat.S_IMODE(one.parent.stat().st_mode) == 0o700
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with replacing(link) as fresh:
        fresh.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_a_folder_is_written_whole(path):
    with replacing(path) as fresh:
        (fresh / "inner").mkdir(parents=True)
        (fresh / "inner" / "x").write_text("x")
    assert [p.name for p in path.parent.rglob("*")] == [path.name, "inner", "x"]
    with pytest.raises(FileExistsError, match="is not a regular file"), replacing(path):
        raise AssertionError


def test_special_files_are_not_replaced():
    with pytest.raises(FileExistsError, match="is not a regular file"), replacing(os.devnull):
        raise AssertionError


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="links to open files are a matter of Linux")
@pytest.mark.parametrize("write", [check_replaceable, check_target])
def test_a_link_to_a_pipe_is_not_a_regular_file(write):
    """/dev/stdout is such a link, whose target has no path."""
    ends = os.pipe()
    try:
        with pytest.raises(OSError, match="is not a regular file"):
            write(f"/proc/self/fd/{ends[1]}")
    finally:
        for end in ends:
            os.close(end)


def test_error_names_the_requested_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "nowhere" / "a.csv"):
        raise AssertionError
    assert Path(caught.value.filename) == tmp_path / "nowhere" / "a.csv"


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_is_removed(path):
    outside = path.with_name("outside")
    outside.mkdir()
    left = path.with_name(f".partwise-{MACHINE}-{dead_process()}-0123abc_.tmp")
    (left / "inner").mkdir(parents=True)
    (left / "inner" / "link").symlink_to(outside)
    elsewhere = path.with_name(".partwise-00000000-1-0123abc_.tmp")
    (elsewhere / "a.csv").mkdir(parents=True)
    for folder in (elsewhere / "a.csv", elsewhere):
        os.utime(folder, (0, 0))  # a process on another machine, long ago
    path.write_text("old")
    with replacing(path) as fresh:
        fresh.write_text("new")
    assert sorted(os.listdir(path.parent)) == ["a.csv", "outside"]


def test_what_may_be_in_use_stays(path, monkeypatch):
    dead = dead_process()
    names = [
        f".partwise-{MACHINE}-{os.getppid()}-0123abc_.tmp",  # alive
        ".partwise-00000000-1-0123abc_.tmp",  # on another machine, just now
        f".partwise-{MACHINE}-{dead}-x.tmp",  # not ours by name
    ]
    for name in names:
        path.with_name(name).mkdir()
    linked = path.with_name(f".partwise-{MACHINE}-{dead}-0123abc_.tmp")
    (path.with_name("data")).mkdir()
    linked.symlink_to(path.with_name("data"))
    with replacing(path) as fresh:
        fresh.write_text("new")
    assert sorted(os.listdir(path.parent)) == sorted([*names, linked.name, "data", path.name])
    path.with_name(f".partwise-{MACHINE}-{dead}-76543210.tmp").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # another user's
    with replacing(path) as fresh:
        fresh.write_text("new")
    assert len(os.listdir(path.parent)) == 7


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    with replacing(path) as fresh:
        fresh.write_text("new")
    assert path.read_text() == "new"


LINKS = {"loop": "loop", "lost": "nowhere/a.csv", "null": os.devnull, "home": "."}


@pytest.mark.parametrize("name", [*LINKS, "x" * 256, "pipe"])
def test_what_cannot_be_replaced_is_known_before(tmp_path, name):
    """The check says what the writer would, names the file, and leaves everything as it was."""
    os.mkfifo(tmp_path / "pipe")
    for link, to in LINKS.items():
        (tmp_path / link).symlink_to(to)
    before = sorted(os.listdir(tmp_path))
    said = []
    for attempt in (check_replaceable, lambda path: archive.write(path, {}, {})):
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            attempt(tmp_path / name)
        assert ".tmp" not in str(caught.value)
        said.append(str(caught.value))
        with pytest.raises(OSError, match=" cannot be written: ") as caught:
            check_target(tmp_path / name)
    assert said[0] == said[1]
    assert sorted(os.listdir(tmp_path)) == before

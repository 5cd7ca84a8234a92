"""Stored X that cannot be used is rejected by name and chunk, even if it changes while it is read."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from catalogues import one_at_a_time
from stores import FIT, STORED, R, Rows, assert_same, fifth, mapped, saved, small, zarr_array  # noqa: F401  (fixtures)

import partwise as pw
from partwise.data import as_data
from partwise.data.stored import Stored, StoredFile, as_stored
from partwise.engine import starts as start
from partwise.engine.validation import as_bytes

# What cannot be asked for


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("500 MB", 500 * 10**6),
        ("2GiB", 2 * 2**30),
        ("1.5 kB", 1500),
        ("1.5 kiB", 1536),
        (" 3 B ", 3),
        ("1TB", 10**12),
        ("1 TiB", 2**40),
        (".5 MB", 500_000),
        (10**6, 10**6),
        (1e9, 10**9),
        (np.int32(77), 77),
        (1, 1),
        (None, None),
    ],
)
def test_parsing_of_memory_limits(text, count):
    assert as_bytes(text, "memory_limit") == count
    assert isinstance(as_bytes(text, "memory_limit"), int | None)


NO_BYTES = (
    "lots",
    "",
    "MB",
    "5",
    "-5 MB",
    "1.2.3 MB",
    ". MB",
    "1e3 B",
    "5 XB",
    0,
    -1,
    True,
    np.nan,
    np.inf,
    [5],
    b"5 MB",
)


@pytest.mark.parametrize("limit", NO_BYTES, ids=repr)
def test_bad_limits_are_rejected(X, limit, tmp_path):
    path = saved(X, tmp_path)
    for fit in (
        lambda: pw.ssnmf(path, R, memory_limit=limit),
        lambda: pw.ssnmf(X, R, memory_limit=limit),
        lambda: pw.SparseNMF(R, memory_limit=limit).fit(path),
    ):
        with pytest.raises(ValueError, match=r"memory_limit=.*give a number of bytes"):
            fit()


@one_at_a_time(
    bad=[
        (np.nan, "NaN, first at row 37, column 3"),
        (np.inf, "infinity, first at row 37, column 3"),
        (-np.inf, "infinity, first at row 37, column 3"),
        (-0.25, r"X\[37, 3\] is -0.25"),
    ],
    how=["path", "zarr"],
    init=["random", "samples"],
)
def test_bad_values_are_named_with_their_chunk(X, bad, how, init, tmp_path):
    value, message = bad
    X[37, 3] = X[60, 1] = value
    stored = STORED[how](X, tmp_path)
    limit, chunk = {
        "path": (4 * 160 * 10, "chunk 3 (samples 30 to 39)"),
        "zarr": (8 * 160 * 7, "chunk 5 (samples 35 to 41)"),
    }[how]
    with pytest.raises(ValueError, match=f"^{re.escape(chunk)}: .*{message}"):
        pw.ssnmf(stored, R, init=init, memory_limit=limit)
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(stored, R, init=init)


def test_bad_values_are_named_by_their_own_row_where_a_start_finds_them(X, tmp_path, monkeypatch):
    """A start that reads some samples reports row numbers of X."""
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 0)
    X[30:, 3] = np.nan
    with pytest.raises(ValueError, match="row 30, column 3"):
        pw.ssnmf(saved(X, tmp_path), R, random_state=0, memory_limit=fifth(X))


def test_bad_values_are_named_in_transform(X, tmp_path):
    model = pw.SparseNMF(R, random_state=0, max_iter=3, tol=0, memory_limit=fifth(X)).fit(X)
    X[50, 2] = np.nan
    for ask in (model.transform, model.score):
        with pytest.raises(ValueError, match=r"^chunk .*row 50, column 2"):
            ask(saved(X, tmp_path))


def test_chunk_of_tiny_values_is_accepted(X, tmp_path):
    """The scale of X is that of its largest value over all chunks."""
    X = X.astype(np.float32)
    X[30:] *= np.float32(1e-18)
    result = pw.ssnmf(saved(X, tmp_path), R, memory_limit=fifth(X), **FIT)
    assert_same(result, pw.ssnmf(X, R, **FIT), 1e-4)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_scales_that_cannot_be_squared_are_refused(X, scale, tmp_path):
    for limit in (fifth(X), None):
        with pytest.raises(ValueError, match="rescale X"):
            pw.ssnmf(saved(scale * X, tmp_path), R, memory_limit=limit)


NO_MATRIX = {
    "a vector": (np.ones(300), r"\(300,\)"),
    "a number": (np.ones(()), r"\(\)"),
    "three-dimensional": (np.ones((20, 3, 40)), r"\(20, 3, 40\)"),
    "no samples": (np.ones((0, 3)), r"\(0, 3\)"),
    "no features": (np.ones((3, 0)), r"\(3, 0\)"),
    "complex": (np.ones((30, 40)) * 1j, "complex128"),
    "texts": (np.full((30, 40), "a"), "<U1"),
    "dates": (np.zeros((30, 40), dtype="M8[D]"), "datetime64"),
}


@one_at_a_time(name=NO_MATRIX, how=["path", "memory map", "zarr", "HDF5", "anything with rows"])
def test_non_matrices_are_rejected(name, how, tmp_path):
    array, message = NO_MATRIX[name]
    store = STORED[how] if how != "zarr" else lambda X, folder: zarr_array(X, folder, X.shape)
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(store(array, tmp_path), 2, memory_limit=5000)


def renamed(folder):
    np.savez(folder / "x.npz", x=np.ones((3, 4)))
    os.replace(folder / "x.npz", folder / "x.npy")


BROKEN = {
    "a text": lambda folder: (folder / "x.npy").write_text("1, 2, 3\n4, 5, 6\n"),
    "nothing": lambda folder: (folder / "x.npy").write_bytes(b""),
    "a header alone": lambda folder: os.truncate(saved(np.ones((30, 4)), folder), 128),
    "half a header": lambda folder: os.truncate(saved(np.ones((30, 4)), folder), 50),
    "all but a byte": lambda folder: os.truncate(p := saved(np.ones((30, 4)), folder), p.stat().st_size - 1),
    "all but a byte, Fortran order": lambda folder: os.truncate(
        p := saved(np.ones((4, 30)).T, folder), p.stat().st_size - 1
    ),
    "objects": lambda folder: saved(np.array([[1, "a"]], dtype=object), folder),
    "an archive": renamed,
}


@one_at_a_time(name=BROKEN, limit=[200, None])
def test_broken_files_are_refused_by_name(name, limit, tmp_path):
    BROKEN[name](tmp_path)
    with pytest.raises(ValueError, match=r"x\.npy"):
        pw.ssnmf(tmp_path / "x.npy", 2, memory_limit=limit)


@pytest.mark.parametrize("name", ["x.csv", "x", "x.npy.gz", "x.npz", ""])
def test_other_files_are_not_read_by_name(name, tmp_path):
    for path in (tmp_path / name, str(tmp_path / name)):
        for fit in (lambda path=path: pw.ssnmf(path, 2), lambda path=path: pw.SparseNMF(2).fit(path)):
            with pytest.raises(ValueError, match=r"is not a \.npy file: open other formats"):
                fit()


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        pw.ssnmf(tmp_path / "nowhere.npy", 2)


# What changes while it is read


def test_values_that_turn_bad_between_passes(X, tmp_path):
    stored = STORED["memory map"](X, tmp_path)

    def spoil():
        np.lib.format.open_memmap(tmp_path / "x.npy", "r+")[3, 4] = np.nan

    with pytest.raises(ValueError, match="not a number after iteration 3: the values of X were changed"):
        pw.ssnmf(stored, R, memory_limit=fifth(X), callback=at(2, spoil), **FIT)


def at(n_iter, work):
    """A callback that acts after a given iteration."""
    return lambda iteration: work() if iteration.n_iter == n_iter else None


@pytest.mark.parametrize("kind", ["path", "memory map", "memory map, offset"])
def test_a_file_that_is_cut_off_between_passes(X, kind, tmp_path):
    stored = STORED[kind](X, tmp_path)
    path = next(tmp_path.iterdir())

    def cut():
        os.truncate(path, path.stat().st_size - 1)

    with pytest.raises(ValueError, match=r"is truncated: \d+"):
        pw.ssnmf(stored, R, memory_limit=fifth(X), callback=at(2, cut), **FIT)


@pytest.mark.parametrize("kind", ["path", "memory map"])
def test_a_file_that_was_cut_off_before(X, kind, tmp_path):
    stored = STORED[kind](X, tmp_path)
    os.truncate(tmp_path / "x.npy", X.nbytes // 2)
    for limit in (fifth(X), None):
        with pytest.raises(ValueError, match="is truncated"):
            pw.ssnmf(stored, R, memory_limit=limit)


@pytest.mark.parametrize(("order", "chunk"), [("C", r"chunk 3 \(samples 30 to 39\)"), ("F", r"chunk 0")])
def test_a_file_that_is_cut_off_within_a_pass(X, order, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(StoredFile, "check", lambda self: None)
    data = as_data(saved(np.asarray(X, order=order), tmp_path), 4 * 160 * 10)
    os.truncate(tmp_path / "x.npy", 128 + 160 * 34)
    with pytest.raises(ValueError, match=rf"^{chunk}.*x.npy is truncated: it ends at byte 5568"):
        data.total(lambda chunk: 0)


CUT = """
import os, sys
import partwise as pw
path = sys.argv[1]
def cut(iteration):
    if iteration.n_iter == 2:
        os.truncate(path, 4096)
try:
    pw.ssnmf(path, 3, tol=0, max_iter=5, random_state=0, init="random", memory_limit=20_000, callback=cut)
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_cut_file_does_not_kill_the_process(order, tmp_path, rng):
    path = saved(np.asarray(rng.random((300, 40)), order=order), tmp_path)
    done = subprocess.run([sys.executable, "-c", CUT, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"died of {done.returncode}: {done.stderr}"
    assert "truncated" in done.stdout


CUT_WITHIN = """
import os, sys
import numpy as np
from partwise.data import as_data
path = sys.argv[1]
try:
    as_data(np.load(path, mmap_mode="r"), 20_000).total(lambda chunk: os.truncate(path, 50_000) or 0)
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_map_that_is_cut_off_within_a_pass_does_not_kill_the_process(tmp_path, rng):
    path = saved(rng.random((300, 40)), tmp_path)
    done = subprocess.run([sys.executable, "-c", CUT_WITHIN, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"died of {done.returncode}: {done.stderr}"
    assert "x.npy is truncated: 50000 of 96128 bytes are left" in done.stdout


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
@pytest.mark.parametrize("chunked", [True, False])
def test_memory_map_survives_deletion(X, fate, chunked, tmp_path):
    stored = mapped(X, tmp_path)
    if fate == "deleted":
        os.remove(tmp_path / "x.npy")
    else:
        os.replace(saved(np.ones_like(X), tmp_path, "new.npy"), tmp_path / "x.npy")
    np.testing.assert_array_equal(stored, X)
    assert_same(pw.ssnmf(stored, R, memory_limit=fifth(X) if chunked else None, **FIT), pw.ssnmf(X, R, **FIT))


def test_paths_are_found_again_from_another_folder(X, tmp_path, monkeypatch):
    saved(X, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    result = pw.ssnmf("x.npy", R, memory_limit=fifth(X), callback=at(2, lambda: os.chdir("other")), **FIT)
    assert_same(result, pw.ssnmf(X, R, **FIT))


@one_at_a_time(elsewhere=[False, True], shape=[(40, 20), (80, 20), (61, 19)])
def test_a_zarr_array_that_is_resized_between_passes(X, shape, elsewhere, tmp_path):
    stored = zarr_array(X, tmp_path)
    handle = pytest.importorskip("zarr").open_array(stored.store, path=stored.path) if elsewhere else stored
    with pytest.raises(ValueError, match=re.escape(f"had shape (61, 20) and now has {shape}")):
        pw.ssnmf(stored, R, memory_limit=fifth(X), callback=at(2, lambda: handle.resize(shape)), **FIT)


WRONG = {
    "too few rows": lambda rows: rows[:-1],
    "too many rows": lambda rows: np.vstack([rows, rows]),
    "too few columns": lambda rows: rows[:, 1:],
    "flat": lambda rows: rows.ravel(),
    "nothing": lambda rows: None,
    "transposed": lambda rows: rows.T,
}


@one_at_a_time(wrong=WRONG, init=["random", "samples"])
def test_an_array_that_returns_something_else(X, wrong, init):
    class Liar(Rows):
        def __getitem__(self, rows):
            found = super().__getitem__(rows)
            return WRONG[wrong](found) if rows.stop > 30 else found

    with pytest.raises(ValueError, match=r"X\[.*\] has shape .* instead of \(\d+, 20\)"):
        pw.ssnmf(Liar(X), R, init=init, memory_limit=4 * 160 * 7)
    with pytest.raises(ValueError, match=r"X\[0:61\] has shape .* instead of \(61, 20\)"):
        pw.ssnmf(Liar(X), R, init=init)


@pytest.mark.parametrize("error", [OSError(5, "the disk is gone"), RuntimeError("the disk is gone")])
def test_storage_errors_name_their_chunk(X, error):
    class Failing(Rows):
        def __getitem__(self, rows):
            if rows.stop > 30:
                raise error
            return super().__getitem__(rows)

    with pytest.raises(type(error), match="the disk is gone") as caught:
        pw.ssnmf(Failing(X), R, init="random", memory_limit=4 * 160 * 7)
    told = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "chunk 4 (samples 28 to 34)" in told


def test_files_are_read_instead_of_mapped(X, tmp_path):
    """On a failing disk, a memory map kills the process, while reading raises an error."""
    for kind in ("path", "path, Fortran order"):
        assert type(as_stored(STORED[kind](X, tmp_path))) is StoredFile
    assert type(as_stored(Rows(X))) is Stored


@pytest.mark.parametrize("options", [{}, {"sparsity": 0.4}, {"sparsity": 0.4, "init": "random"}])
@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (-1.0, "Negative")])
def test_the_first_wrong_value_is_named_with_its_place(X, tmp_path, options, value, what):
    wrong = X.copy()
    wrong[40, 3] = value
    np.save(tmp_path / "wrong.npy", wrong)
    with pytest.raises(ValueError, match=rf"chunk \d+ .*{what}.*(row 40, column 3|X\[40, 3\])"):
        pw.ssnmf(tmp_path / "wrong.npy", R, memory_limit=4 * 160 * 7, random_state=0, **options)

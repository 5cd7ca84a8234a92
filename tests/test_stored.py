"""Whatever X is stored in, it is read in chunks of samples that fit the limit; what is broken is refused by name."""

import os
import pickle
import re
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted, random_factors

import partwise as pw
from partwise import start
from partwise.ask import as_bytes
from partwise.data import DenseData, StoredData, as_data, is_lazy
from partwise.data.chunks import Residual, own_gram
from partwise.data.stored import Stored, StoredFile, as_stored
from partwise.start import Given
from partwise.statistics import gram

R = 4


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=61, m=20, r=R).X


class Rows:
    """The least that can be read: shape, dtype, and slices of rows."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.X[rows]


def saved(X, folder, name="x.npy"):
    np.save(folder / name, X)
    return folder / name


def mapped(X, folder, mode="r"):
    return np.load(saved(X, folder), mmap_mode=mode)


def framed(X, top, bottom, left, right):
    """X inside of a larger array, of which nothing else may be read."""
    wide = np.full((top + X.shape[0] + bottom, left + X.shape[1] + right), 7).astype(X.dtype)
    wide[top : top + X.shape[0], left : left + X.shape[1]] = X
    return wide


def after_a_header(X, folder, offset=5003):
    (folder / "x.bin").write_bytes(b"\x07" * offset + X.tobytes())
    return np.memmap(folder / "x.bin", dtype=X.dtype, mode="r", offset=offset, shape=X.shape)


def by_columns(X, folder):
    (folder / "x.bin").write_bytes(X.tobytes("F"))
    return np.memmap(folder / "x.bin", dtype=X.dtype, mode="r", shape=X.shape, order="F")


def changed(X, folder, mode="r+"):
    mapping = mapped(np.zeros_like(X), folder, mode)
    mapping[:] = X
    return mapping


def zarr_array(X, folder, chunks=(7, 8)):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder / "x.zarr"), mode="w", shape=X.shape, chunks=chunks, dtype=X.dtype)
    array[...] = X
    return array


def hdf5(X, folder, chunks=None):
    return pytest.importorskip("h5py").File(folder / "x.h5", "w").create_dataset("x", data=X, chunks=chunks)


STORED = {
    "path": saved,
    "path as text": lambda X, folder: str(saved(X, folder)),
    "path, Fortran order": lambda X, folder: saved(np.asfortranarray(X), folder),
    "memory map": mapped,
    "memory map, changed": changed,
    "memory map, changed in memory alone": lambda X, folder: changed(X, folder, "c"),
    "memory map, copied": lambda X, folder: mapped(X, folder).copy(),
    "memory map, pickled": lambda X, folder: pickle.loads(pickle.dumps(mapped(X, folder))),
    "memory map, some rows": lambda X, folder: mapped(framed(X, 9, 4, 0, 0), folder)[9:-4],
    "memory map, some columns": lambda X, folder: mapped(framed(X, 1, 1, 3, 2), folder)[1:-1, 3:-2],
    "memory map, every other row": lambda X, folder: mapped(np.repeat(X, 2, axis=0), folder)[::2],
    "memory map, backwards": lambda X, folder: mapped(X[::-1, ::-1], folder)[::-1, ::-1],
    "memory map, transposed": lambda X, folder: mapped(X.T.copy(), folder).T,
    "memory map, Fortran order": by_columns,
    "memory map, offset": after_a_header,
    "memory map, offset and rows": lambda X, folder: after_a_header(framed(X, 30, 2, 0, 0), folder, 9001)[30:-2],
    "memory map, one page of three": lambda X, folder: mapped(np.stack([X + 1, X, X + 2]), folder)[1],
    "memory map, of bytes": lambda X, folder: after_a_header(X, folder).view(np.uint8).view(X.dtype),
    "zarr": zarr_array,
    "zarr, chunks of all samples": lambda X, folder: zarr_array(X, folder, (X.shape[0], 3)),
    "HDF5": hdf5,
    "HDF5, chunks": lambda X, folder: hdf5(X, folder, (5, 6)),
    "anything with rows": lambda X, folder: Rows(X),
}

DTYPES = (np.float32, np.float16, np.uint8, np.int64, np.bool_, ">f8", ">f4", ">u2")


@pytest.fixture(params=STORED)
def store(request):
    return STORED[request.param]


def fifth(X):
    """A limit that leaves at least twenty chunks, or as many as there are samples."""
    return max(X.shape[0] * X.shape[1] * 8 // 5, 4 * X.shape[1] * 16)


def assert_same(result, wanted, tol=1e-8):
    assert (result.n_iter, result.stop_reason) == (wanted.n_iter, wanted.stop_reason)
    for name in ("components", "activations", "losses", "relative_error"):
        np.testing.assert_allclose(getattr(result, name), getattr(wanted, name), rtol=tol, atol=tol, err_msg=name)


FIT = {"sparsity": 0.5, "max_iter": 12, "tol": 0, "random_state": 0}


def test_every_kind_of_storage_gives_the_fit_of_the_array(X, store, tmp_path):
    stored = store(X, tmp_path)
    data = as_data(stored, fifth(X))
    assert isinstance(data, StoredData)
    assert len(data.bounds) > 10
    assert_same(pw.ssnmf(stored, R, memory_limit=fifth(X), **FIT), pw.ssnmf(X, R, **FIT))


def test_every_kind_of_storage_is_loaded_where_it_fits(X, store, tmp_path):
    stored = store(X, tmp_path)
    data = as_data(stored, X.nbytes)
    assert isinstance(data, DenseData)
    np.testing.assert_array_equal(data.matrix, X)
    np.testing.assert_array_equal(as_data(stored).matrix, X)
    assert isinstance(as_data(stored, X.nbytes - 1), StoredData)
    np.testing.assert_array_equal(pw.ssnmf(stored, R, **FIT).components, pw.ssnmf(X, R, **FIT).components)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["path", "memory map, Fortran order", "zarr", "HDF5", "anything with rows"])
def test_every_dtype_gives_the_fit_of_the_array(X, dtype, kind, tmp_path):
    X = (np.greater(X, X.mean()) if dtype is np.bool_ else 20 * X).astype(dtype)
    stored = STORED[kind](X, tmp_path)
    data = as_data(stored, fifth(X))
    assert isinstance(data, StoredData)
    assert data.dtype == as_data(X).dtype == (np.float32 if dtype is np.float32 else np.float64)
    result, wanted = pw.ssnmf(stored, R, memory_limit=fifth(X), **FIT), pw.ssnmf(X, R, **FIT)
    assert result.components.dtype == result.activations.dtype == data.dtype
    assert_same(result, wanted, 1e-4 if dtype is np.float32 else 1e-8)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 12, 15])  # of 61: the last chunk has mostly one
@pytest.mark.parametrize("init", ["random", "samples"])
def test_the_size_of_chunks_changes_nothing(X, rows, init, tmp_path):
    path, limit = saved(X, tmp_path), 4 * X[0].nbytes * rows
    assert as_data(path, limit).bounds == [*range(0, 61, rows), 61]
    assert_same(pw.ssnmf(path, R, init=init, memory_limit=limit, **FIT), pw.ssnmf(X, R, init=init, **FIT))


@pytest.mark.parametrize("shape", [(5, 1), (40, 1), (5, 30), (7, 3)])
@pytest.mark.parametrize("r", [1, 9])
def test_thin_and_flat_arrays(shape, r, tmp_path, rng):
    X = rng.random(shape)
    fit = {"max_iter": 10, "tol": 0, "random_state": 0}
    path, limit = saved(X, tmp_path), 4 * X[0].nbytes
    assert isinstance(as_data(path, limit), StoredData)
    assert_same(pw.ssnmf(path, r, memory_limit=limit, **fit), pw.ssnmf(X, r, **fit))


@pytest.mark.parametrize("stride", [2, 5, 7, 30])
def test_what_is_stored_together_is_read_together(X, stride):
    X = Rows(X)
    X.chunks = (stride, 20)
    bounds = np.array(as_data(X, 4 * 12 * 160).bounds)  # 12 samples fit
    assert np.all(bounds[:-1] % min(stride, 12) == 0)
    assert np.diff(bounds).max() == 12 // stride * stride if stride <= 12 else 12


def test_questions_get_the_answers_of_the_array(X, store, tmp_path, rng):
    data, dense = as_data(store(X, tmp_path), fifth(X)), as_data(X)
    assert (data.shape, data.dtype, data.squared) == (dense.shape, dense.dtype, dense.squared)
    assert data.sqnorm == pytest.approx(dense.sqnorm, rel=1e-12)
    assert data.peak == dense.peak
    np.testing.assert_allclose(data.sqnorms(1), dense.sqnorms(1), rtol=1e-12)
    for which in (np.array([0]), np.array([3, 20, 21, 60]), np.arange(61)):
        np.testing.assert_array_equal(data.subset(which).matrix, X[which])
    factors = random_factors(X.shape, R, rng)
    held = data.hold(Given(factors[0]), R)
    assert data.squared_error([held, factors[1]]) == pytest.approx(dense.squared_error(factors), rel=1e-12)


def test_held_activations_take_a_scale_along(X, tmp_path, rng):
    data = as_data(saved(X, tmp_path), fifth(X))
    activations, parts = random_factors(X.shape, R, rng)
    given, a, b = activations.copy(), rng.random(R) + 0.5, rng.random(R) + 0.5
    held = data.hold(Given(activations), R)
    held *= a
    held /= b
    scaled = given * a / b
    assert len(held) == 61
    np.testing.assert_allclose(held.sweep(own_gram), gram(scaled), rtol=1e-12)
    held *= b
    np.testing.assert_allclose(held.gram(), gram(given * a), rtol=1e-12)
    held *= 3
    error = np.linalg.norm(X - (3 * given * a) @ parts.T) ** 2
    assert held.sweep(Residual(parts)) == pytest.approx(error, rel=1e-12)
    np.testing.assert_allclose(held.collected(), 3 * given * a, rtol=1e-12)
    np.testing.assert_array_equal(activations, given)


def test_what_is_lazy(X, tmp_path):
    Foreign = type("Foreign", (Rows,), {"dtype": "a dtype of another library", "__init__": lambda self: None})
    Foreign.shape = X.shape
    for plain in (X, X.tolist(), X[0], X[0, 0], sp.csr_array(X), 3, None, Foreign(), [[1.0, 2.0]]):
        assert not is_lazy(plain)
    for lazy in ("x.npy", tmp_path / "x.npy", mapped(X, tmp_path), Rows(X), as_data(X), as_data(mapped(X, tmp_path))):
        assert is_lazy(lazy)


# How much is read


@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
def test_loaded_means_loaded_as_floats(X, dtype, tmp_path):
    path = saved(np.ones(X.shape, dtype=dtype), tmp_path)
    assert isinstance(as_data(path, X.size * 8), DenseData)
    assert isinstance(as_data(path, X.size * 8 - 1), StoredData)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_few_samples_that_fit_are_loaded(X, n, tmp_path):
    """Four samples must fit where chunks are read, and no chunks are read here."""
    path = saved(X[:n], tmp_path)
    assert isinstance(as_data(path, X[:n].nbytes), DenseData)


@pytest.mark.parametrize("kind", ["path", "zarr", "anything with rows"])
def test_four_samples_must_fit(X, kind, tmp_path):
    stored, four = STORED[kind](X, tmp_path), 4 * X[0].nbytes
    with pytest.raises(ValueError, match=f"memory_limit={four - 1}: 4 samples of 160 bytes must fit"):
        pw.ssnmf(stored, R, memory_limit=four - 1)
    assert pw.ssnmf(stored, R, memory_limit=four, max_iter=2).n_iter == 2


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.heavy
@pytest.mark.parametrize("init", ["random", "samples"])
@pytest.mark.parametrize("kind", ["path", "HDF5", "anything with rows"])
def test_memory_stays_within_the_limit(init, kind, tmp_path, monkeypatch, rng):
    """Beyond it are the factors, and the samples that a start looks at."""
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 2**16)
    fit = {"sparsity": 0.5, "init": init, "max_iter": 3, "tol": 0, "random_state": 0}
    pw.ssnmf(saved(rng.random((50, 40)), tmp_path), R, memory_limit=10_000, **fit)  # imports are not counted
    X = rng.random((8_000, 200))
    stored, limit, factor = STORED[kind](X, tmp_path), X.nbytes // 8, X.shape[0] * R * 8
    looked_at = 8 * 2**16 if init == "samples" else 0
    assert peak_of(lambda: pw.ssnmf(stored, R, memory_limit=limit, **fit)) < limit + 4 * factor + 2 * looked_at


@pytest.mark.heavy
def test_a_start_among_many_samples_takes_no_longer_than_some_passes(tmp_path, rng):
    data = as_data(saved(rng.random((40_000, 5)), tmp_path), 200_000)
    started = time.perf_counter()
    data.subset(np.arange(40_000))
    assert time.perf_counter() - started < 3


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
def test_bytes(text, count):
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
def test_limits_that_are_none(X, limit, tmp_path):
    path = saved(X, tmp_path)
    for fit in (
        lambda: pw.ssnmf(path, R, memory_limit=limit),
        lambda: pw.ssnmf(X, R, memory_limit=limit),
        lambda: pw.SparseNMF(R, memory_limit=limit).fit(path),
    ):
        with pytest.raises(ValueError, match=r"memory_limit=.*give a number of bytes"):
            fit()


@pytest.mark.parametrize("init", ["random", "samples"])
@pytest.mark.parametrize("kind", ["path", "zarr"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN, first at row 37, column 3"),
        (np.inf, "infinity, first at row 37, column 3"),
        (-np.inf, "infinity, first at row 37, column 3"),
        (-0.25, r"X\[37, 3\] is -0.25"),
    ],
)
def test_bad_values_are_named_with_their_chunk(X, value, message, kind, init, tmp_path):
    X[37, 3] = X[60, 1] = value
    stored = STORED[kind](X, tmp_path)
    limit, chunk = {
        "path": (4 * 160 * 10, "chunk 3 (samples 30 to 39)"),
        "zarr": (4 * 160 * 7, "chunk 5 (samples 35 to 41)"),
    }[kind]
    with pytest.raises(ValueError, match=f"^{re.escape(chunk)}: .*{message}"):
        pw.ssnmf(stored, R, init=init, memory_limit=limit)
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(stored, R, init=init)


def test_bad_values_are_named_by_their_own_row_where_a_start_finds_them(X, tmp_path, monkeypatch):
    """A start that looks at some samples does not count by those."""
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 0)
    X[30:, 3] = np.nan
    with pytest.raises(ValueError, match="row 30, column 3"):
        pw.ssnmf(saved(X, tmp_path), R, random_state=0, memory_limit=fifth(X))


def test_bad_values_are_named_in_transform(X, tmp_path):
    model = pw.SparseNMF(R, random_state=0, max_iter=3, tol=1, memory_limit=fifth(X)).fit(X)
    X[50, 2] = np.nan
    for ask in (model.transform, model.score):
        with pytest.raises(ValueError, match=r"^chunk .*row 50, column 2"):
            ask(saved(X, tmp_path))


def test_a_dark_chunk_is_no_reason_to_refuse(X, tmp_path):
    """The scale of X is that of its largest value, wherever it is."""
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


@pytest.mark.parametrize("name", NO_MATRIX)
@pytest.mark.parametrize("kind", ["path", "memory map", "zarr", "HDF5", "anything with rows"])
def test_what_is_no_matrix_is_refused(name, kind, tmp_path):
    array, message = NO_MATRIX[name]
    if kind in ("zarr", "HDF5") and array.dtype.kind in "UM":
        pytest.skip("cannot be stored there without a warning")
    store = STORED[kind] if kind != "zarr" else lambda X, folder: zarr_array(X, folder, [max(s, 1) for s in X.shape])
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


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("limit", [200, None])
def test_broken_files_are_refused_by_name(name, limit, tmp_path):
    BROKEN[name](tmp_path)
    with pytest.raises(ValueError, match=r"x\.npy"):
        pw.ssnmf(tmp_path / "x.npy", 2, memory_limit=limit)


@pytest.mark.parametrize("name", ["x.csv", "x", "x.npy.gz", "x.npz", ""])
def test_other_files_are_not_read_by_name(name, tmp_path):
    for path in (tmp_path / name, str(tmp_path / name)):
        for fit in (lambda path=path: pw.ssnmf(path, 2), lambda path=path: pw.SparseNMF(2).fit(path)):
            with pytest.raises(ValueError, match=r"only \.npy files are read by name"):
                fit()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        pw.ssnmf(tmp_path / "nowhere.npy", 2)


# What changes while it is read


def at(n_iter, work):
    """A callback that does something after some iteration."""
    return lambda iteration: work() if iteration.n_iter == n_iter else None


@pytest.mark.parametrize("kind", ["path", "memory map", "memory map, offset"])
def test_a_file_that_is_cut_off_between_passes(X, kind, tmp_path):
    stored = STORED[kind](X, tmp_path)
    path = next(tmp_path.iterdir())

    def cut():
        os.truncate(path, path.stat().st_size - 1)

    with pytest.raises(ValueError, match=r"is cut off: (it has )?\d+"):
        pw.ssnmf(stored, R, memory_limit=fifth(X), callback=at(2, cut), **FIT)


@pytest.mark.parametrize("kind", ["path", "memory map"])
def test_a_file_that_was_cut_off_before(X, kind, tmp_path):
    stored = STORED[kind](X, tmp_path)
    os.truncate(tmp_path / "x.npy", X.nbytes // 2)
    for limit in (fifth(X), None):
        with pytest.raises(ValueError, match="is cut off"):
            pw.ssnmf(stored, R, memory_limit=limit)


def test_a_file_that_is_cut_off_within_a_pass(X, tmp_path, monkeypatch):
    monkeypatch.setattr(StoredFile, "check", lambda self: None)
    data = as_data(saved(X, tmp_path), 4 * 160 * 10)
    os.truncate(tmp_path / "x.npy", 128 + 160 * 34)
    with pytest.raises(ValueError, match=r"^chunk 3 \(samples 30 to 39\): .*x.npy is cut off"):
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


@pytest.mark.heavy
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_cut_file_does_not_kill_the_process(order, tmp_path, rng):
    path = saved(np.asarray(rng.random((300, 40)), order=order), tmp_path)
    done = subprocess.run([sys.executable, "-c", CUT, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"died of {done.returncode}: {done.stderr}"
    assert "cut off" in done.stdout


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_map_outlives_its_name(X, fate, chunked, tmp_path):
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


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("shape", [(40, 20), (80, 20), (61, 19)])
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


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("init", ["random", "samples"])
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
def test_errors_of_the_storage_come_through_with_their_chunk(X, error):
    class Failing(Rows):
        def __getitem__(self, rows):
            if rows.stop > 30:
                raise error
            return super().__getitem__(rows)

    with pytest.raises(type(error), match="the disk is gone") as caught:
        pw.ssnmf(Failing(X), R, init="random", memory_limit=4 * 160 * 7)
    told = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "chunk 4 (samples 28 to 34)" in told


def test_files_are_read_and_not_mapped_where_rows_lie_together(X, tmp_path):
    """A map of a file on a failing disk kills the process; reading it raises."""
    assert type(as_stored(STORED["path"](X, tmp_path))) is StoredFile
    assert type(as_stored(Rows(X))) is Stored

"""Stored X of any kind is read in chunks of samples that fit the memory limit."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import one_at_a_time, peak_of, random_factors
from chunked import Watched, seven
from stores import (  # noqa: F401  (fixtures)
    FIT,
    STORED,
    R,
    Rows,
    any_store,
    assert_same,
    fifth,
    mapped,
    saved,
    small,
    zarr_array,
)

import partwise as pw
from partwise.data import DenseData, StoredData, as_data, is_lazy
from partwise.data.steps import Residual, own_gram
from partwise.data.stored import Stored
from partwise.engine import starts as start
from partwise.engine.starts import Given
from partwise.statistics import gram

DTYPES = (np.float32, np.float16, np.uint8, np.int64, np.bool_, ">f8", ">f4", ">u2")


def test_every_kind_of_storage_gives_the_fit_of_the_array(X, store, tmp_path):
    stored = store(X, tmp_path)
    data = as_data(stored, fifth(X))
    assert isinstance(data, StoredData)
    assert len(data.bounds) > 10
    assert_same(pw.ssnmf(stored, R, memory_limit=fifth(X), **FIT), pw.ssnmf(X, R, **FIT))


def test_storage_is_loaded_if_it_fits_in_memory(X, store, tmp_path):
    stored = store(X, tmp_path)
    data = as_data(stored, X.nbytes)
    assert isinstance(data, DenseData)
    np.testing.assert_array_equal(data.matrix, X)
    np.testing.assert_array_equal(as_data(stored).matrix, X)
    assert isinstance(as_data(stored, X.nbytes - 1), StoredData)
    np.testing.assert_array_equal(pw.ssnmf(stored, R, **FIT).components, pw.ssnmf(X, R, **FIT).components)


@one_at_a_time(dtype=DTYPES, how=["path", "memory map, Fortran order", "zarr", "HDF5", "anything with rows"])
def test_every_dtype_gives_the_fit_of_the_array(X, dtype, how, tmp_path):
    X = (np.greater(X, X.mean()) if dtype is np.bool_ else 20 * X).astype(dtype)
    stored = STORED[how](X, tmp_path)
    data = as_data(stored, fifth(X))
    assert isinstance(data, StoredData)
    assert data.dtype == as_data(X).dtype == (np.float32 if dtype is np.float32 else np.float64)
    options = {**FIT, "accelerate": dtype is not np.float32 and "auto"}  # whether a step is undone depends on rounding
    result, wanted = pw.ssnmf(stored, R, memory_limit=fifth(X), **options), pw.ssnmf(X, R, **options)
    assert result.components.dtype == result.activations.dtype == data.dtype
    assert_same(result, wanted, 1e-4 if dtype is np.float32 else 1e-8)


@one_at_a_time(rows=[12, 1, 2, 3, 7, 15], init=["samples", "random"])  # of 61: the last chunk has mostly one
def test_the_size_of_chunks_changes_nothing(X, rows, init, tmp_path):
    path, limit = saved(X, tmp_path), 4 * X[0].nbytes * rows
    assert as_data(path, limit).bounds == [*range(0, 61, rows), 61]
    assert_same(pw.ssnmf(path, R, init=init, memory_limit=limit, **FIT), pw.ssnmf(X, R, init=init, **FIT))


@pytest.mark.parametrize("shape", [(5, 1), (40, 1), (5, 30), (7, 3)])
@pytest.mark.parametrize("r", [1, 9])
def test_narrow_and_short_arrays(shape, r, tmp_path, rng):
    X = rng.random(shape)
    fit = {"max_iter": 10, "tol": 0, "random_state": 0}
    path, limit = saved(X, tmp_path), 4 * X[0].nbytes
    assert isinstance(as_data(path, limit), StoredData)
    assert_same(pw.ssnmf(path, r, memory_limit=limit, **fit), pw.ssnmf(X, r, **fit))


@pytest.mark.parametrize("stride", [2, 4, 5, 30])
def test_storage_chunks_are_read_whole(X, stride):
    X = Rows(X)
    X.chunks = (stride, 1)
    bounds = np.array(as_data(X, 8 * 6 * 160).bounds)  # 6 samples fit
    assert np.all(bounds[:-1] % min(stride, 6) == 0)
    assert np.diff(bounds).max() == (6 // stride * stride if stride <= 6 else 6)


def test_queries_agree_with_the_array(X, store, tmp_path, rng):
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


def test_held_activations_can_be_scaled(X, tmp_path, rng):
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


def test_is_lazy(X, tmp_path):
    Foreign = type("Foreign", (Rows,), {"dtype": "a dtype of another library", "__init__": lambda self: None})
    Foreign.shape = X.shape
    for plain in (X, X.tolist(), X[0], X[0, 0], sp.csr_array(X), 3, None, Foreign(), [[1.0, 2.0]]):
        assert not is_lazy(plain)
    for lazy in ("x.npy", tmp_path / "x.npy", mapped(X, tmp_path), Rows(X), as_data(X), as_data(mapped(X, tmp_path))):
        assert is_lazy(lazy)


# How much is read


@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
def test_loaded_arrays_are_floats(X, dtype, tmp_path):
    path = saved(np.ones(X.shape, dtype=dtype), tmp_path)
    assert isinstance(as_data(path, X.size * 8), DenseData)
    assert isinstance(as_data(path, X.size * 8 - 1), StoredData)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_data_is_loaded(X, n, tmp_path):
    """The limit must hold four samples only if X is read in chunks."""
    path = saved(X[:n], tmp_path)
    assert isinstance(as_data(path, X[:n].nbytes), DenseData)


@pytest.mark.parametrize("kind", ["path", "anything with rows"])
def test_memory_limit_must_hold_four_samples(X, kind, tmp_path):
    stored, four = STORED[kind](X, tmp_path), 4 * X[0].nbytes
    with pytest.raises(ValueError, match=f"memory_limit={four - 1} is too small: one sample takes .* at least 1 MB"):
        pw.ssnmf(stored, R, memory_limit=four - 1)
    assert pw.ssnmf(stored, R, memory_limit=four, max_iter=2).n_iter == 2


def test_copies_of_a_stored_chunk_must_fit(X, tmp_path):
    stored, least = zarr_array(X, tmp_path, (20, 3)), 12 * 20 * 3 * 8
    with pytest.raises(ValueError, match=r"is too small: one stored chunk \(20, 3\) takes 480 B: .* at least 1 MB"):
        pw.ssnmf(stored, R, memory_limit=least - 1)
    fit = FIT | {"max_iter": 2}
    assert_same(pw.ssnmf(stored, R, memory_limit=least, **fit), pw.ssnmf(X, R, **fit))


def test_the_limit_that_an_error_names_suffices(tmp_path, rng):
    """X as a whole may take less memory than the copies of one stored chunk."""
    X = rng.random((400, 1000))
    stored = zarr_array(X, tmp_path, (200, 1000))
    advice = "one stored chunk .* takes 1.6 MB: set memory_limit to at least 4 MB to load X whole, or store X in"
    with pytest.raises(ValueError, match=advice):
        as_data(stored, 3_199_999)
    assert isinstance(as_data(stored, 4_000_000), DenseData)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 8, 20])
def test_no_more_stored_chunks_than_fit_are_read_at_once(X, limit):
    """``limit`` of them, or their copies."""
    tall, wide, read = 6, 8, []

    class Tiles(Rows):
        chunks = (tall, wide)

        def __getitem__(self, where):
            rows, columns = where if isinstance(where, tuple) else (where, slice(0, 20))
            tiles = [range(s.start // step, -(-s.stop // step)) for s, step in ((rows, tall), (columns, wide))]
            read.append(len(tiles[0]) * len(tiles[1]))
            return self.X[where]

    enough = limit * 12 * tall * wide * 8
    stored = Stored(Tiles(X), enough)
    for first, end in ((0, 61), (0, 12), (5, 7), (4, 29), (60, 61)):
        np.testing.assert_array_equal(stored.read(first, end, np.empty_like(X)), X[first:end])
    assert max(read) == limit if limit % 3 == 0 or limit < 3 else max(read) <= limit


@pytest.mark.compiled
@one_at_a_time(init=["samples", "random"], how=["path", "HDF5", "anything with rows"])
def test_memory_stays_within_the_limit(init, how, tmp_path, monkeypatch, rng):
    """Except for the factors, and the samples that a start uses."""
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 2**16)
    fit = {"sparsity": 0.5, "init": init, "max_iter": 3, "tol": 0, "random_state": 0}
    pw.ssnmf(saved(rng.random((50, 40)), tmp_path), R, memory_limit=10_000, **fit)  # imports are not counted
    X = rng.random((8_000, 200))
    stored, limit, factor = STORED[how](X, tmp_path), X.nbytes // 8, X.shape[0] * R * 8
    looked_at = 8 * 2**16 if init == "samples" else 0
    assert peak_of(lambda: pw.ssnmf(stored, R, memory_limit=limit, **fit)) < limit + 4 * factor + 2 * looked_at


def test_samples_that_are_stored_together_are_read_once(X):
    """When a start reads some of many samples."""
    stored = Watched(X)
    stored.chunks = (5, 20)
    which = np.setdiff1d(np.arange(61), [3, 4, 5, 17, 60])
    np.testing.assert_array_equal(as_data(stored, 12 * 5 * 160).subset(which).matrix, X[which])
    assert stored.read == [(first, first + 5) for first in range(0, 60, 5)]


def test_files_are_mapped_without_preadv(tmp_path, monkeypatch):
    X = np.random.default_rng(0).random((40, 6))
    np.save(tmp_path / "x.npy", X)
    wanted = pw.ssnmf(tmp_path / "x.npy", 2, memory_limit=2000, random_state=0, max_iter=5, tol=0)
    monkeypatch.delattr("os.preadv")
    found = pw.ssnmf(tmp_path / "x.npy", 2, memory_limit=2000, random_state=0, max_iter=5, tol=0)
    np.testing.assert_array_equal(found.components, wanted.components)


def test_neighbouring_samples_are_read_together(rng):
    X = Watched(rng.random((61, 20)))
    data = as_data(X, memory_limit=seven(X))
    which = np.array([0, 1, 2, 5, 6, 7, 8, 60])
    np.testing.assert_array_equal(data.subset(which).matrix, X.X[which])
    assert X.read == [(0, 3), (5, 7), (7, 9), (60, 61)]  # at most a chunk at a time

"""All kinds of storage for X, and fixtures for tests of them.

Import the fixtures into the test files that use them.
"""

import pickle

import numpy as np
import pytest
from catalogues import planted

R = 4


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=61, m=20, r=R).X


class Rows:
    """The minimal interface of stored data: shape, dtype, and slices of rows."""

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
    """X inside a larger array, whose other entries must not be read."""
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


def zarr_array(X, folder, chunks=(1, 20)):
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
    "HDF5": hdf5,
    "HDF5, chunks": lambda X, folder: hdf5(X, folder, (5, 4)),
    "anything with rows": lambda X, folder: Rows(X),
}


@pytest.fixture(name="store", params=STORED)
def any_store(request):
    return STORED[request.param]


def fifth(X):
    """A memory limit that gives at least twenty chunks, or one per sample."""
    return max(X.shape[0] * X.shape[1] * 8 // 5, 4 * X.shape[1] * 16)


def assert_same(result, wanted, tol=1e-8):
    assert (result.n_iter, result.stop_reason) == (wanted.n_iter, wanted.stop_reason)
    for name in ("components", "activations", "losses", "relative_error"):
        np.testing.assert_allclose(getattr(result, name), getattr(wanted, name), rtol=tol, atol=tol, err_msg=name)


FIT = {"sparsity": 0.5, "max_iter": 12, "tol": 0, "random_state": 0}

"""What gives the same bits on one machine, with the same versions and threads (docs/files.md, "What is reproducible").

At the size of X, BLAS uses different code for different memory orders. `make cpus` runs this file for other CPUs.
"""

import hashlib
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import partwise as pw
from partwise.data import as_data
from partwise.projections.sparsity import METHODS

N, M = 37, 45
DENSE = np.random.default_rng(0).random((N, M)) * (np.random.default_rng(1).random((N, M)) < 0.6)
FORMS = {"dense": np.asarray, "by columns": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}
MODELS = {
    "parts": lambda: pw.SparseNMF(3, sparsity=0.5, max_iter=4, tol=0, random_state=0),
    "one part": lambda: pw.SparseNMF(1, sparsity=0.5, max_iter=4, tol=0, random_state=0),
    "both sides": lambda: pw.SparseNMF(3, sparsity=0.5, activation_sparsity=0.3, max_iter=4, tol=0, random_state=0),
    "mini-batch": lambda: pw.MiniBatchSparseNMF(3, sparsity=0.5, batch_size=16, max_iter=2, tol=0, random_state=0),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:reached max_iter"),
    pytest.mark.filterwarnings("ignore::partwise.CapacityWarning"),
]


@pytest.fixture(name="dtype", params=["float64", "float32"])
def precisions(request):
    return request.param


@pytest.fixture(name="X", params=FORMS)
def forms(request, dtype):
    return FORMS[request.param](DENSE.astype(dtype))


@pytest.fixture(name="make", params=MODELS)
def models(request):
    return MODELS[request.param]


def at(array, offset):
    """A copy of the array in the same memory order, ``offset`` bytes past a multiple of 64."""
    room = np.empty(array.nbytes + 128, dtype=np.uint8)
    start = -room.ctypes.data % 64 + offset
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    moved = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    moved[...] = array
    return moved


def elsewhere(X, offset):
    """X, dense or sparse, with all its arrays at such addresses (see `at`)."""
    if not sp.issparse(X):
        return at(X, offset)
    moved = X.copy()
    moved.data, moved.indices, moved.indptr = (at(a, offset) for a in (X.data, X.indices, X.indptr))
    return moved


def sent(value, offset):
    """A value unpickled from out-of-band buffers at such addresses (see `at`)."""
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[at(np.frombuffer(b.raw(), np.uint8), offset) for b in buffers])


def answers(model, X):
    """Fitted attributes and predictions of a model."""
    return [model.components_, model.transform(X), model.loss_curve_, np.array(model.score(X))]


def assert_same_bits(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_memory_address_does_not_matter(make, X):
    """Unaligned addresses too: Dask places arrays wherever they are in a message."""
    wanted = answers(make().fit(X), X)
    for offset in (8, 36, 1):
        moved = elsewhere(X, offset)
        assert_same_bits(answers(make().fit(moved), moved), wanted)


def test_kernels_see_aligned_arrays(X):
    """For unaligned arrays they would be recompiled, and might sum in another order."""
    found = as_data(elsewhere(X, 1)).matrix
    assert all(
        array.flags.aligned for array in ((found.data, found.indices, found.indptr) if sp.issparse(X) else (found,))
    )


def test_read_only_arrays_give_the_same_bits(make, X):
    wanted, locked = answers(make().fit(X), X), elsewhere(X, 0)
    for array in (locked.data, locked.indices, locked.indptr) if sp.issparse(X) else (locked,):
        array.flags.writeable = False
    assert_same_bits(answers(make().fit(locked), locked), wanted)


def test_saved_and_loaded_model(make, X, tmp_path):
    model = make().fit(X)
    model.save(tmp_path / "parts.pw")
    assert_same_bits(answers(pw.load(tmp_path / "parts.pw"), X), answers(model, X))


def test_pickled_model(make, X):
    model = make().fit(X)
    wanted = answers(model, X)
    for again in (pickle.loads(pickle.dumps(model)), sent(model, 8), sent(model, 1)):
        assert_same_bits(answers(again, X), wanted)


def test_partial_fit_continued_after_saving_or_pickling(X, tmp_path):
    model = MODELS["mini-batch"]().partial_fit(X[:20])
    model.save(tmp_path / "parts.pw")
    others = [pw.load(tmp_path / "parts.pw"), pickle.loads(pickle.dumps(model)), sent(model, 8), sent(model, 1)]
    for again in (model, *others):
        again.partial_fit(X[20:]).partial_fit(X[:30])
    for again in others:
        assert_same_bits([again.components_, again.transform(X)], [model.components_, model.transform(X)])


@pytest.mark.parametrize("name", ["parts", "one part", "both sides"])
def test_resumed_fit(name, X, tmp_path):
    whole = MODELS[name]()
    half = MODELS[name]().set_params(max_iter=2, checkpoint=tmp_path / "fit.pw")
    half.fit(X)
    rest = MODELS[name]().set_params(resume_from=tmp_path / "fit.pw")
    assert_same_bits(answers(rest.fit(X), X), answers(whole.fit(X), X))


def test_components_in_any_layout(make, X):
    """Users may set components_."""
    model = make().fit(X)
    wanted = model.transform(X)
    for layout in (np.asfortranarray, lambda c: np.repeat(c, 2, axis=1)[:, ::2], lambda c: at(c, 1)):
        again = make().fit(X)
        again.components_ = layout(again.components_)
        np.testing.assert_array_equal(again.transform(X), wanted)


def test_another_memory_order_of_x_agrees_to_the_stated_tolerance(make, dtype):
    by_rows = DENSE.astype(dtype)
    by_columns = np.asfortranarray(by_rows)
    a, b = make().fit(by_rows), make().fit(by_columns)
    tolerance = 1e-8 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(a.components_, b.components_, atol=tolerance)
    np.testing.assert_allclose(
        a.transform(by_rows), b.transform(by_columns), atol=tolerance * a.transform(by_rows).max()
    )


def digest():
    """A digest of the results of some models; another process prints it."""
    found = hashlib.sha256()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form in ("dense", "CSR"):
            X = FORMS[form](DENSE)
            for name in ("parts", "mini-batch"):
                for array in answers(MODELS[name]().fit(X), X):
                    found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def test_another_process():
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_bits; print(test_bits.digest())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()


def move_everything(monkeypatch, offset):
    """Move chunks and results to other addresses, as Dask's transfers do, without workers."""
    from partwise.data import cluster, visits

    matrix, compute = visits.Place.matrix, cluster.DaskData.compute
    monkeypatch.setattr(
        visits.Place, "matrix", lambda place, block, m: matrix(place, elsewhere(block, offset + 24 * place.index), m)
    )
    monkeypatch.setattr(
        cluster.DaskData, "compute", lambda *given: [sent(answer, offset) for answer in compute(*given)]
    )


@pytest.mark.parametrize("chunks", [(N,), (10, 1, 26)])
@pytest.mark.parametrize("form", ["dense", "CSR"])
def test_placement_of_chunks_does_not_matter(monkeypatch, form, chunks, dtype):
    """test_cluster_processes.py tests the same on a cluster of processes, which takes longer."""
    dask = pytest.importorskip("dask")
    import dask.array as da

    given = da.from_array(DENSE.astype(dtype), chunks=(chunks, M))
    if form == "CSR":
        given = given.map_blocks(sp.csr_array, dtype=dtype, meta=sp.csr_array(np.empty((0, 0), dtype)))

    def found():
        with dask.config.set(scheduler="synchronous"):
            model = MODELS["parts"]()
            activations = model.fit_transform(given).compute()
            return [model.components_, activations, model.loss_curve_, np.array(model.score(given))]

    wanted = found()
    for offset in (8, 1):
        with monkeypatch.context() as patch:
            move_everything(patch, offset)
            assert_same_bits(found(), wanted)
            assert as_data(given).survey.squares.flags.aligned


@pytest.mark.parametrize("method", ["fast", "sorted", "hoyer"])
def test_a_projection_does_not_depend_on_where_its_result_is_written(method):
    """Loops from one array to another are not vectorised if the two are close in memory."""
    rng = np.random.default_rng(0)
    for m in range(5, 40):
        b, k = rng.random(m), 1 + 0.5 * (m**0.5 - 1)
        apart = np.empty(m)
        METHODS[method](b, k, None, apart)
        for gap in (0, 1, 3, 8):
            both = np.empty(2 * m + gap)
            first, second = both[:m], both[m + gap :]
            for close, out in ((first, second), (second, first)):
                close[:] = b
                METHODS[method](close, k, None, out)
                np.testing.assert_array_equal(out, apart)

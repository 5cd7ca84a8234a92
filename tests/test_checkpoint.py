"""Checkpoints: a fit that is stopped or killed goes on to what it would have been without that, bit for bit."""

import errno
import os
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, RECIPES

import partwise as pw
from partwise.data import DenseData, as_data, as_tensor, checksum
from partwise.engine.checkpoint import CheckpointWarning, Resumed
from partwise.runtime.archive import UnreadableError, read, write

X = PROBLEMS["planted"](np.random.default_rng(0)).X
FIT = {"sparsity": 0.5, "random_state": 0, "max_iter": 12, "tol": 0}
KNOWN = np.stack([X[0], np.full(X.shape[1], np.nan), X[1]])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.pw"


def assert_same_result(a, b):
    """Equal in every bit but those of the clock."""
    for x, y in zip((*a.factors, a.losses), (*b.factors, b.losses), strict=True):
        assert x.dtype == y.dtype
        assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
    assert (a.middle is None) == (b.middle is None)
    assert a.middle is None or np.array_equal(a.middle, b.middle)
    assert (a.n_iter, a.converged, a.stop_reason, a.exhausted) == (b.n_iter, b.converged, b.stop_reason, b.exhausted)
    assert a.relative_error == b.relative_error


def stop_and_go(fit, path, stops=(4, 7), **options):
    """The result of a fit that ends too early, again and again."""
    for number, stop in enumerate(stops):
        fit(**options, max_iter=stop, checkpoint=path, checkpoint_every=3, resume_from=path if number else None)
        assert Resumed.read(path).history["losses"].size == stop + 1
    return fit(**options, max_iter=12, resume_from=path)


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_goes_on_bit_for_bit(path, name):
    def fit(**options):
        return RECIPES[name](X, 4, tol=0, **options)

    assert_same_result(stop_and_go(fit, path), fit(max_iter=12))


def in_chunks(X, path):
    np.save(path.with_suffix(".npy"), X)
    return {"X": path.with_suffix(".npy"), "memory_limit": 4 * 7 * X.itemsize * X.shape[1]}


KINDS = {
    "float32": lambda X, path: {"X": X.astype(np.float32)},
    "sparse": lambda X, path: {"X": sp.csr_array(np.where(X > 0.3, X, 0))},
    "in chunks": in_chunks,
    "in chunks, float32": lambda X, path: in_chunks(X.astype(np.float32), path),
    "in chunks, penalised": lambda X, path: {**in_chunks(X, path), "l1": 0.1},
    "in chunks, dead parts": lambda X, path: in_chunks(np.repeat(X[:2], 15, axis=0), path),
    "not accelerated": lambda X, path: {"X": X, "accelerate": False},
    "gradient": lambda X, path: {"X": X, "solver": "gradient"},
    "gradual": lambda X, path: {"X": X, "init": "gradual"},
    "given": lambda X, path: {"X": X, "init": (np.ones((30, 4)), X[:4])},
    "dead parts": lambda X, path: {"X": np.repeat(X[:2], 15, axis=0)},
    "exact": lambda X, path: {"X": np.repeat(X[:2], 15, axis=0), "sparsity": None},
    "residual": lambda X, path: {"X": X, "kkt_tol": 1e-9},
    "known parts": lambda X, path: {"X": X, "fixed_components": KNOWN, "fixed_activations": np.ones((30, 2))},
    "known parts, in chunks": lambda X, path: {**in_chunks(X, path), "fixed_components": KNOWN},
    "missing": lambda X, path: {"X": np.where(X > 1, np.nan, X), "missing": "em", "fixed_components": KNOWN},
    "missing, in chunks": lambda X, path: {**in_chunks(np.where(X > 1, np.nan, X), path), "missing": "em"},
}


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_data_and_start(path, name):
    asked = {"n_components": 4, **FIT, **KINDS[name](X, path)}
    asked.pop("max_iter")
    assert_same_result(stop_and_go(pw.ssnmf, path, **asked), pw.ssnmf(**asked, max_iter=12))


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
@pytest.mark.parametrize("sparsity", [None, {1: 0.4}, {0: 0.3, 1: 0.4, 2: 0.3}])
@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 4)])
def test_tensors(path, rng, shape, sparsity):
    asked = {"X": rng.random(shape), "n_components": 3, "tol": 0, "random_state": 0}
    asked["sparsity"] = {mode: s for mode, s in (sparsity or {}).items() if mode < len(shape)}
    whole = pw.cp(**asked, max_iter=12)
    again = stop_and_go(pw.cp, path, **asked)
    assert_same_result(again, whole)
    np.testing.assert_array_equal(again.weights, whole.weights)
    with pytest.raises(ValueError, match=r"the shape of X was \(6, 5.* in the checkpoint and is \(6, 5.* now"):
        pw.cp(**asked | {"X": rng.random((*shape, 2))} | {"sparsity": None}, resume_from=path)


def test_other_known_parts_are_another_fit(path):
    pw.ssnmf(X, 4, **FIT, fixed_components=KNOWN, checkpoint=path)
    other = np.where(np.isnan(KNOWN), KNOWN, KNOWN + 1e-9)
    with pytest.raises(ValueError, match="another fit: fixed_components differs"):
        pw.ssnmf(X, 4, **FIT, fixed_components=other, resume_from=path)


def test_chunks_of_a_normalised_factor(path):
    asked = {"n_components": 4, "random_state": 0, "tol": 0, "l1": 0.2, **in_chunks(X, path)}
    assert_same_result(stop_and_go(pw.nnsc, path, **asked), pw.nnsc(**asked, max_iter=12))


@pytest.mark.parametrize("kind", [None, np.random.PCG64, np.random.MT19937])
def test_the_generator_is_where_it_was(path, kind):
    """A random order of columns goes on as it was drawn, whatever generator is given later."""
    first, other = (None if kind is None else np.random.Generator(kind(seed)) for seed in (3, 99))
    copies = []

    def keep(iteration):
        if iteration.n_iter == 6:
            copies.append(path.read_bytes())

    asked = {"sparsity": 0.5, "faithful": True, "max_iter": 12}
    whole = pw.ssnmf(X, 4, random_state=first, checkpoint=path, checkpoint_every=5, callback=keep, **asked)
    path.write_bytes(copies[0])
    assert len(Resumed.read(path).history["losses"]) == 6
    assert_same_result(pw.ssnmf(X, 4, random_state=other, resume_from=path, **asked), whole)
    assert kind is None or other.random() == first.random()


def test_a_fit_that_is_done_is_done(path):
    asked = FIT | {"max_iter": 200, "tol": 1e-3}
    first = pw.ssnmf(X, 4, checkpoint=path, **asked)
    seen = []
    again = pw.ssnmf(X, 4, resume_from=path, callback=lambda i: seen.append(i.n_iter), **asked)
    assert_same_result(again, first)
    assert first.converged
    assert not seen
    np.testing.assert_array_equal(again.times, first.times)
    further = pw.ssnmf(X, 4, resume_from=path, **asked | {"tol": 1e-5})
    assert_same_result(further, pw.ssnmf(X, 4, **asked | {"tol": 1e-5}))


def test_a_callback_or_an_interrupt_stops_and_the_rest_comes_later(path):
    whole = pw.ssnmf(X, 4, **FIT)

    def interrupt(iteration):
        if iteration.n_iter == 5:
            os.kill(os.getpid(), signal.SIGINT)

    for callback in (interrupt, lambda iteration: iteration.n_iter == 5):
        half = pw.ssnmf(X, 4, **FIT, callback=callback, checkpoint=path, checkpoint_every=100)
        assert half.n_iter in (5, 6)
        assert_same_result(pw.ssnmf(X, 4, **FIT, resume_from=path), whole)


def test_the_gradual_start_writes_nothing(path):
    def look(iteration):
        assert path.exists() == (iteration.n_iter > 3)

    pw.ssnmf(X, 4, **FIT | {"init": "gradual"}, checkpoint=path, checkpoint_every=3, callback=look)


def test_the_estimator_goes_on(path):
    asked = {"n_components": 4, "sparsity": 0.5, "random_state": 0, "tol": 0.0}
    pw.SparseNMF(**asked, max_iter=5, checkpoint=path).fit(X)
    model = pw.SparseNMF(**asked, max_iter=12, checkpoint=path, checkpoint_every=2, resume_from=str(path)).fit(X)
    whole = pw.SparseNMF(**asked, max_iter=12).fit(X)
    for name in ("components_", "loss_curve_", "explained_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    with pytest.raises(ValueError, match="another random_state"):
        model.set_params(random_state=1).fit(X)
    with pytest.raises(ValueError, match=r"n_init=2 cannot be used with a checkpoint.*set n_init=1"):
        model.set_params(n_init=2).fit(X)


OTHERS = {
    "samples": ({"X": X[:-1]}, r"the shape of X was \(30, 40\) in the checkpoint and is \(29, 40\) now"),
    "values": ({"X": X + 0.1}, "the checksum of X was [0-9a-f]+ in the checkpoint and is [0-9a-f]+ now"),
    "order": ({"X": X[::-1]}, "the checksum of X was"),
    "precision": ({"X": X.astype(np.float32)}, "the dtype of X was float64 in the checkpoint and is float32 now"),
    "n_components": ({"n_components": 5}, "n_components was 4 in the checkpoint and is 5 now"),
    "sparsity": ({"sparsity": 0.4}, ": sparsity was 0.5 in the checkpoint and is 0.4 now"),
    "solver": ({"solver": "pivot"}, r"solver \(activations\) was hals in the checkpoint and is pivot now"),
    "penalty": ({"l1": 0.1}, r"l1 \(activations\) was 0.0 in the checkpoint and is 0.1 now"),
    "start": ({"init": "random"}, "init was auto in the checkpoint and is random now"),
    "own start": (
        {"init": (np.ones((30, 4)), X[:4])},
        "init was auto in the checkpoint and is factors with checksums",
    ),
    "interval": ({"sparsity": (0.4, 0.5)}, r": sparsity was 0.5 in the checkpoint and is \(0.4, 0.5\) now"),
    "one of them": (
        {"sparsity": [0.5, 0.5, 0.5, 0.6]},
        r": sparsity was 0.5 in the checkpoint and is \[0.5, 0.5, 0.5, 0.6\] now",
    ),
    "other side": ({"sparsity": None, "activation_sparsity": 0.5}, "activation_sparsity was None in .* is 0.5 now"),
    "sweeps": ({"activation_sweeps": 9}, r": sweeps \(activations\) was \d in the checkpoint and is 9 now"),
    "acceleration": ({"accelerate": False}, "accelerate was True in the checkpoint and is False now"),
    "compression": ({"compress": False}, "compress was True in the checkpoint and is False now"),
    "fixed": ({"fixed_components": KNOWN}, r"fixed_components was None in .* given for components \[0, 2\] now"),
    "faithful": ({"faithful": True, "init": "samples"}, "faithful was False in the checkpoint and is True now"),
    "projection": ({"projection": "sorted"}, "projection was fast in the checkpoint and is sorted now"),
    "seed": ({"random_state": 1}, "another random_state"),
    "generator": ({"random_state": np.random.Generator(np.random.MT19937(0))}, "another kind of generator"),
    "missing": ({"resume_from": "nowhere.pw"}, "does not exist"),
    "no path": ({"resume_from": 3}, "give the path of a file"),
    "no number": ({"checkpoint_every": 0}, "checkpoint_every=0"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_fit_is_refused(path, name):
    other, match = OTHERS[name]
    pw.ssnmf(X, 4, **FIT, checkpoint=path)
    with pytest.raises(ValueError, match=match):
        pw.ssnmf(**{"X": X, "n_components": 4, **FIT, "resume_from": path, **other})


def spoiled(X, where, value):
    X = X.copy()
    X[where] = value
    return X


FLOAT32 = X.astype(np.float32)
ALMOST = {
    "a sample of zeros": (FLOAT32, spoiled(FLOAT32, 3, 0)),
    "a sample twice": (FLOAT32, spoiled(FLOAT32, 3, FLOAT32[4])),
    "samples exchanged": (FLOAT32, spoiled(FLOAT32, [3, 4], FLOAT32[[4, 3]])),
    "one entry": (X, spoiled(X, (3, 4), X[3, 4] * 1.0001)),
    "one entry, sparse": (sp.csr_array(X), sp.csr_array(spoiled(X, (3, 4), X[3, 4] * 1.0001))),
    "one zero, sparse": (sp.csr_array(X), sp.csr_array(spoiled(X, (3, 4), 0))),
    "missing": (spoiled(X, (3, 4), np.nan), spoiled(X, (3, 5), np.nan)),
}


@pytest.mark.parametrize("name", ALMOST)
def test_almost_the_same_data_is_refused(path, name):
    first, other = ALMOST[name]
    pw.ssnmf(first, 4, **FIT | {"max_iter": 2}, missing="em", checkpoint=path)
    with pytest.raises(ValueError, match="another fit: the checksum of X was"):
        pw.ssnmf(other, 4, **FIT, missing="em", resume_from=path)


def test_almost_the_same_tensor_or_start_is_refused(path, rng):
    first, start = rng.random((6, 5, 4)), [rng.random((n, 3)) for n in (6, 5, 4)]
    pw.cp(first, 3, init=start, max_iter=2, tol=0, checkpoint=path)
    with pytest.raises(ValueError, match="another fit: the checksum of X was"):
        pw.cp(spoiled(first, (1, 2, 3), 0.5), 3, init=start, resume_from=path)
    with pytest.raises(ValueError, match="another fit: init was factors with checksums"):
        pw.cp(first, 3, init=[start[0], start[1], spoiled(start[2], (1, 2), 0.5)], resume_from=path)
    pw.ssnmf(X, 4, init=(np.ones((30, 4)), X[:4]), max_iter=2, tol=0, checkpoint=path)
    with pytest.raises(ValueError, match="another fit: init was factors with checksums"):
        pw.ssnmf(X, 4, init=(np.ones((30, 4)), X[1:5]), resume_from=path)


def forms():
    """Each kind of data, and other forms of the same values."""
    gaps = np.where(X > 1, np.nan, X)
    tensor = X.reshape(5, 6, -1)
    coordinates = pw.COO(np.indices(tensor.shape).reshape(3, -1)[:, ::-1], tensor.ravel()[::-1], tensor.shape)
    return {
        "dense": [as_data(X), as_data(np.asfortranarray(X)), as_data(np.repeat(X, 2, axis=0)[::2])],
        "sparse": [as_data(kind(X)) for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array)],
        "missing": [as_data(gaps, missing=True), as_data(X, observed=X <= 1)],
        "tensor": [as_tensor(tensor), as_tensor(np.asfortranarray(tensor))],
        "coordinates": [as_tensor(coordinates), as_tensor(coordinates.summed())],
    }


def test_a_checksum_depends_on_values_alone(path):
    found = forms()
    found["dense"].append(as_data(in_chunks(X, path)["X"], in_chunks(X, path)["memory_limit"]))
    kinds = [{checksum(data) for data in same} for same in found.values()]
    assert [len(same) for same in kinds] == [1] * len(kinds)
    assert len(set.union(*kinds)) == len(kinds)


def test_nothing_is_summed_up_without_a_checkpoint(path, monkeypatch):
    def never(data):
        raise AssertionError("X is read")

    monkeypatch.setattr(DenseData, "pieces", never)
    pw.ssnmf(X, 4, **FIT)
    with pytest.raises(AssertionError, match="X is read"):
        pw.ssnmf(X, 4, **FIT, checkpoint=path)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("later", ["in memory", "in chunks"])
def test_a_fit_may_go_on_where_the_data_lies_elsewhere(path, later, missing):
    values = np.where(X > 1.5, np.nan, X) if missing else X
    here, there = {"X": values}, in_chunks(values, path)
    first, second = (there, here) if later == "in memory" else (here, there)
    asked = {"n_components": 4, **FIT, "missing": "em"}
    pw.ssnmf(**asked | {"max_iter": 5}, **first, checkpoint=path)
    found, whole = pw.ssnmf(**asked, **second, resume_from=path), pw.ssnmf(**asked, **second)
    for name in ("activations", "components", "losses"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("later", ["in memory", "in chunks"])
def test_known_components_may_go_on_elsewhere(path, later):
    """What must settle is another array in chunks than in memory."""
    here, there = {"X": X}, in_chunks(X, path)
    first, second = (there, here) if later == "in memory" else (here, there)
    asked = {"n_components": 4, "fixed_components": X[:4], "random_state": 0, "tol": 1e-9}
    pw.ssnmf(**asked, **first, max_iter=5, checkpoint=path)
    found = pw.ssnmf(**asked, **second, max_iter=9, resume_from=path)
    whole = pw.ssnmf(**asked, **second, max_iter=9)
    np.testing.assert_allclose(found.activations, whole.activations, rtol=1e-6, atol=1e-8)


def test_another_recipe_is_refused(path):
    pw.nsnmf(X, 4, theta=0.5, max_iter=3, tol=0, checkpoint=path)
    with pytest.raises(ValueError, match=r"theta was 0.5 in the checkpoint and is 0.2 now"):
        pw.nsnmf(X, 4, theta=0.2, resume_from=path)
    with pytest.raises(ValueError, match=r"theta was 0.5 in the checkpoint and is None now"):
        pw.nmfsc(X, 4, resume_from=path)


def rewritten(path, change):
    """The checkpoint, its header changed."""
    header, arrays = read(path)
    for name in ("arrays", "format"):
        header.pop(name)
    change(header)
    write(path, header, arrays)


def test_an_old_file_without_a_new_field_is_good(path):
    """What a file does not say is what its field has by default."""
    pw.ssnmf(X, 4, **FIT | {"max_iter": 5}, checkpoint=path)

    def as_before(header):
        problem = header["problem"]["fields"]
        activations, components = problem["blocks"]["tuple"]
        assert activations["fields"].pop("normalised") is False
        assert components["fields"].pop("rows") == 0
        assert components["fields"]["update"]["fields"].pop("order") == "fixed"

    rewritten(path, as_before)
    assert_same_result(pw.ssnmf(X, 4, **FIT, resume_from=path), pw.ssnmf(X, 4, **FIT))
    rewritten(path, lambda header: header["problem"]["fields"]["blocks"]["tuple"][0]["fields"].update(l2=0.5))
    with pytest.raises(ValueError, match=r"l2 \(activations\) was 0.5 in the checkpoint and is 0.0 now"):
        pw.ssnmf(X, 4, **FIT, resume_from=path)


@pytest.mark.parametrize("number", [None, 1, 2, 3, 5])
def test_another_format_is_refused(path, number):
    pw.ssnmf(X, 4, **FIT, checkpoint=path)
    rewritten(path, lambda header: header.update(checkpoint_format=number))
    if number is None:
        rewritten(path, lambda header: header.pop("checkpoint_format"))
    match = rf"format {number or 1}, .* from format 4: take the version that has written it \(partwise"
    with pytest.raises(UnreadableError, match=match):
        pw.ssnmf(X, 4, **FIT, resume_from=path)


def test_a_set_of_your_own_is_never_the_same(path):
    """Two functions of one name, or even of one text, need not be one set."""

    def fit(**options):
        return pw.ssnmf(X, 4, **FIT | {"sparsity": lambda b, near=None: np.maximum(b, 0)}, **options)

    assert fit().n_iter == FIT["max_iter"]
    with pytest.raises(ValueError, match=r"do not support custom sets, .* \(problem.blocks.1.sets.sets.0"):
        fit(checkpoint=path)
    assert not path.exists()
    pw.ssnmf(X, 4, **FIT, checkpoint=path)
    with pytest.raises(ValueError, match="do not support custom sets"):
        fit(resume_from=path)


def test_dask_is_refused(path):
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="not available for Dask arrays"):
        pw.ssnmf(da.from_array(X, chunks=(10, -1)), 4, **FIT, checkpoint=path)


# files that cannot be written, or read


def test_a_disk_that_fills_up_costs_no_result(path, monkeypatch):
    whole = pw.ssnmf(X, 4, **FIT)
    pw.ssnmf(X, 4, **FIT | {"max_iter": 4}, checkpoint=path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CheckpointWarning, match="No space left") as warned:
        result = pw.ssnmf(X, 4, **FIT, checkpoint=path, checkpoint_every=2)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert_same_result(result, whole)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_file_that_may_not_grow_costs_no_result(path):
    """A true refusal by the system, in the middle of writing."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.warns(CheckpointWarning, match="File too large"):
            result = pw.ssnmf(X, 4, **FIT, checkpoint=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_same_result(result, pw.ssnmf(X, 4, **FIT))
    assert not os.listdir(path.parent)


def test_a_folder_that_goes_away_costs_no_result(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(iteration):
        if iteration.n_iter == 3:
            (folder / "fit.pw").unlink()
            folder.rmdir()

    with pytest.warns(CheckpointWarning, match="No such file"):
        result = pw.ssnmf(X, 4, **FIT, checkpoint=folder / "fit.pw", checkpoint_every=1, callback=remove)
    assert_same_result(result, pw.ssnmf(X, 4, **FIT))


def test_a_path_of_no_use_is_refused_before_any_work(path, tmp_path, monkeypatch):
    def never(iteration):
        raise AssertionError

    (tmp_path / "precious.npy").write_bytes(b"data")
    pw.SparseNMF(4, **FIT).fit(X).save(tmp_path / "model.pw")
    for bad, match in [
        (tmp_path, "exists and is not a checkpoint"),
        (tmp_path / "precious.npy", "exists and is not a checkpoint"),
        (tmp_path / "model.pw", "exists and is not a checkpoint"),
        (tmp_path / "nowhere" / "fit.pw", "cannot be written: No such file"),
        (tmp_path / "precious.npy" / "fit.pw", "cannot be written: Not a directory"),
        ("", "give the path of a file"),
        (3, "give the path of a file"),
    ]:
        with pytest.raises(ValueError, match=match):
            pw.ssnmf(X, 4, **FIT, checkpoint=bad, callback=never)
    monkeypatch.setattr(
        os, "mkdir", lambda *args, **more: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    with pytest.raises(ValueError, match="cannot be written: Permission denied"):
        pw.ssnmf(X, 4, **FIT, checkpoint=path, callback=never)


def test_models_and_checkpoints_are_told_apart(path, tmp_path):
    pw.ssnmf(X, 4, **FIT, checkpoint=path)
    with pytest.raises(UnreadableError, match="is a checkpoint, not a model: pass it as resume_from"):
        pw.load(path)
    pw.SparseNMF(4, **FIT).fit(X).save(tmp_path / "model.pw")
    with pytest.raises(UnreadableError, match="is not a checkpoint"):
        pw.ssnmf(X, 4, **FIT, resume_from=tmp_path / "model.pw")


def test_damaged_and_hostile_checkpoints(path):
    pw.ssnmf(X, 4, **FIT, checkpoint=path)
    original = path.read_bytes()
    header, arrays = read(path)
    header.pop("arrays")
    for data in (b"", original[:-1], original[:100], original.replace(b"losses", b"lasses")):
        path.write_bytes(data)
        with pytest.raises(UnreadableError):
            pw.ssnmf(X, 4, **FIT, resume_from=path)
    for change, other in [
        ({"fit": {"dict": {}}}, {}),
        ({"history": 3}, {}),
        ({"problem": {"dict": {"shape": [30, 40], "n_components": 5}}}, {}),
        ({"problem": {"value": "Problem", "fields": {"shape": {"tuple": [30, 40]}}}}, {}),
        ({"problem": {"value": "Popen", "fields": {"args": ["true"]}}}, {}),
        ({}, {"fit.factors.1": -arrays["fit.factors.1"]}),
        ({}, {"fit.factors.1": arrays["fit.factors.1"][:3]}),
        ({}, {"fit.grams.0": np.full((4, 3), np.nan)}),
        ({}, {"history.losses": np.ones((2, 2))}),
        ({"random": {"dict": {"before": 3, "after": 3}}}, {}),
    ]:
        write(path, header | change, arrays | other)
        with pytest.raises(ValueError, match=r"fit\.pw"):
            pw.ssnmf(X, 4, **FIT, resume_from=path)


# kill -9


def fit_in_child(path, fit, deadly=None):
    """Let another process go on from where the file is; whether it has died, at a moment that ``deadly`` names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's process may have threads; the child needs none
        child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    status = 1
    try:
        if deadly:
            setattr(os, deadly[0], mortal(*deadly))
        result = fit(checkpoint=path, checkpoint_every=1, resume_from=path if path.exists() else None)
        np.savez(path.with_suffix(".npz"), *result.factors, result.losses)
        status = 0
    finally:
        os._exit(status)


def mortal(name, after, count):
    """A call of the system that kills its process the count-th time, before or after it is done."""
    work, calls = getattr(os, name), []

    def call(*given):
        calls.append(given)
        if len(calls) == count and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = work(*given)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return call


@pytest.mark.parametrize("kind", ["in memory", "in chunks"])
def test_killed_at_any_moment_of_writing(path, kind):
    moments = [(name, after, count) for name in ("fsync", "replace") for after in (False, True) for count in (1, 4)]
    asked = {"n_components": 4, "sparsity": 0.5, "tol": 0, "random_state": 0, "max_iter": 5 * len(moments)}
    asked |= {"X": X} if kind == "in memory" else in_chunks(X, path)

    def fit(**options):
        return pw.ssnmf(**asked, **options)

    whole, done = fit(), 0
    for deadly in moments:
        assert fit_in_child(path, fit, deadly)
        if path.exists():  # and then it is a whole one, never older than the last
            steps = len(Resumed.read(path).history["losses"])
            assert steps >= done
            done = steps
    assert 5 < done < 5 * len(moments)
    assert not fit_in_child(path, fit)
    with np.load(path.with_suffix(".npz")) as found:
        for array, expected in zip(found.values(), (*whole.factors, whole.losses), strict=True):
            assert np.ascontiguousarray(array).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert not list(path.parent.glob(".*"))

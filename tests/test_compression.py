"""Compression: a fit begins on a low-rank X and ends on X; all that it reports is X's own."""

import os
import signal
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted, random_factors, stats_of, tolerance
from chunked import Watched

import partwise as pw
from partwise.data import LIMIT, DenseData, LowRank, as_data
from partwise.engine import compression
from partwise.engine.compression import compressed_iterations, low_rank
from partwise.engine.stopping import OWN
from partwise.recipes import initial
from partwise.recipes.many import fit_many
from partwise.runtime.compiled import clock
from partwise.statistics import gram

R = 4
FIT = {"n_components": R, "sparsity": 0.5, "init": "samples", "tol": 0, "max_iter": 60, "random_state": 0}


@pytest.fixture(autouse=True)
def small_data_too(monkeypatch):
    monkeypatch.setattr(compression, "SMALL", 0)
    monkeypatch.setattr(initial, "CHEAP_SPARSE", 0.5)


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng, n=130, m=90, r=R, noise=0.1).X


@pytest.fixture
def low(monkeypatch):
    """The low-rank matrices that are made."""
    made = []
    init = LowRank.__init__
    monkeypatch.setattr(LowRank, "__init__", lambda self, *args: made.append(self) or init(self, *args))
    return made


def twenty(X):
    """The memory limit for 20 samples per chunk: 130 samples are seven chunks. C, of 130 × 8, fits as well."""
    return 4 * 20 * X.shape[1] * X.itemsize


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (1, 7), (7, 1), (1500, 8), (8, 1500)])
@pytest.mark.parametrize("form", [np.asfortranarray, np.ascontiguousarray])
def test_a_low_rank_matrix_is_the_dense_product(form, shape, dtype, rng):
    left, right = (form(rng.standard_normal((rows, 5)).astype(dtype)) for rows in shape)
    data, X = LowRank(left, right), left.astype(float) @ right.T.astype(float)
    whole, tol, big = DenseData(X, check=False), 20 * tolerance(dtype), np.abs(X).max() * max(shape)
    factors = random_factors(shape, 3, rng, dtype)
    assert (data.shape, data.dtype, data.size) == (shape, dtype, 5 * sum(shape))
    assert data.squared_error(factors) == pytest.approx(whole.squared_error(factors), rel=tol)
    np.testing.assert_allclose(np.vstack([*data.pieces()]), X, atol=tol * big)
    np.testing.assert_allclose(data.subset(np.array([0])).matrix, X[:1], atol=tol * big)
    for mode, along in enumerate((X, X.T)):
        stats, wanted = data.statistics(factors, [gram(f) for f in factors], mode), stats_of(X, factors, mode)
        assert stats.cross.dtype == dtype
        assert stats.cross.flags.f_contiguous
        np.testing.assert_allclose(stats.cross, wanted.cross, atol=tol * big)
        assert stats.sqnorm == data.sqnorm == pytest.approx(wanted.sqnorm, rel=tol)
        np.testing.assert_allclose(data.sqnorms(mode), np.sum(along**2, axis=1), rtol=tol)
        which = np.array([along.shape[0] - 1, 0])
        np.testing.assert_allclose(data.vectors(mode, which), along[which].T, atol=tol * big)
        v = rng.random(along.shape[1])
        np.testing.assert_allclose(data.times(v, mode), along @ v, atol=tol * big)
        found, true = (d.row_errors(factors, s, mode) for d, s in ((data, stats), (whole, wanted)))
        np.testing.assert_allclose(found, true, atol=tol * big**2)
        found, true = (d.slice_residual(factors, mode, 0)([], mode) for d in (data, whole))
        np.testing.assert_allclose(found, true, atol=tol * big)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_x_is_projected(dtype, scale, rng, X):
    data = as_data((scale * X).astype(dtype))
    found = low_rank(data, R, LIMIT)
    projected = found.matrix[:].astype(float)
    left = data.matrix - projected
    values = np.linalg.svd(data.matrix, compute_uv=False)
    best, all_of_it = np.sum(values[2 * R :] ** 2), data.sqnorm
    assert best <= np.vdot(left, left) * (1 + 1e-4) <= 1.2 * best
    assert abs(np.vdot(left, projected)) <= 1e-5 * all_of_it  # it is a projection
    again = low_rank(as_data((scale * X).astype(dtype)), R, LIMIT)
    np.testing.assert_array_equal(again.left, found.left)
    np.testing.assert_array_equal(again.right, found.right)


def test_chunks_give_the_same_low_rank_matrix(X):
    """To the rounding of sums over chunks, relative to the smallest direction that is kept."""
    stored = Watched(X)
    data = as_data(stored, twenty(X))
    found = low_rank(data, R, LIMIT)
    assert (stored.times() == 2).all()  # the survey is part of the first pass
    assert data.passes == 2
    assert data.sqnorm == pytest.approx(np.vdot(X, X))
    assert (stored.times() == 2).all()
    np.testing.assert_allclose(found.matrix[:], low_rank(as_data(X), R, LIMIT).matrix[:], atol=1e-11)


def test_bad_values_are_found_in_the_first_pass(X):
    X[77, 5] = np.nan
    with pytest.raises(ValueError, match=r"chunk 3 .*NaN, first at row 77, column 5"):
        pw.ssnmf(Watched(X), memory_limit=twenty(X), **FIT)


ASKED = {
    "sparsity": {},
    "none": {"sparsity": None},
    "an interval": {"sparsity": (0.3, 0.6)},
    "activations": {"sparsity": None, "activation_sparsity": 0.4},
    "auto": {"init": "auto", "sparsity": 0.8},
    "random": {"init": "random"},
    "gradual": {"init": "gradual"},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_recorded_is_of_x_itself(asked, dtype, X, low):
    seen = []

    def check(it):
        A, C = it.factors
        seen.append(it.n_iter)
        tol = 1e-9 if dtype == np.float64 else 1e-3
        assert it.loss == pytest.approx(0.5 * np.sum((X - A @ C.T) ** 2), rel=tol)
        assert min(A.min(), C.min()) >= 0

    result = pw.ssnmf(X.astype(dtype), **FIT | ASKED[asked], callback=check)
    assert low
    assert result.n_iter == 60
    assert seen == [*range(61 - len(result.losses), 61)]
    assert OWN < len(result.losses) <= 61 - OWN
    assert len(result.times) == len(result.losses)
    assert np.diff(result.losses).max() <= tolerance(dtype) / 10 * np.vdot(X, X)
    assert np.diff(result.times).min() >= 0
    levels = {"sparsity": 0.5, "random": 0.5, "gradual": 0.5, "auto": 0.8}
    if asked in levels:
        np.testing.assert_allclose(result.sparsity, levels[asked], atol=1e-10 if dtype == np.float64 else 1e-5)
    again = pw.ssnmf(X.astype(dtype), **FIT | ASKED[asked])
    np.testing.assert_array_equal(again.components, result.components)
    np.testing.assert_array_equal(again.losses, result.losses)


@pytest.mark.parametrize("seed", range(3))
def test_it_ends_as_low(seed, X, low):
    asked = FIT | {"sparsity": None, "random_state": seed, "max_iter": 200}
    ours, plain = pw.ssnmf(X, **asked), pw.ssnmf(X, **asked, compress=False)
    assert low
    assert len(plain.losses) == 201
    assert ours.losses[-1] <= 1.001 * plain.losses[-1]


@pytest.mark.parametrize("asked", ["sparsity", "none", "auto"])
def test_chunks_agree_with_memory(asked, X, low, monkeypatch):
    """To 1e-7: the low-rank matrices differ by rounding, which 40 iterations amplify."""
    monkeypatch.setattr(compression, "READING", 0)  # else there are fewer compressed iterations in memory
    memory = pw.ssnmf(X, **FIT | ASKED[asked])
    stored, passes = Watched(X), []
    chunks = pw.ssnmf(
        stored, memory_limit=twenty(X), **FIT | ASKED[asked], callback=lambda it: passes.append(it.passes)
    )
    assert len(low) == 2
    assert chunks.n_iter == memory.n_iter
    np.testing.assert_allclose(chunks.losses, memory.losses, rtol=1e-7)
    np.testing.assert_allclose(chunks.components, memory.components, atol=1e-7)
    np.testing.assert_allclose(chunks.activations, memory.activations, atol=1e-6)
    assert passes[0] == 3  # two for the low-rank X, one for the first loss
    assert passes == sorted(passes)


@pytest.mark.parametrize("client", [False, True])
def test_dask_agrees_with_chunks(client, X, low):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    stored, seen = Watched(X), []
    wanted = pw.ssnmf(stored, memory_limit=twenty(X), **FIT)
    workers = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.Client(**workers) if client else nullcontext():
        given = da.from_array(X, chunks=(20, -1))
        result = pw.ssnmf(given, **FIT, callback=lambda it: seen.append(it.passes))
        activations = result.activations.compute()
    assert len(low) == 2
    assert result.n_iter == wanted.n_iter
    assert seen[0] <= 4  # one more for the advice on sparsity, which reads some samples
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-7)
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-7)
    np.testing.assert_allclose(activations, wanted.activations, atol=1e-6)


def test_sparse_chunks_are_left_alone(X, low):
    da = pytest.importorskip("dask.array")
    given = da.from_array(X, chunks=(20, -1)).map_blocks(sp.csr_array, dtype=X.dtype, meta=sp.csr_array((0, 0)))
    result = pw.ssnmf(given, **FIT)
    assert not low
    assert len(result.losses) == 61


OFF = {
    "not asked": lambda X: {"compress": False},
    "plain": lambda X: {"accelerate": False},
    "another solver": lambda X: {"solver": "pivot"},
    "faithful": lambda X: {"faithful": True},
    "residual": lambda X: {"kkt_tol": 1e-9},
    "penalised": lambda X: {"l1": 0.1},
    "own start": lambda X: {"init": (np.ones((len(X), R)), X[:R])},
    "nndsvd": lambda X: {"init": "nndsvd"},
    "sparse": lambda X: {"X": sp.csr_array(X)},
    "missing": lambda X: {"X": np.where(np.quantile(X, 0.99) < X, np.nan, X), "missing": "em"},
    "few iterations": lambda X: {"max_iter": 2 * OWN - 1},
    "one component": lambda X: {"n_components": 1},
    "many components": lambda X: {"n_components": 40},
    "noise": lambda X: {"X": np.random.default_rng(0).random((400, 300))},
    "zeros": lambda X: {"X": np.zeros_like(X), "sparsity": None},
    "tiny": lambda X: {"X": X[:3, :4], "n_components": 2},
    "one sample": lambda X: {"X": X[:1], "n_components": 1},
    "no memory": lambda X: {"X": Watched(X), "memory_limit": twenty(X) // 5},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OFF)
def test_where_it_is_off(name, X, low):
    asked = {"X": X, **FIT, **OFF[name](X)}
    result = pw.ssnmf(**asked)
    assert not low
    assert len(result.losses) == result.n_iter + 1
    plain = pw.ssnmf(**asked | {"compress": False})
    np.testing.assert_array_equal(plain.components, result.components)


def test_it_needs_enough_work(monkeypatch):
    monkeypatch.undo()
    assert compressed_iterations((256, 220), 17, (4, 4), 1000, False) == 0
    assert compressed_iterations((1000, 500), 10, (4, 4), 1000, False) == 0
    assert compressed_iterations((400, 10304), 25, (4, 4), 1000, False) > 2 * OWN
    assert compressed_iterations((750_000, 2000), 20, (4, 4), 1000, True) == compression.MOST
    assert compressed_iterations((750_000, 2000), 20, (4, 4), 25, True) == 25 - OWN
    assert compressed_iterations((400, 10304), 25, (4, 4), 1000, False, compression.CHEAP_SPARSE) == 0
    assert compressed_iterations((750_000, 2000), 20, (4, 4), 1000, True, compression.CHEAP_SPARSE) == compression.MOST
    assert [compressed_iterations((750_000, 120), 20, (3, 4), 1000, c) > 0 for c in (False, True)] == [False, True]


@pytest.mark.parametrize("value", ["always", 2, None, [True]])
def test_other_values_are_refused(X, value):
    with pytest.raises(ValueError, match=r"compress=.*: give 'auto' or False"):
        pw.ssnmf(X, 3, compress=value)


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_more_components_than_the_rank(rng, low):
    X = rng.random((130, 3)) @ rng.random((3, 90))
    result = pw.ssnmf(X, 5, tol=0, max_iter=60, random_state=0, init="samples")
    assert low
    assert np.isfinite(result.components).all()
    assert result.relative_error < 0.05


def test_known_components_stay(X, low):
    known = X[:2] / np.linalg.norm(X[:2], axis=1, keepdims=True)
    result = pw.ssnmf(X, **FIT, fixed_components=known)
    assert low
    np.testing.assert_array_equal(result.components[:2], known)


def test_a_tolerance_applies_to_iterations_on_x(X, low):
    result = pw.ssnmf(X, **FIT | {"tol": 0.9, "max_iter": 300})
    assert low
    assert result.converged
    assert len(result.losses) > OWN


@pytest.mark.parametrize("chunks", [False, True])
def test_ctrl_c_on_the_low_rank_matrix_keeps_a_result(chunks, X, monkeypatch):
    multiply, calls = LowRank.multiply, []

    def interrupting(self, *args):
        calls.append(1)
        if len(calls) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        multiply(self, *args)

    monkeypatch.setattr(LowRank, "multiply", interrupting)
    given = {"X": Watched(X), "memory_limit": twenty(X)} if chunks else {"X": X}
    result = pw.ssnmf(**given, **FIT)
    assert 20 <= len(calls) < 30
    assert f"interrupted after iteration {result.n_iter}" in result.stop_reason
    assert len(result.losses) == 2  # one iteration on X
    assert result.n_iter < 15
    A, C = result.activations, result.components
    assert result.losses[-1] == pytest.approx(0.5 * np.sum((X - A @ C) ** 2))
    np.testing.assert_allclose(result.sparsity, 0.5, atol=1e-10)


def test_half_of_the_time_is_for_x(X, monkeypatch):
    """A slow clock: ten seconds for each product with the low-rank matrix."""
    multiply, extra = LowRank.multiply, [0.0]

    def slowly(self, *args):
        extra[0] += 10
        multiply(self, *args)

    monkeypatch.setattr(LowRank, "multiply", slowly)
    for module in ("engine.loop", "engine.stopping", "recipes.initial", "recipes.task"):
        monkeypatch.setattr(f"partwise.{module}.clock", lambda: clock() + extra[0])
    result = pw.ssnmf(X, **FIT | {"max_time": 200})
    compressed = result.n_iter + 1 - len(result.losses)
    assert 3 <= compressed <= 6  # 100 seconds
    assert result.n_iter == 60
    assert result.times[0] >= 100


@pytest.mark.parametrize("chunks", [False, True])
def test_resumed_fits_are_the_same_bit_for_bit(chunks, X, tmp_path, low):
    np.save(tmp_path / "x.npy", X)
    given = {"X": tmp_path / "x.npy", "memory_limit": twenty(X)} if chunks else {"X": X}
    given |= FIT | {"checkpoint": tmp_path / "fit.pw", "checkpoint_every": 1}
    whole = pw.ssnmf(**given | {"checkpoint": None})
    first = len(low)
    stopped = pw.ssnmf(**given, callback=lambda it: it.n_iter == 47)
    assert stopped.n_iter == 47
    assert len(low) == 2 * first
    result = pw.ssnmf(**given, resume_from=tmp_path / "fit.pw")
    assert len(low) == 2 * first  # it is not made again
    assert result.n_iter == whole.n_iter
    for name in ("components", "activations", "losses"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name))


def test_estimator(X, low):
    model = pw.SparseNMF(R, sparsity=0.5, random_state=0).fit(X)
    assert low
    assert model.n_iter_ >= len(model.loss_curve_)
    assert model.reconstruction_err_ == pytest.approx(
        np.linalg.norm(X - model.transform(X) @ model.components_), rel=1e-6
    )
    low.clear()
    pw.SparseNMF(R, sparsity=0.5, random_state=0, compress=False).fit(X)
    assert not low


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_fits_side_by_side_share_the_low_rank_matrix_and_all_passes(sparsity, X, low):
    asked = {"sparsity": sparsity, "memory_limit": twenty(X), "init": "auto", "max_iter": 40, "tol": 0}
    runs = [{"n_components": R, "random_state": seed} for seed in range(4)]
    passes = []
    for run in runs:
        one = Watched(X)
        alone = [pw.ssnmf(one, **run, **asked)]
        passes.append(len(one.read))
    low.clear()
    many = Watched(X)
    found = fit_many(many, runs, **asked)
    assert len(low) == 1
    reads = 7 * (len(runs) - 1) if sparsity else 0  # each start has its excerpt, here all of X
    assert len(many.read) <= max(passes) + reads
    np.testing.assert_allclose(found[-1].components, alone[0].components, atol=1e-8)


def test_fits_of_different_ranks_share_all_passes_on_x(X, low):
    asked = {"memory_limit": twenty(X), "max_iter": 40, "tol": 0, "random_state": 0}
    one = Watched(X)
    pw.ssnmf(one, R, **asked)
    many = Watched(X)
    fit_many(many, [{"n_components": r} for r in (R - 1, R, R + 1)], **asked)
    assert len(low) == 4
    assert len(many.read) <= len(one.read) + 2 * 2 * 7 + 5 * 7  # two sketches each; iterations that are undone

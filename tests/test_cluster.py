"""Dask arrays: the fit equals the one in memory, and computes no more than necessary."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import RECIPES, one_at_a_time, planted
from clusters import (  # noqa: F401  (fixtures)
    CHUNKS,
    FORMS,
    SHORT,
    assert_nothing_is_left,
    assert_same,
    assert_same_model,
    by_value,
    chunked,
    counted,
    da,
    dask,
    distributed,
    eventually,
    fresh,
    own_scheduler,
    small,
    tasks,
)

import partwise as pw
from partwise.projections import Hoyer

by_value(sys.modules[__name__])

SPARSITIES = {"free": None, "one": 0.6, "interval": (0.4, 0.7), "each": [0.3, (0.2, 0.5), None, (0.5, None)]}


# On threads of this process


@one_at_a_time(form=FORMS, sparsity=SPARSITIES)
def test_a_fit_in_chunks_is_the_fit_in_memory(sparsity, form, X):
    options = {**SHORT, "sparsity": SPARSITIES[sparsity]}
    result = pw.ssnmf(chunked(X, FORMS[form]), 4, **options)
    assert_same(result, pw.ssnmf(FORMS[form](X), 4, **options))
    assert result.activations.chunks == (CHUNKS[0], (4,))
    assert repr(result).startswith("Result(150 × 24, 4 components")


def test_the_scheduler_changes_nothing(scheduler, X):
    options = {**SHORT, "sparsity": SPARSITIES["each"]}
    result, wanted = (pw.ssnmf(data, 4, **options) for data in (chunked(X), X))
    assert_same(result, wanted)


@pytest.mark.parametrize("name", [None, "processes"])
def test_without_a_client_everything_runs_in_this_process(name, X):
    given, seen = counted(X)
    with dask.config.set(scheduler=name):
        result = pw.ssnmf(given, 4, **SHORT)
    assert seen
    assert_same(result, pw.ssnmf(X, 4, **SHORT))


@one_at_a_time(dtype=[np.float32, np.float16, np.int64, bool], form=["dense", "CSR matrix"])
def test_dtypes_are_handled_as_in_memory(dtype, form, X):
    X = (10 * X).astype(dtype)
    options = {"max_iter": 4, "tol": 0, "random_state": 0, "sparsity": 0.5}
    result, wanted = pw.ssnmf(chunked(X, FORMS[form]), 4, **options), pw.ssnmf(FORMS[form](X), 4, **options)
    assert_same(result, wanted, tol=1e-4 if dtype is np.float32 else 1e-8)
    assert result.components.dtype == (np.float32 if dtype is np.float32 else np.float64)


@pytest.mark.parametrize("size", [70, 69, 7, 1])  # one chunk, and a tree of one, two and three levels
def test_the_chunks_change_nothing(size, X):
    X, options = X[:70], {"sparsity": 0.5, "max_iter": 3, "tol": 0, "random_state": 0}
    assert_same(pw.ssnmf(chunked(X, chunks=(size, 24)), 4, **options), pw.ssnmf(X, 4, **options))


@pytest.mark.parametrize("name", [name for name in RECIPES if not RECIPES[name].divergence])  # test_divergence.py
def test_every_recipe_equals_the_fit_in_memory_or_raises(name, rng):
    X, r = planted(rng, n=40, m=20, r=3)
    wanted = RECIPES[name](X, r, max_iter=4, tol=0)
    try:
        result = RECIPES[name](chunked(X, chunks=((13, 20, 7), 20)), r, max_iter=4, tol=0)
    except ValueError as error:
        assert "load X into memory" in str(error)  # noqa: PT017
        asked = {"activation_sparsity", "side", "theta", "middle"} & set(RECIPES[name].options)
        assert asked, "the plain methods treat samples one by one"
    else:
        assert_same(result, wanted, tol=1e-2 if name.startswith("tpc") else 1e-8)  # cones are solved to a tolerance


@pytest.mark.parametrize(
    "options",
    [
        {"init": "random"},
        {"solver": "multiplicative"},
        {"solver": "greedy"},
        {"solver": "pivot", "sparsity": 0.5},
        {"l1": 0.1, "l2": (0.2, 0), "sparsity": 0.5},
        {"faithful": True, "sparsity": 0.5},
    ],
    ids=str,
)
def test_options_work_as_in_memory(options, X):
    assert_same(pw.ssnmf(chunked(X), 4, **SHORT, **options), pw.ssnmf(X, 4, **SHORT, **options))


@pytest.mark.parametrize("options", [{"tol": 1e-3}, {"tol": 0, "kkt_tol": 0.02}], ids=str)
def test_stops_at_the_same_iteration_as_in_memory(options, X):
    options = {"sparsity": 0.5, "random_state": 0, "max_iter": 300, **options}
    result, wanted = pw.ssnmf(chunked(X), 4, **options), pw.ssnmf(X, 4, **options)
    assert wanted.converged
    assert 3 < wanted.n_iter < 300
    assert_same(result, wanted)


def test_a_start_can_be_given(X, rng):
    init = (rng.random((150, 4)), rng.random((4, 24)))
    before = [f.copy() for f in init]
    wanted = pw.ssnmf(X, 4, init=init, **SHORT)
    assert_same(pw.ssnmf(chunked(X), 4, init=init, **SHORT), wanted)
    assert not np.allclose(wanted.components, pw.ssnmf(X, 4, **SHORT).components, atol=1e-3)
    for given, copy in zip(init, before, strict=True):
        np.testing.assert_array_equal(given, copy)


def test_stuck_components_restart_as_in_memory(X, rng):
    """Components 1 and 3 use only features that are zero in all of X."""
    X[:, :8] = 0
    parts = np.array([Hoyer(0.7)(rng.random(24)) for _ in range(4)])
    for j in (1, 3):
        parts[j] = Hoyer(0.7)(np.where(np.arange(24) < 8, rng.random(24), -10.0))
    options = {**SHORT, "sparsity": 0.7, "init": (rng.random((150, 4)), parts)}
    wanted = pw.ssnmf(X, 4, **options)
    assert wanted.components[[1, 3], 8:].max(axis=1).all()
    assert_same(pw.ssnmf(chunked(X), 4, **options), wanted)
    assert_same(pw.ssnmf(chunked(X, sp.csr_matrix), 4, **options), pw.ssnmf(sp.csr_matrix(X), 4, **options))


def test_zero_activations_restart_as_in_memory(X, rng):
    activations = rng.random((150, 5))
    activations[:, [0, 4]] = 0
    options = {**SHORT, "solver": "multiplicative", "init": (activations, rng.random((5, 24)))}
    wanted = pw.ssnmf(X, 5, **options)
    assert wanted.activations.max(axis=0).all()
    assert_same(pw.ssnmf(chunked(X), 5, **options), wanted)


def test_callbacks_get_the_same_values(X):
    told = {"memory": [], "chunks": []}
    for name, data in (("memory", X), ("chunks", chunked(X))):
        pw.ssnmf(
            data,
            4,
            **SHORT,
            callback=lambda it, name=name: told[name].append(
                (it.n_iter, it.max_iter, it.loss, it.relative_error, *it.factors[1].ravel())
            ),
        )
    assert len(told["memory"]) == 7
    np.testing.assert_allclose(told["chunks"], told["memory"], rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:reached max_iter")
@one_at_a_time(sparsity=SPARSITIES, form=FORMS)
def test_estimator_equals_the_one_in_memory(sparsity, form, X):
    model = pw.SparseNMF(4, sparsity=SPARSITIES[sparsity], max_iter=5, random_state=0)
    wanted = pw.SparseNMF(**model.get_params())
    kept, given = wanted.fit_transform(FORMS[form](X)), chunked(X, FORMS[form])
    activations = model.fit_transform(given)
    assert_same_model(model, wanted)
    assert isinstance(activations, da.Array)
    np.testing.assert_allclose(activations.compute(), kept, atol=1e-8)
    np.testing.assert_allclose(model.transform(given).compute(), kept, atol=1e-8)
    assert model.score(given) == pytest.approx(wanted.score(X), abs=1e-8)
    again = pw.SparseNMF(**model.get_params()).fit(given)
    np.testing.assert_array_equal(again.components_, model.components_)


@pytest.mark.filterwarnings("ignore:reached max_iter")
@pytest.mark.parametrize("precision", [float, np.float32])
def test_error_of_a_perfect_fit_as_in_memory(precision, rng):
    """If the statistics cancel, the error is computed from the residual."""
    X = (rng.random((150, 2)) @ rng.random((2, 24))).astype(precision)
    options = {"n_components": 2, "max_iter": 60, "random_state": 0}
    for data in (X, chunked(X)):
        model = pw.SparseNMF(**options).fit(data)
        direct = np.linalg.norm(X - model.transform(X).astype(float) @ model.components_)
        assert model.reconstruction_err_ == pytest.approx(direct, rel=1e-2)
        assert direct < 1e-2 * np.linalg.norm(X)


def test_transform_takes_arrays_and_chunks(X, rng):
    new = planted(rng, n=31, m=24, r=4).X
    for data in (X, chunked(X)):
        model = pw.SparseNMF(4, sparsity=0.5, random_state=0, tol=1e-2).fit(data)
        activations = model.transform(chunked(new, chunks=((20, 11), 24)))
        assert activations.chunks == ((20, 11), (4,))
        np.testing.assert_allclose(activations.compute(), model.transform(new), atol=1e-12)
        assert model.score(chunked(new, chunks=(5, 24))) == pytest.approx(model.score(new), abs=1e-12)
        np.testing.assert_allclose(model.inverse_transform(activations), model.transform(new) @ model.components_)


def test_transform_is_lazy(scheduler, X):
    given, seen = counted(X)
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(X)
    activations = model.transform(given)
    assert isinstance(activations, da.Array)
    assert activations.shape == (150, 4)
    assert not seen
    np.testing.assert_allclose(activations[:45].compute(), model.transform(X)[:45], atol=1e-12)
    assert sorted(seen) == [0, 1]
    activations.compute()
    assert sorted(seen) == sorted([0, 1, *range(6)])


def test_activations_of_a_fit_are_lazy(X):
    given, seen = counted(X)
    activations = pw.SparseNMF(4, random_state=0, tol=1e-2).fit_transform(given)
    before = len(seen)
    activations[-1].compute()
    assert seen[before:] == [5]


def test_activations_of_a_recipe_are_computed(X):
    given, seen = counted(X)
    result = pw.ssnmf(given, 4, **SHORT)
    before = len(seen)
    result.activations.compute()
    assert len(seen) == before


@pytest.mark.parametrize("passes", [3, 9])
def test_each_iteration_is_one_pass(passes, X):
    def computed(iterations):
        given, seen = counted(X)
        pw.ssnmf(given, 4, max_iter=iterations, tol=0, random_state=0, accelerate=False)
        return len(seen)

    assert computed(1 + passes) - computed(1) == 6 * passes


@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_a_seed_gives_the_same_bits(scheduler, X):
    fits = [pw.SparseNMF(4, max_iter=5, n_init=2, random_state=7).fit(chunked(X)) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    np.testing.assert_array_equal(fits[0].loss_curve_, fits[1].loss_curve_)


@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_the_best_of_several_starts_is_the_one_in_memory(X):
    options = {"n_components": 4, "max_iter": 5, "n_init": 3, "init": "random", "random_state": 0}
    wanted = pw.SparseNMF(**options).fit(X)
    assert wanted.loss_curve_[-1] < pw.SparseNMF(**options | {"n_init": 1}).fit(X).loss_curve_[-1]
    assert_same_model(pw.SparseNMF(**options).fit(chunked(X)), wanted)


def test_a_client_in_this_process_keeps_the_chunks_and_gives_the_fit_in_memory(X):
    """Its workers have no memory limit. For workers in other processes, see test_cluster_processes.py."""
    seen = []
    with (
        distributed.LocalCluster(2, processes=False, memory_limit=None, dashboard_address=":0") as found,
        distributed.Client(found) as client,
    ):

        def look(iteration):
            eventually(lambda: tasks(client)[1] == 6)
            seen.append(tasks(client)[1])

        result = pw.ssnmf(chunked(X), 4, sparsity=0.5, callback=look, **SHORT | {"max_iter": 2})
        assert_same(result, pw.ssnmf(X, 4, sparsity=0.5, **SHORT | {"max_iter": 2}))
        del result
        assert_nothing_is_left(client)
    assert seen == [6] * 3


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation_sparsity": 0.4}, "set the sparsity of the components instead"),
        ({"init": "nndsvd"}, "use 'samples' or 'random'"),
        ({"init": "gradual", "sparsity": 0.5}, "use 'samples' or 'random'"),
        ({"solver": "gradient"}, "use ssnmf with solver="),
    ],
    ids=str,
)
def test_methods_that_couple_samples_are_rejected_before_computing(options, message, X):
    given, seen = counted(X)
    with pytest.raises(ValueError, match=message) as caught:
        pw.ssnmf(given, 4, **options)
    assert "memory" in str(caught.value)
    assert not seen


@pytest.mark.parametrize(
    "options",
    [
        {"activation_sparsity": 0.4},
        {"activation_sparsity": 0.4, "sparsity": 0.5},
        {"recipe": "bisparse", "activation_sparsity": 0.4, "sparsity": 0.5},
        {"recipe": "nsnmf"},
        {"recipe": "nsnmf", "loss": "kl"},
        {"init": "nndsvd"},
        {"init": "gradual"},
    ],
    ids=str,
)
def test_estimator_rejects_methods_that_couple_samples(options, X):
    given, seen = counted(X)
    with pytest.raises(ValueError, match=r"X into memory|X in memory"):
        pw.SparseNMF(4, **options).fit(given)
    assert not seen


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[X[:, 0] > 0.1], r"unknown size: call X.compute_chunk_sizes\(\)"),
        (lambda X: X.rechunk(((40, 0, 110), 24)), "chunk 1 of X is empty"),
        (lambda X: X[:, 0], "1D|shape"),
        (lambda X: X[None], "dim 3|shape"),
        (lambda X: X[:0], r"shape \(0, 24\)"),
        (lambda X: X[:, :0], r"shape \(150, 0\)"),
        (lambda X: X.astype(complex), "Complex data not supported"),
    ],
    ids=["unknown", "empty chunk", "1-D", "3-D", "no samples", "no features", "complex"],
)
def test_arrays_that_are_not_chunked_matrices_are_rejected(spoil, message, X):
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(spoil(chunked(X)), 4)
    with pytest.raises(ValueError, match=message):
        pw.SparseNMF(4).fit(spoil(chunked(X)))


def test_computed_chunk_sizes_are_accepted(X):
    some = X[:, 1] > np.median(X[:, 1])
    given = chunked(X, chunks=(30, 24))[da.from_array(some, chunks=30)].compute_chunk_sizes()
    assert_same(pw.ssnmf(given, 4, **SHORT), pw.ssnmf(X[some], 4, **SHORT))


@pytest.mark.parametrize("form", ["dense", "CSR matrix"])
def test_chunks_of_features_are_merged_with_a_warning(form, X):
    given = chunked(X, FORMS[form], chunks=(50, 7))
    with pytest.warns(UserWarning, match="4 chunks along its features"):
        result = pw.ssnmf(given, 4, sparsity=0.5, **SHORT)
    assert_same(result, pw.ssnmf(FORMS[form](X), 4, sparsity=0.5, **SHORT))


def test_another_number_of_features_is_refused(X):
    model = pw.SparseNMF(4, random_state=0, tol=1e-2).fit(chunked(X))
    assert model.n_features_in_ == 24
    with pytest.raises(ValueError, match="X has 10 features, but SparseNMF is expecting 24"):
        model.transform(chunked(X)[:, :10])


# Without Dask, or without a part of it


@pytest.mark.slow
def test_dask_is_imported_only_when_needed():
    code = """
import sys
import numpy as np, partwise
model = partwise.SparseNMF(2, random_state=0, tol=1e-2)
assert not {"dask", "distributed"} & set(sys.modules)
sys.modules["dask"] = sys.modules["distributed"] = None
print(len(model.fit(np.random.default_rng(0).random((9, 8))).components_))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.stdout.split(), done.stderr) == (["2"], "")


def test_threads_are_used_without_distributed(monkeypatch, X):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr("dask.base._DISTRIBUTED_AVAILABLE", False)  # Dask caches whether it is installed
    given, seen = counted(X)
    assert_same(pw.ssnmf(given, 4, **SHORT), pw.ssnmf(X, 4, **SHORT))
    assert seen

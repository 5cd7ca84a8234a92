"""A fit of X in chunks equals the fit in memory, including dead components."""

import numpy as np
import pytest
from catalogues import PROBLEMS, Recipe, one_at_a_time
from chunked import ALL, BOUND, CHUNKED, FEW, R, Watched, deadly, seven, small, spied  # noqa: F401  (fixtures)
from stores import Rows, assert_same

import partwise as pw
from partwise.data import StoredData, as_data
from partwise.engine import starts as start
from partwise.statistics import dead_components, gram

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


# The same fit


@pytest.mark.parametrize("name", CHUNKED)
def test_every_chunked_recipe_gives_the_fit_in_memory(X, name):
    recipe = ALL[name]
    assert isinstance(as_data(Rows(X), seven(X)), StoredData)
    cone = recipe.name == "tpc"  # solved to a tolerance only
    limits = {"max_iter": 3 if cone else 8, "tol": 0}
    result, wanted = recipe(Rows(X), R, memory_limit=seven(X), **limits), recipe(X, R, **limits)
    assert_same(result, wanted, 1e-4 if cone else 1e-8)
    assert (result.encoder, result.middle) == (wanted.encoder, None)


@pytest.mark.parametrize("name", BOUND)
def test_other_recipes_raise_for_chunks_and_accept_data_that_fits_in_memory(X, name):
    recipe = ALL[name]
    with pytest.raises(ValueError, match=BOUND[name]):
        recipe(Rows(X), R, memory_limit=seven(X), max_iter=2)
    result, wanted = recipe(Rows(X), R, memory_limit=X.nbytes, max_iter=2, tol=0), recipe(X, R, max_iter=2, tol=0)
    np.testing.assert_array_equal(result.components, wanted.components)


@one_at_a_time(
    problem=[p for p in PROBLEMS if p != "tiny"], name=["ssnmf", "ssnmf, free", "ssnmf, multiplicative", "nmfsc"]
)
def test_every_problem_gives_the_fit_in_memory(problem, name):
    X, r = problem
    limits = {"max_iter": 15, "tol": 0}
    result, wanted = ALL[name](Rows(X), r, memory_limit=4 * X[0].nbytes, **limits), ALL[name](X, r, **limits)
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-8, atol=1e-10 * np.vdot(X, X))
    if wanted.relative_error > 1e-6:  # a perfect fit is not the only one
        assert_same(result, wanted)


@pytest.mark.parametrize("name", [name for name in FEW if ALL[name].name != "tpc"])  # cones: not the same program
def test_single_precision(X, name):
    X = X.astype(np.float32)
    limits = {"max_iter": 4, "tol": 0}
    result, wanted = ALL[name](Rows(X), R, memory_limit=seven(X) // 2, **limits), ALL[name](X, R, **limits)
    assert result.activations.dtype == result.components.dtype == np.float32
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-4)
    np.testing.assert_allclose(result.components, wanted.components, atol=1e-4)
    np.testing.assert_allclose(result.activations, wanted.activations, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["ssnmf", "ssnmf, pivot", "nmfsc", "l0, forward", "ssnmf, penalised"])
def test_given_factors_are_the_start(X, name, rng):
    init = rng.random((61, R)), rng.random((R, 20))
    before = [f.copy() for f in init]
    limits = {"init": init, "max_iter": 8, "tol": 0}
    assert_same(ALL[name](Rows(X), R, memory_limit=seven(X), **limits), ALL[name](X, R, **limits))
    for given, kept in zip(init, before, strict=True):
        np.testing.assert_array_equal(given, kept)


@pytest.mark.parametrize("n", [20, 61])  # of which 8 are looked at: in memory, either in place or taken out
def test_start_uses_the_same_samples(X, n, monkeypatch):
    monkeypatch.setattr(start, "CANDIDATE_ENTRIES", 0)
    limits = {"max_iter": 5, "tol": 0}
    X = X[:n]
    stored = Watched(X)
    result = ALL["ssnmf, free"](stored, R, memory_limit=4 * X[0].nbytes, **limits)
    assert_same(result, ALL["ssnmf, free"](X, R, **limits))
    assert np.count_nonzero(stored.times() == stored.times().max()) == 2 * R


@one_at_a_time(tol=[1e-2, 1e-4], name=["ssnmf", "nmfsc", "snmf"])
def test_tol_is_met_at_the_same_iteration(X, name, tol):
    result = ALL[name](Rows(X), R, memory_limit=seven(X), tol=tol)
    assert result.converged
    assert_same(result, ALL[name](X, R, tol=tol))


@pytest.mark.parametrize("name", ["ssnmf", "ssnmf, pivot", "ssnmf, penalised", "snmf", "nmfsc, free", "l0, sequential"])
def test_kkt_tol_is_met_at_the_same_iteration(X, name):
    limits = {"tol": 0, "kkt_tol": 0.02, "max_iter": 500}
    result = ALL[name](Rows(X), R, memory_limit=seven(X), **limits)
    assert "kkt_tol=0.02" in result.stop_reason
    assert result.n_iter > 1
    assert_same(result, ALL[name](X, R, **limits), 1e-7)


def test_error_of_a_perfect_fit_comes_from_the_residual(rng):
    X = rng.random((60, 3)) @ rng.random((3, 20))
    stored = Watched(X)
    result = pw.ssnmf(stored, 3, solver="pivot", memory_limit=seven(X), max_iter=400, tol=0, random_state=0)
    direct = np.linalg.norm(X - result.activations @ result.components) / np.linalg.norm(X)
    assert direct < 1e-5
    assert result.relative_error == pytest.approx(direct, rel=1e-6)


def test_an_X_of_zeros(rng):  # noqa: N802
    X = np.zeros((61, 20))
    for sparsity in (None, 0.4):
        limits = {"sparsity": sparsity, "max_iter": 3, "random_state": 0}
        assert_same(pw.ssnmf(Rows(X), R, memory_limit=seven(X), **limits), pw.ssnmf(X, R, **limits))


# Dead components


MORTAL = {
    "ssnmf": Recipe("ssnmf", {"sparsity": 0.6}),
    "ssnmf, multiplicative": Recipe("ssnmf", {"sparsity": 0.6, "solver": "multiplicative"}),
    "ssnmf, pivot": Recipe("ssnmf", {"sparsity": (0.5, 0.7), "solver": "pivot"}),
    "ssnmf, free": Recipe("ssnmf", {}),
    "nnsc": Recipe("nnsc", {"l1": 0.0}),
    "l0": Recipe("l0", {"nonzeros": 6}),
    "l0, sequential": Recipe("l0", {"nonzeros": 6, "method": "sequential"}),
    "snmf": Recipe("snmf", {"beta": 0.0, "eta": 0.0}),
}


@one_at_a_time(name=MORTAL, dead=[[0, 3], [1], [0, 1, 3]], rows=[7, 1])
def test_dead_components_start_again_as_in_memory(X, name, dead, rows, restarts, rng):
    init = deadly(X, rng, dead)
    limits = {"init": init, "max_iter": 10, "tol": 0}
    result = MORTAL[name](Rows(X), R, memory_limit=4 * 160 * rows, **limits)
    assert {j for _, alive in restarts for j in alive} >= set(dead)
    assert not dead_components([gram(f) for f in result.factors]).size
    assert_same(result, MORTAL[name](X, R, **limits))


@pytest.mark.parametrize("name", MORTAL)
def test_unused_components_start_again_as_in_memory(X, name, restarts, rng):
    activations, components = 0.1 * rng.random((61, R)), rng.random((R, 20))
    activations[:, [0, 2]] = 0
    limits = {"init": (activations, components), "max_iter": 10, "tol": 0}
    result = MORTAL[name](Rows(X), R, memory_limit=seven(X), **limits)
    assert any(alive for _, alive in restarts)
    assert_same(result, MORTAL[name](X, R, **limits))


@pytest.mark.parametrize("side", ["activations", "components"])
def test_unused_components_restart_on_either_side_without_penalty(X, side, rng):
    """Kim and Park's method without penalties is plain least squares, and solves for either side last."""
    activations, components = 0.1 * rng.random((61, R)), rng.random((R, 20))
    activations[:, [0, 2]] = 0
    limits = {"init": (activations, components), "side": side, "beta": 0, "eta": 0, "max_iter": 10, "tol": 0}
    assert_same(pw.snmf(Rows(X), R, memory_limit=seven(X), **limits), pw.snmf(X, R, **limits))


@pytest.mark.parametrize("sparsity", [None, 0.3])
def test_no_sample_is_left_to_restart_with(sparsity, restarts, rng):
    """X of rank 1 and three components: nothing is left for dead ones to fit."""
    X = np.outer(rng.random(40), pw.Hoyer(0.3)(rng.random(9)))
    limits = {"sparsity": sparsity, "max_iter": 60, "tol": 0, "random_state": 0, "solver": "pivot"}
    result = pw.ssnmf(Rows(X), 3, memory_limit=4 * X[0].nbytes, **limits)
    wanted = pw.ssnmf(X, 3, **limits)
    assert result.relative_error < 1e-6
    assert wanted.relative_error < 1e-6
    assert np.all(np.diff(result.losses) <= 1e-12 * np.vdot(X, X))


def test_penalty_can_keep_components_dead(X, restarts):
    limits = {"sparsity": 0.5, "l1": 1.5, "max_iter": 20, "tol": 0, "random_state": 0}
    result = pw.ssnmf(Rows(X), R, memory_limit=seven(X), **limits)
    assert dead_components([gram(f) for f in result.factors]).size
    assert not restarts
    assert_same(result, pw.ssnmf(X, R, **limits))

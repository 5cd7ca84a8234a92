"""The loop: the loss never increases, the stop reason is correct, and the kind of data does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, assert_feasible, one_at_a_time, planted
from sklearn.datasets import load_iris, load_wine
from threadpoolctl import threadpool_limits

import partwise as pw
from partwise.data import as_data
from partwise.engine.blocks import Block
from partwise.engine.loop import factorize
from partwise.engine.metrics import largest_turn
from partwise.engine.solving import solve_activations
from partwise.projections import Hoyer, Nonnegative
from partwise.recipes import SOLVERS
from partwise.updates import Columns, Sequential

ASKED = {
    "none": {},
    "float": {"sparsity": 0.4},
    "interval": {"sparsity": (0.2, 0.5)},
    "open interval": {"sparsity": (0.3, None)},
    "one each": {"sparsity": [0.1, 0.3, 0.5]},
    "a pair each": {"sparsity": [(0.1, 0.2), (0.3, 0.5), 0.2]},
    "activations": {"activation_sparsity": 0.4},
    "activations, one each": {"activation_sparsity": [0.1, (0.2, 0.3), 0.5]},
    "penalties": {"sparsity": 0.4, "l1": 0.1, "l2": 0.1},
    "penalties on both": {"l1": (0.1, 0.05), "l2": (0.0, 0.2)},
}


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=25, m=30).X


def direct_error(X, result):
    return np.linalg.norm(X - result.activations.astype(float) @ result.components) / np.linalg.norm(X)


@one_at_a_time(problem=PROBLEMS, asked=ASKED, faithful=[False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_loss_never_increases(problem, solver, asked, faithful):
    X = problem.X
    result = pw.ssnmf(X, 3, solver=solver, faithful=faithful, tol=0, max_iter=12, random_state=0, **ASKED[asked])
    assert np.all(np.diff(result.losses) <= 1e-12 * (np.vdot(X, X) + result.losses[0]))
    assert result.losses[-1] < result.losses[0]
    assert len(result.losses) == len(result.times) == result.n_iter + 1
    assert np.all(np.diff(result.times) >= 0)
    assert result.times[0] >= 0
    assert result.relative_error == pytest.approx(direct_error(X, result), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("asked", ["none", "float", "activations"])
def test_acceleration_ends_as_low(X, asked):
    fit = {"tol": 0, "max_iter": 150, "random_state": 0, **ASKED[asked]}
    plain, ahead = (pw.ssnmf(X, 3, accelerate=a, **fit) for a in (False, "auto"))
    assert ahead.relative_error == pytest.approx(direct_error(X, ahead), rel=1e-6)
    assert ahead.relative_error <= 1.01 * plain.relative_error


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_last_loss_is_the_objective(X, dtype):
    l1, l2 = (0.2, 0.1), (0.3, 0.4)
    result = pw.ssnmf(X.astype(dtype), 3, l1=l1, l2=l2, max_iter=5, random_state=0)
    wanted = 0.5 * direct_error(X, result) ** 2 * np.vdot(X, X)
    for f, a, b in zip(result.factors, l1, l2, strict=True):
        wanted += a * f.sum() + 0.5 * b * np.sum(f**2)
    assert result.losses[-1] == pytest.approx(wanted, rel=1e-10 if dtype == np.float64 else 1e-4)


def test_it_stops_at_max_iter(X):
    result = pw.ssnmf(X, 3, max_iter=7, tol=0, random_state=0)
    assert (result.n_iter, result.converged) == (7, False)
    assert "max_iter=7" in result.stop_reason


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_it_stops_at_tol(X, tol):
    """As many iterations again, at the speed of the last tenth, would change nothing by more than tol.

    Components change relative to how far they are from the nearest other one.
    """
    parts = []
    keep = lambda it: parts.append(it.factors[1] / np.linalg.norm(it.factors[1], axis=0))  # noqa: E731
    result = pw.ssnmf(X, 3, max_iter=5000, tol=tol, random_state=0, callback=keep)
    assert result.converged
    assert f"tol={tol:g}" in result.stop_reason
    since, paces = 0, []
    for n in range(1, result.n_iter + 1):
        if n - since >= max(n // 10, 1):
            fall = 1 - result.losses[n] / result.losses[since]
            cosines = parts[n].T @ parts[n] - np.eye(3)
            turns = np.linalg.norm(parts[n] - parts[since], axis=0) / np.sqrt(1 - cosines.max(axis=0) ** 2)
            paces.append(max(turns.max(), fall) * max(n, 30) / (n - since))
            since = n
    assert since == result.n_iter
    assert paces[-1] <= tol
    assert min(paces[:-1]) > tol


@pytest.mark.parametrize("r", [2, 3])
@pytest.mark.parametrize("table", [load_iris, load_wine])
def test_fits_of_small_tables_stop_when_they_have_converged(table, r):
    """Their components are much alike and move slowly for many iterations before they part."""
    X = table().data
    X = X / X.max(axis=0) if table is load_wine else X
    settled = 0
    for seed in range(5):
        usual = pw.ssnmf(X, r, random_state=seed)
        end = pw.ssnmf(X, r, random_state=seed, tol=1e-4, max_iter=5000)
        settled += usual.converged
        cosines = pw.match_parts(usual.components, end.components).cosines
        assert not usual.converged or cosines.min() > 0.98, seed
        assert not usual.converged or usual.relative_error < 1.01 * end.relative_error
    assert settled > 2


@pytest.mark.parametrize("scale", [1, 1e-3])
def test_a_turn_is_relative_to_the_nearest_component(scale):
    one, other = np.array([1.0, 0.0, 0.0]), np.array([np.cos(0.1), np.sin(0.1), 0.0])
    far = np.array([0.0, 0.0, 1.0])
    turned = np.array([np.cos(0.01), 0.0, np.sin(0.01)])
    before = np.asfortranarray(scale * np.column_stack([one, far]))
    alike = np.asfortranarray(scale * np.column_stack([one, other]))
    moved = [np.asfortranarray(scale * np.column_stack([turned, c])) for c in (far, other)]
    assert largest_turn([before], [moved[0]]) == pytest.approx(0.01, rel=1e-3)
    assert largest_turn([alike], [moved[1]]) == pytest.approx(0.01 / 0.1, rel=0.02)
    apart_in_one_mode = largest_turn([alike, before], [moved[1], moved[0]])  # of a tensor
    assert apart_in_one_mode == pytest.approx(0.01, rel=1e-3)
    assert largest_turn([alike], [alike]) < 1e-13
    equal = np.asfortranarray(np.column_stack([one, one, np.zeros(3)]))
    assert largest_turn([equal], [equal]) < 1e-13


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_data_of_exact_rank_converge(scale, rng):
    """A loss that falls towards zero for ever need not settle."""
    X = scale * rng.random((60, 4)) @ rng.random((4, 30))
    result = pw.ssnmf(X, 4, random_state=0, max_iter=3000)
    assert result.converged
    assert result.relative_error < 1e-5


def test_it_does_not_stop_while_known_components_wait_for_their_activations(X):
    """Components that do not move are no reason to stop: the activations must settle, too."""
    known = np.random.default_rng(0).random((3, X.shape[1]))
    result = pw.ssnmf(X, 3, fixed_components=known, solver="multiplicative", random_state=0, max_iter=5000, tol=1e-3)
    assert result.converged
    best = pw.ssnmf(X, 3, fixed_components=known, solver="pivot", random_state=0)
    assert result.losses[-1] <= best.losses[-1] * 1.001


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_it_stops_at_kkt_tol_where_no_column_can_improve(X, sparsity):
    result = pw.ssnmf(X, 3, sparsity=sparsity, max_iter=5000, tol=0, kkt_tol=1e-4, random_state=0)
    assert result.converged
    assert "kkt_tol=0.0001" in result.stop_reason
    more = pw.ssnmf(X, 3, sparsity=sparsity, init=(result.activations, result.components), tol=0, max_iter=1)
    assert np.abs(more.components - result.components).max() <= 1e-3 * np.abs(result.components).max()
    assert more.losses[-1] >= (1 - 1e-6) * result.losses[-1]


def test_it_stops_at_max_time(X):
    result = pw.ssnmf(X, 3, max_iter=10**6, tol=0, max_time=0.02, random_state=0)
    assert "time limit of 0.02 s" in result.stop_reason
    assert not result.converged
    assert result.times[-1] >= 0.02
    assert np.all(result.times[:-1] < 0.02)


@pytest.mark.parametrize("last", [0, 1, 4])
@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_it_stops_when_the_callback_returns_true(X, last, kind):
    told = []

    def callback(iteration):
        told.append(iteration)
        return kind(iteration.n_iter == last)

    result = pw.ssnmf(X, 3, tol=0, max_iter=50, callback=callback, random_state=0)
    assert result.n_iter == last
    assert [i.n_iter for i in told] == list(range(last + 1))
    assert [i.loss for i in told] == result.losses.tolist()
    assert [i.seconds for i in told] == result.times.tolist()
    assert told[-1].relative_error == pytest.approx(direct_error(X, result), rel=1e-6)
    assert "stopped by the callback" in result.stop_reason
    assert ("at the start" if last == 0 else f"iteration {last}") in result.stop_reason
    assert not result.converged


@pytest.mark.parametrize("answer", [None, False, 0, np.False_])
def test_callback_without_return_value_continues(X, answer):
    assert pw.ssnmf(X, 3, tol=0, max_iter=3, callback=lambda iteration: answer, random_state=0).n_iter == 3


def test_an_exact_fit_stops(rng):
    x = np.outer(rng.random(9), rng.random(8))
    result = pw.ssnmf(x, 1, tol=1e-300, max_iter=1000, random_state=0)
    assert result.converged
    assert "exact" in result.stop_reason
    assert result.n_iter < 1000
    assert result.relative_error < 1e-7


@one_at_a_time(asked=ASKED, faithful=[False, True], init=["random", "samples", "nndsvd", "gradual"])
def test_the_same_seed_gives_the_same_bits(X, asked, faithful, init):
    fit = {"faithful": faithful, "init": init, "max_iter": 10, **ASKED[asked]}
    one, two = (pw.ssnmf(X, 3, random_state=s, **fit) for s in (5, np.random.default_rng(5)))
    for a, b in zip(one.factors, two.factors, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.losses, two.losses)
    assert not np.array_equal(pw.ssnmf(X, 3, random_state=6, **fit).components, one.components) or init == "nndsvd"


@pytest.mark.parametrize("asked", ["none", "float", "activations"])
def test_kind_of_data_does_not_matter(X, asked):
    X = X * np.greater(X, np.median(X))
    fit = {"tol": 0, "max_iter": 30, "random_state": 0, **ASKED[asked]}
    dense = pw.ssnmf(X, 3, **fit)
    for form in (np.asfortranarray, sp.csr_array, sp.csc_matrix):
        other = pw.ssnmf(form(X), 3, **fit)
        for a, b in zip(dense.factors, other.factors, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-8)
        np.testing.assert_allclose(other.losses, dense.losses, rtol=1e-8)
    single = pw.ssnmf(X.astype(np.float32), 3, **fit)
    assert all(f.dtype == np.float32 for f in single.factors)
    np.testing.assert_allclose(single.losses, dense.losses, rtol=1e-3)
    assert single.relative_error == pytest.approx(dense.relative_error, rel=1e-3)


@pytest.mark.compiled
@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_the_number_of_threads_does_not_matter(sparsity, rng):
    X = planted(rng, n=1200, m=1000, r=20).X
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(pw.ssnmf(X, 20, sparsity=sparsity, tol=0, max_iter=20, random_state=0))
    for a, b in zip(fits[0].factors, fits[1].factors, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


SHAPES = [(1, 7), (7, 1), (1, 1), (2, 2), (3, 50), (50, 3)]


@one_at_a_time(shape=SHAPES, asked=["float", "none", "one each", "interval", "activations"], filled=[True, False])
@pytest.mark.parametrize("init", ["random", "samples", "nndsvd", "gradual"])
def test_edge_shapes(shape, asked, init, filled, rng):
    """Three components, which may exceed both dimensions; and a matrix of zeros."""
    X = filled * rng.random(shape)
    result = pw.ssnmf(X, 3, init=init, random_state=0, max_iter=50, **ASKED[asked])
    assert all(np.isfinite(f).all() and f.min() >= 0 for f in result.factors)
    assert np.all(np.diff(result.losses) <= 1e-12 * (np.vdot(X, X) + result.losses[0]))
    if filled:
        assert result.relative_error == pytest.approx(direct_error(X, result), abs=1e-7)
    else:
        assert result.relative_error == 0
        np.testing.assert_allclose(result.activations @ result.components, 0, atol=1e-7)
    if asked == "float" and shape[1] > 1:
        np.testing.assert_allclose(result.sparsity, 0.4, atol=1e-10)


@pytest.mark.parametrize("problem", ["zero rows and columns"], indirect=True)
@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_of_zeros_have_no_activations(problem, solver):
    result = pw.ssnmf(problem.X, 5, sparsity=0.5, solver=solver, tol=0, max_iter=100, random_state=0)
    empty = problem.X.sum(axis=1) == 0
    np.testing.assert_allclose(result.activations[empty], 0, atol=1e-6)
    np.testing.assert_allclose(result.sparsity, 0.5, atol=1e-10)


def test_result_attributes(X):
    result = pw.ssnmf(X, 3, sparsity=0.5, max_iter=4, tol=0, random_state=0)
    assert repr(result) == (
        f"Result(25 × 30, 3 components, relative error {result.relative_error:.4g}, 4 iterations: {result.stop_reason})"
    )
    assert result.components.shape == (3, 30)
    assert result.activations.shape == (25, 3)
    assert result.middle is None
    np.testing.assert_array_equal(result.components.T, result.factors[1])
    np.testing.assert_allclose(result.sparsity, 0.5, atol=1e-10)
    np.testing.assert_allclose(result.activation_sparsity, pw.hoyer_sparsity(result.activations, axis=0))


def test_custom_blocks(X):
    """Any sets for either factor, in any order, including a custom set."""
    sets = [Columns.same(Nonnegative(), 3), Columns((Hoyer(0.3), pw.AtMost(4), pw.HoyerBetween(0.2, 0.3)))]
    factors = [
        np.asfortranarray(s.project(np.random.default_rng(0).random((n, 3))))
        for s, n in zip(sets, X.shape, strict=True)
    ]
    blocks = [Block(Sequential(2), s) for s in sets]
    result = factorize(as_data(X), factors, blocks, order=(0, 1, 0), tol=0, max_iter=20)
    assert np.all(np.diff(result.losses) <= 1e-12 * np.vdot(X, X))
    assert_feasible(result.factors[1], sets[1])


def test_activations_are_solved_exactly(X):
    parts = pw.ssnmf(X, 3, sparsity=0.5, max_iter=5, random_state=0).factors[1]
    solved = solve_activations(as_data(X), parts)
    activations = solved.activations
    slope = (activations @ parts.T - X) @ parts
    assert activations.min() >= 0
    assert slope.min() >= -1e-10
    np.testing.assert_allclose(activations * slope, 0, atol=1e-10)
    assert solved.relative_error == pytest.approx(
        np.linalg.norm(X - activations @ parts.T) / np.linalg.norm(X), rel=1e-10
    )


def test_a_start_without_a_loss_is_named(rng):
    blocks = [Block(Sequential(), Columns.same(Nonnegative(), 2))] * 2
    with pytest.raises(ValueError, match="the loss is not a number at the start"):
        factorize(
            as_data(rng.random((4, 5))), [np.full((n, 2), np.nan, order="F") for n in (4, 5)], blocks, max_iter=1, tol=0
        )

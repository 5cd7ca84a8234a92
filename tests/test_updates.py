"""Updates never increase the loss or leave their sets; nonnegative ones converge to the NNLS solution."""

import numpy as np
import pytest
from catalogues import PROBLEMS, SETS, TAKEN, UPDATES, assert_feasible, for_all_sets, random_factors, stats_of
from scipy.optimize import nnls

from partwise.data import as_data
from partwise.engine.blocks import Block
from partwise.projections import Hoyer, Nonnegative
from partwise.statistics import Stats
from partwise.updates import Columns, Gradient, Greedy, Multiplicative, Pivot, Sequential

NONNEGATIVE = {name: u for name, u in UPDATES.items() if not name.startswith("multiplicative")}  # that find their way
TOLERANCES = {np.float64: (1e-10, 1e-12), np.float32: (2e-5, 1e-5)}  # of the sets, and of the loss


def start(problem, mode, sets, rng, dtype=float):
    """The statistics of a random start, and the factor in its sets."""
    factors = random_factors(problem.X.shape, problem.r, rng, dtype)
    return stats_of(problem.X.astype(dtype), factors, mode), np.asfortranarray(sets.project(factors[mode]))


@pytest.mark.parametrize("update", [u for u in UPDATES if not for_all_sets(UPDATES[u])], indirect=True)
def test_updates_for_nonnegative_factors_refuse_other_sets(update):
    stats = Stats(np.ones((3, 5), order="F"), np.eye(5), 1.0)
    for name, columns in SETS.items():
        if name != "nonnegative":
            with pytest.raises(ValueError, match=r"supports y ≥ 0 only, not .*use Sequential"):
                update(np.ones((3, 5), order="F"), stats, columns(5), {})


DESCENTS = [
    *((u, s, "planted", dtype) for u, s in TAKEN for dtype in (np.float64, np.float32)),
    *((u, s, p, np.float64) for u, s in TAKEN if s in ("nonnegative", "mixed") for p in [*PROBLEMS][1:]),
]


@pytest.mark.parametrize(("update", "columns", "problem", "dtype"), DESCENTS, indirect=["update", "columns", "problem"])
def test_every_call_descends_within_the_sets(problem, update, columns, dtype, rng):
    sets = columns(problem.r)
    kept, rounding = TOLERANCES[dtype]
    for mode in (0, 1):
        stats, factor = start(problem, mode, sets, rng, dtype)
        state, losses = {}, [stats.loss(factor)]
        for _ in range(3):
            factor, state = update(factor, stats, sets, state)
            assert factor.dtype == dtype
            assert factor.flags.f_contiguous
            assert_feasible(factor, sets, kept)
            losses.append(stats.loss(factor))
            assert losses[-1] <= losses[-2] + rounding * (stats.sqnorm + losses[0])
        if sets.nonnegative:
            assert losses[-1] < losses[0]


@pytest.mark.parametrize(("update", "columns"), TAKEN, indirect=True)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_dead_component_stays_feasible(update, columns, dtype, rng):
    sets = columns(5)
    kept, rounding = TOLERANCES[dtype]
    activations, parts = random_factors((12, 9), 5, rng, dtype)
    parts[:, [1, 4]] = 0
    stats = stats_of(rng.random((12, 9)).astype(dtype), [None, parts], 0)
    factor = np.asfortranarray(sets.project(activations))
    before = stats.loss(factor)
    for _ in range(2):
        factor, _ = update(factor, stats, sets, {})
        assert_feasible(factor, sets, kept)
    assert stats.loss(factor) <= before + rounding * stats.sqnorm
    nothing = Stats(np.zeros_like(stats.cross), np.zeros((5, 5)), stats.sqnorm)
    assert_feasible(update(factor, nothing, sets, {})[0], sets, kept)


def binding(rng, n=40, m=15, r=6):
    """Least squares problems with active constraints: statistics, targets, and the matrix."""
    A = rng.random((m, r))
    X = rng.standard_normal((n, m)) + rng.random((n, r)) @ A.T
    return Stats(np.asfortranarray(X @ A), A.T @ A, float(np.vdot(X, X))), X, A


def solutions(X, A):
    return np.array([nnls(A, x)[0] for x in X])


def test_a_solution_is_a_fixed_point(update, rng):
    stats, X, A = binding(rng)
    solution = solutions(X, A)
    moved, _ = update(np.asfortranarray(solution), stats, Columns.same(Nonnegative(), 6), {})
    np.testing.assert_allclose(moved, solution, atol=1e-7)


@pytest.mark.parametrize("columns", ["Hoyer", "interval", "mixed", "custom"], indirect=True)
def test_nothing_changes_if_no_column_can_improve(columns, rng):
    sets = columns(5)
    factors = random_factors((30, 20), 5, rng)
    stats = stats_of(rng.random((30, 20)), factors, 1)
    factor, _ = Sequential(1000)(np.asfortranarray(sets.project(factors[1])), stats, sets, {})
    for update in (Sequential(3), Sequential(2, "random", 1), Multiplicative(2)):
        if not (isinstance(update, Multiplicative) and any(s == Nonnegative() for s in sets)):
            np.testing.assert_allclose(update(factor.copy("F"), stats, sets, {})[0], factor, atol=1e-6)


def sweep_columns(factor, cross, gram, orders, sets):
    """The sequential pass by its definition."""
    for j in orders.ravel():
        g = gram[j, j]
        if g > 0:
            b = cross[:, j] - factor @ gram[:, j] + factor[:, j] * g
            factor[:, j] = sets[j](b / g, near=factor[:, j])


LONG = pytest.param(1100, 9, marks=pytest.mark.compiled)  # more rows than a tile or a chunk holds


@pytest.mark.parametrize(("rows", "r"), [(1, 3), (6, 1), (6, 2), (6, 4), (7, 7), (7, 8), (6, 9), (5, 17), LONG])
def test_the_compiled_passes_equal_the_definition(columns, rows, r, rng):
    sets = columns(r)
    factors = random_factors((rows, 5), r, rng)
    stats = stats_of(rng.random((rows, 5)), factors, 0)
    for order in ("fixed", "random"):
        compiled = sets.project(np.array(factors[0], order="F"))
        plain, update, state = compiled.copy("F"), Sequential(2, order, seed=3), {}
        for call in range(2):
            orders = np.tile(np.arange(r), (2, 1))
            if order == "random":
                orders = np.random.default_rng([3, call]).permuted(orders, axis=1)
            sweep_columns(plain, stats.cross, stats.gram, orders, sets)
            compiled, state = update(compiled, stats, sets, state)
        np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-10, err_msg=order)


def test_several_sweeps_are_several_calls(columns, rng):
    sets, factors = columns(9), random_factors((30, 20), 9, rng)
    stats = stats_of(rng.random((30, 20)), factors, 1)
    many = sets.project(factors[1])
    one = many.copy("F")
    many, _ = Sequential(4)(many, stats, sets, {})
    for _ in range(4):
        one, _ = Sequential()(one, stats, sets, {})
    np.testing.assert_allclose(one, many, rtol=0, atol=1e-12)


def test_random_order_depends_on_seed_and_state(columns, rng):
    sets, factors = columns(9), random_factors((30, 20), 9, rng)
    stats = stats_of(rng.random((30, 20)), factors, 1)
    begin = sets.project(factors[1])

    def run(seed, state):
        return Sequential(1, "random", seed)(begin.copy("F"), stats, sets, state)

    again, state = run(1, {})
    np.testing.assert_array_equal(run(1, {})[0], again)
    np.testing.assert_array_equal(run(1, state)[0], run(1, dict(state))[0])
    if sets not in (SETS["single"](9), SETS["flat"](9)):
        assert not np.array_equal(run(2, {})[0], again)
        assert not np.array_equal(run(1, state)[0], again)


@pytest.mark.parametrize("guess", ["zeros", "ones", "random support", "answer"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pivot_is_nnls_from_any_guess(guess, dtype, rng):
    stats, X, A = binding(rng, n=200, r=8)
    solution = solutions(X, A)
    assert 0.1 < np.mean(solution == 0) < 0.9  # the constraints bind
    first = {"zeros": 0 * solution, "ones": 0 * solution + 1, "answer": solution}
    factor = np.asfortranarray(first.get(guess, rng.random(solution.shape) * (rng.random(solution.shape) < 0.5)), dtype)
    stats = Stats(stats.cross.astype(dtype), stats.gram, stats.sqnorm)
    factor, _ = Pivot()(factor, stats, Columns.same(Nonnegative(), 8), {})
    np.testing.assert_allclose(factor, solution, atol=1e-10 if dtype == np.float64 else 1e-4)


SINGULAR = {
    "twins": lambda rng: rng.random((12, 4))[:, [0, 1, 2, 3, 0, 0]],
    "scaled twins": lambda rng: rng.random((12, 4))[:, [0, 1, 2, 3, 0, 1]] * [1, 1, 1, 1, 3.0, 1e-3],
    "a sum of others": lambda rng: rng.random((12, 4)) @ np.column_stack([np.eye(4), np.ones(4)]),
    "more than features": lambda rng: rng.random((5, 9)),
    "a zero part": lambda rng: rng.random((12, 4)) @ np.eye(4, 6),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("guess", [0.0, 1.0])
def test_pivot_finds_a_least_residual_where_the_gram_matrix_is_singular(name, guess, rng):
    A = SINGULAR[name](rng)
    X = rng.standard_normal((60, len(A))) + rng.random((60, A.shape[1])) @ A.T
    stats = Stats(np.asfortranarray(X @ A), A.T @ A, float(np.vdot(X, X)))
    factor = np.full((60, A.shape[1]), guess, order="F")
    factor, _ = Pivot()(factor, stats, Columns.same(Nonnegative(), A.shape[1]), {})
    least = np.array([nnls(A, x)[1] for x in X])
    np.testing.assert_allclose(np.linalg.norm(X - factor @ A.T, axis=1), least, rtol=1e-8, atol=1e-8)
    slope = factor @ stats.gram - stats.cross
    assert factor.min() >= 0
    assert slope.min() >= -1e-6
    np.testing.assert_allclose(factor * slope, 0, atol=1e-6)


@pytest.mark.parametrize("update", NONNEGATIVE, indirect=True)
def test_repeated_updates_end_at_the_nnls_solution(update, rng):
    stats, X, A = binding(rng, n=10)
    solution, sets = solutions(X, A), Columns.same(Nonnegative(), 6)
    assert np.any(solution == 0)
    factor, state = np.ones_like(solution, order="F"), {}
    for _ in range(1500):
        factor, state = update(factor, stats, sets, state)
    np.testing.assert_allclose(factor, solution, atol=1e-6)


def test_multiplicative_updates_converge_slowly_to_the_same_solution(rng):
    stats, X, A = binding(rng, n=10)
    factor, _ = Multiplicative(20_000)(np.ones((10, 6), order="F"), stats, Columns.same(Nonnegative(), 6), {})
    assert stats.loss(factor) == pytest.approx(stats.loss(solutions(X, A)), rel=1e-4)


def test_multiplicative_is_lee_and_seungs_formula(problem, rng):
    H, epsilon = random_factors(problem.X.shape, problem.r, rng)[0], 1e-9
    W = rng.random((problem.X.shape[1], problem.r))
    stats = stats_of(problem.X, [None, W], 0)
    wanted = H.copy()
    for _ in range(3):
        model, norms = wanted @ (W.T @ W), np.linalg.norm(W, axis=0)
        largest = np.max(model / norms, axis=1, keepdims=True)
        wanted = wanted * (problem.X @ W) / (model + epsilon * largest * norms + 1e-300)
    result, _ = Multiplicative(3, epsilon)(H, stats, Columns.same(Nonnegative(), problem.r), {})
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    assert np.all(result[problem.X.sum(axis=1) == 0] == 0)


def test_multiplicative_updates_do_not_depend_on_the_scale_of_a_column(rng):
    X, W, scale = rng.random((9, 7)), rng.random((7, 3)), np.array([1e-60, 1, 1e60])
    H, free = random_factors(X.shape, 3, rng)[0], Columns.same(Nonnegative(), 3)
    plain, _ = Multiplicative(3)(H.copy("F"), stats_of(X, [None, W], 0), free, {})
    scaled, _ = Multiplicative(3)(np.asfortranarray(H / scale), stats_of(X, [None, W * scale], 0), free, {})
    np.testing.assert_allclose(scaled * scale, plain, rtol=1e-9)


@pytest.mark.parametrize("update", NONNEGATIVE, indirect=True)
@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.2), (2.0, 0.5), (0.0, 1.0)])
def test_penalties_match_an_augmented_system(update, l1, l2, rng):
    """min ½‖x − Ah‖² + l1·Σh + ½·l2·‖h‖² has the targets (x, −l1/√l2) and the matrix (A, √l2·I)."""
    stats, X, A = binding(rng, n=10)
    tall = np.vstack([A, np.sqrt(l2) * np.eye(6)])
    wanted = solutions(np.column_stack([X, np.full((10, 6), -l1 / np.sqrt(l2))]), tall)
    block = Block(update, Columns.same(Nonnegative(), 6), l1, l2)
    factor, state = np.ones((10, 6), order="F"), {}
    for _ in range(300):
        factor, state = block(factor, stats, state)
    np.testing.assert_allclose(factor, wanted, atol=1e-7)
    assert 0 < np.mean(wanted == 0) < 1
    assert block.residual(factor, stats) < 1e-6
    objective = stats.loss(factor) + block.penalty(factor, factor.T @ factor)
    direct = 0.5 * np.linalg.norm(X - factor @ A.T) ** 2 + l1 * factor.sum() + 0.5 * l2 * np.sum(factor**2)
    assert objective == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize("update", [Sequential(2), Gradient(3), Multiplicative(2)])
def test_alternating_updates_work_for_either_factor(problem, update, rng):
    """Both factors in turn, the components on Hoyer sets: the loss decreases."""
    sets = [Columns.same(Nonnegative(), problem.r), Columns.same(Hoyer(0.4), problem.r)]
    data, losses = as_data(problem.X), []
    factors = [
        np.asfortranarray(s.project(f)) for s, f in zip(sets, random_factors(data.shape, problem.r, rng), strict=True)
    ]
    for step in range(12):
        mode = step % 2
        stats = data.statistics(factors, [f.T @ f for f in factors], mode)
        losses.append(stats.loss(factors[mode]))
        factors[mode], _ = update(factors[mode], stats, sets[mode], {})
        assert_feasible(factors[mode], sets[mode])
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    assert losses[-1] < losses[0]


def test_greedy_comes_close_to_the_minimum_in_one_call(rng):
    """One call ends when the gain of each row is below tol times its first gain."""
    stats, X, A = binding(rng)
    factor, _ = Greedy(1e-12)(np.zeros((40, 6), order="F"), stats, Columns.same(Nonnegative(), 6), {})
    first, least = stats.loss(np.zeros((40, 6))), stats.loss(solutions(X, A))
    assert stats.loss(factor) - least <= 1e-2 * (first - least)

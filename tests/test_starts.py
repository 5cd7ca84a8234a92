"""Starts are feasible, and dead components are restarted without increasing the loss."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, SETS, assert_feasible, one_at_a_time, planted, random_factors

import partwise as pw
from partwise.data import as_data
from partwise.engine.blocks import Block
from partwise.engine.loop import factorize
from partwise.engine.revival import revive
from partwise.engine.starts import STARTS, starting_factors
from partwise.projections import Hoyer, Nonnegative
from partwise.recipes import SOLVERS
from partwise.statistics import dead_components, gram
from partwise.updates import Columns, Multiplicative, Pivot, Sequential

FORMS = (np.asarray, sp.csr_array)


def free(r):
    return Columns.same(Nonnegative(), r)


def error_of(X, factors):
    return np.linalg.norm(X - factors[0] @ factors[1].T)


@one_at_a_time(problem=PROBLEMS, columns=SETS, dtype=[np.float64, np.float32], form=[np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", STARTS)
def test_starts_are_feasible_and_reproducible(name, problem, columns, dtype, form):
    data = as_data(form(problem.X.astype(dtype)))
    for sets in ([free(problem.r), columns(problem.r)], [columns(problem.r), free(problem.r)]):
        factors, again = (starting_factors(name, data, problem.r, sets, np.random.default_rng(1)) for _ in range(2))
        for mode in (0, 1):
            assert factors[mode].shape == (data.shape[mode], problem.r)
            assert factors[mode].dtype == dtype
            assert factors[mode].flags.f_contiguous
            assert_feasible(factors[mode], sets[mode], 1e-10 if dtype == np.float64 else 2e-5)
            np.testing.assert_array_equal(factors[mode], again[mode])
        other = starting_factors(name, data, problem.r, sets, np.random.default_rng(2))
        if name == "random":
            assert not np.array_equal(other[0], factors[0]) or not np.array_equal(other[1], factors[1])


@pytest.mark.parametrize("mode", [0, 1])
def test_the_random_start_is_the_papers(mode, rng):
    sets = [free(6), free(6)]
    sets[mode] = Columns.same(Hoyer(0.5), 6)
    factors = starting_factors("random", as_data(rng.random((30, 20))), 6, sets, rng)
    ordered = np.sort(factors[mode], axis=0)
    np.testing.assert_array_equal(ordered, np.tile(ordered[:, :1], (1, 6)))  # permutations of one vector
    assert len(np.unique(factors[mode], axis=1).T) > 1
    assert 0 <= factors[1 - mode].min() < 0.2 < 0.8 < factors[1 - mode].max() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_nndsvd_is_the_same_for_dense_and_sparse_x(seed):
    """Where singular vectors are zero up to rounding, they are filled as well."""
    rng = np.random.default_rng(seed)
    X = rng.random((30, 4)) @ rng.random((4, 12))
    X[X < 0.9] = 0
    sets = [free(3), Columns.same(Hoyer(0.4), 3)]
    starts = (starting_factors("nndsvd", as_data(form(X)), 3, sets, np.random.default_rng(1)) for form in FORMS)
    for dense, sparse in zip(*starts, strict=True):
        np.testing.assert_allclose(dense, sparse, rtol=0, atol=1e-12)


def test_nndsvd_beats_random_and_fills_up_beyond_the_singular_vectors(rng):
    X = planted(rng).X
    sets = [free(5), free(5)]
    far, near = (starting_factors(name, as_data(X), 5, sets, rng) for name in ("random", "nndsvd"))
    assert error_of(X, near) < error_of(X, far)
    many = starting_factors("nndsvd", as_data(X[:4]), 9, [free(9), free(9)], rng)
    assert [f.shape for f in many] == [(4, 9), (40, 9)]
    assert all((f.max(axis=0) > 0).all() for f in many)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_samples_are_distinct_and_nonzero(mode, seed, rng):
    """If the activations are constrained, features are drawn instead."""
    kinds = rng.random((3, 8))
    X = np.zeros((30, 8))
    X[5:25] = kinds[rng.permutation(np.arange(20) % 3)]
    sets = [free(3), free(3)]
    sets[1 - mode] = Columns.same(Hoyer(0.3), 3)
    factors = starting_factors("samples", as_data(X.T if mode else X), 3, sets, np.random.default_rng(seed))
    wanted = [Hoyer(0.3)(k).tolist() for k in kinds]
    np.testing.assert_allclose(sorted(factors[1 - mode].T.tolist()), sorted(wanted), atol=1e-12)


def test_samples_start_with_more_components_than_the_rank_of_x(rng):
    X = np.outer(rng.random(6), rng.random(5))
    for form in (np.asarray, sp.csr_array):
        factors = starting_factors("samples", as_data(form(X)), 4, [free(4), free(4)], rng)
        assert all((f.max(axis=0) > 0).all() for f in factors)


def test_given_factors_are_projected_copies(rng):
    X, activations, components = rng.random((6, 5)), rng.random((6, 2)), rng.random((2, 5))
    before = activations.copy(), components.copy()
    sets = [free(2), Columns.same(Hoyer(0.5), 2)]
    factors = starting_factors((activations, components), as_data(X), 2, sets, rng)
    np.testing.assert_array_equal(factors[0], activations)
    np.testing.assert_allclose(factors[1].T, [Hoyer(0.5)(c) for c in components], atol=1e-14)
    pw.ssnmf(X, 2, init=(activations, components), random_state=0)
    np.testing.assert_array_equal(activations, before[0])
    np.testing.assert_array_equal(components, before[1])


A, C = np.ones((6, 2)), np.ones((2, 5))


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ((A.T, C), r"activations in init have shape \(2, 6\): shape \(6, 2\) is needed"),
        ((A, C.T), r"components in init have shape \(5, 2\): shape \(2, 5\) is needed"),
        ((A, C[:1]), r"components in init have shape \(1, 5\)"),
        ((A, -C), "components in init have negative"),
        ((A * np.nan, C), "activations in init have negative or non-finite"),
        ((A, C * np.inf), "components in init have negative or non-finite"),
        ((A,), "init has type tuple"),
        (7, "init has type int"),
        (A, "init has type ndarray"),
        ("nonsense", "'nonsense' is not one of 'random', 'samples', 'nndsvd'"),
    ],
)
def test_bad_starts_are_refused(init, message, rng):
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(rng.random((6, 5)), 2, init=init)


def deadly(rng):
    """X with zeros in its first features, and a start whose components 1 and 3 use only those, so they stay dead."""
    X = planted(rng, noise=0).X
    X[:, :8] = 0
    sets = [free(5), Columns.same(Hoyer(0.8), 5)]
    factors = starting_factors("random", as_data(X), 5, sets, rng)
    for j in (1, 3):
        factors[1][:, j] = sets[1][j](np.where(np.arange(40) < 8, rng.random(40), -10.0))
    assert not factors[1][8:, [1, 3]].any()
    return as_data(X), factors, sets


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_component_is_dead_if_any_of_its_columns_is(mode, rng):
    factors = random_factors((5, 6, 7), 4, rng)
    assert not dead_components([gram(f) for f in factors]).size
    factors[mode][:, [0, 2]] = 0
    assert dead_components([gram(f) for f in factors]).tolist() == [0, 2]


@pytest.mark.parametrize("update", [Sequential(2), Multiplicative(3), Pivot()])
def test_dead_components_stay_dead_unless_revived(update, rng):
    data, factors, sets = deadly(rng)
    blocks = [Block(update, sets[0]), Block(Sequential(2), sets[1])]
    runs = {}
    for alive in (False, True):
        copies = [f.copy("F") for f in factors]
        runs[alive] = factorize(data, copies, blocks, before=(0,), tol=0, max_iter=30, revive=alive)
        assert np.all(np.diff(runs[alive].losses) <= 1e-12 * data.sqnorm)
        assert_feasible(runs[alive].factors[1], sets[1])
    dead, living = (dead_components([gram(f) for f in runs[alive].factors]) for alive in (False, True))
    assert dead.tolist() == [1, 3]
    assert not living.size
    assert runs[True].losses[-1] < 0.9 * runs[False].losses[-1]


def test_zeroed_activations_are_revived_in_a_multiplicative_fit(rng):
    """Multiplicative updates keep zeros, so a column of zeros stays zero."""
    X = planted(rng, noise=0).X
    factors = random_factors(X.shape, 5, rng)
    factors[0][:, [0, 4]] = 0
    blocks = [Block(Multiplicative(), free(5)), Block(Multiplicative(), free(5))]
    ends = [
        factorize(as_data(X), [f.copy("F") for f in factors], blocks, tol=0, max_iter=100, revive=alive)
        for alive in (False, True)
    ]
    assert not ends[0].activations[:, [0, 4]].any()
    assert (ends[1].activations.max(axis=0) > 0).all()
    assert ends[1].losses[-1] < 0.9 * ends[0].losses[-1]


@one_at_a_time(problem=PROBLEMS, form=[np.asarray, sp.csr_array, sp.csc_array], seed=[1, 0, 2, 3])
@pytest.mark.parametrize("mode", [0, 1])
def test_revival_never_raises_the_loss(problem, form, mode, seed):
    rng = np.random.default_rng(seed)
    data, r = as_data(form(problem.X)), problem.r
    sets = [free(r), free(r)]
    if seed % 2:
        sets[1 - mode] = Columns.same(Hoyer(0.5), r)
    factors = random_factors(data.shape, r, rng)
    factors = [np.asfortranarray(s.project(f * rng.random())) for s, f in zip(sets, factors, strict=True)]
    dead = rng.choice(r, size=min(2, r), replace=False)
    factors[mode][:, dead] = 0
    factors[mode], _ = Pivot()(
        factors[mode], stats := data.statistics(factors, [gram(f) for f in factors], mode), sets[mode], {}
    )
    factors[mode][:, dead] = 0
    before = error_of(problem.X, factors)
    alive = revive(data, factors, stats, mode, sets, dead)
    assert set(alive) <= set(dead.tolist())
    for m in (0, 1):
        assert_feasible(factors[m], sets[m])
    assert error_of(problem.X, factors) <= before * (1 + 1e-12) + 1e-12


def test_huge_component_does_not_make_others_look_dead(rng):
    factors = random_factors((8, 6), 3, rng)
    factors[0][:, 0] *= 1e-14
    factors[1][:, 0] *= 1e14
    assert not dead_components([gram(f) for f in factors]).size
    factors[1][:, 0] *= 1e-13
    assert dead_components([gram(f) for f in factors]).tolist() == [0]


def test_loss_does_not_increase_with_huge_components():
    """Components whose activations vanish grow without bound; the others were once mistaken for dead."""
    X = np.array([[0, 4, 4, 3, 0, 0, 1, 1], [0, 4, 2, 4, 2, 0, 1, 2], [0] * 8, [4, 4, 1, 2, 2, 2, 1, 1]])
    losses = pw.ssnmf(X, 10, random_state=15, max_iter=30, tol=0).losses
    assert np.all(np.diff(losses) <= 1e-12 * np.vdot(X, X))
    assert losses[-1] < 1e-5


OVERFULL = {
    "hals": {},
    "random": {"init": "random"},
    "multiplicative": {"solver": "multiplicative"},
    "pivot": {"solver": "pivot"},
    "greedy": {"solver": "greedy"},
    "sparse": {"sparsity": 0.5},
    "sparse activations": {"activation_sparsity": 0.4},
    "missing": {"missing": "em"},
}


@pytest.mark.parametrize("name", OVERFULL)
@pytest.mark.filterwarnings("ignore")  # parts that cannot be as sparse as asked for
def test_the_loss_never_rises_with_more_components_than_the_data_supports(name):
    for seed in range(40, 110):
        rng = np.random.default_rng(seed)
        shape, r = rng.integers(2, 9, size=2), int(rng.integers(2, 13))
        X = rng.integers(0, 5, size=shape) * (rng.random(shape) < rng.choice([0.5, 1])) + 0.0
        if seed % 3 == 0:
            X *= 10.0 ** rng.integers(-5, 5, size=(len(X), 1))
        seen = rng.random(shape) < 0.8
        if not seen.any(axis=0).all():
            continue
        given = np.where(seen, X, np.nan) if name == "missing" else X
        losses = pw.ssnmf(given, r, random_state=seed, max_iter=30, tol=0, **OVERFULL[name]).losses
        assert np.diff(losses).max() <= 1e-12 * np.vdot(X, X), seed


@pytest.mark.parametrize("sparsity", [None, 0.3])
@pytest.mark.parametrize("faithful", [False, True])
def test_no_sample_to_revive_with(sparsity, faithful, rng):
    """X of rank 1 and three components: nothing is left for dead ones to fit."""
    x = np.outer(rng.random(9), Hoyer(0.3)(rng.random(7)))
    result = pw.ssnmf(x, 3, sparsity=sparsity, faithful=faithful, random_state=0, tol=0, max_iter=300)
    assert result.relative_error < 1e-2
    assert np.all(np.diff(result.losses) <= 1e-12 * np.vdot(x, x))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "asked",
    [{"sparsity": 0.4, "l1": 0.5}, {"sparsity": 0.4, "l1": 5.0}, {"l1": (0.3, 0.1)}, {"l1": (0.5, 0.5), "l2": 0.3}],
)
def test_penalties_that_kill_components_do_not_make_the_loss_rise(solver, asked):
    for seed in range(4):
        X = np.random.default_rng(seed).random((6, 8))
        result = pw.ssnmf(X, 4, solver=solver, random_state=seed, tol=0, max_iter=30, **asked)
        assert np.all(np.diff(result.losses) <= 1e-10 * np.vdot(X, X))

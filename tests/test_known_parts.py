"""Known components stay bit for bit, and the others fit the residual."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import RECIPES, SETS, TAKEN, UPDATES, one_at_a_time, planted, stats_of
from scipy.optimize import nnls

import partwise as pw
from partwise.data import as_data
from partwise.engine.starts import STARTS, starting_factors
from partwise.engine.validation import as_known
from partwise.projections import Nonnegative
from partwise.statistics import Stats
from partwise.updates import Columns, Known, Partly, Sequential
from partwise.updates.interface import Kept

R = 5
WHICH = (1, 3)
FEW = ("ssnmf, free", "ssnmf", "ssnmf, activations", "ssnmf, each its own", "ssnmf, faithful", "ssnmf, penalised")
FEW += ("nmfsc, free", "nmfsc", "nmfsc, activations", "nmfsc, both", "tpc", "tpc, activations", "l0", "l0, sequential")
FEW += (
    "nnsc, activations, sequential",
    "nnsc, components, hoyer",
    "snmf",
    "l0, reverse",
    "l0_path, activations, refit",
)
quiet = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng).X


def rows(X, which=WHICH, seed=1, count=R):
    """Known components of any norm at the rows ``which``; NaN elsewhere."""
    given = np.full((count, X.shape[1]), np.nan)
    given[list(which)] = np.random.default_rng(seed).random((len(which), X.shape[1])) * 3
    return given


@pytest.mark.parametrize(("name", "sets"), TAKEN)
def test_update_fits_the_residual_of_the_known_columns(name, sets, rng):
    X, update, columns = planted(rng).X, UPDATES[name], SETS[sets](R)
    factors = [np.asfortranarray(rng.random((n, R))) for n in X.shape]
    factors[1] = columns.project(factors[1])
    known = Known(WHICH, rng.random((X.shape[1], 2)))
    known.put(factors[1])
    before, free = factors[1].copy(order="F"), [0, 2, 4]
    stats = stats_of(X, factors, 1)
    moved, state = Partly(update)(factors[1], stats, known.kept(columns), {})
    left = X - factors[0][:, list(WHICH)] @ known.columns.T
    alone = stats_of(left, [f[:, free] for f in (factors[0], before)], 1)
    wanted, _ = update(before[:, free].copy(order="F"), alone, Columns(tuple(columns[j] for j in free)), {})
    np.testing.assert_allclose(moved[:, free], wanted, atol=1e-8)
    np.testing.assert_array_equal(moved[:, WHICH], known.columns)
    assert stats.loss(moved) <= stats.loss(before) * (1 + 1e-12)
    again, _ = Partly(update)(moved, stats, known.kept(columns), state)  # the state is the update's own
    np.testing.assert_array_equal(again[:, WHICH], known.columns)


def test_the_loss_of_the_free_columns_is_the_loss(X, rng):
    seen = []

    class Spy:
        def __call__(self, factor, stats, sets, state):
            seen.append(stats.loss(factor))
            return factor, state

    factors = [np.asfortranarray(rng.random((n, R))) for n in X.shape]
    stats = stats_of(X, factors, 0)
    known = Known(WHICH, factors[0][:, WHICH])
    Partly(Spy())(factors[0], stats, known.kept(Columns.same(Nonnegative(), R)), {})
    assert seen[0] == pytest.approx(0.5 * np.sum((X - factors[0] @ factors[1].T) ** 2))


def test_sets_of_kept_columns():
    sets = Columns((Nonnegative(), Kept(), pw.Hoyer(0.5)))
    assert (sets.kept, sets.nonnegative, sets.unit_norm, sets.scale_free) == ((1,), False, False, False)
    assert Columns((Kept(), Nonnegative())).by_rows
    assert Columns((Kept(), Nonnegative())).scale_free
    assert Columns((Kept(), pw.Hoyer(0.5))).unit_norm
    assert not Partly(Sequential(order="random")).separable
    assert Partly(Sequential()).separable


@quiet
@one_at_a_time(name=FEW, dtype=[np.float64, np.float32])
def test_known_components_stay_and_loss_decreases(name, dtype, rng):
    X, recipe = planted(rng).X.astype(dtype), RECIPES[name]
    given = rows(X)
    result = recipe(X, R, fixed_components=given, max_iter=8, tol=0)
    np.testing.assert_array_equal(result.components[list(WHICH)], given[list(WHICH)].astype(dtype))
    assert all(np.isfinite(f).all() and f.min() >= 0 for f in result.factors)
    if recipe.falls:
        assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0] if dtype == np.float64 else 1e-4 * X.size)
    residual = np.linalg.norm(X - result.activations.astype(float) @ result.components)
    assert result.relative_error == pytest.approx(residual / np.linalg.norm(X), rel=1e-3)


@pytest.mark.parametrize("name", ["ssnmf, free", "ssnmf", "nmfsc, free", "l0, sequential", "snmf"])
def test_known_activations_stay(X, name):
    given = rows(X.T).T
    result = RECIPES[name](X, R, fixed_activations=given, max_iter=8, tol=0)
    np.testing.assert_array_equal(result.activations[:, WHICH], given[:, WHICH])
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])


def test_sparsity_is_exact_and_the_scale_is_on_the_other_side(X):
    result = pw.ssnmf(X, R, sparsity=0.6, fixed_components=rows(X), random_state=0)
    free = [0, 2, 4]
    np.testing.assert_allclose(result.sparsity[free], 0.6, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(result.components[free], axis=1), 1)
    result = pw.ssnmf(X, R, activation_sparsity=0.4, fixed_components=rows(X), random_state=0)
    np.testing.assert_allclose(result.activation_sparsity, 0.4, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(result.activations[:, free], axis=0), 1)
    assert abs(np.linalg.norm(result.activations[:, WHICH], axis=0) - 1).min() > 1e-3
    result = pw.ssnmf(X, R, sparsity=0.6, fixed_activations=rows(X.T).T, random_state=0)
    np.testing.assert_allclose(result.sparsity, 0.6, atol=1e-10)
    result = pw.ssnmf(X, R, fixed_components=rows(X), random_state=0)
    np.testing.assert_allclose(np.linalg.norm(result.components[free], axis=1), 1)


@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_norm_of_a_known_component_does_not_matter(X, sparsity):
    unit = 64.0
    fits = [
        pw.ssnmf(X, R, sparsity=sparsity, fixed_components=rows(X) * c, max_iter=10, tol=0, random_state=0)
        for c in (1, unit)
    ]
    np.testing.assert_allclose(fits[0].losses, fits[1].losses, rtol=1e-8)
    np.testing.assert_allclose(fits[0].activations[:, WHICH], fits[1].activations[:, WHICH] * unit, atol=1e-8)


def test_all_components_known_is_nonnegative_least_squares(X):
    given = rows(X, range(R))
    result = pw.ssnmf(X, R, fixed_components=given, solver="pivot", random_state=0)
    wanted = np.array([nnls(given.T, x)[0] for x in X])
    np.testing.assert_allclose(result.activations, wanted, atol=1e-8)
    np.testing.assert_array_equal(result.components, given)
    whole = pw.ssnmf(X, R, fixed_components=given, fixed_activations=wanted, max_iter=3, random_state=0)
    np.testing.assert_array_equal(whole.activations, wanted)


def test_fewer_rows_are_the_first_components_and_none_is_the_plain_fit(X):
    given = rows(X, (0, 1))
    fits = [pw.ssnmf(X, R, sparsity=0.5, fixed_components=f, random_state=0) for f in (given, given[:2])]
    np.testing.assert_array_equal(*(f.components for f in fits))
    plain = [pw.ssnmf(X, R, sparsity=0.5, random_state=0, **o) for o in ({}, {"fixed_components": rows(X, ())})]
    np.testing.assert_array_equal(*(f.components for f in plain))
    sparse = pw.ssnmf(X, R, sparsity=0.5, fixed_components=sp.csr_array(given[:2]), random_state=0)
    np.testing.assert_array_equal(sparse.components, fits[0].components)


def test_remaining_components_are_recovered(rng):
    truth = np.where(rng.random((4, 40)) < 0.3, rng.random((4, 40)), 0)
    X = rng.random((60, 4)) ** 3 @ truth
    result = pw.ssnmf(X, 4, fixed_components=truth[:3], random_state=0, max_iter=500, tol=1e-9)
    cosine = truth[3] @ result.components[3] / np.linalg.norm(truth[3]) / np.linalg.norm(result.components[3])
    assert cosine > 0.999


@pytest.mark.parametrize("start", STARTS)
def test_starts_keep_what_is_known(X, start, rng):
    known = [Known((0, 2), rng.random((len(X), 2))), Known((2,), rng.random((X.shape[1], 1)))]
    for given in (pw.Hoyer(0.5), Nonnegative()):
        sets = [k.kept(Columns.same(given, R)) for k in known]
        factors = starting_factors(start, as_data(X), R, sets, rng, known)
        for factor, k in zip(factors, known, strict=True):
            np.testing.assert_array_equal(factor[:, k.which], k.columns)
    factors = starting_factors((np.ones((len(X), R)), np.ones((R, X.shape[1]))), as_data(X), R, sets, rng, known)
    np.testing.assert_array_equal(factors[1][:, 2], known[1].columns[:, 0])


def test_start_covers_what_known_components_do_not_explain(rng):
    parts = np.eye(4)[:, [0, 0, 1, 1, 2, 2, 3, 3]]
    X = np.eye(4)[[0] * 20 + [1] * 20 + [2] * 20 + [3]] @ parts
    for seed in range(5):
        result = pw.ssnmf(X, 4, fixed_components=parts[:3], max_iter=1, random_state=seed)
        assert result.components[3, 6] > 0.7


def test_gradual_starts_keep_them_too(X):
    result = pw.ssnmf(X, R, sparsity=0.5, init="gradual", fixed_components=rows(X), random_state=0, max_iter=3)
    np.testing.assert_array_equal(result.components[list(WHICH)], rows(X)[list(WHICH)])


def test_unused_known_component_is_not_restarted(X):
    X[:, :5] = 0
    useless = np.zeros((1, X.shape[1]))
    useless[0, :5] = 2
    result = pw.ssnmf(X, R, sparsity=0.5, fixed_components=useless, random_state=0)
    np.testing.assert_array_equal(result.components[:1], useless)
    assert result.activations[:, 0].max() < 1e-12
    assert result.activations[:, 1:].max(axis=0).min() > 0


@pytest.mark.parametrize("solver", ["hals", "multiplicative", "gradient", "greedy", "pivot"])
def test_every_solver(X, solver):
    result = pw.ssnmf(X, R, fixed_components=rows(X), solver=solver, tol=0, max_iter=200)
    np.testing.assert_array_equal(result.components[list(WHICH)], rows(X)[list(WHICH)])
    assert result.losses[-1] < result.losses[1]


@pytest.mark.parametrize("side", ["fixed_components", "fixed_activations"])
@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_in_chunks_as_in_memory(X, side, sparsity, tmp_path):
    np.save(tmp_path / "x.npy", X)
    given = {side: rows(X) if "comp" in side else rows(X.T).T}
    asked = {"sparsity": sparsity, "max_iter": 10, "tol": 0, "random_state": 0, **given}
    here, there = pw.ssnmf(X, R, **asked), pw.ssnmf(str(tmp_path / "x.npy"), R, memory_limit=X.nbytes // 2, **asked)
    assert there.activations.shape == here.activations.shape
    for a, b in zip(here.factors, there.factors, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    if "act" in side:
        np.testing.assert_array_equal(there.activations[:, WHICH], given[side][:, WHICH])
    else:
        np.testing.assert_array_equal(there.components[list(WHICH)], given[side][list(WHICH)])
    models = [
        pw.SparseNMF(R, sparsity=sparsity, max_iter=10, tol=0, random_state=0, memory_limit=limit, **given)
        for limit in (None, X.nbytes // 2)
    ]
    fits = [m.fit_transform(x) for m, x in zip(models, (X, str(tmp_path / "x.npy")), strict=True)]
    np.testing.assert_allclose(*fits, atol=1e-7)
    if "act" in side:
        np.testing.assert_array_equal(fits[1][:, WHICH], given[side][:, WHICH])


@pytest.mark.compiled
@pytest.mark.parametrize("side", ["fixed_components", "fixed_activations"])
def test_on_dask(X, side):
    da = pytest.importorskip("dask.array")
    given = {side: rows(X) if "comp" in side else rows(X.T).T}
    asked = {"sparsity": 0.5, "max_iter": 6, "tol": 0, "random_state": 0, **given}
    here, there = pw.ssnmf(X, R, **asked), pw.ssnmf(da.from_array(X, chunks=(7, -1)), R, **asked)
    np.testing.assert_allclose(np.asarray(there.activations), here.activations, atol=1e-8)
    np.testing.assert_allclose(there.components, here.components, atol=1e-8)


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_in_mini_batches(X, sparsity):
    model = pw.MiniBatchSparseNMF(R, sparsity=sparsity, fixed_components=rows(X), random_state=0)
    for batch in np.array_split(X, 4):
        model.partial_fit(batch)
        np.testing.assert_array_equal(model.components_[list(WHICH)], rows(X)[list(WHICH)])
        np.testing.assert_allclose(np.linalg.norm(model.components_[[0, 2, 4]], axis=1), 1)
    with pytest.raises(ValueError, match="fixed_components has shape"):
        pw.MiniBatchSparseNMF(R, fixed_components=np.ones(3)).partial_fit(X)


def test_the_estimator_keeps_them_and_solves_new_samples(X):
    given = rows(X)
    model = pw.SparseNMF(R, sparsity=0.5, fixed_components=given, random_state=0)
    activations = model.fit_transform(X)
    np.testing.assert_array_equal(model.components_[list(WHICH)], given[list(WHICH)])
    np.testing.assert_allclose(activations, [nnls(model.components_.T, x)[0] for x in X], atol=1e-8)
    known = rows(X.T).T
    model = pw.SparseNMF(R, fixed_activations=known, random_state=0)
    activations = model.fit_transform(X)
    np.testing.assert_array_equal(activations[:, WHICH], known[:, WHICH])
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - activations @ model.components_))
    np.testing.assert_allclose(model.transform(X[:3]), [nnls(model.components_.T, x)[0] for x in X[:3]], atol=1e-8)


def spoiled(X, value, whole=False):
    given = rows(X)
    given[1, slice(None) if whole else 4] = value
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda X: spoiled(X, -1.0), "row 1 of fixed_components has negative or infinite"),
        (lambda X: spoiled(X, np.inf), "row 1 of fixed_components has negative or infinite"),
        (lambda X: spoiled(X, np.nan), "row 1 of fixed_components has some NaN: give all"),
        (lambda X: spoiled(X, 0.0, whole=True), "row 1 of fixed_components is all zero"),
        (lambda X: rows(X)[:, 1:], r"has shape \(5, 39\): give one row of 40"),
        (lambda X: rows(X)[1], r"has shape \(40,\)"),
        (lambda X: rows(X, count=R + 1), "6 rows for n_components=5"),
        (lambda X: [["a"] * X.shape[1]], "numbers for each known component"),
        (lambda X: "nonsense", "give one row"),
    ],
)
def test_nonsense_is_refused(X, given, message):
    for fit in (pw.ssnmf, lambda X, r, **o: pw.SparseNMF(r, **o).fit(X)):
        with pytest.raises(ValueError, match=message):
            fit(X, R, fixed_components=given(X))


def test_nonsense_of_activations_is_refused(X):
    with pytest.raises(ValueError, match=r"fixed_activations has shape \(5, 30\): give one column of 30"):
        pw.ssnmf(X, R, fixed_activations=rows(X.T))
    with pytest.raises(ValueError, match="column 0 of fixed_activations is all zero"):
        pw.ssnmf(X, R, fixed_activations=np.zeros((len(X), 1)))
    assert as_known(None, R, 3, "fixed_components", np.dtype(float)) is None


@quiet
@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("grouped", "fixed_components"),
        ("grouped", "fixed_activations"),
        ("l0, reverse", "fixed_activations"),
        ("bisparse, diagonal, nnls", "fixed_components"),
        ("nsnmf, kl, 0.5", "fixed_components"),
        ("nsnmf, squared, 0.5", "fixed_activations"),
    ],
)
def test_methods_that_couple_components_raise(X, name, side):
    with pytest.raises(ValueError, match=f"{side} is not available for this method"):
        RECIPES[name](X, R, **{side: rows(X) if "comp" in side else rows(X.T).T})


def test_statistics_are_not_changed(X, rng):
    factors = [np.asfortranarray(rng.random((n, R))) for n in X.shape]
    stats = stats_of(X, factors, 1)
    cross, own = stats.cross.copy(), stats.gram.copy()
    sets = Known(WHICH, factors[1][:, WHICH]).kept(Columns.same(Nonnegative(), R))
    Partly(Sequential())(factors[1], Stats(stats.cross, stats.gram, stats.sqnorm), sets, {})
    np.testing.assert_array_equal(stats.cross, cross)
    np.testing.assert_array_equal(stats.gram, own)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("name", "shape", "side"), [("fixed_components", (1, 7), "row"), ("fixed_activations", (6, 1), "column")]
)
def test_known_parts_of_a_wild_scale_are_named(name, shape, side, dtype, rng):
    X, wild = rng.random((6, 7)).astype(dtype), 1e20 if dtype == np.float32 else 1e150
    for scale in (wild, 1 / wild):
        with pytest.raises(
            ValueError, match=rf"{side} 0 of {name} has the largest value .* safe in {X.dtype} .* rescale"
        ):
            pw.ssnmf(X, 3, **{name: np.full(shape, scale)})

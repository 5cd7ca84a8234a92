"""The Kullback–Leibler divergence: statistics against their definitions, updates, fits, and scikit-learn's numbers."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import KINDS, PROBLEMS, assert_feasible, dense, one_at_a_time, random_factors
from chunked import Watched, seven
from scipy.optimize import minimize
from scipy.special import kl_div
from sklearn.decomposition._nmf import _beta_divergence

import partwise as pw
from partwise.data import as_data
from partwise.data.divergence import DivergenceData, Totals
from partwise.data.logarithms import entropy
from partwise.projections import AtMost, Hoyer, HoyerBetween, Nonnegative
from partwise.recipes import staged
from partwise.recipes.many import fit_many
from partwise.statistics import Stats, gram
from partwise.updates import Columns, Divergence, Newton, Partly

LOSS = "kullback-leibler"
FREE = Columns.same(Nonnegative(), 3)
SETS = {
    "Hoyer": Columns.same(Hoyer(0.5), 3),
    "mixed": Columns((Hoyer(0.2), HoyerBetween(0.3, 0.6), Nonnegative())),
    "at most": Columns.same(AtMost(4), 3),
}


def counts(rng, n=24, m=17, mean=1.5):
    X = rng.poisson(mean * rng.gamma(0.5, 2, (n, 1)) * rng.random((n, m))).astype(float)
    X[2], X[:, 3] = 0, 0
    return X


def tolerance(dtype):
    return 1e-5 if dtype == np.float32 else 1e-12


def holes(X, rng):
    """X with missing entries in three forms, and which are observed."""
    seen = rng.random(X.shape) < 0.8
    seen[1], seen[:, 0] = True, True
    seen[0] = False
    return {
        "NaN": (as_data(np.where(seen, X, np.nan), missing=True), seen),
        "mask": (as_data(np.asfortranarray(X), observed=seen), seen),
        "sparse": (as_data(sp.csr_array(X), observed=sp.csr_array(seen)), seen),
    }


def problems(rng):
    X = counts(rng)
    return {name: (as_data(make(X)), np.ones(X.shape, bool)) for name, make in KINDS.items()} | holes(X, rng)


@pytest.fixture(params=[*KINDS, "NaN", "mask", "sparse"])
def problem(request, rng):
    """Data of each kind, X as an array, what is observed, and factors with zero rows."""
    data, seen = problems(rng)[request.param]
    X = dense(data.matrix)
    factors = random_factors(data.shape, 3, rng, data.dtype)
    factors[0][[2, 5]] = 0
    factors[1][[1, 4]] = 0
    return data, np.where(seen, X, 0), seen, factors


def divergence(X, model, seen):
    return float(kl_div(X, model)[seen].sum())


# statistics


def test_slopes_are_their_definition(problem, rng):
    plain, X, seen, factors = problem
    D = rng.random((3, 3)).astype(plain.dtype)
    data = DivergenceData(plain, D)
    A, P = (f.astype(float) for f in factors)
    model = A @ D @ P.T + data.floor
    rtol = tolerance(plain.dtype)
    for mode, rest in ((0, P @ D.T), (1, A @ D)):
        flip = (lambda array: array.T) if mode else (lambda array: array)
        slopes = data.statistics(factors, [], mode).slopes(factors[mode])
        assert slopes.numerator.dtype == slopes.curvature.dtype == plain.dtype
        np.testing.assert_allclose(slopes.numerator, flip(X / model) @ rest, rtol=10 * rtol)
        np.testing.assert_allclose(
            slopes.curvature, flip(X / model**2) @ (rest * rest.sum(axis=1, keepdims=True)), rtol=10 * rtol
        )
        np.testing.assert_allclose(
            np.broadcast_to(slopes.sums, factors[mode].shape), flip(seen) @ rest, rtol=rtol, atol=rtol
        )
        assert slopes.value == pytest.approx(divergence(X, model, seen), rel=rtol)
        np.testing.assert_allclose(slopes.gram, rest.T @ rest, rtol=rtol)


def test_the_curvature_bounds_the_second_derivatives(rng):
    """The divergence lies below gradient and curvature near the factor, in every direction."""
    data = DivergenceData(as_data(counts(rng)))
    factors = random_factors(data.shape, 3, rng)
    rates = data.statistics(factors, [], 1)
    slopes = rates.slopes(factors[1])
    for _ in range(20):
        step = 1e-4 * rng.standard_normal(factors[1].shape)
        linear = np.vdot(slopes.sums - slopes.numerator, step)
        bound = slopes.value + linear + 0.5 * np.vdot(slopes.curvature, step**2)
        assert rates.loss(np.asfortranarray(factors[1] + step)) <= bound * (1 + 1e-10)


def test_slopes_add_up_over_samples(rng):
    X, (A, P) = counts(rng), random_factors((24, 17), 3, rng)
    floor = DivergenceData(as_data(X)).floor
    whole, first, second = (
        DivergenceData(as_data(X[rows]), floor=floor).statistics([np.asfortranarray(A[rows]), P], [], 1).slopes(P)
        for rows in (slice(None), slice(10), slice(10, None))
    )
    both = first + second
    for name in ("numerator", "sums", "curvature", "value", "gram"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-12)


@pytest.mark.parametrize("X", [np.zeros((4, 3)), np.full((4, 3), 2.0)])
@pytest.mark.parametrize("kind", ["C order", "CSR array"])
def test_constant_data(kind, X, rng):
    data = DivergenceData(as_data(KINDS[kind](X)))
    factors = random_factors((4, 3), 2, rng)
    assert data.loss(data.statistics(factors, [], 0), factors, [], 0) == pytest.approx(
        divergence(X, factors[0] @ factors[1].T, np.ones(X.shape, bool)), rel=1e-12
    )
    assert data.sqnorm == pytest.approx(2 * X.sum(), rel=1e-12)  # all samples are equal
    result = pw.ssnmf(KINDS[kind](X), 1, loss=LOSS, random_state=0)
    np.testing.assert_allclose(result.activations @ result.components, X, atol=1e-12)
    assert result.losses[-1] == pytest.approx(0, abs=1e-12)


def test_what_relative_errors_are_relative_to(problem):
    data, X, seen, _ = problem
    means = X.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    wanted = divergence(X, np.broadcast_to(means, X.shape), seen)
    assert Totals.of(data).divergence == pytest.approx(wanted, rel=tolerance(data.dtype))


def test_entropy(rng):
    x = np.concatenate([rng.gamma(0.1, 1e5, 3000), [0, np.nan, 1e-300, 1e300, 1.0]])
    known = x[x > 0]
    assert entropy(x) == pytest.approx((known * np.log(known)).sum(), rel=1e-14)


def test_scikit_learn_has_the_same_number(rng):
    X = counts(rng, 60, 40)
    for kind in (np.asarray, sp.csr_array):
        result = pw.ssnmf(kind(X), 4, loss=LOSS, random_state=0)
        theirs = _beta_divergence(kind(X), result.activations, np.ascontiguousarray(result.components), 1)
        assert result.losses[-1] == pytest.approx(theirs, rel=1e-10)


# updates


def test_newton_steps_never_raise_the_divergence(problem):
    plain, X, seen, factors = problem
    data = DivergenceData(plain)
    losses = [data.statistics(factors, [], 0).loss(factors[0])]
    for step in range(16):
        rates = data.statistics(factors, [], step % 2)
        factors[step % 2], _ = Newton(1 + step % 3)(factors[step % 2], rates, FREE, {})
        losses.append(rates.loss(factors[step % 2]))
        if step % 2 == 0:  # that of the components is not recorded
            assert rates.value == pytest.approx(losses[-1], rel=tolerance(plain.dtype))
    assert np.isfinite(losses).all()
    assert np.all(np.diff(losses) <= tolerance(plain.dtype) * losses[0])
    assert losses[-1] < 0.5 * losses[0]
    assert min(f.min() for f in factors) >= 0
    model = factors[0].astype(float) @ factors[1].T.astype(float) + data.floor
    assert losses[-1] == pytest.approx(divergence(X, model, seen), rel=10 * tolerance(plain.dtype))


def test_rows_are_solved_exactly(rng):
    """The optimum of each sample, with active constraints, against a general solver and the optimality conditions."""
    X, (_, P) = counts(rng, 12, 15), random_factors((12, 15), 3, rng)
    P[P < 0.4] = 0
    data = DivergenceData(as_data(X))
    rates = data.statistics([None, P], [], 0)
    A, _ = Newton(10_000, 1e-12)(np.zeros((12, 3), order="F"), rates, FREE, {})
    gradient = rates.slopes(A)
    gradient = gradient.sums - gradient.numerator
    covered = X @ (P.sum(axis=1) == 0) == 0  # elsewhere the model is zero where X is not
    assert np.abs(np.where(A > 0, gradient, np.minimum(gradient, 0)))[covered].max() < 1e-8
    assert (A == 0).any()
    for i in np.flatnonzero(covered):
        found = minimize(
            lambda a, x=X[i]: kl_div(x, P @ a + 1e-300).sum(), np.ones(3), bounds=[(0, None)] * 3, method="L-BFGS-B"
        )
        assert kl_div(X[i], P @ A[i] + data.floor).sum() <= found.fun + 1e-9 * (1 + abs(found.fun))


@pytest.mark.parametrize("name", SETS)
def test_steps_in_sets_never_raise_the_divergence(problem, name):
    data, sets = DivergenceData(problem[0]), SETS[name]
    A, P = problem[-1]
    P, state, losses = sets.project(P + 0.1), {}, []
    for _ in range(12):
        A, _ = Newton(2)(A, data.statistics([A, P], [], 0), FREE, {})
        rates = data.statistics([A, P], [], 1)
        losses.append(rates.loss(P))
        P, state = Newton(2)(P, rates, sets, state)
        assert P.dtype == data.dtype
        assert_feasible(P, sets, 1e-10 if data.dtype == np.float64 else 1e-5)
        losses.append(rates.loss(P))
    assert np.all(np.diff(losses) <= tolerance(data.dtype) * losses[0])
    assert losses[-1] < losses[1]
    assert set(state) == {"eta"}


def test_known_columns_stay(rng):
    data = DivergenceData(as_data(counts(rng)))
    A, P = random_factors(data.shape, 3, rng)
    for sets in (FREE, SETS["Hoyer"]):
        kept = pw.updates.Known((1,), P[:, [1]].copy()).kept(sets)
        rates = data.statistics([A, P], [], 1)
        start = kept.project(P.copy(order="F"))
        start[:, 1] = P[:, 1]
        before = rates.loss(start)
        found, _ = Partly(Newton(2))(start.copy(order="F"), rates, kept, {})
        np.testing.assert_array_equal(found[:, 1], P[:, 1])
        assert rates.loss(found) < before
        if sets is FREE:  # as if the known columns were swept over without changing them
            again, _ = Newton(10_000, 1e-12)(
                found[:, [0, 2]].copy(order="F"), rates.beside(found, [1], [0, 2]), sets, {}
            )
            found[:, [0, 2]] = again
            gradient = rates.slopes(found).sums - rates.slopes(found).numerator
            assert np.abs(np.where(found > 0, gradient, np.minimum(gradient, 0)))[:, [0, 2]].max() < 1e-7


def test_a_single_component_is_solved_in_one_sweep(rng):
    X = counts(rng)
    A, P = random_factors(X.shape, 1, rng)
    rates = DivergenceData(as_data(X)).statistics([A, P], [], 0)
    A, _ = Newton(1)(A, rates, Columns.same(Nonnegative(), 1), {})
    np.testing.assert_allclose(A[:, 0], X.sum(axis=1) / P.sum(), rtol=1e-12)


def test_multiplicative_updates(rng):
    X = counts(rng)
    data = DivergenceData(as_data(X), 0.6 * np.eye(3) + 0.4 / 3)
    factors = random_factors(X.shape, 3, rng)
    losses = []
    for step in range(20):
        rates = data.statistics(factors, [], step % 2)
        losses.append(rates.loss(factors[step % 2]))
        factors[step % 2], _ = Divergence()(factors[step % 2], rates, FREE, {})
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    np.testing.assert_allclose((factors[0] @ data.middle @ factors[1].T).sum(), X.sum(), rtol=1e-4)


@pytest.mark.parametrize("update", [Divergence(), Newton()])
def test_updates_refuse_what_they_cannot_use(update, rng):
    factor = np.ones((5, 3), order="F")
    with pytest.raises(ValueError, match="use DivergenceData"):
        update(factor, Stats(factor, np.eye(3), 1.0), FREE, {})
    data = DivergenceData(as_data(counts(rng)))
    factors = random_factors(data.shape, 3, rng)
    rates = data.statistics(factors, [], 0)
    for statistics in (rates, rates.slopes(factors[0]), rates.around(factors[0])):
        assert statistics.penalised(0.0, 0.0, 0.0) is statistics
        for penalty in ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)):
            with pytest.raises(ValueError, match="penalties are not available"):
                statistics.penalised(*penalty)


def test_forms_follow_the_factor(rng):
    """A form kept from one factor is the same function at another one, also under another scale of the columns."""
    data = DivergenceData(as_data(counts(rng)))
    A, P = random_factors(data.shape, 3, rng)
    form = data.statistics([A, P], [], 1).around(P)
    step, other = rng.standard_normal(P.shape), rng.standard_normal(P.shape)

    def value(form, move):
        return np.vdot(form.gradient, move) + 0.5 * np.vdot(form.curvature, move**2)

    moved = form.after(step)
    assert value(moved, other) == pytest.approx(value(form, step + other) - value(form, step), rel=1e-10)
    scale = np.array([1.0, 2.0, 3.0])
    assert value(form.mixed(scale), other / scale) == pytest.approx(value(form, other), rel=1e-10)
    assert value(form.discounted(0.3) + form, other) == pytest.approx(1.3 * value(form, other), rel=1e-10)
    without = form.without(np.array([1]))
    assert not without.gradient[:, 1].any()
    assert not without.gram[1].any()
    np.testing.assert_array_equal(without.curvature[:, 2], form.curvature[:, 2])


# fits


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("sparsity", [None, 0.5, (0.3, 0.6)])
def test_fits_of_all_problems(name, sparsity, rng):
    X, r = PROBLEMS[name](rng)
    with np.errstate(all="raise"):
        result = pw.ssnmf(X, min(r, *X.shape), loss=LOSS, sparsity=sparsity, max_iter=30, random_state=0)
    assert np.isfinite(result.losses).all()
    assert np.all(np.diff(result.losses) <= 1e-12 * X.sum())
    assert result.loss == LOSS
    sets = Columns.same(Hoyer(0.5) if sparsity == 0.5 else HoyerBetween(0.3, 0.6), min(r, *X.shape))
    if sparsity is not None:
        assert_feasible(result.factors[1], sets)
    assert not result.activations[~X.any(axis=1)].any()
    wanted = kl_div(X, np.broadcast_to(X.mean(axis=0), X.shape)).sum()
    assert result.relative_error == pytest.approx(np.sqrt(max(result.losses[-1], 0) / wanted), rel=1e-8, abs=1e-8)


@one_at_a_time(kind=KINDS, sparsity=[None, 0.6])
def test_all_kinds_of_data_give_the_same_fit(kind, sparsity, rng):
    X = counts(rng, 30, 20)
    given = kind(X)
    options = {"loss": "kl", "sparsity": sparsity, "max_iter": 15, "tol": 0, "random_state": 0}
    result, wanted = pw.ssnmf(given, 3, **options), pw.ssnmf(dense(given), 3, **options)
    rtol = 1e-3 if result.components.dtype == np.float32 else 1e-8
    np.testing.assert_allclose(result.losses[1:], wanted.losses[1:], rtol=rtol)
    if rtol < 1e-3:
        np.testing.assert_allclose(result.components, wanted.components, atol=1e-6)


@pytest.mark.parametrize("sparsity", [None, 0.6])
@pytest.mark.parametrize("form", ["NaN", "mask", "sparse"])
def test_missing_entries(form, sparsity, rng):
    X = counts(rng, 40, 20, 3.0)
    data, seen = holes(X, rng)[form]
    result = pw.ssnmf(data, 3, loss=LOSS, sparsity=sparsity, random_state=0)
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])
    model = result.activations @ result.components + DivergenceData(data).floor
    assert result.losses[-1] == pytest.approx(divergence(X, model, seen), rel=1e-10)
    assert not result.activations[0].any()  # a sample without any observed entry


def test_missing_entries_are_not_read(rng):
    X = counts(rng, 40, 20)
    seen = rng.random(X.shape) < 0.8
    options = {"loss": LOSS, "observed": seen, "random_state": 0, "max_iter": 5, "tol": 0}
    first, second = (pw.ssnmf(np.where(seen, X, other), 3, **options) for other in (0.0, 7.0))
    np.testing.assert_array_equal(first.components, second.components)


@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_files(sparsity, rng, tmp_path):
    X = counts(rng, 90, 20)
    np.save(tmp_path / "x.npy", X)
    options = {"loss": LOSS, "sparsity": sparsity, "tol": 0, "random_state": 0}
    read = pw.ssnmf(tmp_path / "x.npy", 3, memory_limit=X.nbytes // 2, max_iter=60, **options)
    here = pw.ssnmf(X, 3, max_iter=60, **options)
    assert read.losses[0] == pytest.approx(here.losses[0], rel=1e-10)
    assert np.all(np.diff(read.losses) <= 1e-12 * read.losses[0])
    assert read.losses[-1] == pytest.approx(here.losses[-1], rel=1e-3)
    assert read.relative_error == pytest.approx(here.relative_error, rel=1e-3)
    assert read.activations.shape == (90, 3)
    if sparsity is not None:
        assert np.abs(read.sparsity - 0.6).max() < 1e-10
    model = pw.SparseNMF(3, memory_limit=X.nbytes // 2, max_iter=20, **options).fit(tmp_path / "x.npy")
    wanted = pw.SparseNMF(3, max_iter=20, **options).fit(X)
    wanted.components_ = model.components_
    assert model.score(tmp_path / "x.npy") == pytest.approx(wanted.score(X), rel=1e-10)
    np.testing.assert_allclose(model.transform(tmp_path / "x.npy"), wanted.transform(X), atol=1e-8)


@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_the_chunks_do_not_matter(sparsity, rng, tmp_path):
    X = counts(rng, 90, 20)
    np.save(tmp_path / "x.npy", X)
    options = {"loss": LOSS, "sparsity": sparsity, "tol": 0, "random_state": 0, "max_iter": 10}
    fits = [pw.ssnmf(tmp_path / "x.npy", 3, memory_limit=X.nbytes // share, **options) for share in (2, 5)]
    np.testing.assert_allclose(fits[0].losses, fits[1].losses, rtol=1e-9)
    np.testing.assert_allclose(fits[0].components, fits[1].components, atol=1e-7)


def test_dask(rng):
    da = pytest.importorskip("dask.array")
    X = counts(rng, 60, 20)
    options = {"loss": LOSS, "sparsity": 0.6, "random_state": 0, "max_iter": 10, "tol": 0}
    with pw.engine.natural.no_advice():
        model = pw.SparseNMF(3, **options)
        activations = model.fit_transform(da.from_array(X, chunks=(25, -1)))
    assert np.all(np.diff(model.loss_curve_) <= 1e-12 * model.loss_curve_[0])
    np.testing.assert_allclose(np.asarray(activations), model.transform(X), atol=1e-8)
    assert model.reconstruction_err_ == pytest.approx(
        np.sqrt(2 * kl_div(X, np.asarray(activations) @ model.components_ + 1e-27).sum()), rel=1e-6
    )


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_fits_resume_bit_for_bit(sparsity, chunked, rng, tmp_path):
    X = counts(rng, 60, 20)
    np.save(tmp_path / "x.npy", X)
    source, limit = (tmp_path / "x.npy", X.nbytes // 2) if chunked else (X, None)
    options = {"loss": LOSS, "sparsity": sparsity, "tol": 0, "random_state": 0, "memory_limit": limit}
    whole = pw.ssnmf(source, 3, max_iter=12, **options)
    pw.ssnmf(source, 3, max_iter=7, checkpoint=tmp_path / "c.pw", **options)
    again = pw.ssnmf(source, 3, max_iter=12, resume_from=tmp_path / "c.pw", **options)
    np.testing.assert_array_equal(whole.components, again.components)
    np.testing.assert_array_equal(whole.activations, again.activations)
    np.testing.assert_array_equal(whole.losses, again.losses)
    with pytest.raises(ValueError, match="loss was kullback-leibler in the checkpoint and is squared now"):
        pw.ssnmf(source, 3, max_iter=12, resume_from=tmp_path / "c.pw", **options | {"loss": "squared"})


@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_fixed_components(sparsity, rng):
    X = counts(rng, 40, 20)
    known = rng.random((1, 20))
    result = pw.ssnmf(X, 3, loss=LOSS, sparsity=sparsity, fixed_components=known, random_state=0, max_iter=20)
    np.testing.assert_array_equal(result.components[0], known[0])
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])
    both = pw.ssnmf(X, 2, loss=LOSS, fixed_components=rng.random((2, 20)), random_state=0)
    assert np.all(np.diff(both.losses) <= 1e-12 * both.losses[0])


def test_dead_components_start_again(rng):
    X = counts(rng, 40, 20)
    A, P = rng.random((40, 3)), rng.random((3, 20))
    A[:, 1] = 0
    P[1] = 0
    result = pw.ssnmf(X, 3, loss=LOSS, init=(A, P), random_state=0)
    assert result.activations.any(axis=0).all()
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])


def test_magnitudes_far_apart(rng):
    """Where a large component leaves, what is left of the model must not be lost to rounding."""
    for dtype in (np.float32, np.float64):
        for _ in range(10):
            X = (10.0 ** rng.integers(-6, 6, (8, 5)) * (rng.random((8, 5)) < 0.7)).astype(dtype)
            X[0, 0] = 1
            model = pw.SparseNMF(4, loss=LOSS, max_iter=12, tol=0, random_state=0)
            activations = model.fit_transform(X)
            assert np.isfinite(activations).all()
            assert min(activations.min(), model.components_.min()) >= 0
            assert np.diff(model.loss_curve_).max() <= tolerance(dtype) * max(model.loss_curve_[0], X.sum())


def test_small_components_are_not_dead(rng):
    """A component may be large where nothing is observed, and small where it matters."""
    X = counts(rng, 20, 10)
    seen = np.ones(X.shape, dtype=bool)
    seen[:, 0] = np.arange(20) < 2
    A, P = rng.random((20, 2)) + 0.1, rng.random((2, 10)) + 0.1
    A[:, 0] *= 1e20
    P[0, 1:] *= 1e-20
    A[:2, 0] = 0
    result = pw.ssnmf(X, 2, loss=LOSS, observed=seen, init=(A, P), max_iter=10, tol=0, random_state=0)
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])


@pytest.mark.compiled
def test_threads_change_only_rounding(rng):
    X = counts(rng, 700, 300)
    options = {"loss": LOSS, "sparsity": 0.6, "max_iter": 5, "tol": 0, "random_state": 0}
    one, two = (pw.ssnmf(X, 4, n_threads=n, **options) for n in (1, 2))
    np.testing.assert_allclose(one.losses, two.losses, rtol=1e-9)
    np.testing.assert_array_equal(pw.ssnmf(X, 4, n_threads=2, **options).components, two.components)


@pytest.mark.compiled
def test_mini_batches(rng, tmp_path):
    X = rng.poisson(rng.gamma(0.3, 1, (600, 3)) @ rng.gamma(0.3, 1, (3, 20)) * 3).astype(float)
    wanted = pw.ssnmf(X, 3, loss=LOSS, sparsity=0.5, random_state=0).losses[-1]
    model = pw.MiniBatchSparseNMF(3, sparsity=0.5, loss=LOSS, batch_size=100, max_iter=15, tol=0, random_state=0).fit(X)
    assert np.abs(model.sparsity_ - 0.5).max() < 1e-10
    assert 0.5 * model.reconstruction_err_**2 < 1.03 * wanted
    assert model.score(X) > 0.9 * pw.SparseNMF(3, sparsity=0.5, loss=LOSS, random_state=0).fit(X).score(X)
    model.partial_fit(X[:100]).save(tmp_path / "m.pw")
    again = pw.load(tmp_path / "m.pw")
    np.testing.assert_array_equal(again.partial_fit(X[100:]).components_, model.partial_fit(X[100:]).components_)
    with pytest.raises(ValueError, match="penalties are not available"):
        pw.MiniBatchSparseNMF(3, sparsity=0.5, loss=LOSS, l1=0.1).fit(X)


@pytest.mark.parametrize("sparsity", [None, 0.6])
def test_large_data_start_from_an_excerpt(sparsity, rng, monkeypatch):
    """In memory and in chunks, the start is the same: of least squares, with the activations of all samples."""
    monkeypatch.setattr(staged, "SAMPLES", 15)
    monkeypatch.setattr(staged, "ENTRIES", 1)
    X = counts(rng, 90, 20)
    options = {"loss": LOSS, "sparsity": sparsity, "tol": 0, "random_state": 0, "max_iter": 30}
    here = pw.ssnmf(X, 3, **options)
    assert np.all(np.diff(here.losses) <= 1e-12 * here.losses[0])
    read = pw.ssnmf(Watched(X), 3, memory_limit=seven(X), **options)
    assert read.losses[0] == pytest.approx(here.losses[0], rel=1e-9)
    assert read.losses[-1] == pytest.approx(here.losses[-1], rel=1e-2)
    monkeypatch.undo()
    assert here.losses[0] != pytest.approx(pw.ssnmf(X, 3, **options).losses[0], rel=1e-3)  # it was an excerpt


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_start_in_single_precision_is_exact_in_double_precision(make, scale, rng):
    """Its factors are in their sets, and scales that single precision does not have are no problem."""
    X, seen = make(counts(rng) * scale), []
    options = {"sparsity": 0.6, "loss": LOSS, "max_iter": 3, "tol": 0, "random_state": 0}
    result = pw.ssnmf(X, 3, **options, callback=lambda one: seen.append(one.factors[1].copy()))
    for parts in (*seen, result.components.T):
        assert parts.dtype == np.float64
        np.testing.assert_allclose(pw.hoyer_sparsity(parts, axis=0), 0.6, atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(parts, axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("sparsity", [None, 0.6])
@pytest.mark.parametrize("kind", ["dense", "csr", "file", "missing"])
def test_fits_side_by_side(kind, sparsity, rng):
    X = counts(rng, 60, 20)
    source = {
        "dense": (X, {}),
        "csr": (sp.csr_array(X), {}),
        "file": (Watched(X), {"memory_limit": seven(X)}),
        "missing": (np.where(rng.random(X.shape) < 0.9, X, np.nan), {"missing": "em"}),
    }
    data, given = source[kind]
    options = {"loss": LOSS, "sparsity": sparsity, "tol": 0, "max_iter": 6, **given}
    runs = [{"n_components": 3, "random_state": seed} for seed in range(3)]
    for one, run in zip(fit_many(data, runs, **options), runs, strict=True):
        alone = pw.ssnmf(data, **run, **options)
        np.testing.assert_allclose(one.losses, alone.losses, rtol=1e-8)
        np.testing.assert_allclose(one.components, alone.components, atol=1e-6 * alone.components.max())


def test_fits_side_by_side_read_a_file_once(rng):
    X = counts(rng, 60, 20)
    one, many = Watched(X), Watched(X)
    limits = {"loss": LOSS, "memory_limit": seven(X), "max_iter": 4, "tol": 0, "init": "random"}
    pw.ssnmf(one, 3, random_state=0, **limits)
    fit_many(many, [{"n_components": 3, "random_state": seed} for seed in range(4)], **limits)
    assert len(many.read) < 2.5 * len(one.read)  # each fit measures the divergence of the means


def test_features_by_name(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(counts(rng), columns=[f"gene {i}" for i in range(17)])
    model = pw.SparseNMF(3, loss=LOSS, sparsity=0.5, random_state=0).fit(X)
    found = model.transform(X[X.columns[::-1]], align="names")
    np.testing.assert_allclose(found, model.transform(X), atol=1e-8)


def test_explore(rng):
    pytest.importorskip("matplotlib")
    X = counts(rng, 60, 20)
    found = pw.explore(X, 3, [0.4, 0.7], loss=LOSS, random_state=0, holdout=0.1)
    facts = json.loads(re.search(r'id="page-data">(.*?)</script>', found.page, re.DOTALL)[1])
    shown = {one["asked"]: one["error"] for one in facts["levels"]}
    for asked, fit in zip(found.sparsities, found.results, strict=True):
        assert np.abs(fit.sparsity - asked).max() < 1e-9
        assert shown[asked] == pytest.approx(fit.relative_error, rel=1e-6)
    assert np.isfinite(found.heldout_errors).all()


@pytest.mark.compiled
def test_select(rng):
    X = rng.poisson(rng.gamma(0.3, 1, (80, 2)) @ rng.gamma(0.3, 1, (2, 25)) * 8 + 0.1).astype(float)
    found = pw.select(X, [1, 2], loss="kl", n_splits=2, n_init=1, random_state=0)
    errors = [row["heldout_error"] for row in found.rows]
    assert errors[1] < errors[0] < 1.05


def test_reports_name_the_loss(rng):
    X = counts(rng)
    model = pw.SparseNMF(3, loss=LOSS, random_state=0).fit(X)
    assert "Kullback–Leibler divergence" in model.report()
    assert pw.plotting.convergence(model).axes[0].get_ylabel() == "loss  Kullback–Leibler divergence"
    assert model.explained_.sum() == pytest.approx(model.score(X), rel=1e-10)


def test_callbacks_see_the_divergence(rng):
    X, seen = counts(rng), []
    result = pw.ssnmf(X, 3, loss=LOSS, random_state=0, max_iter=5, tol=0, callback=seen.append)
    np.testing.assert_array_equal([it.loss for it in seen], result.losses)
    assert seen[-1].relative_error == pytest.approx(result.relative_error, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "poisson"}, "loss='poisson' is not one of 'squared', 'kullback-leibler', 'kl'"),
        ({"loss": "kl", "solver": "pivot"}, "solver is not available with loss='kl'"),
        ({"loss": "kl", "faithful": True}, "faithful is not available"),
        ({"loss": "kl", "activation_sparsity": 0.5}, "activation_sparsity is not available"),
        ({"loss": "kl", "l1": 0.1, "sparsity": 0.5}, "l1 is not available"),
        ({"loss": "kl", "l2": (0.1, 0.1)}, "l2 is not available"),
        ({"loss": "kl", "kkt_tol": 0.1}, "kkt_tol is not available"),
        ({"loss": "kl", "activations": "simplex"}, "activations='simplex' is not available with loss='kl'"),
        ({"loss": "kl", "sample_weight": np.arange(24)}, "weights need the squared loss: omit them"),
        ({"loss": "kl", "negative": "allow"}, "negative='allow' needs the squared loss"),
    ],
)
def test_refused(options, message, rng):
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(counts(rng), 2, **options)


def test_mini_batches_refuse_negative_entries(rng):
    with pytest.raises(ValueError, match="negative='allow' needs the squared loss"):
        pw.MiniBatchSparseNMF(2, loss=LOSS, negative="allow").fit(counts(rng) - 1)


@pytest.mark.parametrize("name", ["nmfsc", "grouped", "snmf"])
def test_other_methods_refuse_the_divergence(name, rng):
    with pytest.raises(ValueError, match="loss='kl' is not available for this method: use ssnmf or nsnmf"):
        getattr(pw, name)(counts(rng), 2, loss="kl", **({"sparsity": 0.5} if name == "grouped" else {}))


@pytest.mark.compiled
def test_the_cost_is_that_of_stored_entries(rng):
    """A sparse X is never made dense: a dense one would take 1.6 GB."""
    X = sp.random_array((20_000, 10_000), density=1e-4, rng=rng, format="csr")
    result = pw.ssnmf(X, 2, loss=LOSS, sparsity=0.3, max_iter=2, tol=0, random_state=0)
    assert np.isfinite(result.losses).all()
    assert gram(result.factors[1]).diagonal() == pytest.approx(1)

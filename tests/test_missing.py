"""Missing entries: statistics of the completed matrix, and an observed loss that never increases."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import RECIPES, divergence, one_of_each, peak_of, planted, random_factors, stats_of, tolerance
from scipy.optimize import nnls
from sklearn.utils.estimator_checks import parametrize_with_checks

import partwise as pw
from partwise.data import Missing, as_data, missing
from partwise.data.missing import MissingDense
from partwise.runtime.threads import fitting_threads
from partwise.statistics import gram

R = 4
quiet = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")


@pytest.fixture(name="X")
def planted_samples(rng):
    X = planted(rng, n=24, m=18, r=R).X
    X[rng.random(X.shape) < 0.2] = 0  # zeros that are observed
    return X


@pytest.fixture(name="seen")
def pattern(X, rng):
    seen = rng.random(X.shape) > 0.3
    seen[3:6] = seen[2]  # samples that share a pattern
    return seen


def holed(X, seen):
    return np.where(seen, X, np.nan)


def with_stored_zeros(X, seen):
    """Observed zeros of X are stored explicitly; unobserved entries have arbitrary values."""
    rows, columns = np.nonzero(seen | (np.arange(X.size).reshape(X.shape) % 7 == 0))
    values = np.where(seen[rows, columns], X[rows, columns], -5.0)
    return sp.csr_array((values, (rows, columns)), shape=X.shape)


KINDS = {  # X and where it is observed → X as it is given, and options
    "NaN": lambda X, seen: (holed(X, seen), {"missing": "em"}),
    "NaN, Fortran order": lambda X, seen: (np.asfortranarray(holed(X, seen)), {"missing": "em"}),
    "NaN, float32": lambda X, seen: (holed(X, seen).astype(np.float32), {"missing": "em"}),
    "mask": lambda X, seen: (X, {"observed": seen}),
    "mask over nonsense": lambda X, seen: (np.where(seen, X, [[-1.0, np.nan, np.inf] * 6]), {"observed": seen}),
    "mask and NaN": lambda X, seen: (
        np.where(seen | (X > 0.3), X, np.nan),
        {"observed": seen | (X <= 0.3), "missing": "em"},
    ),
    "weights": lambda X, seen: (X, {"observed": seen.astype(float)}),
    "lists": lambda X, seen: (X.tolist(), {"observed": seen.astype(int).tolist()}),
    "CSR": lambda X, seen: (sp.csr_array(X), {"observed": sp.csr_array(seen)}),
    "CSC": lambda X, seen: (sp.csc_matrix(X), {"observed": sp.csc_array(seen.astype(int))}),
    "CSR, float32": lambda X, seen: (sp.csr_array(X, dtype=np.float32), {"observed": seen}),
    "CSR, a dense mask": lambda X, seen: (sp.csr_array(X), {"observed": seen}),
    "an array, a sparse mask": lambda X, seen: (X, {"observed": sp.coo_array(seen)}),
    "stored zeros": lambda X, seen: (with_stored_zeros(X, seen), {"observed": seen}),
}


@pytest.fixture(name="clothed", params=KINDS)
def kind(request):
    return KINDS[request.param]


def as_kind(clothed, X, seen):
    given, options = clothed(X, seen)
    return as_data(given, missing=options.get("missing") == "em", observed=options.get("observed"))


@pytest.mark.parametrize("mode", [0, 1])
def test_statistics_are_those_of_the_completed_matrix(X, seen, clothed, mode, rng):
    data = as_kind(clothed, X, seen)
    assert isinstance(data, Missing)
    factors = random_factors(X.shape, R, rng, data.dtype)
    grams = [gram(f) for f in factors]
    model = factors[0].astype(float) @ factors[1].T
    completed, observed = np.where(seen, X, model), 0.5 * np.sum((X - model)[seen] ** 2)
    stats, wanted = data.statistics(factors, grams, mode), stats_of(completed, factors, mode)
    close = {"rtol": 100 * tolerance(data.dtype), "atol": 10 * tolerance(data.dtype)}
    np.testing.assert_allclose(stats.cross, wanted.cross, **close)
    np.testing.assert_allclose(stats.sqnorm, wanted.sqnorm, **close)
    np.testing.assert_allclose([data.loss(stats, factors, grams, mode), stats.loss(factors[mode])], observed, **close)
    assert data.statistics(factors, grams, mode) is stats  # the pass is not made twice
    factors[mode] = random_factors(X.shape, R, rng, data.dtype)[mode]
    grams[mode] = gram(factors[mode])
    observed = 0.5 * np.sum((X - factors[0].astype(float) @ factors[1].T)[seen] ** 2)
    np.testing.assert_allclose(data.loss(stats, factors, grams, mode), observed, **close)
    np.testing.assert_allclose(0.5 * data.squared_error(factors), observed, **close)
    assert stats.loss(factors[mode]) >= observed * (1 - 10 * tolerance(data.dtype))  # a bound from above


SHAPES = {"tall": (40, 12), "wide": (12, 40), "one feature": (9, 1), "one sample": (1, 9)}


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.9])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("lines", [1, 64])
def test_few_and_many_missing_entries_are_completed_alike(shape, share, dtype, mode, lines, rng, monkeypatch):
    """In blocks of samples or of features, whatever the layouts of X and of its mask."""
    monkeypatch.setattr(missing, "CHUNK_ENTRIES", 60)
    monkeypatch.setattr(missing, "LINES", lines)
    X, seen = rng.random(shape).astype(dtype), np.ones(shape, dtype=bool)
    seen.flat[rng.permutation(X.size)[: max(1, int(share * X.size))]] = False
    if shape == (40, 12) and share > 0.1:
        seen[5] = False  # a sample without observed entries
    factors = random_factors(shape, 3, rng, dtype)
    grams, model = [gram(f) for f in factors], factors[0].astype(float) @ factors[1].T
    wanted = stats_of(np.where(seen, X, model), factors, mode)
    observed = 0.5 * np.sum((X - model)[seen] ** 2)
    close = {"rtol": 100 * tolerance(dtype), "atol": 10 * tolerance(dtype)}
    for order in "CF":
        given = np.array(holed(X, seen), order=order)
        for data in (MissingDense(given), *(MissingDense(given, np.array(seen, order=turn)) for turn in "CF")):
            assert (data.listed is None) == (1 - seen.mean() > missing.FEW)
            longer = int(shape[0] < shape[1])
            assert data.along == (longer if lines == 64 else int(not given.flags.c_contiguous))
            stats = data.statistics(factors, grams, mode)
            np.testing.assert_allclose(stats.cross, wanted.cross, **close)
            np.testing.assert_allclose(stats.sqnorm, wanted.sqnorm, **close)
            np.testing.assert_allclose(data.loss(stats, factors, grams, mode), observed, **close)
            np.testing.assert_array_equal(data.matrix, given)  # X itself is not filled


@pytest.mark.parametrize("shape", [(2100, 40), (40, 2100)])
@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.compiled
def test_threads_complete_the_same_matrix(shape, share, mode, rng):
    X, factors = rng.random(shape), random_factors(shape, R, rng)
    data, grams = MissingDense(holed(X, rng.random(shape) > share)), [gram(f) for f in factors]
    found = []
    for threads in (1, 2, 2):
        with fitting_threads(1e9, threads):
            stats, loss = data.completed(factors, grams, mode)
        found.append((stats.cross.copy(), stats.sqnorm, loss))
    for one, two, again in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12)
        np.testing.assert_array_equal(two, again)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_statistics_of_chunks_add_up(X, share, rng):
    seen = rng.random(X.shape) > share
    seen[4] = False
    factors = random_factors(X.shape, R, rng)
    grams = [gram(f) for f in factors]
    whole = MissingDense(holed(X, seen)).statistics(factors, grams, 1)
    pieces = [
        MissingDense(holed(X[a : a + 5], seen[a : a + 5])).sums(
            [factors[0][a : a + 5], factors[1]], [None, grams[1]], 1
        )
        for a in range(0, len(X), 5)
    ]
    total = sum(pieces[1:], pieces[0])
    np.testing.assert_allclose(total.cross, whole.cross, rtol=1e-12)
    np.testing.assert_allclose(total.gram, whole.gram, rtol=1e-12)
    assert total.sqnorm == pytest.approx(whole.sqnorm, rel=1e-12)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_share_the_stored_entries(X, seen, mode, dtype, monkeypatch, rng):
    monkeypatch.setattr("partwise.data.products.LEAST", 4)
    monkeypatch.setattr("partwise.data.observed.LEAST", 4)
    data = as_data(sp.csr_array(X.astype(dtype)), observed=seen)
    factors = random_factors(X.shape, R, rng, dtype)
    residual = np.where(seen, X - factors[0] @ factors[1].T, 0)
    for n_threads in (1, 3):
        out = np.empty((X.shape[mode], R), dtype=dtype, order="F")
        with fitting_threads(np.inf, n_threads):
            squares = data.visit(factors, mode, out)
            assert data.squared_error(factors) == pytest.approx(squares, rel=tolerance(data.dtype))
        assert squares == pytest.approx(np.sum(residual**2), rel=tolerance(data.dtype))
        wanted = (residual.T if mode else residual) @ factors[1 - mode]
        np.testing.assert_allclose(out, wanted, rtol=tolerance(data.dtype), atol=10 * tolerance(data.dtype))


def test_queries_cover_observed_entries_only(X, seen, clothed, rng):
    data = as_kind(clothed, X, seen)
    factors, known = random_factors(X.shape, R, rng, data.dtype), np.where(seen, X, 0)
    residual = np.where(seen, X - factors[0].astype(float) @ factors[1].T, 0)
    close, which = {"rtol": 1e3 * tolerance(data.dtype), "atol": 10 * tolerance(data.dtype)}, np.array([5, 0])
    assert data.peak == pytest.approx(known.max(), rel=1e-6)
    for mode in (0, 1):
        turn, vector = (lambda a, mode=mode: a.T if mode else a), rng.random(X.shape[1 - mode])
        np.testing.assert_array_equal(data.counts(mode), turn(seen).sum(axis=1))
        np.testing.assert_allclose(data.sqnorms(mode), np.sum(turn(known) ** 2, axis=1), **close)
        np.testing.assert_allclose(data.times(vector, mode), turn(known) @ vector, **close)
        np.testing.assert_allclose(data.residual_times([vector], factors, mode), turn(residual) @ vector, **close)
        np.testing.assert_allclose(data.residuals(factors, mode, which), turn(residual)[which].T, **close)
        np.testing.assert_allclose(data.row_errors(factors, None, mode), np.sum(turn(residual) ** 2, axis=1), **close)
        means = np.nanmean(holed(X, seen), axis=0)
        np.testing.assert_allclose(data.vectors(mode, which), turn(np.where(seen, X, means))[which].T, **close)
    few = data.subset(np.array([1, 4]))
    np.testing.assert_allclose(few.sqnorm, np.sum(known[[1, 4]] ** 2), **close)


def test_all_kinds_give_the_same_fit(X, seen, clothed):
    given, options = clothed(X, seen)
    asked = {"sparsity": 0.4, "max_iter": 10, "tol": 0, "random_state": 0}
    found, wanted = pw.ssnmf(given, R, **asked, **options), pw.ssnmf(holed(X, seen), R, missing="em", **asked)
    rough = found.components.dtype == np.float32
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-3 if rough else 1e-10)
    np.testing.assert_allclose(found.components, wanted.components, atol=1e-2 if rough else 1e-9)


WHOLE = {name: recipe for name, recipe in RECIPES.items() if recipe.name not in ("nsnmf", "bisparse")}


@quiet
@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "NaN") for name in WHOLE), *((name, "CSR") for name in one_of_each(WHOLE))]
)
def test_the_observed_loss_falls_in_every_iteration(X, seen, kind, name):
    recipe = RECIPES[name]
    given, options = KINDS[kind](X, seen)
    result = recipe(given, R, max_iter=6, tol=0, **options)
    objective = 0.5 * np.sum((X - result.activations @ result.components)[seen] ** 2)
    if recipe.divergence:
        objective = divergence(X, result.activations @ result.components, float, seen)
    if recipe.penalty is not None:
        objective += recipe.penalty(np.where(seen, X, 0), *result.factors)
    assert result.losses[-1] == pytest.approx(objective, rel=1e-9)
    if recipe.falls:
        assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])
    error = recipe.relative_error(np.where(seen, X, np.nan), result)
    assert result.relative_error == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("solver", ["hals", "multiplicative", "gradient", "greedy", "pivot"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_observed_loss_falls_with_every_solver(X, seen, solver, dtype):
    result = pw.ssnmf(holed(X, seen).astype(dtype), R, missing="em", solver=solver, max_iter=15, tol=0, random_state=0)
    assert result.components.dtype == dtype
    assert np.all(np.diff(result.losses) <= tolerance(dtype) * result.losses[0])
    assert result.losses[-1] < 0.5 * result.losses[0]


@pytest.mark.parametrize("kind", ["NaN", "mask", "CSR", "an array, a sparse mask"])
def test_without_missing_entries_the_fit_is_plain(X, kind):
    given, options = KINDS[kind](X, np.ones(X.shape, dtype=bool))
    asked = {"sparsity": 0.5, "max_iter": 8, "tol": 0, "random_state": 0}
    found, wanted = pw.ssnmf(given, R, **asked, **options), pw.ssnmf(given, R, **asked)
    for a, b in zip(found.factors, wanted.factors, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.compiled
def test_missing_entries_are_predicted_to_the_noise_level(share, sparse):
    rng, noise = np.random.default_rng(1), 0.02
    truth = np.where(rng.random((R, 60)) < 0.3, rng.random((R, 60)), 0)
    X = np.maximum(rng.random((200, R)) ** 2 @ truth + noise * rng.standard_normal((200, 60)), 0)
    seen = rng.random(X.shape) > share
    result = pw.ssnmf(sp.csr_array(X) if sparse else X, R, observed=sp.csr_array(seen), random_state=0)
    missed = (result.activations @ result.components - X)[~seen]
    assert np.sqrt(np.mean(missed**2)) < 1.15 * noise
    assert result.n_iter <= 200


def test_transform_solves_what_is_observed_of_each_sample_exactly(X, seen, clothed):
    given, options = clothed(X, seen)
    mask = options.pop("observed", None)
    model = pw.SparseNMF(R, sparsity=0.4, random_state=0, max_iter=20, tol=0, **options)
    activations = model.fit_transform(given, observed=mask)
    rough = 1e-3 if activations.dtype == np.float32 else 1e-8
    parts = model.components_.T.astype(float)
    wanted = np.array([nnls(parts[s], x[s])[0] for x, s in zip(X, seen, strict=True)])
    np.testing.assert_allclose(activations, wanted, atol=rough)
    np.testing.assert_allclose(model.transform(given, observed=mask), wanted, atol=rough)
    residual = (X - wanted @ parts.T)[seen]
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual), rel=rough)
    assert model.score(given, observed=mask) == pytest.approx(1 - np.sum(residual**2) / np.sum(X[seen] ** 2), rel=rough)
    assert model.explained_.sum() == pytest.approx(model.score(given, observed=mask), rel=10 * rough)


def test_fit_transform_with_constrained_activations(X, seen):
    model = pw.SparseNMF(R, activation_sparsity=0.3, missing="em", random_state=0, max_iter=20, tol=0)
    activations = model.fit_transform(holed(X, seen))
    residual = (X - activations @ model.components_)[seen]
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual), rel=1e-9)
    assert model.explained_.sum() == pytest.approx(1 - np.sum(residual**2) / np.sum(X[seen] ** 2), rel=1e-9)


def test_a_sample_that_is_missing_altogether_has_no_activations(X, seen, clothed):
    seen[7] = False
    given, options = clothed(X, seen)
    result = pw.ssnmf(given, R, random_state=0, max_iter=5, tol=0, **options)
    assert not result.activations[7].any()
    assert np.isfinite(result.components).all()
    mask = options.pop("observed", None)
    model = pw.SparseNMF(R, random_state=0, max_iter=5, tol=0, **options).fit(given, observed=mask)
    assert not model.transform(given, observed=mask)[7].any()


def test_such_a_sample_keeps_known_activations_and_may_come_from_a_file(X, seen, tmp_path):
    seen[7] = False
    known = np.ones((len(X), 1))
    result = pw.ssnmf(holed(X, seen), R, missing="em", fixed_activations=known, max_iter=3, tol=0, random_state=0)
    np.testing.assert_array_equal(result.activations[:, :1], known)
    np.save(tmp_path / "x.npy", holed(X, seen))
    result = pw.ssnmf(str(tmp_path / "x.npy"), R, missing="em", memory_limit=X.nbytes // 2, max_iter=3, random_state=0)
    assert not result.activations[7].any()


def test_a_feature_that_is_missing_altogether_is_refused(X, seen, clothed):
    seen[:, [2, 9]] = False
    given, options = clothed(X, seen)
    with pytest.raises(ValueError, match=r"2 of the features of X \(2, 9\) are missing in all samples"):
        pw.ssnmf(given, R, **options)


def test_such_a_feature_is_refused_in_a_file_and_taken_in_new_samples(X, seen, tmp_path):
    seen[:, [2, 9]] = False
    np.save(tmp_path / "x.npy", holed(X, seen))
    with pytest.raises(ValueError, match="missing in all samples"):
        pw.ssnmf(str(tmp_path / "x.npy"), R, missing="em", memory_limit=X.nbytes // 2)
    model = pw.SparseNMF(R, missing="em", max_iter=3, tol=0, random_state=0).fit(X)
    wanted = np.array([nnls(model.components_.T[s], x[s])[0] for x, s in zip(X, seen, strict=True)])
    np.testing.assert_allclose(model.transform(holed(X, seen)), wanted, atol=1e-8)  # new samples may lack features


def test_dead_components_start_again_where_the_fit_is_worst(X, seen, clothed, rng):
    given, options = clothed(X, seen)
    activations, components = rng.random((len(X), R)), rng.random((R, X.shape[1]))
    activations[:, 1] = 0
    asked = {"max_iter": 5, "tol": 0, "solver": "multiplicative", "init": (activations, components)}
    result = pw.ssnmf(given, R, **asked, **options)
    assert result.activations[:, 1].max() > 0
    assert np.all(np.diff(result.losses) <= 1e-4 * result.losses[0])


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("sparsity", [None, 0.4])
def test_in_chunks_as_in_memory(X, seen, rows, sparsity, tmp_path):
    np.save(tmp_path / "x.npy", holed(X, seen))
    path, limit = str(tmp_path / "x.npy"), 4 * rows * X[0].nbytes
    asked = {"sparsity": sparsity, "max_iter": 10, "tol": 0, "random_state": 0, "missing": "em", "accelerate": False}
    here, there = pw.ssnmf(holed(X, seen), R, **asked), pw.ssnmf(path, R, memory_limit=limit, **asked)
    np.testing.assert_allclose(there.losses, here.losses, rtol=1e-9)
    for a, b in zip(here.factors, there.factors, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    models = [pw.SparseNMF(R, memory_limit=size, **asked) for size in (None, limit)]
    found = [m.fit_transform(x) for m, x in zip(models, (holed(X, seen), path), strict=True)]
    np.testing.assert_allclose(*found, atol=1e-7)
    assert models[0].reconstruction_err_ == pytest.approx(models[1].reconstruction_err_)
    np.testing.assert_allclose(models[0].explained_, models[1].explained_, atol=1e-8)


def test_chunks_without_missing_entries(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    asked = {"sparsity": 0.4, "max_iter": 6, "tol": 0, "random_state": 0, "memory_limit": X.nbytes // 2}
    plain, em = (pw.ssnmf(str(tmp_path / "x.npy"), R, missing=missing, **asked) for missing in ("error", "em"))
    for a, b in zip(plain.factors, em.factors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_dead_components_start_again_in_chunks(X, seen, tmp_path, rng):
    np.save(tmp_path / "x.npy", holed(X, seen))
    activations, components = rng.random((len(X), R)), rng.random((R, X.shape[1]))
    activations[:, 1] = 0
    asked = {"max_iter": 4, "tol": 0, "missing": "em", "init": (activations, components), "solver": "multiplicative"}
    here = pw.ssnmf(holed(X, seen), R, **asked)
    there = pw.ssnmf(str(tmp_path / "x.npy"), R, memory_limit=X.nbytes // 2, **asked)
    np.testing.assert_allclose(there.losses, here.losses, rtol=1e-8)
    assert there.activations[:, 1].max() > 0


@pytest.mark.compiled
def test_on_dask(X, seen):
    da = pytest.importorskip("dask.array")
    asked = {"sparsity": 0.4, "max_iter": 6, "tol": 0, "random_state": 0, "missing": "em", "accelerate": False}
    here = pw.ssnmf(holed(X, seen), R, **asked)
    there = pw.ssnmf(da.from_array(holed(X, seen), chunks=(7, -1)), R, **asked)
    np.testing.assert_allclose(np.asarray(there.activations), here.activations, atol=1e-8)
    np.testing.assert_allclose(there.losses, here.losses, rtol=1e-9)


def test_mini_batches(X, seen):
    model = pw.MiniBatchSparseNMF(R, sparsity=0.4, missing="em", batch_size=6, max_iter=40, tol=0, random_state=0)
    model.fit(holed(X, seen))
    batch = pw.SparseNMF(R, sparsity=0.4, missing="em", random_state=0).fit(holed(X, seen))
    assert model.reconstruction_err_ <= 1.3 * batch.reconstruction_err_
    np.testing.assert_allclose(model.sparsity_, 0.4, atol=1e-10)
    with pytest.raises(ValueError, match="missing in all samples"):
        model.fit(np.where(np.arange(X.shape[1]) == 3, np.nan, X))


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.compiled
def test_memory_of_one_chunk(share, rng):
    X = rng.random((3000, 1000))
    X[rng.random(X.shape) < share] = np.nan

    def passes(X):
        data, factors = as_data(X, missing=True), random_factors(X.shape, R, rng)
        grams = [gram(f) for f in factors]
        return lambda: [data.squared_error(factors), *(data.statistics(factors, grams, mode) for mode in (0, 1))]

    passes(X[:20])()  # kernels that are loaded are not counted
    assert peak_of(passes(X)) < 0.4 * X.nbytes


def test_nan_error_says_what_to_do(X, seen):
    for fit in (pw.ssnmf, lambda X, r: pw.SparseNMF(r).fit(X), lambda X, r: pw.MiniBatchSparseNMF(r).partial_fit(X)):
        with pytest.raises(ValueError, match=r"contains NaN, first at row 0, column .*missing='em'"):
            fit(holed(X, seen), R)
    bad = holed(X, seen)
    bad[4, 2] = -1
    with pytest.raises(ValueError, match=r"X\[4, 2\] is -1"):
        pw.ssnmf(bad, R, missing="em")
    bad[4, 2] = np.inf
    with pytest.raises(ValueError, match="infinity, first at row 4, column 2"):
        pw.ssnmf(bad, R, missing="em")
    with pytest.raises(ValueError, match="contains NaN"):
        pw.ssnmf(sp.csr_array(np.where(seen, X, np.nan)), R, missing="em")  # a sparse X needs a mask
    with pytest.raises(ValueError, match="missing='maybe'"):
        pw.ssnmf(X, R, missing="maybe")
    with pytest.raises(ValueError, match="missing='maybe'"):
        pw.SparseNMF(R, missing="maybe").fit(X)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (lambda seen: seen[1:], r"observed has shape \(23, 18\) and X has \(24, 18\)"),
        (lambda seen: 0.5 * seen, "values other than 0 and 1"),
        (lambda seen: np.where(seen, 1.0, np.nan), "values other than 0 and 1"),
        (lambda seen: sp.csr_array(2 * seen), "values other than 0 and 1"),
        (lambda seen: seen.astype(str), "values other than 0 and 1"),
        (lambda seen: np.zeros_like(seen), "missing in all samples"),
    ],
)
def test_bad_masks_are_rejected(X, seen, mask, message):
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(X, R, observed=mask(seen))


@pytest.mark.parametrize("mask", [None, np.ones((3, 4), dtype=bool)])
def test_masked_arrays_are_refused_and_not_filled(mask):
    X = np.ma.masked_array(np.ones((3, 4)), mask=np.eye(3, 4))
    for fit in (lambda X, mask: pw.ssnmf(X, 2, observed=mask), lambda X, mask: pw.SparseNMF(2).fit(X, observed=mask)):
        with pytest.raises(ValueError, match="mask would be ignored: fill or remove"):
            fit(X, mask)
    with pytest.raises(ValueError, match="mask would be ignored"):
        pw.MiniBatchSparseNMF(2).partial_fit(X)


def test_methods_that_need_all_entries_raise(X, seen, tmp_path):
    for name in ("nsnmf, kl, 0.5", "nsnmf, squared, 0.5", "bisparse, diagonal, nnls"):
        with pytest.raises(ValueError, match="needs all entries of X"):
            RECIPES[name](holed(X, seen), R, missing="em")
    with pytest.raises(ValueError, match="init='nndsvd' needs all entries"):
        pw.ssnmf(X, R, observed=seen, init="nndsvd")
    np.save(tmp_path / "x.npy", holed(X, seen))
    with pytest.raises(ValueError, match="observed= needs X in memory"):
        pw.ssnmf(str(tmp_path / "x.npy"), R, observed=seen, memory_limit=X.nbytes // 2)
    with pytest.raises(ValueError, match="missing entries and is read in chunks"):
        pw.nmfsc(str(tmp_path / "x.npy"), R, missing="em", memory_limit=X.nbytes // 2)


def test_with_known_parts(X, seen, rng):
    known = rng.random((2, X.shape[1]))
    result = pw.ssnmf(X, R, observed=seen, sparsity=0.4, fixed_components=known, max_iter=10, tol=0, random_state=0)
    np.testing.assert_array_equal(result.components[:2], known)
    assert np.all(np.diff(result.losses) <= 1e-12 * result.losses[0])


def test_tags_follow_missing():
    assert pw.SparseNMF(missing="em").__sklearn_tags__().input_tags.allow_nan
    assert not pw.SparseNMF().__sklearn_tags__().input_tags.allow_nan


@parametrize_with_checks(
    [pw.SparseNMF(2, max_iter=50, missing="em"), pw.MiniBatchSparseNMF(2, missing="em")],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "starts depend on the number of samples",
        "check_sample_weight_equivalence_on_sparse_data": "starts depend on the number of samples",
    },
)
@quiet
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)

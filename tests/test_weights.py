"""Weighted least squares: what equals what, descent, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, SETS, assert_feasible, random_factors

import partwise as pw
from partwise.data import DenseData, WeightedDense, as_data
from partwise.updates import Weighted

RNG = np.random.default_rng(0)
X = np.where(RNG.random((30, 4)) < 0.6, RNG.random((30, 4)), 0) @ RNG.random((4, 20)) + 0.05 * RNG.random((30, 20))
V = RNG.exponential(size=X.shape)
ONCE = {"accelerate": False, "component_sweeps": 1, "activation_sweeps": 1, "tol": 0}
INIT = (RNG.random((30, 4)), RNG.random((4, 20)))


def weighted_loss(X, V, result):
    return 0.5 * np.sum(V * (X - result.activations.astype(float) @ result.components.astype(float)) ** 2)


def data_of(X, V):
    data = as_data(X, weights=(V, None, None))
    assert isinstance(data, WeightedDense)
    return data


# The statistics and the update


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", [0, 1])
def test_statistics_by_their_definition(mode, dtype, order):
    factors = random_factors(X.shape, 3, np.random.default_rng(1), dtype)
    stats = data_of(np.asarray(X, dtype, order), V).statistics(factors, [], mode)
    rest, v, x = factors[1 - mode], (V.T if mode else V), (X.T if mode else X)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(stats.cross, (v * x) @ rest, rtol=tolerance)
    for j in range(3):
        grams = np.einsum("fi,i,il->fl", v, rest[:, j], rest)
        np.testing.assert_allclose(stats.grams(j), grams, rtol=tolerance)


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_update_is_feasible_and_descends(problem, sets):
    rng = np.random.default_rng(2)
    X, r = PROBLEMS[problem](rng)
    data = data_of(X, rng.exponential(size=X.shape) * (rng.random(X.shape) < 0.8) + (X.max() == X))
    columns = SETS[sets](r)
    factors = [random_factors(X.shape, r, rng)[0], columns.project(random_factors(X.shape, r, rng)[1])]
    loss = 0.5 * data.squared_error(factors)
    for _ in range(4):
        stats = data.statistics(factors, [], 1)
        factors[1], _ = Weighted()(factors[1], stats, columns, {})
        assert_feasible(factors[1], columns)
        assert 0.5 * data.squared_error(factors) <= loss * (1 + 1e-12) + 1e-14 * data.sqnorm
        loss = 0.5 * data.squared_error(factors)


# What equals what


@pytest.mark.parametrize("sparsity", [None, 0.5, (0.3, 0.6)])
def test_a_doubled_sample_equals_weight_two(sparsity):
    weight = np.ones(len(X))
    weight[3] = 2
    twice = [np.vstack([rows, rows[3:4]]) for rows in (X, INIT[0])]
    one = pw.ssnmf(X, 4, sparsity=sparsity, sample_weight=weight, init=INIT, max_iter=15, **ONCE)
    other = pw.ssnmf(twice[0], 4, sparsity=sparsity, init=(twice[1], INIT[1]), max_iter=15, **ONCE)
    np.testing.assert_allclose(one.components, other.components, atol=1e-10)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-10)


def test_constant_weights_are_the_unweighted_path():
    plain = pw.ssnmf(X, 4, sparsity=0.5, random_state=0)
    for weights in ({"weights": np.full(X.shape, 3.0)}, {"sample_weight": np.ones(30), "feature_weight": [2] * 20}):
        other = pw.ssnmf(X, 4, sparsity=0.5, random_state=0, **weights)
        np.testing.assert_array_equal(other.components, plain.components)
        np.testing.assert_array_equal(other.losses, plain.losses)
    assert type(as_data(X, weights=(np.ones(X.shape), None, None))) is DenseData


def test_products_of_vectors_equal_their_matrix():
    samples, features = RNG.random(30), RNG.random(20)
    one = pw.ssnmf(X, 4, sparsity=0.5, sample_weight=samples, feature_weight=features, random_state=0)
    other = pw.ssnmf(X, 4, sparsity=0.5, weights=np.outer(samples, features), random_state=0)
    np.testing.assert_allclose(one.components, other.components, atol=1e-6)


def test_nan_has_weight_zero_and_such_values_do_not_matter():
    hidden = np.random.default_rng(3).random(X.shape) < 0.2
    one = pw.ssnmf(np.where(hidden, np.nan, X), 4, weights=V, random_state=0)
    other = pw.ssnmf(np.where(hidden, 1e6, X), 4, weights=np.where(hidden, 0, V), random_state=0)
    np.testing.assert_allclose(one.components, other.components, atol=1e-10)
    assert one.losses[-1] == pytest.approx(weighted_loss(X, np.where(hidden, 0, V), one))


SEEN = np.random.default_rng(6).random(X.shape) > 0.4
HELD = np.random.default_rng(7).random(30) > 0.3
GAPS = np.where(np.random.default_rng(8).random(X.shape) < 0.1, np.nan, X)
MASKS = {  # X, weights, and the observed mask that they stand for
    "booleans": (X, {"weights": SEEN}, SEEN),
    "one other value": (X, {"weights": 0.3 * SEEN}, SEEN),
    "Fortran order": (np.asfortranarray(X), {"weights": SEEN}, SEEN),
    "single precision": (X.astype(np.float32), {"weights": 7 * SEEN}, SEEN),
    "values that do not matter": (np.where(SEEN, X, -np.inf), {"weights": SEEN}, SEEN),
    "NaN": (GAPS, {"weights": SEEN}, SEEN & ~np.isnan(GAPS)),
    "NaN of another weight": (GAPS, {"weights": np.where(np.isnan(GAPS), 5, 2)}, ~np.isnan(GAPS)),
    "samples": (X, {"sample_weight": 2 * HELD, "feature_weight": [3] * 20}, np.outer(HELD, np.ones(20))),
    "samples and NaN": (GAPS, {"sample_weight": HELD}, HELD[:, None] & ~np.isnan(GAPS)),
}
ASKED = {
    "no sparsity": {},
    "sparsity": {"sparsity": 0.5},
    "sparse activations": {"activation_sparsity": 0.4},
    "penalty": {"sparsity": 0.5, "l1": 0.02},
    "known components": {"fixed_components": np.full((1, 20), 0.2)},
    "simplex": {"activations": "simplex"},
    "bound": {"max_activation": 0.5},
    "divergence": {"loss": "kl", "sparsity": 0.5},
    "solver": {"solver": "pivot"},
    "kkt_tol": {"kkt_tol": 1e-3},
}


def equal_results(one, other):
    for a, b in zip([*one.factors, one.losses], [*other.factors, other.losses], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mask", MASKS)
def test_weights_of_zero_and_one_other_value_are_an_observed_mask(mask):
    given, weights, seen = MASKS[mask]
    asked = {"sparsity": 0.5, "random_state": 0, "max_iter": 20}
    equal_results(pw.ssnmf(given, 4, **weights, **asked), pw.ssnmf(given, 4, observed=seen, **asked))


@pytest.mark.parametrize("asked", ASKED)
def test_they_can_be_combined_with_all_that_missing_entries_can(asked):
    for weights, seen in (({"weights": SEEN}, SEEN), ({"sample_weight": HELD}, np.outer(HELD, np.ones(20)))):
        fits = [
            pw.ssnmf(X, 4, **ASKED[asked], **given, random_state=0, max_iter=10)
            for given in (weights, {"observed": seen})
        ]
        equal_results(*fits)
    equal_results(
        pw.nmfsc(X, 4, sparsity=0.5, weights=SEEN, max_iter=5, random_state=0),
        pw.nmfsc(X, 4, sparsity=0.5, observed=SEEN, max_iter=5, random_state=0),
    )


def test_an_estimator_with_such_weights_is_that_of_missing_entries(tmp_path):
    models = [pw.SparseNMF(4, sparsity=0.5, random_state=0) for _ in range(2)]
    both = [model.fit_transform(X, **{way: SEEN}) for model, way in zip(models, ("weights", "observed"), strict=True)]
    np.testing.assert_array_equal(*both)
    assert models[0].reconstruction_err_ == models[1].reconstruction_err_
    np.testing.assert_array_equal(*(model.transform(X) for model in models))
    assert models[0].score(X) == models[1].score(X)
    path, asked = tmp_path / "fit.pw", {"sparsity": 0.5, "random_state": 0, "tol": 0}
    pw.ssnmf(X, 4, weights=SEEN, max_iter=5, checkpoint=path, **asked)
    resumed = pw.ssnmf(X, 4, observed=SEEN, max_iter=9, resume_from=path, **asked)
    equal_results(resumed, pw.ssnmf(X, 4, weights=SEEN, max_iter=9, **asked))
    with pytest.raises(ValueError, match="checkpoint"):
        pw.ssnmf(X, 4, weights=~SEEN, max_iter=9, resume_from=path, **asked)


def test_samples_and_features_of_weight_zero():
    model = pw.SparseNMF(4, random_state=0, max_iter=5, tol=0)
    assert not model.fit_transform(X, weights=np.outer(HELD, np.ones(20)))[~HELD].any()
    few = np.arange(20) > 1
    for weights in ({"weights": np.outer(np.ones(30), few)}, {"feature_weight": few}):
        with pytest.raises(ValueError, match=r"2 of the features of X \(0, 1\) have weight 0 or are missing"):
            model.fit(X, **weights)


def test_other_weights_are_kept_and_accelerated():
    assert isinstance(data_of(X, V * SEEN), WeightedDense)
    assert isinstance(data_of(X, 1 + SEEN), WeightedDense)
    plain, faster = (pw.ssnmf(X, 4, weights=V, init=INIT, accelerate=a, max_iter=25, tol=0) for a in (False, "auto"))
    assert faster.losses[-1] < plain.losses[-1]
    assert (np.diff(faster.losses) <= 0).all()


def test_gram_matrices_that_would_be_larger_than_x():
    """They are not kept, and the fit is the same."""
    rng = np.random.default_rng(9)
    given, weights, init = rng.random((9, 8)), rng.random((9, 8)), (rng.random((9, 4)), rng.random((4, 8)))
    wide = np.hstack([given, np.zeros((9, 4))]), np.hstack([weights, np.ones((9, 4))])
    wide = [np.vstack([array, np.zeros((3, 12))]) for array in wide]
    starts = [init, tuple(np.pad(f, ((0, 3), (0, 0)) if m == 0 else ((0, 0), (0, 4))) for m, f in enumerate(init))]
    one = pw.ssnmf(given, 4, weights=weights, init=starts[0], max_iter=10, tol=0)  # 10 pairs of components
    other = pw.ssnmf(wide[0], 4, weights=wide[1], init=starts[1], max_iter=10, tol=0)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-8)


# The fit


@pytest.mark.parametrize("sparsity", [0.4, (0.3, 0.6), [0.3, 0.2, (0.2, 0.5), 0.6]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loss_is_the_weighted_one_with_penalties_and_falls(sparsity, dtype):
    result = pw.ssnmf(X.astype(dtype), 4, sparsity=sparsity, weights=V, random_state=0, l1=0.01, l2=0.02)
    rounding = 1e-5 if dtype == np.float32 else 1e-12
    assert (np.diff(result.losses) <= rounding * result.losses[0]).all()
    penalty = 0.01 * result.activations.sum() + 0.01 * np.sum(result.activations**2)
    assert result.losses[-1] == pytest.approx(weighted_loss(X, V, result) + penalty, rel=1e-4)


def test_loss_without_a_sparsity_falls():
    result = pw.ssnmf(X, 4, weights=V, random_state=0)
    assert (np.diff(result.losses) <= 1e-12 * result.losses[0]).all()
    assert result.losses[-1] == pytest.approx(weighted_loss(X, V, result))


def test_sparse_activations():
    result = pw.ssnmf(X, 4, activation_sparsity=0.4, weights=V, random_state=0)
    np.testing.assert_allclose(pw.hoyer_sparsity(result.activations, axis=0), 0.4, atol=1e-10)
    assert (np.diff(result.losses) <= 1e-12 * result.losses[0]).all()


def test_estimator_solves_each_sample_with_its_weights(tmp_path):
    from scipy.optimize import nnls

    model = pw.SparseNMF(4, sparsity=0.5, random_state=0)
    activations = model.fit_transform(X, weights=V)
    for i in range(5):
        root = np.sqrt(V[i])
        exact = nnls(model.components_.T * root[:, None], X[i] * root)[0]
        np.testing.assert_allclose(activations[i], exact, atol=1e-8)
    error = np.sqrt(np.sum(V * (X - activations @ model.components_) ** 2))
    assert model.reconstruction_err_ == pytest.approx(error)
    assert model.explained_.sum() == pytest.approx(1 - error**2 / np.sum(V * X**2))
    model.save(tmp_path / "model.pw")
    np.testing.assert_array_equal(pw.load(tmp_path / "model.pw").components_, model.components_)


def test_sample_weight_is_routed_as_metadata():
    import sklearn
    from sklearn.pipeline import make_pipeline

    with sklearn.config_context(enable_metadata_routing=True):
        model = pw.SparseNMF(3, random_state=0).set_fit_request(sample_weight=True)
        model = model.set_transform_request(observed=None)
        pipe = make_pipeline(model).fit(X, sample_weight=np.arange(1, 31))
    direct = pw.SparseNMF(3, random_state=0).fit(X, sample_weight=np.arange(1, 31))
    np.testing.assert_array_equal(pipe[-1].components_, direct.components_)


def test_a_resumed_fit_is_the_same_and_other_weights_are_refused(tmp_path):
    path, asked = tmp_path / "fit.pw", {"sparsity": 0.5, "random_state": 0, "tol": 0}
    whole = pw.ssnmf(X, 4, weights=V, max_iter=12, **asked)
    pw.ssnmf(X, 4, weights=V, max_iter=5, checkpoint=path, **asked)
    resumed = pw.ssnmf(X, 4, weights=V, max_iter=12, resume_from=path, **asked)
    np.testing.assert_array_equal(resumed.components, whole.components)
    np.testing.assert_array_equal(resumed.activations, whole.activations)
    with pytest.raises(ValueError, match="checkpoint"):
        pw.ssnmf(X, 4, weights=2 * V, max_iter=12, resume_from=path, **asked)


@pytest.mark.parametrize(
    "weights", [np.asfortranarray(V), V.astype(np.float32), np.rint(V * 3).astype(int), V.tolist()]
)
def test_forms_of_weights(weights):
    array = np.array(weights, dtype=float)
    array.setflags(write=False)
    one, other = (pw.ssnmf(X, 4, sparsity=0.5, weights=w, random_state=0) for w in (weights, array))
    np.testing.assert_allclose(one.components, other.components, atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_sample_one_feature_and_samples_without_weight():
    for shape in ((1, 6), (6, 1), (2, 2)):
        rng = np.random.default_rng(4)
        result = pw.ssnmf(rng.random(shape), 2, weights=rng.random(shape) + 0.1, random_state=0, max_iter=5)
        assert all(np.isfinite(f).all() for f in result.factors)
    weight = np.ones(30)
    weight[4] = 0
    assert not pw.SparseNMF(3, random_state=0, max_iter=3, tol=0).fit_transform(X, sample_weight=weight)[4].any()


def test_large_weights_are_refused_where_single_precision_would_make_them_infinite():
    with pytest.raises(ValueError, match=r"the largest value of sample_weight is 2\.9e\+41, .*safe in float32"):
        pw.ssnmf(X.astype(np.float32), 3, sample_weight=np.arange(30) * 1e40)


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_only_ratios_of_weights_matter(sparsity):
    results = [pw.ssnmf(X, 3, sparsity=sparsity, weights=V * c, random_state=0) for c in (1.0, 2.0**-60, 2.0**60)]
    for result in results[1:]:
        np.testing.assert_array_equal(result.components, results[0].components)
        np.testing.assert_array_equal(result.activations, results[0].activations)


BAD = V.copy()
BAD[2, 3] = np.nan


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"weights": BAD}, "contains NaN or infinity"),
        ({"weights": -V}, "must not be negative"),
        ({"weights": 0 * V}, "zero everywhere"),
        ({"weights": V * 1e200}, r"the largest value of weights is .*outside the range .* so rescale them"),
        (
            {"sample_weight": np.arange(30) * 1e-200},
            "the largest value of sample_weight is 2.9e-199, outside the range",
        ),
        ({"weights": V[:5]}, r"shape \(5, 20\)"),
        ({"weights": sp.csr_array(V)}, "sparse"),
        ({"weights": V.astype(str)}, "real numbers"),
        ({"sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\)"),
        ({"feature_weight": np.zeros(20)}, "feature_weight is zero everywhere"),
        ({"weights": V, "sample_weight": np.ones(30)}, "either weights or"),
        ({"weights": V, "observed": V > 1}, "no observed mask"),
        ({"weights": V, "solver": "pivot"}, "solver='hals'"),
        ({"weights": V, "kkt_tol": 1e-3}, "kkt_tol"),
        ({"weights": V, "fixed_components": X[:1]}, "weights cannot be combined with fixed_components"),
        ({"weights": V, "init": "nndsvd"}, "nndsvd"),
        ({"feature_weight": np.arange(20)}, r"1 of the features of X \(0\) have weight 0 .* remove them"),
        ({"weights": V * (np.arange(20) > 1)}, r"2 of the features of X \(0, 1\) have weight 0"),
    ],
)
def test_refusals(asked, said):
    with pytest.raises(ValueError, match=said):
        pw.ssnmf(X, 4, **asked)


def test_other_data_and_methods_are_refused(tmp_path):
    with pytest.raises(ValueError, match="dense X in memory: load X, or give sample_weight"):
        pw.ssnmf(sp.csr_array(X), 4, weights=V)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="X in memory"):
        pw.ssnmf(tmp_path / "X.npy", 4, weights=V, memory_limit=1000)
    loaded = pw.ssnmf(tmp_path / "X.npy", 4, weights=V, random_state=0)  # small enough to be loaded
    np.testing.assert_array_equal(loaded.components, pw.ssnmf(X, 4, weights=V, random_state=0).components)
    for method in (pw.nmfsc, pw.snmf, pw.nsnmf):
        for given, weights in ((X, {"weights": V}), (sp.csr_array(X), {"sample_weight": V[:, 0]})):
            with pytest.raises(ValueError, match="weights are not available"):
                method(given, 4, **weights)


# Sparse matrices and chunks


SPARSE = np.where(X > 0.5, X, 0)
SAMPLES, FEATURES = RNG.exponential(size=30), RNG.exponential(size=20) + 0.1
SAMPLES[4] = 0
KINDS = {
    "dense": lambda X: X,
    "Fortran order": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr matrix": sp.csr_matrix,
    "coo": sp.coo_array,
    "file": lambda X: X,
    "Dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, 20)),
    "sparse Dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, 20)).map_blocks(sp.csr_array),
}
OUTER = {
    "samples": {"sample_weight": SAMPLES},
    "features": {"feature_weight": FEATURES},
    "both": {"sample_weight": SAMPLES, "feature_weight": FEATURES},
}


def kept_as(kind, X, folder):
    """X in this form, and options to read it in chunks."""
    if kind != "file":
        return KINDS[kind](X), {}
    np.save(folder / "X.npy", X)
    return folder / "X.npy", {"memory_limit": 7 * 4 * X[0].nbytes}


@pytest.mark.parametrize(("weights", "sparsity"), [*((name, None) for name in OUTER), ("samples", 0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_equals_weights_of_all_entries(kind, weights, sparsity, tmp_path):
    asked = {"sparsity": sparsity, "init": INIT, "max_iter": 15} | ONCE | OUTER[weights]
    V = np.outer(asked.get("sample_weight", np.ones(30)), asked.get("feature_weight", np.ones(20)))
    given, how = kept_as(kind, SPARSE, tmp_path)
    losses = []
    one = pw.ssnmf(given, 4, **asked, **how, callback=lambda here: losses.append(here.loss))
    other = pw.ssnmf(SPARSE, 4, **{name: one for name, one in asked.items() if name not in OUTER["both"]}, weights=V)
    np.testing.assert_allclose(one.components, other.components, atol=1e-8)
    np.testing.assert_allclose(one.activations, other.activations, atol=1e-8)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-8)
    assert one.relative_error == pytest.approx(other.relative_error, rel=1e-8)
    assert losses == one.losses.tolist()
    np.testing.assert_allclose(np.linalg.norm(one.components, axis=1), 1)
    error = V * (SPARSE - np.asarray(one.activations) @ one.components) ** 2
    assert one.losses[-1] == pytest.approx(0.5 * error.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_of_every_kind_solve_each_sample(kind, tmp_path):
    from scipy.optimize import nnls

    given, how = kept_as(kind, SPARSE, tmp_path)
    model = pw.SparseNMF(4, random_state=0, **how)
    activations = np.asarray(model.fit_transform(given, **OUTER["both"]))
    root = np.sqrt(FEATURES)
    exact = [
        nnls(model.components_.T * root[:, None], row * root)[0] * (v > 0)
        for v, row in zip(SAMPLES, SPARSE, strict=True)
    ]
    np.testing.assert_allclose(activations, exact, atol=1e-8)
    error = np.sqrt(np.sum(np.outer(SAMPLES, FEATURES) * (SPARSE - activations @ model.components_) ** 2))
    assert model.reconstruction_err_ == pytest.approx(error)
    plain = [nnls(model.components_.T, row)[0] for row in SPARSE]
    np.testing.assert_allclose(np.asarray(model.transform(given)), plain, atol=1e-8)  # without weights


@pytest.mark.parametrize(
    "asked",
    [
        {"sparsity": 0.5, "l1": 0.02},
        {"activation_sparsity": 0.4},
        {"sparsity": 0.5, "max_activation": 0.5},
        {"sparsity": (0.3, 0.6), "l2": (0.1, 0)},
    ],
)
def test_dense_data_with_constraints_of_the_scaled_side(asked):
    """These cannot be scaled: the fit is one with weights of all entries."""
    model, other = (pw.SparseNMF(4, random_state=0, max_iter=20, tol=0, **asked) for _ in range(2))
    weight = SAMPLES + 0.1
    one = model.fit_transform(X, sample_weight=weight)
    two = other.fit_transform(X, weights=np.outer(weight, np.ones(20)))
    np.testing.assert_allclose(model.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert model.reconstruction_err_ == pytest.approx(other.reconstruction_err_)


def test_sparse_fits_are_accelerated_share_passes_and_take_equal_weights_as_none(tmp_path):
    given, weight = sp.csr_array(SPARSE), SAMPLES + 0.1
    plain = pw.ssnmf(given, 4, sparsity=0.5, random_state=0)
    same = pw.ssnmf(given, 4, sparsity=0.5, random_state=0, sample_weight=np.full(30, 2.0), feature_weight=np.ones(20))
    np.testing.assert_array_equal(same.components, plain.components)
    np.testing.assert_array_equal(same.losses, plain.losses)
    before = given.data.copy()
    many = pw.SparseNMF(4, sparsity=0.5, n_init=3, random_state=0).fit(given, sample_weight=weight)
    scaled = pw.SparseNMF(4, sparsity=0.5, n_init=3, random_state=0).fit(SPARSE * np.sqrt(weight)[:, None])
    np.testing.assert_allclose(many.components_, scaled.components_, atol=1e-8)
    np.testing.assert_array_equal(given.data, before)
    asked, path = {"sparsity": 0.5, "random_state": 0, "tol": 0, "sample_weight": weight}, tmp_path / "fit.pw"
    whole = pw.ssnmf(given, 4, max_iter=12, **asked)
    pw.ssnmf(given, 4, max_iter=5, checkpoint=path, **asked)
    resumed = pw.ssnmf(given, 4, max_iter=12, resume_from=path, **asked)
    np.testing.assert_array_equal(resumed.components, whole.components)
    np.testing.assert_array_equal(resumed.activations, whole.activations)
    with pytest.raises(ValueError, match="checksum"):
        pw.ssnmf(given, 4, max_iter=12, resume_from=path, **asked | {"sample_weight": 2 * weight + 1})


def test_callbacks_see_the_factors_of_x():
    seen = []
    asked = {"init": INIT, "max_iter": 3} | ONCE
    V = {"weights": np.outer(SAMPLES, FEATURES)}
    for given, weights in ((sp.csr_array(SPARSE), OUTER["both"]), (SPARSE, OUTER["both"]), (SPARSE, V)):
        seen.append([])
        pw.ssnmf(given, 4, **asked, **weights, callback=lambda one: seen[-1].append(one.factors[0] @ one.factors[1].T))
    seen = [np.stack(one)[:, SAMPLES > 0] for one in seen]  # the others are not fitted
    np.testing.assert_allclose(seen[0], seen[2], atol=1e-8)
    np.testing.assert_allclose(seen[1], seen[2], atol=1e-8)


def test_missing_entries_in_weighted_chunks(tmp_path):
    """From the fit in memory, where NaN has weight 0, the weighted loss of the observed entries does not rise."""
    holes = np.where(np.random.default_rng(5).random(X.shape) < 0.2, np.nan, X)
    weight = SAMPLES + 0.1
    memory = pw.ssnmf(holes, 4, sparsity=0.5, sample_weight=weight, random_state=0)
    given, how = kept_as("file", holes, tmp_path)
    start = (memory.activations, memory.components)
    chunks = pw.ssnmf(given, 4, sparsity=0.5, sample_weight=weight, missing="em", init=start, **how)
    assert chunks.losses[0] == pytest.approx(memory.losses[-1])
    assert chunks.losses[-1] <= chunks.losses[0] * (1 + 1e-12)
    V = np.where(np.isnan(holes), 0, weight[:, None])
    assert chunks.losses[-1] == pytest.approx(weighted_loss(X, V, chunks))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"activation_sparsity": 0.5, "sample_weight": SAMPLES}, "sample_weight cannot be combined with a sparsity"),
        (
            {"l1": 0.1, "sparsity": 0.5, "sample_weight": SAMPLES},
            "sample_weight cannot be combined with .* of the activations",
        ),
        ({"sparsity": 0.5, "feature_weight": FEATURES}, "feature_weight cannot be combined with .* of the components"),
        ({"max_activation": 1, "sample_weight": SAMPLES}, "sample_weight cannot be combined with .* bound"),
        ({"fixed_components": X[:1], "sample_weight": SAMPLES}, "weights cannot be combined with fixed_components"),
        ({"activations": "simplex", "sample_weight": SAMPLES}, "cannot be combined with weights"),
        ({"solver": "pivot", "sample_weight": SAMPLES}, "solver='hals'"),
        ({"loss": "kl", "sample_weight": SAMPLES}, "squared loss"),
        ({"sample_weight": SAMPLES[:5]}, r"sample_weight has shape \(5,\)"),
        ({"sample_weight": -SAMPLES}, "must not be negative"),
        ({"feature_weight": np.arange(20)}, r"1 of the features of X \(0\) have weight 0"),
    ],
)
def test_refusals_for_sparse_data(asked, said):
    with pytest.raises(ValueError, match=said):
        pw.ssnmf(sp.csr_array(SPARSE), 4, **asked)

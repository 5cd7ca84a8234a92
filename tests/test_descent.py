"""The loss never rises, sparsities are met and errors are exact: a random search over small, awkward problems."""

import numpy as np
import pytest
from catalogues import RECIPES, Recipe, assert_promised, rebuilt
from hypothesis import given, settings
from hypothesis import strategies as st

import partwise as pw
from partwise.recipes import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")

FALLING = {
    **{name: recipe for name, recipe in RECIPES.items() if recipe.falls},
    **{f"ssnmf, {solver}": Recipe("ssnmf", {"solver": solver}) for solver in SOLVERS if solver != "pivot"},
    **{f"ssnmf, sparse, {s}": Recipe("ssnmf", {"sparsity": 0.5, "solver": s}, unit=(1,)) for s in SOLVERS},
    "ssnmf, wide interval": Recipe("ssnmf", {"sparsity": (1e-12, 0.7)}, unit=(1,)),
}
SCALES = {"float64": (1.0, 1e-75, 1e75), "float32": (1.0, 1e-6, 1e6)}


def patterned(rng, kind, n, m):
    """Counts, ones, low rank, constant, gaps, magnitudes far apart."""
    return {
        "counts": lambda: rng.integers(0, 5, (n, m)),
        "ones": lambda: rng.integers(0, 2, (n, m)),
        "rank two": lambda: rng.integers(0, 3, (n, 2)) @ rng.integers(0, 3, (2, m)),
        "rank one": lambda: np.outer(rng.random(n), rng.random(m)),
        "constant": lambda: np.full((n, m), 3),
        "gaps": lambda: rng.random((n, m)) * (rng.random((n, m)) < 0.4),
        "magnitudes": lambda: 10.0 ** rng.integers(-6, 6, (n, m)),
    }[kind]()


def pick(rng, values):
    return values[rng.integers(len(values))]


def drawn(rng, scales=SCALES):
    """X, a rank that is often above what X supports, and a start."""
    n, m = rng.integers(1, 9, 2).tolist()
    kinds = ["counts", "ones", "rank two", "rank one", "constant", "gaps", "magnitudes"]
    X = patterned(rng, pick(rng, kinds), n, m).astype(float)
    X[rng.random(n) < 0.15] = 0
    X[:, rng.random(m) < 0.15] = 0
    X[0, 0] = X[0, 0] or 1
    dtype = pick(rng, ["float64", "float64", "float32"])
    X = X / X.max() * pick(rng, scales[dtype])
    options = {"init": pick(rng, [None, "random", "samples", "nndsvd"]), "random_state": int(rng.integers(100))}
    return X.astype(dtype), int(rng.integers(1, 2 * min(n, m) + 4)), options


problems = st.integers(0, 2**32 - 1).map(lambda seed: drawn(np.random.default_rng(seed)))


def assert_laws(recipe, problem, max_iter=25):
    X, r, options = problem
    assert_lawful(recipe, X, recipe(X, r, max_iter=3 if recipe.name == "tpc" else max_iter, tol=0, **options))


def assert_lawful(recipe, X, result):
    """What every fit of X promises; NaN in X are missing entries."""
    seen, double = ~np.isnan(X), X.dtype == np.float64
    exact = np.where(seen, X, 0).astype(float)
    assert_promised(recipe, result, 1e-10 if double else 1e-5)
    for mode, name in enumerate(("activation_sparsity", "sparsity")):
        if recipe.name != "grouped" and recipe.options.get(name) is not None:
            assert result.factors[mode].any(axis=0).all()  # zeros have no sparsity
    size = 0.5 * np.vdot(exact, exact)
    if recipe.penalty or recipe.divergence or not seen.all():  # missing entries are as large as the model
        size = max(size, result.losses[0], exact.sum() if recipe.divergence else 0)
    if recipe.falls:
        assert np.diff(result.losses).max() <= (1e-12 if double else 1e-5) * size
    error, slack = recipe.relative_error(X, result), 1e-11 if double else 1e-5
    if recipe.divergence:  # a difference of sums as large as X
        unit = exact.sum() / recipe.usual(X)
        assert result.relative_error**2 == pytest.approx(error**2, abs=100 * slack * max(error**2, 1, unit))
    else:
        assert result.relative_error == pytest.approx(error, abs=slack * max(error, 1))


@pytest.mark.parametrize("name", FALLING)
@settings(max_examples=6, derandomize=True)
@given(problem=problems)
def test_the_laws_hold_for_whatever_is_drawn(name, problem):
    assert_laws(FALLING[name], problem)


@pytest.mark.slow
@pytest.mark.parametrize("name", FALLING)
@settings(max_examples=60, derandomize=True)
@given(problem=problems)
def test_the_laws_hold_for_much_that_is_drawn(name, problem):
    assert_laws(FALLING[name], problem, 60)


KNOWN = {
    "parts as sparse as asked": {},
    "pivot": {"solver": "pivot"},
    "penalised": {"l1": 0.1, "sparsity": 0.3},
    "both penalised": {"l1": (0.1, 0.2), "l2": 0.3},
    "interval": {"sparsity": (1e-12, 0.7)},
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_loss_does_not_rise_where_many_parts_share_few_samples(name):
    X = np.array([[0, 4, 4, 3, 0, 0, 1, 1], [0, 4, 2, 4, 2, 0, 1, 2], [0] * 8, [4, 4, 1, 2, 2, 2, 1, 1]])
    for seed in range(100):
        losses = pw.ssnmf(X, 10, random_state=seed, max_iter=15, tol=0, **KNOWN[name]).losses
        assert np.diff(losses).max() <= 1e-13 * np.vdot(X, X)


@pytest.mark.parametrize("name", ["nmfsc", "tpc"])
def test_parts_beyond_the_rank_of_x_have_the_sparsity_asked(name):
    """A truncated SVD has nothing to start them from."""
    X = np.outer([1.0, 2, 3, 0], [1.0, 0, 2, 1, 1])
    result = RECIPES[name](X, 5, init="nndsvd", max_iter=3, tol=0)
    assert result.factors[1].any(axis=0).all()
    assert_promised(RECIPES[name], result)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mode", [0, 1])
def test_parts_beside_known_ones_have_the_sparsity_asked(mode, dtype):
    """Even if X has nothing for them: then their norm is too small to matter."""
    X = np.array([[0, 0, 0, 0], [1, 2, 0, 1], [2, 3, 1, 1.0]], dtype=dtype)
    X, known = (X, np.array([[1.0], [0], [0]])) if mode else (X.T, np.array([[1.0, 0, 0]]))
    asked = {"fixed_activations" if mode else "fixed_components": known}
    result = pw.ssnmf(X, 2, **asked, **{"sparsity" if mode else "activation_sparsity": 0.5}, random_state=0)
    achieved = result.sparsity if mode else result.activation_sparsity
    np.testing.assert_allclose(achieved, 0.5, atol=1e-10 if dtype == "float64" else 1e-6)
    assert np.linalg.norm(result.factors[mode][:, 0].astype(float)) < 1e-6


def test_the_relative_error_is_exact_where_penalties_are_most_of_the_loss():
    X = 1e-8 * np.array([[1, 2, 3], [2, 0, 1.0], [1, 1, 0]])
    result = pw.ssnmf(X, 2, sparsity=0.3, l1=0.1, fixed_activations=np.ones((3, 1)), random_state=0, max_iter=3)
    error = np.linalg.norm(X - rebuilt(result)) / np.linalg.norm(X)
    assert result.relative_error == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_relative_error_of_a_close_fit_is_exact(dtype):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = (rng.random((8, 3)) @ rng.random((3, 9)) + 0.1 * rng.random((8, 9))).astype(dtype)
        result = pw.ssnmf(X, 3, random_state=seed, max_iter=60)
        error = np.linalg.norm(X.astype(float) - rebuilt(result)) / np.linalg.norm(X.astype(float))
        assert result.relative_error == pytest.approx(error, abs=1e-12 if dtype == "float64" else 5e-7)

"""Every recipe keeps its promises: constraints, a loss that falls and is what its definition says, seeds, edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import PROBLEMS, RECIPES, assert_promised, one_of_each, planted, rebuilt, stats_of
from scipy.optimize import nnls

import partwise as pw
from partwise.engine.metrics import column_moves, largest_move, match_parts
from partwise.updates import Columns

pytestmark = pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")

R = 4
FEW = one_of_each(RECIPES)  # of what is the same code, whatever a recipe's options


@pytest.fixture(params=RECIPES)
def recipe(request):
    return RECIPES[request.param]


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=18, m=22, r=R, noise=0.1).X


def relative_error(X, result):
    return np.linalg.norm(X - rebuilt(result)) / np.linalg.norm(X)


# laws


@pytest.mark.parametrize(
    ("recipe", "dtype"),
    [*((name, np.float64) for name in RECIPES), *((name, np.float32) for name in FEW)],
    indirect=["recipe"],
)
def test_promises_are_kept(X, recipe, dtype):
    X = X.astype(dtype)
    result = recipe(X, R, max_iter=3 if recipe.name == "tpc" else 15, tol=0)
    assert {f.dtype for f in result.factors} == {np.dtype(dtype)}
    assert_promised(recipe, result, 1e-10 if dtype == np.float64 else 1e-5)
    size = 0.5 * np.linalg.norm(X.astype(float)) ** 2
    slack = 1e-9 if dtype == np.float64 else 1e-4
    if recipe.falls:
        assert np.all(np.diff(result.losses) <= slack * result.losses[:-1])
    assert result.losses[-1] < result.losses[0]
    assert result.losses[-1] == pytest.approx(recipe.objective(X.astype(float), result), rel=slack, abs=slack * size)
    error = recipe.relative_error(X.astype(float), result)
    assert result.relative_error == pytest.approx(error, abs=1e-8 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("recipe", FEW, indirect=True)
def test_seeds_decide(X, recipe):
    one, same, other = (recipe(X, R, max_iter=2, random_state=seed) for seed in (0, 0, 1))
    for a, b, c in zip(one.factors, same.factors, other.factors, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    np.testing.assert_array_equal(one.losses, same.losses)


def test_sparse_data_is_dense_data(X, recipe):
    X = np.maximum(X - np.median(X), 0)
    max_iter, atol = (1, 1e-5) if recipe.name == "tpc" else (4, 1e-8)  # a cone program is solved to a tolerance
    start = {"init": "random"}  # parts that are samples leave exact ties, which rounding decides
    dense, other = (recipe(Z, R, max_iter=max_iter, tol=0, **start) for Z in (X, sp.csr_array(X)))
    for a, b in zip(dense.factors, other.factors, strict=True):
        np.testing.assert_allclose(b, a, atol=atol)
    np.testing.assert_allclose(other.losses, dense.losses, rtol=atol)


@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        *((name, "rank above both sides") for name in RECIPES),
        *((name, problem) for name in FEW for problem in PROBLEMS if problem != "rank above both sides"),
    ],
    indirect=True,
)
def test_all_problems_are_survived(problem, recipe):
    result = recipe(problem.X, problem.r, max_iter=2 if recipe.name == "tpc" else 4)
    assert_promised(recipe, result)
    assert np.isfinite(result.losses).all()
    size = 0.5 * np.linalg.norm(problem.X) ** 2
    if recipe.falls:
        assert np.all(np.diff(result.losses) <= 1e-9 * result.losses[:-1] + 1e-14 * size)
    assert result.losses[-1] == pytest.approx(recipe.objective(problem.X, result), rel=1e-8, abs=1e-13 * size)


def test_nothing_but_zeros(recipe):
    result = recipe(np.zeros((6, 7)), 3, max_iter=3)
    assert_promised(recipe, result)
    assert result.relative_error == 0
    assert np.isfinite(result.losses).all()


@pytest.mark.parametrize("init", ["samples", "nndsvd", "gradual"])
@pytest.mark.parametrize("name", ["nmfsc, both", "snmf", "grouped", "l0", "nsnmf, kl, 0.5", "bisparse, diagonal, nnls"])
def test_all_starts_serve(X, name, init):
    assert_promised(RECIPES[name], RECIPES[name](X, R, init=init, max_iter=3))


@pytest.mark.parametrize("name", ["l0", "l0, sequential", "l0, reverse", "l0, forward", "l0_path, components, refit"])
def test_as_many_nonzeros_as_allowed_are_used(X, name):
    recipe = RECIPES[name]
    result = recipe(X, R, max_iter=5)
    counts = {np.count_nonzero(factor, axis=axis).max() for factor in result.factors for axis in (0, 1)}
    assert recipe.options["nonzeros"] in counts


# stopping


@pytest.mark.parametrize("recipe", FEW, indirect=True)
def test_stops_are_obeyed(X, recipe):
    result = recipe(X, R, max_iter=3, tol=0)
    assert (result.n_iter, len(result.losses), result.converged) == (3, 4, False)
    result = recipe(X, R, max_time=0, tol=0)
    assert result.n_iter == 1
    assert "time limit of 0 s" in result.stop_reason
    seen = []
    result = recipe(X, R, tol=0, callback=lambda it: seen.append(it.loss) or it.n_iter == 2)
    assert result.n_iter == 2
    assert "callback" in result.stop_reason
    np.testing.assert_array_equal(seen, result.losses)


@pytest.mark.parametrize("recipe", FEW, indirect=True)
def test_a_large_tolerance_ends_at_once(X, recipe):
    result = recipe(X, R, tol=1e9)
    assert result.n_iter == 1
    assert result.converged


@pytest.mark.parametrize("recipe", ["l0", "l0_path, components, refit"], indirect=True)
def test_a_loss_that_rises_does_not_end_a_fit(X, recipe):
    result = recipe(X, R, tol=1e-2)
    rises = np.flatnonzero(np.diff(result.losses) > 1e-4 * result.losses[:-1]) + 1
    assert rises.size
    assert not result.converged or rises[-1] < result.n_iter


SOLVES = [
    "ssnmf, free",
    "ssnmf",
    "ssnmf, activations",
    "ssnmf, penalised",
    "nnsc, activations, sequential",
    "nnsc, components, sequential",
    "snmf",
    "snmf, components",
    "snmf, eta",
    "nsnmf, squared, 0.0",
    "nsnmf, squared, 0.5",
    "l0, sequential",
    "bisparse, diagonal, nnls",
    "bisparse, full, nnls",
    "bisparse, diagonal, multiplicative",
    "tpc",
]


@pytest.mark.compiled
@pytest.mark.parametrize("name", SOLVES)
def test_in_the_end_no_column_can_improve(X, name):
    result = RECIPES[name](X, R, tol=0, kkt_tol=3e-4, max_iter=4000)
    assert result.converged
    assert "kkt_tol" in result.stop_reason


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "mode", "set_of"),
    [
        ("nmfsc", 1, lambda column: pw.FreeNorm(pw.Hoyer(0.5))),
        ("nmfsc, activations", 0, lambda column: pw.Hoyer(0.4)),
        ("nnsc, activations, hoyer", 1, lambda column: pw.HoyerBetween()),
        ("grouped", 1, lambda column: pw.Hoyer(pw.hoyer_sparsity(column))),
    ],
)
def test_slow_ones_come_nearer_to_a_fixed_point(X, name, mode, set_of):
    def residual(max_iter):
        result = RECIPES[name](X, R, tol=0, max_iter=max_iter)
        sets = Columns(tuple(map(set_of, result.factors[mode].T)))
        return largest_move(column_moves(result.factors[mode], stats_of(X, result.factors, mode), sets))

    assert residual(200) < 0.3 * residual(5)


@pytest.mark.compiled
@pytest.mark.parametrize(("name", "sparsity"), [("grouped", 0.5), ("nmfsc", 0.8), ("tpc", (0.7, 0.8)), ("ssnmf", 0.8)])
def test_the_residual_measured_can_be_met(X, name, sparsity):
    """Where the sparsity binds."""
    if name == "tpc":
        pytest.importorskip("clarabel")
    result = getattr(pw, name)(X, R, sparsity=sparsity, tol=0, kkt_tol=1e-2, max_iter=300, random_state=0)
    assert result.converged


@pytest.mark.compiled
def test_a_line_search_without_success_is_short(X, monkeypatch):
    """At a point that no step improves, an iteration may not take hundreds of trials."""
    trials, project = [], Columns.project
    monkeypatch.setattr(Columns, "project", lambda *given, **more: trials.append(1) or project(*given, **more))
    result = pw.nmfsc(X, R, sparsity=0.9, projection="fast", max_iter=150, tol=0, random_state=0)
    assert result.n_iter == 150
    assert len(trials) < 5 * 150


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("side", ["activations", "components"])
def test_snmf_knows_no_scale(X, side, scale):
    plain, scaled = (pw.snmf(c * X, R, side=side, max_iter=10, tol=0, random_state=0) for c in (1, scale))
    np.testing.assert_allclose(scaled.losses / scale**2, plain.losses, rtol=1e-6)


# recovery


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "options"),
    [("ssnmf", {}), ("nsnmf", {"theta": 0.0}), ("snmf", {"beta": 1e-7, "eta": 1e-7}), ("nmfsc", {}), ("tpc", {})],
)
def test_the_only_factorization_is_found(name, options, rng):
    """Unique by Laurberg et al. (2008): every part has a feature of its own, and a sample."""
    if name == "tpc":
        pytest.importorskip("clarabel")
    parts = np.vstack([np.eye(R), rng.random((12, R)) * (rng.random((12, R)) < 0.6)]).T
    X = np.vstack([np.eye(R), rng.random((30, R)) * (rng.random((30, R)) < 0.6)]) @ parts
    result = getattr(pw, name)(X, R, init="nndsvd", tol=0, max_iter=4000, random_state=0, **options)
    assert result.relative_error < 3e-3
    assert match_parts(result.components, parts).cosines.min() > 0.999


def sparse_parts(rng, r=5, m=60):
    return np.array([pw.Hoyer(0.7)(rng.random(m) ** 3) for _ in range(r)])


def few_features(rng, r=5, m=60, nonzeros=12):
    return np.array([rng.permutation(np.r_[0.2 + rng.random(nonzeros), np.zeros(m - nonzeros)]) for _ in range(r)])


def sparse_activations(rng, n=80, r=5):
    return rng.random((n, r)) * (rng.random((n, r)) < 0.4)


def exactly_sparse_activations(rng, n=100, r=5):
    return np.array([pw.Hoyer(0.5)(rng.random(n) ** 2 * (rng.random(n) < 0.6)) for _ in range(r)]).T * 5


def few_activations(rng, n=100, r=5):
    return np.array([rng.permutation(np.r_[0.2 + rng.random(2), np.zeros(r - 2)]) for _ in range(n)])


PLANTED = {
    "ssnmf": (sparse_parts, sparse_activations, {"sparsity": 0.7}),
    "nmfsc": (sparse_parts, sparse_activations, {"sparsity": 0.7, "projection": "fast", "max_iter": 600}),
    "grouped": (sparse_parts, sparse_activations, {"sparsity": 0.7}),
    "tpc": (sparse_parts, sparse_activations, {"sparsity": (0.68, 0.72), "max_iter": 10}),
    "bisparse": (sparse_parts, exactly_sparse_activations, {"sparsity": 0.7, "activation_sparsity": 0.5}),
    "nnsc": (sparse_parts, sparse_activations, {"l1": 0.01}),
    "snmf": (sparse_parts, sparse_activations, {"beta": 0.01, "eta": 0.01}),
    "nsnmf": (sparse_parts, sparse_activations, {"theta": 0.1}),
    "l0": (few_features, sparse_activations, {"nonzeros": 12}),
    "l0, sequential": (few_features, sparse_activations, {"nonzeros": 12, "method": "sequential"}),
    "l0, reverse": (sparse_parts, few_activations, {"nonzeros": 2, "side": "activations"}),
    "l0, forward": (sparse_parts, few_activations, {"nonzeros": 2, "side": "activations", "method": "forward"}),
    "l0_path": (sparse_parts, few_activations, {"nonzeros": 2}),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", PLANTED)
def test_planted_parts_are_found(name, rng):
    """By the best of some starts."""
    make_parts, make_activations, options = PLANTED[name]
    function = getattr(pw, name.split(",")[0])
    if name == "tpc":
        pytest.importorskip("clarabel")
    parts = make_parts(rng)
    X = make_activations(rng) @ parts
    X += 0.002 * rng.random(X.shape)
    fits = [function(X, 5, **{"tol": 1e-7, "max_iter": 400, "random_state": s, **options}) for s in range(3)]
    best = min(fits, key=lambda fit: fit.losses[-1])
    assert match_parts(best.components, parts).cosines.min() > 0.98


# references


def hoyer_2004(X, activations, components, sparsity, max_iter):
    """NMFSC for sparse parts, in Hoyer's order and notation: V ≈ W H is features × samples."""
    V, W, H = X.T, components.T.copy(), activations.T.copy()
    step, losses = 1.0, [0.5 * np.sum((X.T - components.T @ activations.T) ** 2)]
    for _ in range(max_iter):
        model = W.T @ W @ H
        H = H * (W.T @ V) / (model + 1e-9 * model.max())
        norms = np.linalg.norm(H, axis=1)
        H, W = H / norms[:, None], W * norms
        slope, before = (W @ H - V) @ H.T, 0.5 * np.sum((V - W @ H) ** 2)
        while True:
            moved = W - step * slope
            moved = np.array([np.linalg.norm(w) * pw.Hoyer(sparsity, "hoyer")(w) for w in moved.T]).T
            if 0.5 * np.sum((V - moved @ H) ** 2) <= before:
                break
            step /= 2
        W, step = moved, 1.2 * step
        losses.append(0.5 * np.sum((V - W @ H) ** 2))
    return H.T, W.T, losses


def test_nmfsc_is_hoyers_algorithm(X, rng):
    activations = rng.random((len(X), R))
    components = np.array([3 * pw.Hoyer(0.5)(rng.random(X.shape[1])) for _ in range(R)])
    result = pw.nmfsc(X, R, sparsity=0.5, init=(activations, components), max_iter=30, tol=0)
    _, parts, losses = hoyer_2004(X, activations, components, 0.5, 30)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-8)
    assert match_parts(result.components, parts).cosines.min() > 1 - 1e-10


@pytest.mark.parametrize("name", ["nmfsc", "bisparse"])
def test_projections_give_equal_answers(X, name):
    fits = [
        getattr(pw, name)(X, R, sparsity=0.5, activation_sparsity=0.3, projection=p, max_iter=10, tol=0, random_state=0)
        for p in ("fast", "sorted", "hoyer")
    ]
    for other in fits[1:]:
        for a, b in zip(fits[0].factors, other.factors, strict=True):
            np.testing.assert_allclose(b, a, atol=1e-8)


@pytest.mark.parametrize("side", ["activations", "components"])
def test_snmf_solves_kim_and_parks_systems(X, side):
    beta, eta = 0.2, 0.3
    result = pw.snmf(X, R, beta=beta, eta=eta, side=side, max_iter=20, random_state=0)
    mode = ("activations", "components").index(side)
    V = X.T if mode == 0 else X
    system = np.vstack([result.factors[1 - mode], np.sqrt(beta) * np.ones((1, R))])
    wanted = [nnls(system, np.r_[v, 0])[0] for v in V.T]
    np.testing.assert_allclose(result.factors[mode], wanted, atol=1e-9)


@pytest.mark.parametrize("middle", ["diagonal", "full"])
def test_the_middle_is_nonnegative_least_squares(X, middle):
    sides = {"sparsity": 0.5, "activation_sparsity": 0.3}
    options = {"middle": middle, "middle_solver": "nnls", "max_iter": 6, "tol": 0, "random_state": 0}
    result = pw.bisparse(X, R, **sides, **options)
    products = np.kron(result.activations, result.factors[1])  # a column for each pair of components
    if middle == "diagonal":
        assert np.count_nonzero(result.middle - np.diag(result.middle.diagonal())) == 0
        found, products = result.middle.diagonal(), products[:, :: R + 1]
    else:
        found = result.middle.ravel()
    np.testing.assert_allclose(found, nnls(products, X.ravel())[0], atol=1e-9)


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("loss", ["squared", "kl"])
def test_the_middle_of_nsnmf_is_its_smoothing(X, theta, loss):
    result = pw.nsnmf(X, R, theta=theta, loss=loss, max_iter=2, random_state=0)
    np.testing.assert_allclose(result.middle, (1 - theta) * np.eye(R) + theta / R, atol=1e-15)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "options"),
    [("ssnmf", {}), ("nsnmf", {"theta": 0.0}), ("nmfsc", {"tol": 1e-6}), ("snmf", {"beta": 1e-9, "eta": 1e-9})],
)
def test_without_a_penalty_it_is_as_good_as_scikit_learn(X, rng, name, options):
    from sklearn.decomposition import NMF

    start = rng.random((len(X), R)), rng.random((R, X.shape[1]))
    reference = NMF(R, init="custom", max_iter=5000, tol=1e-4)
    reference.fit_transform(X, W=start[0].copy(), H=start[1].copy())
    result = getattr(pw, name)(X, R, **{"init": start, "tol": 1e-8, "max_iter": 5000, **options})
    assert result.relative_error * np.linalg.norm(X) == pytest.approx(reference.reconstruction_err_, rel=0.01)


@pytest.mark.compiled
def test_kullback_leibler_is_as_good_as_scikit_learn(X, rng):
    from sklearn.decomposition import NMF

    start = rng.random((len(X), R)), rng.random((R, X.shape[1]))
    reference = NMF(R, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=5000, tol=1e-6)
    reference.fit_transform(X, W=start[0].copy(), H=start[1].copy())
    result = pw.nsnmf(X, R, theta=0.0, loss="kl", init=start, tol=1e-6, max_iter=5000)
    assert np.sqrt(2 * result.losses[-1]) == pytest.approx(reference.reconstruction_err_, rel=0.01)


@pytest.mark.parametrize("alpha", [1e-4, 1e-3])
def test_an_l1_penalty_on_both_sides_is_scikit_learns(X, alpha):
    from sklearn.decomposition import NMF

    n, m = X.shape
    theirs = NMF(R, init="nndsvda", alpha_W=alpha, alpha_H=alpha, l1_ratio=1.0, max_iter=5000, tol=1e-7).fit(X)
    activations = theirs.transform(X)
    loss = 0.5 * np.square(X - activations @ theirs.components_).sum()
    loss += alpha * (m * activations.sum() + n * theirs.components_.sum())
    fits = [pw.ssnmf(X, R, l1=(alpha * m, alpha * n), max_iter=5000, tol=1e-9, random_state=s) for s in range(4)]
    assert min(fit.losses[-1] for fit in fits) == pytest.approx(loss, rel=1e-2)


def test_a_divergence_of_tiny_values_with_parts_to_spare():
    """Such parts vanish, and the reciprocal of their sum has no place in single precision."""
    rng = np.random.default_rng(34)
    X = 1e-8 * (rng.integers(0, 3, (5, 2)) @ rng.integers(0, 3, (2, 7)))
    X[:, 3], X[0, 0] = 0, 1e-8
    result = pw.nsnmf(X.astype(np.float32), 5, loss="kl", init="nndsvd", theta=0.0, max_iter=30, tol=0, random_state=0)
    assert np.isfinite(result.losses).all()
    assert np.diff(result.losses).max() <= 1e-5 * result.losses[0]

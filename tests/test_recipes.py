"""ssnmf: exactly the requested sparsity, and the paper's algorithm with ``faithful=True``."""

import itertools

import numpy as np
import pytest
from catalogues import one_at_a_time, planted

import partwise as pw
from partwise.engine.loop import factorize
from partwise.recipes import SOLVERS
from partwise.runtime.together import job_of, single

METHODS = ("fast", "sorted", "hoyer")
SPARSITY = {
    "float": (0.45, [0.45] * 4),
    "flat": (0.0, [0.0] * 4),
    "integer": (1, [1.0] * 4),
    "interval": ((0.3, 0.5), [(0.3, 0.5)] * 4),
    "point": ((0.3, 0.3), [0.3] * 4),
    "from": ((0.55, None), [(0.55, 1)] * 4),
    "up to": ((None, 0.2), [(0, 0.2)] * 4),
    "list": ([0.1, 0.3, 0.5, 0.7], [0.1, 0.3, 0.5, 0.7]),
    "array": (np.array([0.1, 0.3, 0.5, 0.7]), [0.1, 0.3, 0.5, 0.7]),
    "pairs": ([(0.1, 0.2), (0.3, 0.4), (0.5, 0.6), (0.1, 0.9)], [(0.1, 0.2), (0.3, 0.4), (0.5, 0.6), (0.1, 0.9)]),
    "mixed": ([0.2, (0.3, 0.4), None, pw.Hoyer(0.6)], [0.2, (0.3, 0.4), (0, 1), 0.6]),
}


@pytest.fixture(name="X")
def small(rng):
    return planted(rng, n=25, m=30).X


@one_at_a_time(asked=SPARSITY, projection=METHODS, dtype=[np.float64, np.float32], faithful=[False, True])
@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_the_sparsity_is_exact(X, asked, projection, dtype, faithful):
    value, wanted = SPARSITY[asked]
    atol = 1e-10 if dtype == np.float64 else 1e-5
    lo, hi = np.array([w if isinstance(w, tuple) else (w, w) for w in wanted], dtype=float).T
    for name in ("sparsity", "activation_sparsity"):
        fit = {name: value, "projection": projection, "faithful": faithful, "max_iter": 6, "random_state": 0}
        result = pw.ssnmf(X.astype(dtype), 4, **fit)
        achieved, factor = getattr(result, name), result.factors[name == "sparsity"]
        assert factor.dtype == dtype
        assert np.all((achieved >= lo - atol) & (achieved <= hi + atol))
        np.testing.assert_allclose(np.linalg.norm(factor.astype(float), axis=0), 1, atol=atol)


@pytest.mark.parametrize("solver", SOLVERS)
def test_projections_agree(X, solver):
    fits = [
        pw.ssnmf(X, 4, sparsity=0.5, projection=p, solver=solver, max_iter=20, tol=0, random_state=0) for p in METHODS
    ]
    for other in fits[1:]:
        np.testing.assert_allclose(other.components, fits[0].components, atol=1e-7)


def sparse_opt(b, k):
    """The paper's Algorithm 2, trying every support size."""
    order = np.argsort(-b)
    best, gain = None, -np.inf
    for p in range(int(k * k) + 1, len(b) + 1):
        s = b[order[:p]]
        spread = np.sqrt((p * s @ s - s.sum() ** 2) / (p - k * k))
        y = (s - (s.sum() - k * spread) / p) / spread
        if y.min() >= 0 and s @ y > gain:
            best, gain = (p, y), s @ y
    out = np.zeros_like(b)
    out[order[: best[0]]] = best[1]
    return out


def algorithm_4(X, W, H, k, orders, repeats):
    """The paper's SSNMF, in its notation: X ≈ W H is features × samples."""
    for sweeps in orders:
        C, G = -X @ H.T + W @ H @ H.T, H @ H.T
        for j in sweeps.ravel():
            t = sparse_opt(-(C[:, j] - W[:, j] * G[j, j]), k)
            C += np.outer(t - W[:, j], G[j])
            W[:, j] = t
        for _ in range(repeats):
            H = H * (W.T @ X) / (W.T @ W @ H + 1e-9)
    return W, H


@pytest.mark.parametrize(("r", "sweeps", "repeats"), [(1, 1, 1), (2, 1, 1), (5, 1, 1), (5, 3, 2), (9, 2, 4)])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_faithful_is_the_papers_algorithm(X, r, sweeps, repeats, given, monkeypatch, rng):
    """From the recipe's own start, with its own random orders."""
    s, max_iter, (n, m), begun = 0.45, 15, X.shape, {}

    @single
    async def spy(data, factors, blocks, **options):
        begun.update(H=factors[0].T.copy(), W=factors[1].copy(), seed=blocks[1].update.seed)
        return await job_of(factorize)(data, factors, blocks, **options)

    monkeypatch.setattr("partwise.recipes.task.factorize", spy)
    init = (rng.random((n, r)), rng.random((r, m))) if given else None
    fit = {"component_sweeps": sweeps, "activation_sweeps": repeats, "max_iter": max_iter, "random_state": 3}
    result = pw.ssnmf(X, r, sparsity=s, faithful=True, init=init, **fit)
    plain = np.tile(np.arange(r), (sweeps, 1))
    orders = [np.random.default_rng([begun["seed"], call]).permuted(plain, axis=1) for call in range(max_iter)]
    W, H = algorithm_4(X.T, begun["W"], begun["H"], np.sqrt(m) - s * (np.sqrt(m) - 1), orders, repeats)
    assert result.n_iter == max_iter
    np.testing.assert_allclose(result.factors[1], W, atol=1e-9)
    np.testing.assert_allclose(result.activations, H.T, atol=1e-8)


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_faithful_starts_as_the_paper_does(X):
    starts = []
    pw.ssnmf(
        X, 5, sparsity=0.45, faithful=True, random_state=0, callback=lambda it: starts.append(it.factors[1].copy())
    )
    ordered = np.sort(starts[0], axis=0)
    np.testing.assert_array_equal(ordered, np.tile(ordered[:, :1], (1, 5)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_penalties_shrink(X, solver):
    def norms(**penalty):
        fit = pw.ssnmf(X, 3, sparsity=0.4, solver=solver, max_iter=100, random_state=0, **penalty)
        return fit.activations.sum(), np.linalg.norm(fit.activations)

    free = norms()
    assert norms(l1=0.5)[0] < free[0]
    assert norms(l2=2.0)[1] < free[1]
    assert norms(l1=1e6) == (0, 0)
    assert norms(l1=(0.5, 0.0)) == norms(l1=0.5)


def test_advice_names_the_line_of_the_user(rng):
    with pytest.warns(pw.CapacityWarning, match="much sparser") as caught:
        pw.ssnmf(rng.random((20, 100)), 3, sparsity=0.9, max_iter=1, random_state=0)
    assert caught[0].filename == __file__


BAD = [
    *(({"n_components": v}, repr(v)) for v in (0, -3, 2.5, True, "7", None)),
    *(({"sparsity": v}, repr(v)) for v in (1.2, -1, "a", np.nan, (0.1, 0.2, 0.3))),
    ({"sparsity": (0.6, 0.2)}, r"\(0.6, 0.2\).*give \(0.2, 0.6\)"),
    ({"sparsity": (0.6, 1.2)}, "1.2"),
    ({"sparsity": [0.1, 0.2]}, "2 values for n_components=3"),
    ({"sparsity": [0.1, 0.2, 1.5]}, r"sparsity\[2\]=1.5"),
    ({"sparsity": [0.1, (0.4, 0.3), 0.2]}, r"sparsity\[1\]=\(0.4, 0.3\)"),
    ({"activation_sparsity": 1.2}, "activation_sparsity=1.2"),
    ({"activation_sparsity": [0.1]}, "activation_sparsity has 1 values"),
    ({"sparsity": 0.3, "activation_sparsity": 0.3}, "both"),
    ({"solver": "newton"}, "'newton' is not one of 'hals'"),
    ({"projection": "quick"}, "'quick' is not one of 'fast'"),
    ({"init": "zeros"}, "'zeros' is not one of 'random'"),
    ({"solver": "pivot", "activation_sweeps": 3}, "'pivot' has its own stopping rule"),
    ({"solver": "greedy", "component_sweeps": 3}, "'greedy' has its own stopping rule"),
    *(
        ({name: v}, f"sweeps={v!r}")
        for name, v in itertools.product(("component_sweeps", "activation_sweeps"), (0, 1.5))
    ),
    *(({name: v}, f"{name}={v!r}") for name, v in itertools.product(("tol", "kkt_tol", "max_time"), (-1, "a", np.nan))),
    ({"max_iter": 0}, "max_iter=0"),
    ({"max_iter": 2.5}, "max_iter=2.5"),
    ({"sparsity": 0.3, "l1": -1}, "l1=-1"),
    ({"sparsity": 0.3, "l2": (0.1, -0.5)}, r"l2=\(0.1, -0.5\)"),
    ({"sparsity": 0.3, "l1": (1, 2, 3)}, r"l1=\(1, 2, 3\)"),
    ({"sparsity": 0.3, "l2": "much"}, "l2='much'"),
    ({"sparsity": 0.3, "l2": np.inf}, "l2=inf"),
    ({"l1": 0.1}, "penalty on the activations alone"),
    ({"l2": (0, 0.1)}, "penalty on the components alone"),
    ({"activation_sparsity": 0.3, "l1": 0.1}, "penalty on the activations alone"),
    *(({"random_state": v}, f"random_state={v!r}") for v in (-1, "seed", 1.5)),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_arguments_are_named(X, arguments, message):
    with pytest.raises(ValueError, match=message):
        pw.ssnmf(X, **{"n_components": 3, "random_state": 0, **arguments})


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["hals", "greedy", "pivot"])
def test_it_is_as_good_as_scikit_learn(solver, rng):
    from sklearn.datasets import load_digits
    from sklearn.decomposition import NMF

    X = load_digits().data
    activations, components = rng.random((len(X), 16)), rng.random((16, 64))
    reference = NMF(16, init="custom", max_iter=1000, tol=1e-5)
    reference.fit_transform(X, W=activations.copy(), H=components.copy())
    result = pw.ssnmf(X, 16, init=(activations, components), solver=solver, tol=1e-6, max_iter=1000)
    assert result.relative_error * np.linalg.norm(X) == pytest.approx(reference.reconstruction_err_, rel=0.01)

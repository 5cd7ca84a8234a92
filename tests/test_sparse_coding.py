"""Few nonzeros per row: the greedy coders, and the path of the nonnegative lasso."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from partwise.projections import AtMost, Nonnegative
from partwise.statistics import Stats
from partwise.updates import Coding, Columns, Path, Pivot, Rows
from partwise.updates.pivot import grow_support, work_arrays

CODERS = {
    "forward": lambda nonzeros: Coding(nonzeros, reverse=False),
    "reverse": lambda nonzeros: Coding(nonzeros, reverse=True),
    "path": lambda nonzeros: Path(nonzeros),
}
PATHS = CODERS | {"path, no refit": lambda nonzeros: Path(nonzeros, refit=False)}


def stats_of(X, A, dtype=float):
    return Stats(np.asfortranarray(X @ A, dtype=dtype), A.T @ A, float(np.vdot(X, X)))


def code(update, stats, guess=0.0):
    r = len(stats.gram)
    factor = np.full(stats.cross.shape, guess, dtype=stats.cross.dtype, order="F")
    factor, _ = update(factor, stats, Rows(AtMost(update.nonzeros), r), {})
    assert factor.dtype == stats.cross.dtype
    assert factor.flags.f_contiguous
    return factor


def nnls_of(stats):
    free = Columns.same(Nonnegative(), len(stats.gram))
    return Pivot()(np.zeros(stats.cross.shape, order="F"), stats, free, {})[0]


def random_problem(rng, n=40, m=12, r=7):
    A = rng.random((m, r)) * rng.uniform(0.1, 10, r)
    return rng.standard_normal((n, m)) + rng.random((n, r)) @ A.T, A


DICTIONARIES = {
    "random": lambda rng: rng.random((12, 7)),
    "all sizes": lambda rng: rng.random((12, 7)) * 10.0 ** np.arange(-3, 4),
    "of both signs": lambda rng: rng.standard_normal((12, 7)),
    "more than features": lambda rng: rng.random((4, 9)),
    "one": lambda rng: rng.random((12, 1)),
    "two alike": lambda rng: rng.random((12, 4)) @ np.array([[1, 1], [0, 0.01], [0, 0], [0, 0]]),
    "twins": lambda rng: rng.random((12, 4))[:, [0, 1, 0, 2, 3, 0]],
    "scaled twins": lambda rng: rng.random((12, 4))[:, [0, 1, 0, 2, 3, 0]] * [1, 1, 3.0, 1, 1, 1e-3],
    "a sum of others": lambda rng: rng.random((12, 4)) @ np.column_stack([np.eye(4), np.ones(4), [1, 1, 0, 0]]),
    "dead parts": lambda rng: rng.random((12, 7)) * [1, 0, 1, 1, 0, 1, 1],
    "all dead": lambda rng: np.zeros((12, 3)),
}


@pytest.fixture(params=DICTIONARIES)
def dictionary(request):
    """Components in columns, and samples near their cone; the first is zero, the second far from all components."""
    rng = np.random.default_rng(list(request.param.encode()))
    A = DICTIONARIES[request.param](rng)
    X = rng.standard_normal((30, len(A))) + rng.random((30, A.shape[1])) @ A.T
    X[0], X[1] = 0, -np.abs(A).sum(axis=1)
    return X, A


@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize(("dtype", "guess"), [(np.float64, 0.0), (np.float32, 1.0)])
def test_codes_are_few_nonnegative_and_least_squares_on_their_support(dictionary, name, dtype, guess):
    X, A = dictionary
    stats = stats_of(X, A, dtype)
    norms = np.linalg.norm(A, axis=0)
    for nonzeros in (1, 2, 3, A.shape[1] + 2):
        h = code(CODERS[name](nonzeros), stats, guess)
        assert np.isfinite(h).all()
        assert h.min() >= 0
        assert np.count_nonzero(h, axis=1).max() <= nonzeros
        assert not h[0].any()
        assert not h[:, norms == 0].any()
        slope = (h.astype(float) @ stats.gram - stats.cross) / np.where(norms > 0, norms, 1)
        size = np.linalg.norm(X, axis=1)[:, None]
        assert np.all((np.abs(slope) <= (1e-9 if dtype == np.float64 else 1e-4) * size)[h > 0])


@pytest.mark.parametrize("name", PATHS)
def test_enough_nonzeros_give_nonnegative_least_squares(dictionary, name):
    X, A = dictionary
    stats = stats_of(X, A)
    h = code(PATHS[name](A.shape[1]), stats)
    least = np.array([nnls(A, x)[1] for x in X])
    np.testing.assert_allclose(np.linalg.norm(X - h @ A.T, axis=1), least, rtol=1e-7, atol=1e-7)
    if np.linalg.matrix_rank(A) == A.shape[1]:
        np.testing.assert_allclose(h, nnls_of(stats), atol=1e-7 * np.abs(h).max())


@pytest.mark.parametrize("name", ["forward", "path"])
def test_single_component_is_the_best_one(dictionary, name):
    X, A = dictionary
    h = code(CODERS[name](1), stats_of(X, A))
    singles = np.array([[nnls(A[:, [j]], x)[1] for j in range(A.shape[1])] for x in X])
    np.testing.assert_allclose(np.linalg.norm(X - h @ A.T, axis=1), singles.min(axis=1), rtol=1e-9, atol=1e-9)


def best_of_all_supports(X, A, nonzeros):
    """The smallest residual of each sample with that many components."""
    supports = list(combinations(range(A.shape[1]), nonzeros))
    return np.array([min(nnls(A[:, s], x)[1] for s in supports) for x in X])


@pytest.mark.parametrize("name", CODERS)
@pytest.mark.parametrize(("r", "nonzeros"), [(4, 1), (5, 2), (6, 3)])
def test_known_codes_are_recovered(name, r, nonzeros, rng):
    """For components with little overlap, the greedy choices are optimal."""
    A = (np.eye(12, r) + 0.02 * rng.random((12, r))) * rng.uniform(0.5, 2, r)
    H = np.array([rng.permutation(np.r_[rng.uniform(1, 2, nonzeros), np.zeros(r - nonzeros)]) for _ in range(25)])
    X = H @ A.T + 0.002 * rng.standard_normal((25, 12))
    h = code(CODERS[name](nonzeros), stats_of(X, A))
    np.testing.assert_array_equal(h > 0, H > 0)
    np.testing.assert_allclose(
        np.linalg.norm(X - h @ A.T, axis=1), best_of_all_supports(X, A, nonzeros), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("name", ["forward", "reverse", "path, no refit"])
def test_more_nonzeros_never_fit_worse(name, rng):
    X, A = random_problem(rng)
    stats = stats_of(X, A)
    residuals = [np.linalg.norm(X - code(PATHS[name](k), stats) @ A.T, axis=1) for k in range(1, 8)]
    assert np.all(np.diff(residuals, axis=0) <= 1e-9)


def test_reverse_drops_the_smallest_scaled_entry(rng):
    X, A = random_problem(rng, r=4)
    stats = stats_of(X, A)
    full = nnls_of(stats)
    rows = np.count_nonzero(full, axis=1) == 4
    h = code(Coding(3), stats)
    assert rows.any()
    dropped = np.argmin(full * np.linalg.norm(A, axis=0), axis=1)
    assert not h[rows, dropped[rows]].any()


@pytest.mark.parametrize("reverse", [False, True])
def test_supports_are_chosen_every_so_often(reverse, rng):
    X, A = random_problem(rng)
    stats, other = stats_of(X, A), stats_of(rng.random(X.shape), A)
    sets = Rows(AtMost(2), 7)
    first, state = Coding(2, reverse, every=3)(np.ones((40, 7), order="F"), stats, sets, {})
    np.testing.assert_array_equal(first, code(Coding(2, reverse), stats, 1.0))
    factor = first.copy("F")
    for _ in range(2):
        before = other.loss(factor)
        factor, state = Coding(2, reverse, every=3)(factor, other, sets, state)
        assert not factor[first == 0].any()
        assert other.loss(factor) <= before + 1e-12 * other.sqnorm
    factor, _ = Coding(2, reverse, every=3)(factor, other, sets, state)
    np.testing.assert_allclose(factor, code(Coding(2, reverse), other), atol=1e-10)


@pytest.mark.parametrize("name", PATHS)
def test_samples_orthogonal_to_all_components_are_zero(name, rng):
    A = rng.random((9, 4))
    h = code(PATHS[name](2), stats_of(-rng.random((5, 9)), A), guess=1.0)
    assert not h.any()


def assert_on_the_path(h, stats, nonzeros):
    """The certificate of min ½·hᵀGh − cᵀh + λΣh over h ≥ 0 (unit norm), and that a smaller λ needs more entries."""
    norms = np.sqrt(stats.gram.diagonal())
    live = norms > 0
    slope = ((stats.cross - h @ stats.gram)[:, live] / norms[live]).astype(float)
    support = h[:, live] > 0
    assert h.min() >= 0
    assert support.sum(axis=1).max() <= nonzeros
    for g, up in zip(slope, support, strict=True):
        rounding = 1e-8 * (1 + np.abs(g).max(initial=0.0))
        level = max(g.max(initial=0.0), 0.0)
        np.testing.assert_allclose(g[up], level, atol=rounding)
        if level > rounding:
            assert up.sum() == nonzeros
            assert np.sum(g >= level - rounding) > nonzeros


def test_the_path_is_the_nonnegative_lasso(dictionary):
    stats = stats_of(*dictionary)
    for nonzeros in (1, 2, 3, 5, 20):
        assert_on_the_path(code(Path(nonzeros, refit=False), stats), stats, nonzeros)


@pytest.mark.parametrize("seed", range(5))
def test_entries_that_leave_the_path(seed):
    """Strongly correlated components of both signs, for which supports are not nested."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((15, 3)) @ rng.standard_normal((3, 10)) + 0.3 * rng.standard_normal((15, 10))
    X = rng.standard_normal((40, 15))
    stats = stats_of(X, A)
    supports = []
    for nonzeros in range(1, 8):
        h = code(Path(nonzeros, refit=False), stats)
        assert_on_the_path(h, stats, nonzeros)
        supports.append(h > 0)
    assert any(np.any(few & ~more) for few, more in pairwise(supports))


def test_path_equals_scikit_learns(rng):
    lars_path = pytest.importorskip("sklearn.linear_model").lars_path
    X, A = random_problem(rng, n=20)
    A /= np.linalg.norm(A, axis=0)
    stats = stats_of(X, A)
    solutions = {k: code(Path(k, refit=False), stats) for k in (1, 3)}
    for i, x in enumerate(X):
        levels, _, path = lars_path(A, x, method="lasso", positive=True)
        for h in solutions.values():
            level = max((stats.cross[i] - h[i] @ stats.gram).max(), 0) / len(A)
            wanted = [np.interp(level, levels[::-1], entry[::-1]) for entry in path]
            np.testing.assert_allclose(h[i], wanted, atol=1e-8)


# what a Gram matrix that is singular but for rounding then gives is taken for the solution.
@pytest.mark.compiled
def test_the_path_ends_where_the_support_spans_the_features():
    rng = np.random.default_rng(4)
    for _ in range(100):
        A, X = rng.standard_normal((5, 7)), rng.random((4, 5))
        h = code(Path(7, refit=False), stats_of(X, A))
        least = np.array([nnls(A, x)[1] for x in X])
        np.testing.assert_allclose(np.linalg.norm(X - h @ A.T, axis=1), least, atol=1e-6)


@pytest.mark.parametrize("nonzeros", [1, 2, 3])
@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1], [1, 0, 2]])
def test_components_with_equal_slopes(nonzeros, order):
    """The first and the third fit best together; the second is between them."""
    gram = np.array([[1, 0.9, 0.7], [0.9, 1, 0.9], [0.7, 0.9, 1]])[np.ix_(order, order)]
    stats = Stats(np.ones((1, 3), order="F"), gram, 10.0)
    h = code(Path(nonzeros, refit=False), stats)
    slope = (stats.cross - h @ gram)[0]
    np.testing.assert_allclose(slope[h[0] > 0], slope.max(), atol=1e-9)
    if nonzeros >= 2:
        np.testing.assert_allclose(h[0], np.array([1, 0, 1])[order] / 1.7, atol=1e-9)


def test_one_of_two_equally_good_components_is_chosen():
    h = code(Path(1), Stats(np.ones((1, 2), order="F"), np.eye(2), 2.0))
    assert sorted(h[0]) == [0, 1]


@pytest.mark.parametrize("most", [1, 3, 7])
def test_supports_grow_in_the_requested_rows(most, rng):
    X, A = random_problem(rng)
    stats = stats_of(X, A)
    h = np.full(stats.cross.shape, -5.0)
    rows = np.array([3, 0, 17])
    grow_support(h, np.ascontiguousarray(stats.cross), stats.gram, rows, most, *work_arrays(len(stats.gram)))
    others = np.setdiff1d(np.arange(len(h)), rows)
    assert np.all(h[others] == -5)
    assert np.count_nonzero(h[rows], axis=1).max() <= most
    slope = h[rows] @ stats.gram - stats.cross[rows]
    np.testing.assert_allclose(slope[h[rows] > 0], 0, atol=1e-9)
    if most == 7:
        np.testing.assert_allclose(h[rows], nnls_of(stats)[rows], atol=1e-9)


@pytest.mark.parametrize("gap", [1e-5, 1e-7, 1e-9, 0.0])
def test_supports_grow_among_nearly_dependent_components(gap, rng):
    """Residuals exceed the smallest ones by at most a multiple of the gap."""
    basis = rng.random((15, 5))
    A = np.column_stack([basis, basis @ rng.random((5, 6)) + gap * rng.standard_normal((15, 6))])
    X = rng.standard_normal((40, 15)) + rng.random((40, 11)) @ A.T
    stats = stats_of(X, A)
    h = np.zeros(stats.cross.shape)
    grow_support(h, np.ascontiguousarray(stats.cross), stats.gram, np.arange(40), 11, *work_arrays(11))
    least = np.array([nnls(A, x)[1] for x in X])
    assert np.all(np.linalg.norm(X - h @ A.T, axis=1) <= least * (1 + 1e-6) + 10 * gap)

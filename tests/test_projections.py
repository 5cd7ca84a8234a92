"""The column problem: the nearest point of a Hoyer set, with each method.

Short vectors are compared with enumeration over all supports, long ones with the method that sorts. Every failure
prints the vector that caused it.
"""

import math

import numba
import numpy as np
import pytest
from catalogues import one_at_a_time
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from vectors import FEASIBLE, JIT, METHODS, ORDINARY, SETS, ULP, VECTORS, assert_alike, assert_feasible, seeded

from partwise.projections import Hoyer, HoyerBetween, sparse_opt
from partwise.projections.careful import sparse_opt_select
from partwise.projections.fast import first_guess, solve, sparse_opt_fast

CASES = 10_000 if JIT else 200  # short vectors on which every method is compared with enumeration
SHORT = 12 if JIT else 7


def any_k(rng, m):
    """k in [1, √m]: often an end, or at or near the root of an integer."""
    root = math.sqrt(rng.integers(1, m + 1))
    choices = (1, math.sqrt(m), root, root * (1 + ULP), root * (1 - ULP), root + 1e-9, root - 1e-4)
    k = rng.choice(choices) if rng.random() < 0.7 else rng.uniform(1, math.sqrt(m))
    return float(np.clip(k, 1, math.sqrt(m)))


@numba.njit
def enumerate_supports(b, k):
    """The best y of S_k among those that are stationary on their support, for every support.

    On d entries that is the flat point k/d, moved along b − mean to the sphere. The loss Σ(max b − b)·y is a sum of
    nonnegative terms, so nothing cancels.
    """
    best, least = np.zeros(b.size), np.inf
    for code in range(1, 2**b.size):
        chosen = np.flatnonzero((code >> np.arange(b.size)) & 1)
        d = chosen.size
        if d < k * k * (1 - 4e-16):
            continue
        x = b[chosen] - b[chosen].max()
        if x.min() < 0:
            x /= -x.min()
            x -= x.mean()
            x *= math.sqrt(max(0.0, 1 - k * k / d) / (x * x).sum())
        y = k / d + x
        loss = ((b.max() - b[chosen]) * y).sum()
        if loss < least and y.min() >= 0:
            least = loss
            best[:] = 0
            best[chosen] = y
    return best


def best_of_all_supports(b, k):
    """As `enumerate_supports`, scaled so that differences of b neither overflow nor underflow."""
    b = np.array(b, dtype=float)
    exponent = np.frexp(np.abs(b).max())[1]
    return enumerate_supports(np.ldexp(b, np.clip(-exponent, -4, 500)), k)


def assert_optimal(y, b, k, best, case=""):
    """Equal to the best point; or, if k² or more entries are tied for the maximum, supported on these."""
    ties = b == b.max()
    if ties.sum() >= k * k * (1 - 4 * ULP):
        assert y[~ties].sum() <= FEASIBLE[y.dtype], case
    else:
        assert_alike(y, best, case=case)


def assert_every_method_solves(b, k):
    """Feasible and best of all supports. (A failure prints the call.)"""
    best = best_of_all_supports(b, k)
    for method in METHODS:
        y = sparse_opt(b, k, method=method)
        case = f"sparse_opt(np.array({b.tolist()}, {str(b.dtype)!r}), {k!r}, method={method!r})"
        assert_feasible(y, k, case)
        assert_optimal(y, b, k, best, case)


def k_of(sparsity, m):
    return math.sqrt(m) - sparsity * (math.sqrt(m) - 1)


# The Hoyer sets: the column problem


@pytest.mark.parametrize("kind", VECTORS)
def test_best_of_all_supports(kind):
    rng = seeded(kind)
    for _ in range(math.ceil(CASES / len(VECTORS))):
        b = VECTORS[kind](rng, int(rng.integers(1, SHORT + 1)))
        assert_every_method_solves(b, any_k(rng, b.size))


@settings(max_examples=200 if JIT else 30)
@given(
    b=arrays(float, st.integers(1, 8), elements=st.floats(allow_nan=False, allow_infinity=False)),
    fraction=st.floats(0, 1),
)
def test_best_of_all_supports_for_hypothesis(b, fraction):
    assert_every_method_solves(b, 1 + fraction * (math.sqrt(b.size) - 1))


@pytest.mark.parametrize(
    ("b", "k"),
    [
        # k² is the number of entries near the top, whose differences vanish beside those of the others
        ([-1e-200, -1e300, -2e-300, -2.0, -2.0], math.sqrt(2)),
        ([-1e-150, -2.0, -1.0, -1.0, -1e300, -1.0, -1e-100], math.sqrt(2) * (1 + ULP)),
        ([-2.0, -1e-100, -3e-150, -1e300, -1.0], 2.0),
        ([-9.3e-207, -8e172, -3.8e-2, -1e-296, -1.7e-166], 2.0),
        # the threshold falls between two neighbouring floats
        ([1 + 3 * ULP, 1 + 2 * ULP, 1 + ULP, 1 + 3 * ULP, 1 + ULP, 1 + 3 * ULP], 1.9444811586932378),
        # a small variance is left after the first round of Projection-Hoyer
        ([0.5627, 0.141, 0.5626], 1.0432),
        ([-1.4e26, -1.9e-290, -4e81, -9.9e-95, -5.2e86], 1.8233316879708457),
    ],
)
def test_best_of_all_supports_where_numbers_are_hard(b, k):
    assert_every_method_solves(np.array(b), k)


@pytest.mark.compiled
@one_at_a_time(m=[10_000, 1_000, 100_000], sparsity=[0.8, 0.05, 0.4, 0.97], dtype=[np.float64, np.float32])
@pytest.mark.parametrize("kind", ["uniform", "normal", "exponential", "ties", "one large", "geometric", "far apart"])
def test_methods_agree_on_long_vectors(kind, m, sparsity, dtype):
    b = far_apart(m) if kind == "far apart" else VECTORS[kind](seeded(kind), m)
    b = b.astype(dtype)
    exact = Hoyer(sparsity, "sorted")(b)
    for method in METHODS:
        y = Hoyer(sparsity, method)(b)
        assert y.dtype == dtype
        assert_feasible(y, k_of(sparsity, m), method)
        assert_alike(y, exact, 10 * FEASIBLE[y.dtype], method)


def far_apart(m):
    """Gaps of geometric size, so that each pass of "fast" drops only a few entries."""
    return -np.random.default_rng(m).permutation(np.exp(np.linspace(-30, 30, m)))


@pytest.mark.compiled
@pytest.mark.parametrize("m", [1_000, 3_000, 100_000])
def test_fast_falls_back_for_geometric_gaps(m):
    b = far_apart(m)
    k = k_of(0.8, m)
    for guess in (math.nan, first_guess(b, k)):
        assert math.isnan(solve(b, k, np.empty(m), guess))
    assert_alike(sparse_opt(b, k), sparse_opt(b, k, method="sorted"), 1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ORDINARY)
def test_offset_and_scale_do_not_matter(kind, method):
    """Integers and powers of two, so that b itself is not rounded."""
    b = np.rint(1e4 * ORDINARY[kind](seeded(kind), 40).astype(float) % 1e6)
    y = Hoyer(0.6, method)(b)
    for offset in (-3.0, 1e5, -1e9):
        for unit in (1.0, 2.0**-30, 2.0**40, 2.0**-1000, 2.0**900):
            assert_alike(Hoyer(0.6, method)(unit * (b + offset)), y, 1e-9, f"offset {offset:g}, unit {unit:g}")


@pytest.mark.parametrize("kind", ORDINARY)
def test_guess_does_not_matter(kind):
    b = np.ascontiguousarray(ORDINARY[kind](seeded(kind), 300), dtype=float)
    k = k_of(0.5, b.size)
    out, cold = np.empty(b.size), sparse_opt(b, k, method="sorted")
    good = solve(b, k, out, math.nan)
    close = (good, np.nextafter(good, np.inf), np.nextafter(good, -np.inf), good + 1e-3 * np.ptp(b))
    wrong = (b.min(), b.max(), b.mean(), np.median(b), b.min() - np.ptp(b), b.max() + np.ptp(b), *np.sort(b)[-40:])
    absurd = (0.0, 1e300, -1e300, 1e-300, math.inf, -math.inf, math.nan)
    for guess in (*close, *wrong, *absurd):
        out[:] = math.nan
        if math.isnan(solve(b, k, out, float(guess))):
            sparse_opt_select(b, k, None, out)
        assert_alike(out, cold, 1e-9, f"guess {guess!r}")


# Where the maximum is tied


@one_at_a_time(top=[0.0, -2.0, 1e-300, 1e300], q=[3, 2, 9])
@pytest.mark.parametrize("method", METHODS)
def test_ties_are_feasible_and_decided_by_near(method, q, top):
    """With k² < q tied entries, the result is supported on the ties; it is `near` if that is a solution."""
    rng = np.random.default_rng(q)
    m, k = 12, 0.5 + 0.5 * math.sqrt(q)
    ties = rng.permutation(m)[:q]
    b = top - np.abs(top or 1.0) * (1 + rng.random(m))
    b[ties] = top
    hoyer = Hoyer((math.sqrt(m) - k) / (math.sqrt(m) - 1), method)
    alone = hoyer(b)
    assert_feasible(alone, k)
    assert not np.delete(alone, ties).any()
    np.testing.assert_array_equal(hoyer(b.copy()), alone)
    for _ in range(20):
        near = np.zeros(m)
        near[ties] = sparse_opt(rng.random(q), k)
        assert_alike(hoyer(b, near=near), near, 1e-12)
        elsewhere = rng.standard_normal(m)  # not a point of the set: the nearest one to it on the ties
        y = hoyer(b, near=elsewhere)
        assert_feasible(y, k)
        assert not np.delete(y, ties).any()
        assert_alike(y[ties], best_of_all_supports(elsewhere[ties], k))


@pytest.mark.parametrize("method", METHODS)
def test_flat_on_as_many_ties_as_k_squared(method):
    b = np.array([1.0, 3.0, 2.0, 3.0, 3.0, 3.0, -1.0])
    assert_alike(sparse_opt(b, 2.0, method=method), np.where(b == 3, 0.5, 0.0), 1e-15)


@pytest.mark.parametrize("hoyer", [s for s in SETS if isinstance(s, (Hoyer, HoyerBetween))], ids=repr)
def test_zeros_keep_near(hoyer):
    """All points are equally near to b = 0, so the column of a dead component is kept."""
    near = hoyer(np.random.default_rng(0).random(30))
    assert_alike(hoyer(np.zeros(30), near=near), near, 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_near_is_ignored_where_the_answer_is_unique(method):
    b, near = np.random.default_rng(0).random((2, 30))
    np.testing.assert_array_equal(Hoyer(0.5, method)(b, near=near), Hoyer(0.5, method)(b))


@pytest.mark.parametrize("method", METHODS)
def test_k_may_exceed_its_bounds_by_rounding(method):
    b = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sparse_opt(b, 1 - 1e-13, method=method), [0, 0, 1])
    assert_alike(sparse_opt(b, math.sqrt(3) * (1 + 1e-13), method=method), np.full(3, 1 / math.sqrt(3)), 1e-12)


def test_the_result_may_replace_the_vector_that_breaks_ties(monkeypatch):
    def failed(b, k, out, guess):
        out[:] = -1.0  # as a solution that is found to be wrong
        return np.nan

    b, near = np.ones(6), np.array([0, 0, 0.9, 0, 0.1, 0])
    wanted = np.empty(6)
    sparse_opt_select(b, 1.2, near, wanted)
    monkeypatch.setattr("partwise.projections.fast.solve", failed)
    sparse_opt_fast(b, 1.2, near, near)
    np.testing.assert_array_equal(near, wanted)
    assert np.argmax(near) == 2

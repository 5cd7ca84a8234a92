"""Laws of the sets, over catalogues of vectors.

Short vectors are compared with enumeration over all supports, long ones with the method that sorts. Every failure
prints the vector that caused it.
"""

import math
import os
import pickle
import zlib
from dataclasses import FrozenInstanceError

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partwise.projections import AtMost, Hoyer, HoyerBetween, Nonnegative, Projection, hoyer_sparsity, sparse_opt
from partwise.projections.columns import FAST, project_column
from partwise.projections.fast import sums_above, write_solution

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
CASES = 20_000 if JIT else 200  # short vectors on which every method is compared with enumeration
SHORT = 12 if JIT else 7
METHODS = ("fast", "sorted", "hoyer")
ULP = np.finfo(float).eps
NOTHING = np.empty(0)

ALIKE = 1e-7  # the loss is flat at its least and k² = d has a square root at it: enumeration sees points to √ε
FEASIBLE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


def scattered(rng, m):
    """Most entries within a few roundings of 1, the rest far below."""
    return np.where(rng.random(m) < 0.6, 1 + ULP * rng.integers(0, 4, m), rng.random(m))


def read_only(b):
    b.setflags(write=False)
    return b


ORDINARY = {
    "uniform": lambda rng, m: rng.random(m),
    "normal": lambda rng, m: rng.standard_normal(m),
    "exponential": lambda rng, m: rng.exponential(size=m),
    "all negative": lambda rng, m: -1 - rng.random(m),
    "one large": lambda rng, m: np.where(np.arange(m) == rng.integers(m), 1e6, rng.random(m)),
    "geometric": lambda rng, m: rng.permutation(2.0 ** (np.arange(m) % 40)),
    "geometric below zero": lambda rng, m: -rng.permutation(3.0 ** (np.arange(m) % 25)),
    "small spread on an offset": lambda rng, m: 1e8 + 1e-6 * rng.standard_normal(m),
    "float32": lambda rng, m: rng.standard_normal(m).astype(np.float32),
    "read-only": lambda rng, m: read_only(rng.random(m)),
    "every other": lambda rng, m: rng.random(2 * m)[::2],
    "backwards": lambda rng, m: rng.standard_normal(m)[::-1],
}
TIED = {
    "ties": lambda rng, m: rng.integers(0, 3, m).astype(float),
    "constant": lambda rng, m: np.full(m, rng.standard_normal()),
    "zeros": lambda rng, m: np.zeros(m),
    "integers": lambda rng, m: rng.integers(-4, 5, m),
    "booleans": lambda rng, m: rng.random(m) < 0.5,
}
EXTREME = {
    "last bits of 1": lambda rng, m: 1 + ULP * rng.integers(0, 4, m),
    "last bits of some": scattered,
    "last bits of 1e15": lambda rng, m: 1e15 + rng.standard_normal(m),
    "1e-300": lambda rng, m: 1e-300 * rng.standard_normal(m),
    "1e300": lambda rng, m: 1e300 * rng.standard_normal(m),
    "subnormal": lambda rng, m: 5e-324 * rng.integers(-5, 6, m),
    "largest": lambda rng, m: 1.79e308 * rng.uniform(-1, 1, m),
    "1e-300 and 1e300": lambda rng, m: rng.choice([1e-300, 2e-300, -1e-300, 1e300, -1e300, 3e299, 0.0, 1.0], m),
    "near the top at every scale": lambda rng, m: -rng.choice([1e-300, 2e-300, 1e-200, 1e-100, 3e-100, 1.0, 1e300], m),
    "orders of magnitude": lambda rng, m: -np.exp(rng.uniform(-690, 690, m)),
}
VECTORS = ORDINARY | TIED | EXTREME

SETS = [
    *(Hoyer(s, method) for s in (0.0, 0.35, 0.8, 1.0) for method in METHODS),
    *(HoyerBetween(0.3, 0.6, method) for method in METHODS),
    HoyerBetween(None, 0.4),
    HoyerBetween(0.7, None),
    AtMost(5),
    Nonnegative(),
]


def seeded(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def any_k(rng, m):
    """Some k in [1, √m]: often an end, or the root of a whole number, or beside one."""
    root = math.sqrt(rng.integers(1, m + 1))
    choices = (1, math.sqrt(m), root, root * (1 + ULP), root * (1 - ULP), root + 1e-9, root - 1e-4)
    k = rng.choice(choices) if rng.random() < 0.7 else rng.uniform(1, math.sqrt(m))
    return float(np.clip(k, 1, math.sqrt(m)))


@numba.njit
def enumerate_supports(b, k):
    """The best y of S_k among those that are stationary on their support, for every support.

    On d entries that is the flat point k/d, moved along b − mean to the sphere. The loss Σ(max b − b)·y is a sum of
    nonnegative terms: no scale of b hides another.
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
    """As `enumerate_supports`, in a unit where differences of b neither over- nor underflow."""
    b = np.array(b, dtype=float)
    exponent = np.frexp(np.abs(b).max())[1]
    return enumerate_supports(np.ldexp(b, np.clip(-exponent, -4, 500)), k)


def assert_feasible(y, k, case=""):
    tolerance = FEASIBLE[y.dtype]
    y = y.astype(float)
    assert y.min() >= 0, case
    assert abs(y.sum() - k) <= tolerance, f"sum {y.sum()!r} instead of {k!r}; {case}"
    assert abs(np.linalg.norm(y) - 1) <= tolerance, f"norm {np.linalg.norm(y)!r}; {case}"


def assert_alike(y, other, tolerance=ALIKE, case=""):
    """Close, entry by entry (NumPy's own assertion takes too long for thousands of cases)."""
    gap = np.abs(np.asarray(y, dtype=float) - other).max()
    assert gap <= tolerance, f"{y} and {other} differ by {gap:g}; {case}"


def assert_optimal(y, b, k, best, case=""):
    """Equal to the best point; or, where k² or more entries are tied at the top, supported on these."""
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


@settings(deadline=None, max_examples=200 if JIT else 30)
@given(
    b=arrays(float, st.integers(1, 8), elements=st.floats(allow_nan=False, allow_infinity=False)),
    fraction=st.floats(0, 1),
)
def test_best_of_all_supports_of_whatever_hypothesis_finds(b, fraction):
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


@pytest.mark.heavy
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparsity", [0.05, 0.4, 0.8, 0.97])
@pytest.mark.parametrize("m", [1_000, 10_000, 100_000])
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
    """Gaps so unequal that each pass of "fast" drops only a few entries."""
    return -np.random.default_rng(m).permutation(np.exp(np.linspace(-30, 30, m)))


@pytest.mark.heavy
@pytest.mark.parametrize("m", [1_000, 3_000, 100_000])
def test_fast_gives_up_passing_over_vectors_that_are_far_apart(m):
    b = far_apart(m)
    k = k_of(0.8, m)
    sample = b[::32].copy()  # where "fast" takes its first guess from when m is large
    guess = write_solution(sample, k * math.sqrt(sample.size / m), np.empty(sample.size), math.nan, 0, 0.0, 0.0)
    for first in (math.nan, guess):
        sums = (0, 0.0, 0.0) if math.isnan(first) else sums_above(b, first)
        assert math.isnan(write_solution(b, k, np.empty(m), first, *sums))
    assert_alike(sparse_opt(b, k), sparse_opt(b, k, method="sorted"), 1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ORDINARY)
def test_neither_offset_nor_unit_matters(kind, method):
    """Whole numbers and powers of two, so that no rounding in b itself does."""
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
    good = write_solution(b, k, out, math.nan, 0, 0.0, 0.0)
    close = (good, np.nextafter(good, np.inf), np.nextafter(good, -np.inf), good + 1e-3 * np.ptp(b))
    wrong = (b.min(), b.max(), b.mean(), np.median(b), b.min() - np.ptp(b), b.max() + np.ptp(b), *np.sort(b)[-40:])
    absurd = (0.0, 1e300, -1e300, 1e-300, math.inf, -math.inf, math.nan)
    for guess in (*close, *wrong, *absurd):
        out[:] = math.nan
        project_column(FAST, k, k, b, NOTHING, out, float(guess))
        assert_alike(out, cold, 1e-9, f"guess {guess!r}")


# Where the maximum is tied


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("q", [2, 3, 9])
@pytest.mark.parametrize("top", [0.0, -2.0, 1e-300, 1e300])
def test_ties_are_feasible_and_decided_by_near(method, q, top):
    """With k² < q the answer lies on the ties: always the same one alone, `near` itself if it is one of them."""
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
    """Every point is equally near to b = 0: the present column of a dead component stays as it is."""
    near = hoyer(np.random.default_rng(0).random(30))
    assert_alike(hoyer(np.zeros(30), near=near), near, 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_near_is_ignored_where_the_answer_is_unique(method):
    b, near = np.random.default_rng(0).random((2, 30))
    np.testing.assert_array_equal(Hoyer(0.5, method)(b, near=near), Hoyer(0.5, method)(b))


# What all sets have in common


@pytest.mark.parametrize("projection", SETS, ids=repr)
@pytest.mark.parametrize("kind", VECTORS)
def test_order_is_kept_and_input_left_alone(projection, kind):
    b = VECTORS[kind](seeded(kind), 30)
    before = b.copy()
    y = projection(b)
    np.testing.assert_array_equal(b, before)
    assert y.dtype == (np.float32 if b.dtype == np.float32 else np.float64)
    assert y.shape == b.shape
    assert not np.shares_memory(y, b)
    order = np.lexsort((y, b))  # equal entries of b may differ in y, but not overtake larger ones
    assert (np.diff(y[order]) >= 0).all()


@pytest.mark.parametrize("projection", SETS, ids=repr)
@pytest.mark.parametrize("kind", ORDINARY | TIED)
def test_points_of_the_set_stay(projection, kind):
    y = projection(VECTORS[kind](seeded(kind), 30))
    assert_alike(projection(y), y, 1e-5 if y.dtype == np.float32 else ALIKE * max(1, y.max()))


@pytest.mark.parametrize("projection", SETS, ids=repr)
@pytest.mark.parametrize("kind", ORDINARY)
def test_permuting_the_input_permutes_the_output(projection, kind):
    rng = seeded(kind)
    b = np.array(ORDINARY[kind](rng, 24), dtype=float)
    order = rng.permutation(24)
    y = projection(b)
    assert_alike(projection(b[order]), y[order], ALIKE * max(1, y.max()))


@pytest.mark.parametrize("projection", SETS, ids=repr)
@pytest.mark.parametrize("kind", ["uniform", "normal", "exponential", "all negative", "ties", "constant", "integers"])
def test_no_point_of_the_set_is_nearer(projection, kind):
    rng = seeded(kind)
    b = np.asarray(VECTORS[kind](rng, 30), dtype=float)
    y = projection(b)
    distance = np.linalg.norm(b - y)
    for _ in range(30):
        far, beside = projection(rng.standard_normal(30)), projection(y + 0.1 * rng.standard_normal(30))
        for point in (far, beside):
            assert np.linalg.norm(b - point) >= distance - 1e-9


@settings(deadline=None, max_examples=60 if JIT else 15)
@given(
    b=arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
        st.integers(1, 40),
        elements={"allow_nan": False, "allow_infinity": False, "min_value": -1000, "max_value": 1000},
    ).filter(lambda b: b.dtype != bool)
    | arrays(bool, st.integers(1, 40)),
    step=st.sampled_from([1, -1, 2]),
)
def test_every_form_of_vector_is_taken(b, step):
    b = b[::step]
    same = np.array(b, dtype=np.float32 if b.dtype == np.float32 else float)
    for projection in SETS:
        np.testing.assert_array_equal(projection(b), projection(same))
        np.testing.assert_array_equal(projection(b.tolist()), projection(same.astype(float)))


# The other sets


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ends", [(0.2, 0.5), (0.4, 0.4), (0.0, 1.0), (None, 0.3), (0.6, None), (None, None), (0.9, 1)])
@pytest.mark.parametrize("kind", ["uniform", "normal", "exponential", "all negative", "one large", "integers", "zeros"])
def test_between_beats_a_grid_of_sparsities(kind, ends, method):
    b = np.asarray(VECTORS[kind](seeded(kind), 25), dtype=float)
    lo, hi = (0.0 if ends[0] is None else ends[0]), (1.0 if ends[1] is None else ends[1])
    y = HoyerBetween(*ends, method)(b)
    assert_feasible(y, y.sum())
    assert lo - 1e-10 <= hoyer_sparsity(y) <= hi + 1e-10
    for sparsity in np.linspace(lo, hi, 101):
        assert b @ y >= b @ Hoyer(sparsity, "sorted")(b) - 1e-9 * np.abs(b).max()


@pytest.mark.parametrize("unit", [1.0, 1e300, 1e-300])
def test_between_is_normalised_positive_part_where_that_lies_inside(unit):
    b = np.random.default_rng(0).standard_normal(50)
    inside = np.maximum(b, 0) / np.linalg.norm(np.maximum(b, 0))
    sparsity = hoyer_sparsity(inside)
    for ends in ((None, None), (sparsity - 0.1, None), (None, sparsity + 0.1), (sparsity - 0.01, sparsity + 0.01)):
        assert_alike(HoyerBetween(*ends)(unit * b), inside, 1e-9)


@pytest.mark.parametrize("kind", VECTORS)
def test_at_most_is_best_of_all_supports(kind):
    """Keeping J lowers ‖b − y‖² by Σ_J b₊²: no J of that size may keep more. Compared in units of max b."""
    rng = seeded(kind)
    for _ in range(20):
        m = int(rng.integers(1, 11))
        b, count = VECTORS[kind](rng, m), int(rng.integers(1, m + 2))
        y = AtMost(count)(b)
        kept = y != 0
        assert kept.sum() <= count
        np.testing.assert_array_equal(y[kept], b[kept])
        gains = (np.maximum(b.astype(float), 0) / (np.max(b) if np.max(b) > 0 else 1)) ** 2
        supports = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
        best = (supports @ gains)[supports.sum(axis=1) <= count].max()
        assert gains[kept].sum() >= best * (1 - 1e-12)


def test_at_most_breaks_ties_by_near_and_then_by_place():
    b = [2.0, 5.0, 2.0, 2.0, -1.0, 2.0]
    np.testing.assert_array_equal(AtMost(3)(b), [2, 5, 2, 0, 0, 0])
    np.testing.assert_array_equal(AtMost(3)(b, near=[0, 0, 1, 3, 9, 2]), [0, 5, 0, 2, 0, 2])
    np.testing.assert_array_equal(AtMost(3)(b, near=[1, 0, 0, 1, 0, 1]), [2, 5, 0, 2, 0, 0])


@pytest.mark.parametrize("kind", VECTORS)
def test_nonnegative_is_the_positive_part(kind):
    b = VECTORS[kind](seeded(kind), 30)
    np.testing.assert_array_equal(Nonnegative()(b), np.maximum(b, 0))


# Values, and what they refuse


@pytest.mark.parametrize("projection", SETS, ids=repr)
def test_sets_are_values(projection):
    copy = pickle.loads(pickle.dumps(projection))
    assert copy == projection
    assert hash(copy) == hash(projection)
    assert [other for other in SETS if other == projection] == [projection]
    assert eval(repr(projection)) == projection
    assert isinstance(projection, Projection)
    for field in ("sparsity", "nonzeros", "method", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(projection, field, 0.5)


@pytest.mark.parametrize("projection", SETS, ids=repr)
@pytest.mark.parametrize(
    ("b", "said"),
    [
        ([1.0, math.nan, 2.0], "nan"),
        ([1.0, math.inf], "inf"),
        ([-math.inf, 1.0], "-inf"),
        (np.array([1, np.nan], np.float32), "nan"),
        ([], "(0,)"),
        (3.0, "()"),
        ([[1.0, 2.0]], "(1, 2)"),
        ([1j, 2.0], "complex128"),
        (["one", "two"], "<U3"),
        ([None, 1.0], "object"),
    ],
)
def test_what_is_no_vector_is_refused(projection, b, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (its message is looked at below)
        projection(b)
    assert said in str(error.value)
    if np.ndim(b) == 1 and len(b):
        with pytest.raises(ValueError, match="near") as error:
            projection(np.ones(len(b)), near=b)
        assert said in str(error.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("b", [[1.0, math.nan], [], [[1.0]], ["a"]])
def test_sparse_opt_refuses_what_is_no_vector(b, method):
    with pytest.raises(ValueError, match=r"nan|\(0,\)|\(1, 1\)|<U1"):
        sparse_opt(b, 1.0, method=method)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Hoyer(1.2), "1.2"),
        (lambda: Hoyer(-0.1), "-0.1"),
        (lambda: Hoyer(math.nan), "nan"),
        (lambda: Hoyer("0.5"), "'0.5'"),
        (lambda: Hoyer(True), "True"),
        (lambda: Hoyer(0.5, method="quick"), "'quick'"),
        (lambda: HoyerBetween(0.7, 0.2), "(0.7, 0.2)"),
        (lambda: HoyerBetween(-0.5, 0.2), "-0.5"),
        (lambda: HoyerBetween(0.5, 1.5), "1.5"),
        (lambda: HoyerBetween(0.1, 0.2, method="quick"), "'quick'"),
        (lambda: AtMost(0), "0"),
        (lambda: AtMost(-3), "-3"),
        (lambda: AtMost(2.5), "2.5"),
        (lambda: AtMost(True), "True"),
        (lambda: sparse_opt(np.ones(4), 0.9), "0.9"),
        (lambda: sparse_opt(np.ones(4), 2.1), "2.1"),
        (lambda: sparse_opt(np.ones(4), math.nan), "nan"),
        (lambda: sparse_opt(np.ones(4), "1"), "1"),
        (lambda: sparse_opt(np.ones(4), 1.5, method="quick"), "'quick'"),
        (lambda: Hoyer(0.5)(np.ones(4), near=np.ones(3)), "3"),
        (lambda: AtMost(2)(np.ones(4), near=np.ones(5)), "5"),
    ],
)
def test_errors_name_the_value(make, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (its message is looked at below)
        make()
    assert said in str(error.value)


@pytest.mark.parametrize("method", METHODS)
def test_k_may_miss_its_ends_by_rounding(method):
    b = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sparse_opt(b, 1 - 1e-13, method=method), [0, 0, 1])
    assert_alike(sparse_opt(b, math.sqrt(3) * (1 + 1e-13), method=method), np.full(3, 1 / math.sqrt(3)), 1e-12)

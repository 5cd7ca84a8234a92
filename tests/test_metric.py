"""The column problem in a diagonal metric, compared with an enumeration of all supports."""

import math

import numpy as np
import pytest
from vectors import ALIKE, FEASIBLE, JIT, ORDINARY, SETS, VECTORS, assert_alike, assert_feasible, seeded

from partwise.projections import AtMost, FreeNorm, Hoyer, HoyerBetween, Nonnegative, Simplex, solve_in_metric
from partwise.projections.metric import solve_by_passes
from partwise.projections.metric_careful import solve_carefully
from partwise.projections.sparsity import l1_norm

LONGEST = 8 if JIT else 5
FEW = 800 if JIT else 80

METRICS = {
    "constant": lambda rng, m: np.full(m, rng.uniform(0.1, 3)),
    "uniform": lambda rng, m: rng.random(m),
    "spread 1": lambda rng, m: np.exp(rng.standard_normal(m)),
    "spread 1e6": lambda rng, m: 10 ** rng.uniform(-6, 0, m),
    "ties": lambda rng, m: rng.integers(1, 3, m).astype(float),
    "with zeros": lambda rng, m: np.where(rng.random(m) < 0.3, 0, rng.random(m)),
}
KINDS = ("uniform", "normal", "exponential", "all negative", "ties", "integers", "constant", "zeros", "one large")


def some_problems(rng, m, count):
    """b and h of every kind, at scales at which one or the other prevails, and a sparsity, often at an end."""
    for _ in range(count):
        h = METRICS[rng.choice(list(METRICS))](rng, m)
        b = np.asarray(VECTORS[rng.choice(KINDS)](rng, m), dtype=float) * 10.0 ** rng.integers(-3, 2)
        b[h == 0] = 0
        root = (math.sqrt(m) - math.sqrt(rng.integers(1, m + 1))) / max(math.sqrt(m) - 1, 1)
        yield b, h, float(rng.choice([0, 1, root, rng.random(), rng.random()]))


def objective(b, h, w):
    return np.sum(w * (0.5 * h * w - b), axis=-1)


def on_spheres(M, c, radius):
    """Yield the minimisers of ½yᵀMy − cᵀy with ‖y‖ = radius, for a stack of problems.

    By the secular equation in the eigenvectors of M; and once more with the sign of the first of them changed, because
    in the hard case both are minimisers.
    """
    values, vectors = np.linalg.eigh(M)
    g, gaps = np.einsum("nij,ni->nj", vectors, c), values - values[:, :1]
    low, high = np.full(len(M), -60.0), np.full(len(M), 40.0)
    for _ in range(70):
        middle = (low + high) / 2
        longer = np.linalg.norm(g / (gaps + np.exp(middle)[:, None]), axis=1) > radius
        low, high = np.where(longer, middle, low), np.where(longer, high, middle)
    y = g / (gaps + np.exp(high)[:, None])
    y[:, 0] = np.copysign(np.sqrt(np.maximum(radius**2 - np.square(y[:, 1:]).sum(axis=1), 0)), g[:, 0])
    for sign in (1, -1):
        yield np.einsum("nij,nj->ni", vectors, y * np.where(np.arange(y.shape[1]) == 0, sign, 1))


def candidates(b, h, k):
    """Yield points (a stack, for a stack of problems) that are stationary on a support; NaN where there is none.

    ``k`` is None for vectors of unit norm with any sum.
    """
    count, m = b.shape
    for code in range(1, 2**m):
        chosen = np.flatnonzero((code >> np.arange(m)) & 1)
        d, B, H = chosen.size, b[:, chosen], h[:, chosen]
        basis = np.eye(d) if k is None else np.linalg.qr(np.column_stack([np.ones(d), np.eye(d)[:, 1:]]))[0][:, 1:]
        centre = np.zeros((count, 1)) if k is None else k[:, None] / d
        left = np.ones(count) if k is None else 1 - k * k / d
        radius = np.sqrt(np.where(left < 1e-12, 0, left))
        M, c = np.einsum("fi,nf,fj->nij", basis, H, basis), (B - H * centre) @ basis
        for y in on_spheres(M, c, radius) if basis.size else (np.zeros((count, 0)),):
            w = np.zeros((count, m))
            w[:, chosen] = centre + y @ basis.T
            w[(w.min(axis=1) < -1e-13) | (np.abs(np.square(w).sum(axis=1) - 1) > 1e-9)] = np.nan
            yield w


def best_of_all_supports(b, h, low, high):
    """The points with the least objective over the set, for a stack of problems."""
    best, least = np.full_like(b, np.nan), np.full(len(b), np.inf)
    for k in (low, high, None) if (low < high).any() else (low,):
        for w in candidates(b, h, k):
            with np.errstate(invalid="ignore"):
                inside = (w.sum(axis=1) >= low - 1e-12) & (w.sum(axis=1) <= high + 1e-12)
                better = inside & (objective(b, h, w) < least)
            best[better], least[better] = w[better], objective(b, h, w)[better]
    return best, least


def has_multipliers(b, h, w, low, high):
    """Whether b − h·w = λ + μ·w on the support of w, with μ > −min h, b ≤ λ elsewhere, and the sign of λ of its end."""
    on, total = w > 1e-9, w.sum()
    value, scale = b[on] - h[on] * w[on], max(h.max(), np.abs(b).max())
    if np.ptp(w[on]) < 1e-9:  # λ + μw is one number: take the largest λ
        a = value.mean() + h.min() * w[on].mean()
        return bool(np.ptp(value) < 1e-9 * scale and low == high and (b[~on] < a).all())
    lines = np.column_stack([np.ones(on.sum()), w[on]])
    (a, mu), *_ = np.linalg.lstsq(lines, value, rcond=None)
    straight = np.abs(lines @ [a, mu] - value).max() < 1e-9 * scale
    signed = (a <= 0 or total >= high - 1e-9) and (a >= 0 or total <= low + 1e-9)
    return bool(straight and signed and mu > -h.min() + 1e-8 * scale and (b[~on] <= a).all())


def compare_with_enumeration(count, make, seed=0):
    """Solve ``count`` problems in the sets ``make(sparsity, rng)``; return the share of uncertified results."""
    uncertified = 0
    for m in range(1, LONGEST + 1):
        rng = np.random.default_rng([seed, m])
        problems = list(some_problems(rng, m, math.ceil(count / LONGEST)))
        sets = [make(sparsity, rng) for *_, sparsity in problems]
        b, h = (np.array(arrays) for arrays in list(zip(*problems, strict=True))[:2])
        low, high = np.array([s.l1_range(m) for s in sets]).T
        best, least = best_of_all_supports(b, h, low, high)
        for i, projection in enumerate(sets):
            case = f"solve_in_metric({projection!r}, {b[i].tolist()}, {h[i].tolist()})"
            near, scale = projection(rng.random(m)), max(h[i].max(), np.abs(b[i]).max(), 1e-300)
            w, certified = solve_in_metric(projection, b[i], h[i], near)
            assert_feasible(w, np.clip(w.sum(), low[i], high[i]), case)
            if certified:
                assert objective(b[i], h[i], w) <= least[i] + 1e-9 * scale, case
            else:
                uncertified += 1
                assert objective(b[i], h[i], w) <= objective(b[i], h[i], near) + 1e-12 * scale, case
                assert not has_multipliers(b[i], h[i], best[i], low[i], high[i]), case
    return uncertified / count


def one_sparsity(sparsity, rng):
    return Hoyer(sparsity)


def interval(sparsity, rng):
    other = rng.choice([0, 1, rng.random()])
    return HoyerBetween(min(sparsity, other), max(sparsity, other))


@pytest.mark.parametrize("make", [one_sparsity, interval])
def test_certified_results_are_the_best_of_all_supports(make):
    assert compare_with_enumeration(FEW, make) < 0.05


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("make", [one_sparsity, interval])
def test_certified_results_are_the_best_of_all_supports_in_10000_cases(make):
    share = compare_with_enumeration(10_000, make, seed=1)
    print(f"{make.__name__}: {share:.2%} uncertified")
    assert share < 0.05


# What else holds


UNIT = [s for s in SETS if isinstance(s, Hoyer | HoyerBetween)]
SOLVED = [s for s in SETS if not isinstance(s, Simplex)]


@pytest.mark.parametrize("projection", UNIT, ids=repr)
def test_a_constant_metric_changes_nothing(projection):
    for kind, make in VECTORS.items():
        b = make(seeded(kind), 30)
        near = projection(seeded(kind).random(30))
        for h in (1.0, 3.7, 1e-9):
            w, certified = solve_in_metric(projection, b, np.full(30, h), near)
            np.testing.assert_array_equal(w, projection(b, near), err_msg=kind)
            assert certified, kind


@pytest.mark.parametrize("projection", SOLVED, ids=repr)
def test_every_vector_and_metric_gives_a_point_of_the_set(projection):
    """Feasible, of the type of b, no worse than ``near`` and other points; the input is unchanged."""
    for kind, make in VECTORS.items():
        for metric in METRICS.values():
            rng = seeded(kind)
            b, h = make(rng, 12), metric(rng, 12) + 1e-3
            if projection not in UNIT and np.abs(b.astype(float)).max() > 1e100:
                continue  # b/h overflows
            before, near = b.copy(), projection(rng.random(12))
            w = projection(b, near, metric=h)
            np.testing.assert_array_equal(b, before, err_msg=kind)
            assert w.dtype == (np.float32 if b.dtype == np.float32 else np.float64), kind
            if projection in UNIT:
                assert_feasible(w, np.clip(w.astype(float).sum(), *projection.l1_range(12)), kind)
            else:
                assert np.isfinite(w).all()
                assert w.min() >= 0
            scale = max(np.abs(b.astype(float)).max(), h.max())
            x, y, size = b / scale, h / scale, max(1.0, float(w.max()) ** 2)
            for other in (near, projection(b), projection(x - y)):
                assert objective(x, y, w.astype(float)) <= objective(x, y, other.astype(float)) + 1e-6 * size, kind


@pytest.mark.parametrize("projection", SOLVED, ids=repr)
def test_permuting_the_input_permutes_the_output(projection):
    for kind, make in ORDINARY.items():
        rng = seeded(kind)
        b, h, order = np.array(make(rng, 24), dtype=float), np.exp(rng.standard_normal(24)), rng.permutation(24)
        w = projection(b, metric=h)
        assert_alike(projection(b[order], metric=h[order]), w[order], ALIKE * max(1, w.max()), kind)


@pytest.mark.parametrize("projection", UNIT, ids=repr)
def test_a_common_unit_does_not_matter(projection):
    rng = np.random.default_rng(0)
    b, h = rng.standard_normal(40), np.exp(rng.standard_normal(40))
    w = projection(b, metric=h)
    for unit in (2.0**-30, 2.0**40, 2.0**-900, 2.0**900):
        assert_alike(projection(unit * b, metric=unit * h), w, 1e-9, f"unit {unit:g}")


def test_at_most_keeps_the_largest_gains():
    rng = np.random.default_rng(0)
    for _ in range(300):
        m = int(rng.integers(1, 9))
        b, h, count = rng.integers(-3, 4, m).astype(float), rng.random(m) + 0.01, int(rng.integers(1, m + 2))
        h[(b == 0) & (rng.random(m) < 0.5)] = 0
        w = AtMost(count)(b, metric=h)
        gains = np.divide(np.maximum(b, 0) ** 2, 2 * h, out=np.zeros(m), where=h > 0)
        assert np.count_nonzero(w) <= count
        assert objective(b, h, w) == pytest.approx(-np.sort(gains)[::-1][:count].sum(), rel=1e-12)
        np.testing.assert_allclose(h * w, np.where(w > 0, b, 0), atol=1e-12)


def test_nonnegative_divides_by_the_metric():
    np.testing.assert_array_equal(Nonnegative()([4.0, -1, 0, 3], metric=[2.0, 1, 0, 1]), [2, 0, 0, 3])


@pytest.mark.parametrize("sparsity", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_passes_agree_with_the_careful_solution(sparsity, dtype):
    m = 5_000 if JIT else 300
    for kind in ("uniform", "normal", "exponential"):
        for scale in (10, 0.1):
            rng = seeded(kind)
            b, h = (scale * VECTORS[kind](rng, m)).astype(dtype), np.exp(rng.standard_normal(m)).astype(dtype)
            k, w, careful = l1_norm(sparsity, m), np.empty(m, dtype), np.empty(m, dtype)
            assert solve_by_passes(b, h, k, k, w)
            assert solve_carefully(b, h, k, k, None, careful, Hoyer(sparsity).write)
            assert_feasible(w, k, kind)
            assert_alike(w, careful, 10 * FEASIBLE[w.dtype], kind)


def test_ties_are_decided_by_near():
    """Three entries share the smallest metric and the largest b; what the others leave is divided as in ``near``."""
    b, h = np.array([1.0, 1, 1, 0.5, 0]), np.array([0.1, 0.1, 0.1, 5, 9])
    for order in ([0.9, 0.3, 0.0], [0.0, 0.9, 0.3]):
        near = np.array([*order, 0, 0])
        w, certified = solve_in_metric(Hoyer(0.7), b, h, near)
        assert certified
        np.testing.assert_array_equal(np.argsort(-w[:3], kind="stable")[0], np.argmax(order))
    assert solve_in_metric(Hoyer(0.7), b, h)[1]


def test_zeros_with_a_zero_metric_keep_near():
    near = Hoyer(0.6)(np.random.default_rng(0).random(20))
    assert_alike(Hoyer(0.6)(np.zeros(20), near, metric=np.zeros(20)), near, 1e-12)


def test_without_a_certificate_the_result_is_no_worse_than_near():
    h, found = np.array([0.01, 1.0, 1.0]), 0
    for b in np.random.default_rng(0).normal(size=(200, 3)) * 0.3:
        near = Hoyer(0.4)(np.random.default_rng(1).random(3))
        w, certified = solve_in_metric(Hoyer(0.4), b, h, near)
        found += not certified
        in_place = near.copy()
        Hoyer(0.4).write_metric(b, h, in_place, in_place)
        np.testing.assert_array_equal(in_place, w)
        assert objective(b, h, w) <= objective(b, h, near) + 1e-14
    assert found > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Hoyer(0.5)([1.0, 2], metric=[1.0, -1]), r"metric\[1\] is -1"),
        (lambda: Hoyer(0.5)([1.0, 2], metric=[1.0, 0]), r"metric\[1\] is 0 and b\[1\] is 2"),
        (lambda: Hoyer(0.5)([1.0, 2], metric=[1.0]), "metric has 1 entries"),
        (lambda: Hoyer(0.5)([1.0, 2], metric=[1.0, math.nan]), r"metric\[1\] is nan"),
        (lambda: solve_in_metric(FreeNorm(Hoyer(0.5)), [1.0], [1.0]), "FreeNorm.*no solution in a metric"),
    ],
)
def test_wrong_metrics_are_rejected(call, said):
    with pytest.raises(ValueError, match=said):
        call()

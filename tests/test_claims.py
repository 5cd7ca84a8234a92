"""Claims of the paper without an experiment: true, or false as printed (docs/reproduction.md lists all)."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from partwise import hoyer_sparsity, sparse_opt
from partwise.projections.sparsity import l1_norm

VECTORS = [np.random.default_rng(seed).random(m) for seed in range(3) for m in (4, 9, 50)]
EACH = pytest.mark.parametrize("x", VECTORS, ids=lambda x: f"m={len(x)}")


def less_equal(x):
    """Move some of the largest entry to the smallest."""
    y = x.copy()
    give = 0.25 * (x.max() - x.min())
    y[x.argmax()] -= give
    y[x.argmin()] += give
    return y


def richer(x):
    y = x.copy()
    y[x.argmax()] += 100.0
    return y


SPARSER = {  # property: (what is done to a vector, whether its sparsity then falls, stays, or rises)
    "robin hood": (less_equal, -1),
    "scaling": (lambda x: 3 * x, 0),
    "rising tide": (lambda x: x + 1, -1),
    "cloning": (lambda x: np.tile(x, 2), 0),
    "bill gates": (richer, 1),
    "babies": (lambda x: np.append(x, 0.0), 1),
}


def changes(measure, x, change):
    difference = measure(change(x)) - measure(x)
    return 0 if abs(difference) < 1e-12 else int(np.sign(difference))


@EACH
def test_the_sparsity_measure_has_five_of_the_six_properties(x):
    met = {name for name, (change, sign) in SPARSER.items() if changes(hoyer_sparsity, x, change) == sign}
    assert met == set(SPARSER) - {"cloning"}  # the paper lists it among those that hold, and says later that it fails


@EACH
def test_of_the_six_minus_l1_has_rising_tide_alone(x):
    met = {name for name, (change, sign) in SPARSER.items() if changes(lambda y: -y.sum(), x, change) == sign}
    assert met == {"rising tide"}


@EACH
@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_both_observations(x, s):
    k = l1_norm(s, len(x))
    y = sparse_opt(x, k)
    assert np.all(np.diff(y[np.argsort(x)]) >= -1e-12)  # larger b, larger y
    assert np.count_nonzero(y) >= k**2 - 1e-9  # p ≥ k²


def test_the_printed_k_of_the_start_gives_another_sparsity():
    m, alpha = 361, 0.8
    printed = sparse_opt(np.random.default_rng(0).random(m), math.sqrt(m) - alpha * math.sqrt(m - 1))
    right = sparse_opt(np.random.default_rng(0).random(m), math.sqrt(m) - alpha * (math.sqrt(m) - 1))
    assert hoyer_sparsity(printed) == pytest.approx(0.843, abs=1e-3)
    assert hoyer_sparsity(right) == pytest.approx(alpha, abs=1e-10)


def unclipped(a, k, p):
    """y on the p largest entries and the objective, as Sparse-opt computes them at transition point p."""
    s1, s2 = float(a[:p].sum()), float(np.square(a[:p]).sum())
    lam = -math.sqrt((p * s2 - s1**2) / (p - k * k))
    mu = -s1 / p - k / p * lam
    y = -(a[:p] + mu) / lam
    return y, float(a[:p] @ y)


@EACH
def test_the_highest_objective_over_all_p_is_not_the_answer(x):
    k = l1_norm(0.7, len(x))
    a = np.sort(x)[::-1]
    tried = [unclipped(a, k, p) for p in range(math.floor(k * k) + 1, len(a) + 1)]
    objectives = [objective for _, objective in tried]
    assert np.all(np.diff(objectives) >= -1e-9)  # it grows with p, so that the text's rule would take p = m …
    assert tried[-1][0].min() < 0  # … where y has negative entries
    feasible = max(objective for y, objective in tried if y.min() >= -1e-12)
    assert float(x @ sparse_opt(x, k)) == pytest.approx(feasible)  # the pseudocode's rule is right


def test_the_printed_loop_starts_where_it_divides_by_zero():
    k = 2.0  # ⌈k²⌉ = k² = 4
    with pytest.raises(ZeroDivisionError):
        unclipped(np.arange(9.0)[::-1], k, math.ceil(k * k))


def test_the_printed_numerator_of_diag_mult_has_no_product(rng):
    W, X, H = rng.random((6, 2)), rng.random((6, 5)), rng.random((2, 5))
    with pytest.raises(ValueError, match="matmul"):
        W.T @ X @ H
    assert (W.T @ X @ H.T).shape == (2, 2)


def rounds(b, k):
    """The number of rounds of Projection-Hoyer as published, computed with 300 digits."""
    free, v = [True] * len(b), [x + (k - sum(b)) / len(b) for x in b]
    for count in range(1, len(b) + 1):
        middle = k / sum(free)
        square = sum((x - middle) ** 2 for x, f in zip(v, free, strict=True) if f)
        v = [f * (middle + (x - middle) * ((1 - k * middle) / square).sqrt()) for x, f in zip(v, free, strict=True)]
        if min(v) >= -Decimal("1e-100"):
            return count
        free = [f and x > 0 for x, f in zip(v, free, strict=True)]
        v = [x * f for x, f in zip(v, free, strict=True)]
        v = [f * (x + (k - sum(v)) / sum(free)) for x, f in zip(v, free, strict=True)]
    raise AssertionError


def test_rounds_of_projection_hoyer_grow_with_m_at_worst(rng):
    with localcontext(prec=300):  # doubles do not hold such gaps for long
        worst = [rounds([-(Decimal(100) ** i) for i in range(m)], Decimal("1.5")) for m in (8, 16, 32)]
        ordinary = rounds([Decimal(float(x)) for x in rng.random(64)], Decimal("3"))
    assert worst == [6, 14, 30]
    assert ordinary <= 10

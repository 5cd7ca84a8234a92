"""Hoyer's sparsity: its definition, and which of Hurley & Rickard's six properties of a sparsity measure it has.

Reference: N. Hurley and S. Rickard, "Comparing measures of sparsity", IEEE Trans. Inf. Theory 55 (2009). The properties
are tested on integers, so that strict inequalities do not depend on rounding.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partwise.projections import hoyer_sparsity

LAWS = settings(max_examples=100)
amounts = st.lists(st.integers(0, 1000), min_size=2, max_size=20).filter(any)


def by_definition(x):
    m = len(x)
    return (math.sqrt(m) - sum(map(abs, x)) / math.sqrt(sum(v * v for v in x))) / (math.sqrt(m) - 1)


@LAWS
@given(amounts, st.data())
def test_definition(c, data):
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(c), max_size=len(c)))
    assert hoyer_sparsity(c) == pytest.approx(by_definition(c), abs=1e-14)
    assert hoyer_sparsity(np.multiply(c, signs)) == hoyer_sparsity(c)


@LAWS
@given(arrays(float, st.integers(1, 30), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_stays_within_its_bounds_at_every_scale(x):
    sparsity = hoyer_sparsity(x)
    assert math.isnan(sparsity) if not x.any() else 0 <= sparsity <= 1


@pytest.mark.parametrize("m", [2, 3, 10, 1000])
@pytest.mark.parametrize("unit", [1.0, -2.5, 1e300, 1e-300, 5e-324, 1.7e308])
def test_flat_is_zero_and_single_is_one(m, unit):
    assert hoyer_sparsity(np.full(m, unit)) == pytest.approx(0, abs=1e-13)
    assert hoyer_sparsity(unit * (np.arange(m) == m // 2)) == 1


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1e-150, 1e160])
def test_extreme_scales_are_handled(unit):
    x = np.random.default_rng(0).uniform(0.1, 1, 50)
    assert hoyer_sparsity(unit * x) == pytest.approx(by_definition(x), abs=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_dtypes(dtype):
    x = np.array([3, 0, 1, 0, 200]).astype(dtype)
    assert hoyer_sparsity(x) == pytest.approx(by_definition([float(v) for v in x]), abs=1e-14)


def test_axis():
    x = np.random.default_rng(0).standard_normal((4, 5, 6))
    before = x.copy()
    assert hoyer_sparsity(x) == pytest.approx(by_definition(x.ravel()), abs=1e-14)
    for axis in (0, 1, 2, -1):
        expected = np.apply_along_axis(by_definition, axis, x)
        np.testing.assert_allclose(hoyer_sparsity(x, axis=axis), expected, atol=1e-14)
    np.testing.assert_array_equal(x, before)


def test_zero_vector_gives_nan():
    assert math.isnan(hoyer_sparsity(np.zeros(4)))
    assert math.isnan(hoyer_sparsity([0]))
    np.testing.assert_array_equal(hoyer_sparsity([[0, 0, 0], [1, 0, 0]], axis=1), [np.nan, 1])


@pytest.mark.parametrize("value", [3, -0.5, 1e300, 5e-324])
def test_length_one_is_a_single_nonzero(value):
    assert hoyer_sparsity([value]) == 1
    np.testing.assert_array_equal(hoyer_sparsity([[value], [0.0]], axis=1), [1, np.nan])


@pytest.mark.parametrize(("x", "axis"), [([], None), (np.empty((3, 0)), 1), (np.empty((0, 3)), 0), ([[]], None)])
def test_empty_is_refused(x, axis):
    with pytest.raises(ValueError, match="empty"):
        hoyer_sparsity(x, axis=axis)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_what_is_not_finite_is_refused(value, axis):
    with pytest.raises(ValueError, match=f"entry of magnitude {abs(value)}: every entry must be finite"):
        hoyer_sparsity([[1, 2], [value, 3]], axis=axis)


# The six properties


@LAWS
@given(amounts, st.data())
def test_robin_hood(c, data):
    """Moving some of a larger entry to a smaller one, without reversing their order, lowers sparsity."""
    rich, poor = int(np.argmax(c)), int(np.argmin(c))
    assume(c[rich] - c[poor] > 2)
    given_away = data.draw(st.integers(1, (c[rich] - c[poor] - 1) // 2))
    after = np.array(c)
    after[[rich, poor]] += (-given_away, given_away)
    assert hoyer_sparsity(after) < hoyer_sparsity(c)


@LAWS
@given(amounts, st.floats(1e-250, 1e250))
def test_scaling(c, factor):
    """Scaling the vector does not change its sparsity."""
    assert hoyer_sparsity(factor * np.array(c)) == pytest.approx(hoyer_sparsity(c), abs=1e-13)


@LAWS
@given(amounts, st.integers(1, 1000))
def test_rising_tide(c, more):
    """Adding a constant to all entries lowers sparsity, unless they are equal."""
    assume(min(c) < max(c))
    assert hoyer_sparsity(np.array(c) + more) < hoyer_sparsity(c)


def test_cloning_fails():
    """A measure with this property would not change when the vector is repeated. This one does."""
    assert hoyer_sparsity([1, 0]) == 1
    assert hoyer_sparsity([1, 0, 1, 0]) == pytest.approx(2 - math.sqrt(2))


@LAWS
@given(amounts)
def test_cloning_lowers_sparsity(c):
    """How it fails: (√m − ρ)/(√m − 1) becomes (√m − ρ)/(√m − 1/√2), lower for all but flat vectors."""
    assume(min(c) < max(c))
    before, after = hoyer_sparsity(c), hoyer_sparsity(c + c)
    root = math.sqrt(len(c))
    assert after < before
    assert after == pytest.approx(before * (root - 1) / (root - math.sqrt(0.5)), abs=1e-13)


@LAWS
@given(amounts, st.data())
def test_bill_gates(c, data):
    """Once an entry is large enough (Σ of the others' squares ÷ their sum will do), more of it raises sparsity."""
    i = data.draw(st.integers(0, len(c) - 1))
    others = np.delete(c, i)
    assume(others.any())
    enough = max(c[i], math.ceil((others**2).sum() / others.sum()))
    more = data.draw(st.integers(1, 10_000))
    rich, richer = np.array(c), np.array(c)
    rich[i], richer[i] = enough, enough + more
    assert hoyer_sparsity(richer) > hoyer_sparsity(rich)


@LAWS
@given(amounts, st.integers(1, 5))
def test_babies(c, zeros):
    """Appending zeros raises sparsity, unless it is already 1."""
    assume(np.count_nonzero(c) > 1)
    assert hoyer_sparsity(c + [0] * zeros) > hoyer_sparsity(c)


@pytest.mark.parametrize("zeros", [1, 5])
def test_babies_of_a_single_nonzero_leave_sparsity_at_one(zeros):
    assert hoyer_sparsity([0, 7, 0] + [0] * zeros) == 1

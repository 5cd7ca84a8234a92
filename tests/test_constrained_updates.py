"""Updates of constrained factors: line searches, pruning, shared budgets, cones, and sets of rows."""

import sys

import numpy as np
import pytest
from catalogues import SETS, Ball, assert_feasible, one_at_a_time, random_factors, stats_of

from partwise.projections import AtMost, FreeNorm, Grouped, Hoyer, HoyerBetween, Nonnegative, hoyer_sparsity
from partwise.statistics import Stats
from partwise.updates import (
    Columns,
    Cone,
    Gradient,
    Halving,
    Multiplicative,
    Pivot,
    Pruned,
    Rows,
    Sequential,
    Shared,
    WholeFactor,
)
from partwise.updates.interface import Support

MORE_SETS = SETS | {
    "any norm": lambda r: Columns.same(FreeNorm(Hoyer(0.6)), r),
    "any norm, kept": lambda r: Columns.same(FreeNorm(Hoyer(0.6), keep=True), r),
    "any norm, interval": lambda r: Columns.same(FreeNorm(HoyerBetween(0.3, 0.4)), r),
    "rows": lambda r: Rows(AtMost(2), r),
    "whole": lambda r: WholeFactor(Grouped(0.5), r),
}
TOLERANCES = {np.float64: (1e-10, 1e-12), np.float32: (2e-5, 1e-5)}  # of the sets, and of the loss
BOTH = pytest.mark.parametrize("dtype", TOLERANCES)


def assert_in_sets(factor, sets, atol=1e-10):
    assert np.isfinite(factor).all()
    assert factor.min() >= 0
    if isinstance(sets, Rows):
        assert np.count_nonzero(factor, axis=1).max() <= sets.row.nonzeros
    elif isinstance(sets, WholeFactor):
        np.testing.assert_allclose(np.linalg.norm(factor.astype(float), axis=0), 1, atol=atol)
        assert abs(hoyer_sparsity(factor, axis=0).mean() - sets.group.sparsity) <= atol
    else:
        free = [isinstance(s, FreeNorm) for s in sets]
        for s, column in zip(sets, factor.T.astype(float), strict=True):
            if isinstance(s, FreeNorm) and column.any():
                assert_feasible((column / np.linalg.norm(column))[:, None], Columns((s.unit,)), atol)
        if not any(free):
            assert_feasible(factor, sets, atol)


def start(sets, rng, shape=(30, 20), dtype=float, mode=1):
    """The statistics of a random problem, and a factor in the sets."""
    factors = random_factors(shape, len(sets), rng, dtype)
    return stats_of(rng.random(shape).astype(dtype), factors, mode), np.asfortranarray(sets.project(factors[mode]))


def assert_descends(update, factor, stats, sets, calls=5):
    """Repeated calls stay in the sets and never increase the loss; returns the last factor and state."""
    kept, rounding = TOLERANCES[factor.dtype.type]
    state, losses = {}, [stats.loss(factor)]
    for _ in range(calls):
        factor, state = update(factor, stats, sets, state)
        assert factor.dtype == stats.cross.dtype
        assert_in_sets(factor, sets, kept)
        losses.append(stats.loss(factor))
    assert np.all(np.diff(losses) <= rounding * (stats.sqnorm + losses[0]))
    return factor, state


# Halving


@BOTH
@pytest.mark.parametrize("name", MORE_SETS)
def test_halving_descends_within_the_sets(name, dtype, rng):
    sets = MORE_SETS[name](5)
    stats, factor = start(sets, rng, dtype=dtype)
    before = stats.loss(factor)
    moved, state = assert_descends(Halving(), factor, stats, sets)
    assert list(state) == ["step"]
    assert type(state["step"]) is float
    if name not in ("flat", "single"):
        assert stats.loss(moved) < before


@pytest.mark.parametrize("growth", [1.2, 3.0])
def test_step_is_halved_until_the_loss_decreases_and_then_grows(growth, rng):
    sets = Columns.same(Hoyer(0.6), 5)
    stats, factor = start(sets, rng)
    state = {"step": 2.0**10}
    for _ in range(10):
        step = state["step"]
        factor, state = Halving(growth)(factor, stats, sets, state)
        halvings = np.log2(step * growth / state["step"])
        assert halvings == pytest.approx(round(halvings), abs=1e-9)
        assert halvings > -1e-9


def test_first_step_that_decreases_the_loss_is_taken(rng):
    sets = Columns.same(Hoyer(0.6), 5)
    stats, factor = start(sets, rng)
    slope, unit = stats.slope(factor), float(np.mean(stats.gram.diagonal()))
    moved, state = Halving()(factor.copy("F"), stats, sets, {"step": 2.0**12})
    step = state["step"] / 1.2

    def at(step):
        return sets.project(np.asfortranarray(factor - step / unit * slope), near=factor)

    np.testing.assert_allclose(moved, at(step), atol=1e-12)
    assert stats.loss(at(step)) <= stats.loss(factor)
    assert stats.loss(at(2 * step)) > stats.loss(factor)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_halving_is_scale_invariant(scale, rng):
    sets = Columns.same(Nonnegative(), 5)
    stats, factor = start(sets, rng)
    scaled = Stats(scale * stats.cross, scale**2 * stats.gram, stats.sqnorm)
    moved, state = Halving()(factor, stats, sets, {})
    other, state_of_other = Halving()(factor / scale, scaled, sets, {})
    np.testing.assert_allclose(scale * other, moved, rtol=1e-9)
    assert state_of_other == state


def test_halving_stays_at_a_solution(rng):
    sets = Columns.same(Hoyer(0.6), 3)
    stats, factor = start(sets, rng)
    nothing = Stats(np.zeros_like(stats.cross), np.zeros((3, 3)), stats.sqnorm)
    moved, state = Halving()(factor.copy("F"), nothing, sets, {"step": 0.25})
    np.testing.assert_array_equal(moved, factor)
    assert state == {"step": 0.25}
    solved = Stats(np.asfortranarray(factor @ stats.gram), stats.gram, stats.sqnorm)  # no slope
    moved, state = Halving()(factor.copy("F"), solved, sets, {})
    np.testing.assert_allclose(moved, factor, atol=1e-14)
    assert state["step"] <= 1


@pytest.mark.parametrize(("dtype", "calls"), [(np.float32, 600), pytest.param(float, 5000, marks=pytest.mark.compiled)])
def test_the_step_does_not_grow_out_of_range(dtype, calls, rng):
    sets = Columns.same(Hoyer(0.0), 2)
    stats, factor = start(sets, rng, (4, 3), dtype)
    state = {}
    for _ in range(calls):
        factor, state = Halving()(factor, stats, sets, state)
    np.testing.assert_allclose(factor, 1 / np.sqrt(3), rtol=1e-6)
    assert np.isfinite(state["step"])


# Pruned


@BOTH
@pytest.mark.parametrize("sets", [Columns.same(AtMost(4), 5), Rows(AtMost(2), 5)], ids=["columns", "rows"])
def test_pruning_keeps_the_largest_and_improves_them(sets, dtype, rng):
    stats, factor = start(sets, rng, dtype=dtype)
    kept = sets.project(Pivot()(factor.copy("F"), stats, Columns.same(Nonnegative(), 5), {})[0])
    pruned, state = Pruned(every=2)(factor.copy("F"), stats, sets, {})
    assert_in_sets(pruned, sets)
    assert not pruned[kept == 0].any()
    assert stats.loss(pruned) < stats.loss(kept)
    chosen, before = pruned > 0, stats.loss(pruned)
    again, state = Pruned(every=2)(pruned.copy("F"), stats, sets, state)  # on the same support
    assert not again[~chosen].any()
    assert stats.loss(again) <= before + TOLERANCES[dtype][1] * stats.sqnorm
    anew, _ = Pruned(every=2)(again.copy("F"), stats, sets, state)
    np.testing.assert_allclose(anew, pruned, atol=1e-9 if dtype == np.float64 else 1e-3)


@BOTH
@pytest.mark.parametrize(
    ("update", "sets"),
    [
        (Pruned(), Columns.same(AtMost(4), 5)),
        (Pruned(), Rows(AtMost(2), 5)),
        (Shared(), WholeFactor(Grouped(0.5), 5)),
        (Halving(), Columns.same(FreeNorm(Hoyer(0.5), keep=True), 5)),
        (Sequential(), Rows(AtMost(2), 5)),
    ],
)
def test_dead_components_stay_in_their_sets(update, sets, dtype, rng):
    activations, parts = random_factors((12, 9), 5, rng, dtype)
    parts[:, [1, 4]] = 0
    stats = stats_of(rng.random((12, 9)).astype(dtype), [None, parts], 0)
    factor = np.asfortranarray(sets.project(activations))
    for stats_now in (stats, Stats(np.zeros_like(stats.cross), np.zeros((5, 5)), stats.sqnorm)):
        factor, _ = update(factor, stats_now, sets, {})
        assert_in_sets(factor, sets, TOLERANCES[dtype][0])


# Shared


@one_at_a_time(s=[0.3, 0.0, 0.7, 1.0], dtype=TOLERANCES)
@pytest.mark.parametrize("by", [Shared(), Shared(3), Gradient(2), Halving()])
def test_a_shared_budget_descends(by, s, dtype, rng):
    sets = WholeFactor(Grouped(s), 5)
    stats, factor = start(sets, rng, dtype=dtype)
    assert_descends(by, factor, stats, sets)


def test_shared_budget_moves_between_columns(rng):
    """Components of different sparsities are recovered from their mean sparsity."""
    true = np.column_stack([Hoyer(s)(rng.random(40)) for s in (0.2, 0.5, 0.8)])
    codes = rng.random((60, 3))
    stats = Stats(np.asfortranarray(true @ (codes.T @ codes)), codes.T @ codes, float(np.sum((codes @ true.T) ** 2)))
    sets = WholeFactor(Grouped(0.5), 3)
    factor, state = np.asfortranarray(sets.project(rng.random((40, 3)))), {}
    for _ in range(300):
        factor, state = Shared()(factor, stats, sets, state)
    np.testing.assert_allclose(factor, true, atol=1e-4)


def test_a_single_row_shares_its_budget_too(rng):
    sets = WholeFactor(Grouped(0.4), 3)
    stats, factor = start(sets, rng, (6, 1))
    np.testing.assert_array_equal(Shared()(factor, stats, sets, {})[0], np.ones((1, 3)))


# Sets of rows, of the whole, and of a support


def test_rows_are_projected_one_by_one(rng):
    b = rng.standard_normal((8, 5))
    sets = Rows(AtMost(2), 5)
    wanted = np.array([AtMost(2)(row) for row in b])
    projected = np.asfortranarray(b)
    assert sets.project(projected) is projected
    np.testing.assert_array_equal(projected, wanted)
    assert (len(sets), sets.nonnegative, sets.unit_norm, sets.scale_free, sets.by_rows) == (5, False, False, True, True)
    assert np.isnan(sets.l1_ranges(8)).all()
    assert sets.relaxed(0.5) == sets


def test_near_decides_among_equally_near_rows():
    ties, near = np.ones((1, 4), order="F"), np.array([[0, 1.0, 0, 2.0]])
    np.testing.assert_array_equal(Rows(AtMost(2), 4).project(ties, near=near), [[0, 1, 0, 1]])


@BOTH
@pytest.mark.parametrize("update", [Sequential(), Sequential(3, "random"), Multiplicative(3)])
def test_columns_of_row_sets_keep_their_zeros(update, dtype, rng):
    sets = Rows(AtMost(2), 5)
    stats, factor = start(sets, rng, dtype=dtype)
    zeros = factor == 0
    moved, _ = assert_descends(update, factor, stats, sets)
    assert not moved[zeros].any()


def test_whole_factor_is_projected_at_once(rng):
    b = rng.random((9, 4))
    sets = WholeFactor(Grouped(0.6), 4)
    projected = np.asfortranarray(b)
    assert sets.project(projected, near=projected) is projected
    np.testing.assert_array_equal(projected, Grouped(0.6)(b))
    assert (len(sets), sets.nonnegative, sets.unit_norm, sets.scale_free, sets.by_rows) == (
        4,
        False,
        True,
        False,
        False,
    )
    assert np.isnan(sets.l1_ranges(9)).all()
    assert sets.relaxed(0.5) == WholeFactor(Grouped(0.3), 4)
    assert_in_sets(np.column_stack([sets[j](b[:, j]) for j in range(4)]), sets)


def test_a_support_is_that_of_a_near_point():
    b = np.array([1.0, -1.0, 2.0, 3.0])
    np.testing.assert_array_equal(Support()(b), [1, 0, 2, 3])
    np.testing.assert_array_equal(Support()(b, near=np.array([1.0, 1.0, 0.0, 5.0])), [1, 0, 0, 3])


def test_scalable_sets():
    assert Columns((FreeNorm(Hoyer(0.5)), AtMost(2), Nonnegative())).scale_free
    for s in (Hoyer(0.5), HoyerBetween(0.1, 0.2), Ball()):
        assert not Columns((Nonnegative(), s)).scale_free
    assert not Columns.same(FreeNorm(Hoyer(0.5)), 2).unit_norm
    assert not Columns.same(AtMost(2), 2).by_rows


# Cones

INTERVALS = {
    "at most": HoyerBetween(None, 0.3),
    "at least": HoyerBetween(0.6, None),
    "between": HoyerBetween(0.4, 0.6),
    "narrow": HoyerBetween(0.5, 0.51),
    "exact": Hoyer(0.5),
    "anything": HoyerBetween(None, None),
}


def cone_problem(rng, r=3, shape=(12, 10), dtype=float):
    activations, parts = random_factors(shape, r, rng, dtype)
    parts **= 4
    X = (activations @ parts.T + 0.1 * rng.random(shape)).astype(dtype)
    return stats_of(X, [activations, None], 1), X, activations


@one_at_a_time(name=INTERVALS, scale=[1.0, 1e-6, 1e6], dtype=TOLERANCES)
def test_cones_descend_within_their_intervals(name, scale, dtype, rng):
    pytest.importorskip("clarabel")
    sets = Columns.same(FreeNorm(INTERVALS[name]), 3)
    stats, _, _ = cone_problem(rng, dtype=dtype)
    stats = Stats(stats.cross * dtype(scale), stats.gram, stats.sqnorm * scale**2)
    factor = np.asfortranarray(sets.project(scale * rng.random((10, 3))), dtype=dtype)
    before = stats.loss(factor)
    moved, state = assert_descends(Cone(), factor, stats, sets)
    assert state == {"started": True}
    assert stats.loss(moved) < before
    if dtype == np.float64 and name in ("at most", "at least", "between", "narrow"):
        s, lo, hi = hoyer_sparsity(moved, axis=0), INTERVALS[name].lo or 0, INTERVALS[name].hi or 1
        assert lo - 1e-9 <= s.min() <= s.max() <= hi + 1e-9


@pytest.mark.parametrize("hi", [None, 0.2, 0.5])
def test_without_lower_ends_a_cone_program_is_solved_exactly(hi, rng):
    """The set is convex: compared with projected gradient descent, and no feasible direction descends."""
    pytest.importorskip("clarabel")
    stats, _, _ = cone_problem(rng, 2, (8, 4))
    sets = Columns.same(FreeNorm(HoyerBetween(None, hi)), 2)
    begin = np.asfortranarray(sets.project(rng.random((4, 2))))
    factor, _ = Cone()(begin.copy("F"), stats, sets, {})
    stepped = begin
    for _ in range(1000):
        stepped = sets.project(stepped - stats.slope(stepped) / np.linalg.norm(stats.gram, 2))
    assert stats.loss(factor) == pytest.approx(stats.loss(stepped), abs=1e-9 * stats.sqnorm)
    np.testing.assert_allclose(factor, stepped, atol=1e-4)
    slope = stats.slope(factor)
    for _ in range(200):
        step = sets.project(np.asfortranarray(factor + rng.standard_normal((4, 2)))) - factor
        assert np.vdot(slope, step) >= -1e-6 * np.linalg.norm(step)


@pytest.mark.parametrize("dead", [[1], [0, 1, 2]])
def test_cones_leave_dead_components_in_their_sets(dead, rng):
    pytest.importorskip("clarabel")
    _, X, activations = cone_problem(rng)
    activations[:, dead] = 0
    stats = stats_of(X, [activations, None], 1)
    sets = Columns.same(FreeNorm(HoyerBetween(0.4, 0.6)), 3)
    assert_descends(Cone(), np.asfortranarray(sets.project(rng.random((10, 3)))), stats, sets, calls=2)


def test_cones_start_from_a_zero_factor_and_take_mixed_sets(rng):
    pytest.importorskip("clarabel")
    stats, _, _ = cone_problem(rng)
    sets = Columns(tuple(FreeNorm(HoyerBetween(lo, hi)) for lo, hi in ((0.5, None), (None, None), (0.2, 0.4))))
    moved, _ = assert_descends(Cone(), np.zeros((10, 3), order="F"), stats, sets)
    assert stats.loss(moved) < 0.2 * stats.sqnorm


def test_error_without_the_cone_solver(monkeypatch, rng):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    stats, _, _ = cone_problem(rng)
    with pytest.raises(ImportError, match=r"pip install 'partwise\[cone\]'"):
        Cone()(np.ones((10, 3), order="F"), stats, Columns.same(FreeNorm(Hoyer(0.5)), 3), {})


@pytest.mark.parametrize(
    "sets",
    [
        Columns.same(Hoyer(0.5), 3),
        Columns.same(HoyerBetween(0.1, 0.5), 3),
        Columns((FreeNorm(Hoyer(0.5)), FreeNorm(Hoyer(0.5)), AtMost(2))),
        Columns.same(Nonnegative(), 3),
        Columns.same(Ball(), 3),
        Rows(AtMost(2), 3),
        WholeFactor(Grouped(0.5), 3),
    ],
)
def test_cones_refuse_other_sets(sets, rng):
    pytest.importorskip("clarabel")
    stats, _, _ = cone_problem(rng)
    with pytest.raises(ValueError, match=r"Cone does not support the set .* use FreeNorm"):
        Cone()(np.ones((10, 3), order="F"), stats, sets, {})

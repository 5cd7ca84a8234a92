"""Properties of all sets over a catalogue of vectors, properties of each set, and bad input."""

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from vectors import ALIKE, JIT, METHODS, ORDINARY, SETS, TIED, VECTORS, assert_alike, assert_feasible, seeded

from partwise.projections import (
    AtMost,
    Bounded,
    Hoyer,
    HoyerBetween,
    Nonnegative,
    Projection,
    Simplex,
    hoyer_sparsity,
    sparse_opt,
)

# What all sets have in common


EACH = pytest.mark.parametrize("projection", SETS, ids=repr)


@EACH
def test_order_is_preserved_and_input_unchanged(projection):
    for kind, make in VECTORS.items():
        b = make(seeded(kind), 30)
        before = b.copy()
        y = projection(b)
        np.testing.assert_array_equal(b, before, err_msg=kind)
        assert y.dtype == (np.float32 if b.dtype == np.float32 else np.float64), kind
        assert y.shape == b.shape, kind
        assert not np.shares_memory(y, b), kind
        order = np.lexsort((y, b))  # equal entries of b may differ in y, but not overtake larger ones
        assert (np.diff(y[order]) >= 0).all(), kind


@EACH
def test_points_of_the_set_stay(projection):
    for kind, make in (ORDINARY | TIED).items():
        y = projection(make(seeded(kind), 30))
        assert_alike(projection(y), y, 1e-5 if y.dtype == np.float32 else ALIKE * max(1, y.max()), kind)


@EACH
def test_permuting_the_input_permutes_the_output(projection):
    for kind, make in ORDINARY.items():
        rng = seeded(kind)
        b = np.array(make(rng, 24), dtype=float)
        order = rng.permutation(24)
        y = projection(b)
        assert_alike(projection(b[order]), y[order], ALIKE * max(1, y.max()), kind)


@EACH
def test_no_point_of_the_set_is_nearer(projection):
    for kind in ("uniform", "normal", "exponential", "all negative", "ties", "constant", "integers"):
        rng = seeded(kind)
        b = np.asarray(VECTORS[kind](rng, 30), dtype=float)
        y = projection(b)
        distance = np.linalg.norm(b - y)
        for _ in range(20):
            far, beside = projection(rng.standard_normal(30)), projection(y + 0.1 * rng.standard_normal(30))
            for point in (far, beside):
                assert np.linalg.norm(b - point) >= distance - 1e-9, kind


@settings(max_examples=60 if JIT else 15)
@given(
    b=arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
        st.integers(1, 40),
        elements={"allow_nan": False, "allow_infinity": False, "min_value": -1000, "max_value": 1000},
    ).filter(lambda b: b.dtype != bool)
    | arrays(bool, st.integers(1, 40)),
    step=st.sampled_from([1, -1, 2]),
)
def test_accepted_forms_of_vectors(b, step):
    b = b[::step]
    same = np.array(b, dtype=np.float32 if b.dtype == np.float32 else float)
    for projection in SETS:
        np.testing.assert_array_equal(projection(b), projection(same))
        np.testing.assert_array_equal(projection(b.tolist()), projection(same.astype(float)))


# The other sets


@pytest.mark.parametrize("ends", [(0.2, 0.5), (0.4, 0.4), (0.0, 1.0), (None, 0.3), (0.6, None), (None, None), (0.9, 1)])
@pytest.mark.parametrize("kind", ["uniform", "normal", "exponential", "all negative", "one large", "integers", "zeros"])
def test_between_beats_a_grid_of_sparsities(kind, ends):
    b = np.asarray(VECTORS[kind](seeded(kind), 25), dtype=float)
    lo, hi = (0.0 if ends[0] is None else ends[0]), (1.0 if ends[1] is None else ends[1])
    best = max(b @ Hoyer(sparsity, "sorted")(b) for sparsity in np.linspace(lo, hi, 51))
    for method in METHODS:
        y = HoyerBetween(*ends, method)(b)
        assert_feasible(y, y.sum())
        assert lo - 1e-10 <= hoyer_sparsity(y) <= hi + 1e-10, method
        assert b @ y >= best - 1e-9 * np.abs(b).max(), method


@pytest.mark.parametrize("unit", [1.0, 1e300, 1e-300])
def test_between_is_the_normalised_positive_part_if_feasible(unit):
    b = np.random.default_rng(0).standard_normal(50)
    inside = np.maximum(b, 0) / np.linalg.norm(np.maximum(b, 0))
    sparsity = hoyer_sparsity(inside)
    for ends in ((None, None), (sparsity - 0.1, None), (None, sparsity + 0.1), (sparsity - 0.01, sparsity + 0.01)):
        assert_alike(HoyerBetween(*ends)(unit * b), inside, 1e-9)


@pytest.mark.parametrize("kind", VECTORS)
def test_at_most_is_best_of_all_supports(kind):
    """Keeping J lowers ‖b − y‖² by Σ_J b₊²; no J of that size may lower it more. In units of max b."""
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


def test_at_most_breaks_ties_by_near_and_then_by_position():
    b = [2.0, 5.0, 2.0, 2.0, -1.0, 2.0]
    np.testing.assert_array_equal(AtMost(3)(b), [2, 5, 2, 0, 0, 0])
    np.testing.assert_array_equal(AtMost(3)(b, near=[0, 0, 1, 3, 9, 2]), [0, 5, 0, 2, 0, 2])
    np.testing.assert_array_equal(AtMost(3)(b, near=[1, 0, 0, 1, 0, 1]), [2, 5, 0, 2, 0, 0])


def test_nonnegative_is_the_positive_part():
    for kind, make in VECTORS.items():
        b = make(seeded(kind), 30)
        np.testing.assert_array_equal(Nonnegative()(b), np.maximum(b, 0), err_msg=kind)


# Values, and what they refuse


@EACH
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


@pytest.mark.parametrize(
    "projection", [Hoyer(0.5), HoyerBetween(0.3, 0.6), AtMost(5), Nonnegative(), Simplex(), Bounded(2.0)], ids=repr
)
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
def test_non_vectors_are_rejected(projection, b, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (its message is looked at below)
        projection(b)
    assert said in str(error.value)
    if np.ndim(b) == 1 and len(b):
        with pytest.raises(ValueError, match="near") as error:
            projection(np.ones(len(b)), near=b)
        assert said in str(error.value)


@pytest.mark.parametrize(("b", "said"), [([1.0, math.nan], "nan"), ([], r"\(0,\)"), ([[1.0]], "1, 1"), (["a"], "<U1")])
def test_sparse_opt_rejects_non_vectors(b, said):
    with pytest.raises(ValueError, match=said):
        sparse_opt(b, 1.0)


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

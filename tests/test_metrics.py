"""Matching the components of two models."""

import re
from itertools import permutations

import numpy as np
import pytest

from partwise.engine.metrics import match_parts, specificity


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


@pytest.mark.parametrize(("r", "s"), [(1, 1), (3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_matching_is_optimal(r, s, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((r, 6)) ** 3, rng.random((s, 6)) ** 3
    first, second, cosines = match_parts(a, b)
    assert len(set(first)) == len(set(second)) == len(first) == min(r, s)
    np.testing.assert_allclose(cosines, [cosine(a[i], b[j]) for i, j in zip(first, second, strict=True)])
    few, many = (a, b) if r <= s else (b, a)
    best = max(sum(map(cosine, few, many[list(chosen)])) for chosen in permutations(range(max(r, s)), min(r, s)))
    assert cosines.sum() == pytest.approx(best)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_order_and_scale_do_not_matter(rng, scale):
    parts, order = rng.random((7, 20)), rng.permutation(7)
    first, second, cosines = match_parts(parts, scale * parts[order])
    np.testing.assert_array_equal(order[second], first)
    np.testing.assert_allclose(cosines, 1)


def test_zero_component_has_cosine_zero():
    assert match_parts([[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 1.0]]).cosines.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.eye(2), np.eye(3), "components have shapes (2, 2) and (3, 3)"),
        (np.ones(2), np.ones(2), "components have shapes (2,) and (2,)"),
        (np.ones((0, 2)), np.ones((1, 2)), "components have shapes (0, 2) and (1, 2)"),
        ([[np.nan, 1.0]], [[1.0, 1.0]], "components contain nan or infinity"),
    ],
)
def test_bad_shapes_are_rejected(a, b, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        match_parts(a, b)


def test_specificity_ranks_markers_above_what_all_components_share(rng):
    components = rng.uniform(0, 0.01, (4, 40))
    components[:, 0] = 30.0  # in all of them
    for j in range(4):
        components[j, 1 + 5 * j : 6 + 5 * j] += 1.0
    found = specificity(components)
    assert found.shape == components.shape
    assert found.min() >= 0
    assert (components.argmax(axis=1) == 0).all()
    for j, row in enumerate(found):
        assert set(np.argsort(-row)[:5]) == set(range(1 + 5 * j, 6 + 5 * j))
    np.testing.assert_allclose(specificity(components * [[1e-9], [1.0], [1e9], [7.0]]), found)
    order = rng.permutation(4)
    np.testing.assert_allclose(specificity(components[order]), found[order])


def test_specificity_at_the_edges():
    np.testing.assert_allclose(specificity([[3.0, 4.0]]), [[0.6, 0.8]])  # nothing to compare with
    assert not specificity(np.ones((3, 5))).any()
    zero = specificity([[0.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(zero, [[0, 0], [1, 0]])
    for bad in (np.ones(3), np.ones((0, 2)), [[-1.0, 1.0]], [[np.nan, 1.0]]):
        with pytest.raises(ValueError, match="components have shape"):
            specificity(bad)

"""The capacity of components of given sparsity: the bound, its warning, and the lower bound on the error."""

import re
import warnings

import numpy as np
import pytest

import partwise as pw
from partwise.engine.validation import effective_size


def warned(X, r, sparsity, **more):
    """The warning's text (or None), and the fit."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", pw.CapacityWarning)
        result = pw.ssnmf(X, r, sparsity=sparsity, random_state=0, **more)
    found = [str(warning.message) for warning in said if warning.category is pw.CapacityWarning]
    return (found[0] if found else None), result


@pytest.mark.parametrize("sparsity", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("overlap", [False, True])
def test_no_warning_for_data_made_of_such_components(sparsity, overlap, rng):
    """X = activations·components never has a larger effective size than its components together."""
    part, r = pw.Hoyer(sparsity), 4
    components = np.stack([part(rng.random(40) ** 3) for _ in range(r)])
    if not overlap:  # disjoint and flat: as large as can be
        components = np.kron(np.eye(r), np.ones(10)) / np.sqrt(10)
        sparsity = float(pw.hoyer_sparsity(components[0]))
    X = rng.random((30, r)) @ components
    assert effective_size(np.linalg.norm(X, axis=0)) <= (np.abs(components).sum(axis=1) ** 2).sum() * (1 + 1e-12)
    assert "cannot reproduce" not in (warned(X, r, sparsity, max_iter=1, tol=0)[0] or "")


def test_disjoint_flat_components_of_equal_weight_attain_the_bound():
    X = np.kron(np.eye(4), np.ones(10))
    assert effective_size(np.linalg.norm(X, axis=0)) == pytest.approx(40)
    level = float(pw.hoyer_sparsity(X[0]))
    assert warned(X, 4, level, max_iter=1, tol=0)[0] is None
    assert "effective size 40" in warned(X, 4, level + 0.02, max_iter=1, tol=0)[0]


@pytest.mark.parametrize("sparsity", [0.75, 0.9])
@pytest.mark.parametrize("r", [1, 3])
def test_error_is_at_least_the_bound_in_the_warning(sparsity, r, rng):
    X = rng.random((30, 50)) * rng.random(50)
    said, result = warned(X, r, sparsity, max_iter=50, tol=0)
    least = float(re.search(r"relative error is at least (\d\.\d\d)", said)[1])
    assert 0 < least <= result.relative_error + 0.005
    assert "X has 50 nonzero features (of 50" in said
    asked = float(said.rsplit(" ", 1)[1])
    assert warned(X, r, asked, max_iter=1, tol=0)[0] is None
    assert warned(X, r, asked + 0.1, max_iter=1, tol=0)[0] is not None


@pytest.mark.parametrize("floor", [0, 1e-6, 1e-3])
def test_small_values_in_all_features_weaken_the_warning(floor, rng):
    """For example spectral leakage, or a loose mask with voxels outside of the brain."""
    X = np.full((20, 400), float(floor))
    X[:, :20] += rng.random((20, 20))
    said = warned(X, 4, 0.85, max_iter=1, tol=0)[0]
    assert said is None if not floor else "may cover its large features" in said
    assert "cannot reproduce" in warned(X, 1, 0.85, max_iter=1, tol=0)[0]


def test_no_error_bound_with_missing_entries(rng):
    X = rng.random((20, 50))
    X[3, 4] = np.nan
    said, _ = warned(X, 1, 0.9, max_iter=1, tol=0, missing="em")
    assert "effective size" in said
    assert "relative error" not in said


def test_effective_size_of_zero():
    assert effective_size(np.zeros(3)) == 0
    assert warned(np.zeros((4, 9)), 1, 0.9, max_iter=1, tol=0)[0] is None

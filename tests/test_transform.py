"""transform: nonnegative least squares for each sample independently; inverse_transform."""

import numpy as np
import pytest
import scipy.sparse as sp
from models import PENALTIES, SPARSE, crowded, fitted, small, unconverged  # noqa: F401  (fixtures)
from scipy.optimize import nnls
from sklearn.base import clone

from partwise import SparseNMF


@pytest.mark.parametrize("options", [{}, {"sparsity": None}, {"sparsity": (0.2, 0.4)}, {"activation_sparsity": 0.3}])
def test_transform_is_nonnegative_least_squares(X, rng, options):
    model = fitted(X, **({"sparsity": None} if "activation_sparsity" in options else {}), **options)
    for samples in (X, rng.random((40, 30)), np.eye(30)):
        activations = model.transform(samples)
        wanted = np.array([nnls(model.components_.T, sample)[0] for sample in samples])
        assert np.any(wanted == 0)
        np.testing.assert_allclose(activations, wanted, atol=1e-9 * wanted.max())


@pytest.mark.parametrize("seed", range(10))
def test_transform_with_dependent_components(seed):
    """More components than features, two of them equal: activations are not unique, but the model is."""
    rng = np.random.default_rng(seed)
    X = (rng.random((6, 7)) > 0.5) * (1.0 if seed % 2 else rng.random((6, 7)))
    model = SparseNMF(11, random_state=0, tol=0.5).fit(X + 0.1)
    model.components_ = rng.random((11, 7)) ** 4
    model.components_[1] = 2 * model.components_[0]
    wanted = np.array([nnls(model.components_.T, sample)[0] for sample in X]) @ model.components_
    np.testing.assert_allclose(model.transform(X) @ model.components_, wanted, atol=1e-7)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_transform_meets_the_optimality_conditions(X, penalty):
    model = fitted(X, **PENALTIES[penalty])
    l1, l2 = (np.ravel(PENALTIES[penalty].get(name, 0.0))[0] for name in ("l1", "l2"))
    activations, parts = model.transform(X), model.components_.T
    gradient = activations @ (parts.T @ parts) - X @ parts + l1 + l2 * activations
    assert activations.min() >= 0
    assert gradient.min() > -1e-10
    assert np.abs(gradient * activations).max() < 1e-10


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fit_transform_is_fit_and_transform(X, penalty, form, dtype):
    X = form(X.astype(dtype))
    model = SparseNMF(4, sparsity=0.45, random_state=0, **PENALTIES[penalty])
    activations = clone(model).fit_transform(X)
    np.testing.assert_allclose(model.fit(X).transform(X), activations, atol=1e-6)
    assert activations.dtype == model.transform(X).dtype == dtype


@crowded
@unconverged
def test_samples_are_transformed_independently(problem):
    model = SparseNMF(problem.r, sparsity=0.4, random_state=0, max_iter=20).fit(problem.X)
    together = model.transform(problem.X)
    for sample, activations in zip(problem.X, together, strict=True):
        np.testing.assert_allclose(model.transform(sample[None])[0], activations, atol=1e-9)


def test_inverse_transform(X):
    model = fitted(X)
    activations = model.transform(X)
    back = model.inverse_transform(activations)
    np.testing.assert_array_equal(back, activations @ model.components_)
    np.testing.assert_allclose(model.transform(back), activations, atol=1e-9)  # the parts are independent
    for form in SPARSE.values():
        sparse = model.inverse_transform(form(activations))
        assert isinstance(sparse, np.ndarray)
        np.testing.assert_allclose(sparse, back, atol=1e-12)
    with pytest.raises(ValueError, match="X has 3 columns, but the model has 4 components"):
        model.inverse_transform(activations[:, :3])

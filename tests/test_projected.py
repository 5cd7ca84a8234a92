"""Acceleration with missing entries and of tensors: feasible, never rising, fewer iterations, resumed bit for bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted

import partwise as pw
from partwise.engine import accelerated
from partwise.engine.projected import ProjectedFit

ASKED = {
    "nonnegative": {},
    "sparse": {"sparsity": 0.6},
    "interval": {"sparsity": (0.4, 0.6)},
    "sparse activations": {"activation_sparsity": 0.5},
    "penalised": {"l1": 0.01, "l2": (0.1, 0.1)},
}


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng, n=61, m=20, noise=0.2).X


@pytest.fixture(name="seen")
def observed_entries(X, rng):
    return rng.random(X.shape) > 0.3


@pytest.fixture(params=["usual", "eager"])
def pace(request, monkeypatch):
    """The usual extrapolation, or one that overshoots, so that many steps are undone."""
    if request.param == "eager":
        for name, value in {"SHRINK": 0.99, "GROWTH": 1.2, "TOP": 1.0}.items():
            monkeypatch.setattr(accelerated, name, value)
        monkeypatch.setattr(ProjectedFit, "momentum", accelerated.Momentum(cap=1.0))
    return request.param


@pytest.fixture
def undone(monkeypatch):
    """How many steps were undone."""
    count = []
    rise = accelerated.Momentum.after_rise
    monkeypatch.setattr(accelerated.Momentum, "after_rise", lambda self: count.append(1) or rise(self))
    return count


def given(X, seen, sparse):
    """X with missing entries, dense or sparse."""
    return (sp.csr_array(X), {"observed": sp.csr_array(seen)}) if sparse else (np.where(seen, X, np.nan), MISSING)


MISSING = {"missing": "em"}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("asked", ASKED)
def test_every_iterate_is_feasible_and_its_observed_loss_is_true(X, seen, asked, sparse, pace, undone):
    options = ASKED[asked]

    def check(it):
        A, C = it.factors
        wanted = 0.5 * np.sum((X - A @ C.T)[seen] ** 2)
        if asked == "penalised":
            wanted += 0.01 * A.sum() + 0.05 * (np.sum(A**2) + np.sum(C**2))
        assert it.loss == pytest.approx(wanted, rel=1e-9)
        assert min(A.min(), C.min()) >= 0
        found = pw.hoyer_sparsity(A if "activation_sparsity" in options else C, axis=0)
        level = options.get("sparsity", options.get("activation_sparsity"))
        if isinstance(level, float):
            np.testing.assert_allclose(found, level, atol=1e-10)
        elif level:
            assert level[0] - 1e-10 <= found.min() <= found.max() <= level[1] + 1e-10

    data, how = given(X, seen, sparse)
    result = pw.ssnmf(data, 3, tol=0, max_iter=40, random_state=0, init="random", callback=check, **options, **how)
    assert np.diff(result.losses).max() <= 1e-12 * np.vdot(X, X)
    assert len(undone) > 1 or pace == "usual"


@pytest.mark.parametrize("asked", ["nonnegative", "sparse"])
def test_it_needs_fewer_iterations(X, seen, asked):
    limits = {"tol": 0, "max_iter": 150, "random_state": 0, **MISSING, **ASKED[asked]}
    holed = np.where(seen, X, np.nan)
    plain, faster = (pw.ssnmf(holed, 4, accelerate=how, **limits).losses for how in (False, "auto"))
    assert np.flatnonzero(faster <= plain[-1])[0] <= 100


@pytest.mark.parametrize("asked", ["nonnegative", "sparse", "penalised"])
@pytest.mark.parametrize("sparse", [False, True])
def test_resumed_fits_are_identical(X, seen, asked, sparse, pace, tmp_path):
    data, how = given(X, seen, sparse)
    limits = {"tol": 0, "random_state": 0, **ASKED[asked], **how}
    whole = pw.ssnmf(data, 3, max_iter=23, **limits)
    pw.ssnmf(data, 3, max_iter=11, checkpoint=tmp_path / "half", **limits)
    resumed = pw.ssnmf(data, 3, max_iter=23, resume_from=tmp_path / "half", **limits)
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    for mine, its in zip(resumed.factors, whole.factors, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_known_columns_are_kept(X, seen):
    known = np.random.default_rng(1).random((1, X.shape[1]))
    found = pw.ssnmf(
        np.where(seen, X, np.nan), 3, fixed_components=known, max_iter=20, tol=0, random_state=0, **MISSING
    )
    np.testing.assert_allclose(found.components[0], known[0], rtol=1e-12)


@pytest.fixture(name="tensor")
def planted_tensor(rng):
    factors = [rng.random((n, 3)) * (rng.random((n, 3)) < 0.6) for n in (12, 10, 9)]
    return np.einsum("ar,br,cr->abc", *factors) + 0.1 * rng.random((12, 10, 9))


TENSORS = {"free": None, "one sparse mode": {1: 0.5}, "all sparse": {0: 0.3, 1: 0.5, 2: 0.4}}


@pytest.mark.parametrize("sparsity", TENSORS)
def test_tensors_are_feasible_and_their_loss_is_true_and_never_rises(tensor, sparsity, pace, undone):
    def check(it):
        *factors, last = it.factors
        if len(factors) == 3:  # a middle factor
            factors, last = factors[:2], factors[2] * last
        model = np.einsum("ar,br,cr->abc", *factors, last)
        assert it.loss == pytest.approx(0.5 * np.sum((tensor - model) ** 2), rel=1e-8)

    result = pw.cp(tensor, 3, sparsity=TENSORS[sparsity], max_iter=40, tol=0, random_state=0, callback=check)
    assert np.diff(result.losses).max() <= 1e-12 * np.vdot(tensor, tensor)
    for mode, level in (TENSORS[sparsity] or {}).items():
        np.testing.assert_allclose(result.sparsities[mode], level, atol=1e-10)
    assert undone or pace == "usual"


@pytest.mark.parametrize("sparsity", TENSORS)
def test_resumed_tensors_are_identical(tensor, sparsity, pace, tmp_path):
    limits = {"tol": 0, "random_state": 0, "sparsity": TENSORS[sparsity]}
    whole = pw.cp(tensor, 3, max_iter=23, **limits)
    pw.cp(tensor, 3, max_iter=11, checkpoint=tmp_path / "half", **limits)
    resumed = pw.cp(tensor, 3, max_iter=23, resume_from=tmp_path / "half", **limits)
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    for mine, its in zip(resumed.factors, whole.factors, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_tensor_needs_fewer_iterations(tensor):
    limits = {"tol": 0, "max_iter": 150, "random_state": 0}
    plain, faster = (pw.cp(tensor, 3, accelerate=how, **limits).losses for how in (False, "auto"))
    assert np.flatnonzero(faster <= plain[-1] * (1 + 1e-9))[0] <= 100


@pytest.mark.parametrize("accelerate", [None, 0, "yes"])
def test_other_values_of_accelerate_are_refused(tensor, accelerate):
    with pytest.raises(ValueError, match="accelerate="):
        pw.cp(tensor, 2, accelerate=accelerate)

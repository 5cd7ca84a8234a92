"""Acceleration: what is recorded is feasible, its loss is true and never rises, and it takes fewer iterations."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted
from chunked import Watched, seven
from test_loop import ASKED

import partwise as pw
from partwise.engine import accelerated

EAGER = {"CAP": 3.0, "SHRINK": 0.9, "GROWTH": 1.2, "TOP": 5.0}  # overshoots, so that many iterations are undone


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng, n=61, m=20).X


@pytest.fixture(params=["usual", "eager"])
def pace(request, monkeypatch):
    if request.param == "eager":
        for name, value in EAGER.items():
            monkeypatch.setattr(accelerated, name, value)
        monkeypatch.setattr(accelerated.Extrapolating, "momentum", accelerated.Momentum(cap=EAGER["CAP"]))
    return request.param


@pytest.fixture
def undone(monkeypatch):
    """How many iterations were undone."""
    count = []
    rise = accelerated.Momentum.after_rise
    monkeypatch.setattr(accelerated.Momentum, "after_rise", lambda self: count.append(1) or rise(self))
    return count


@pytest.mark.parametrize("asked", ASKED)
def test_every_recorded_iterate_is_feasible_and_its_loss_is_true(problem, asked, pace):
    X, options = problem.X, ASKED[asked]
    l1, l2 = np.broadcast_to(options.get("l1", 0), 2) * [1, np.ndim(options.get("l1", 0))], options.get("l2", 0)
    l2 = np.broadcast_to(l2, 2) * [1, np.ndim(l2)]

    def check(it):
        A, C = it.factors
        wanted = 0.5 * np.sum((X - A @ C.T) ** 2)
        wanted += sum(a * f.sum() + 0.5 * b * np.sum(f**2) for f, a, b in zip((A, C), l1, l2, strict=True))
        assert it.loss == pytest.approx(wanted, rel=1e-9, abs=1e-11 * np.vdot(X, X))
        assert min(A.min(), C.min()) >= 0
        level = options.get("sparsity", options.get("activation_sparsity"))
        if isinstance(level, float):
            found = pw.hoyer_sparsity(C if "sparsity" in options else A, axis=0)
            np.testing.assert_allclose(found, level, atol=1e-10)

    result = pw.ssnmf(X, 3, tol=0, max_iter=25, random_state=0, init="random", callback=check, **options)
    assert np.diff(result.losses).max() <= 1e-12 * np.vdot(X, X)


@pytest.mark.parametrize("sparsity", [None, 0.5])
def test_chunks_undo_the_same_iterations(X, sparsity, pace, undone):
    limits = {"sparsity": sparsity, "max_iter": 30, "tol": 0, "random_state": 0, "init": "samples"}
    memory = pw.ssnmf(X, 4, **limits)
    here = len(undone)
    stored = Watched(X)
    marks = []
    chunks = pw.ssnmf(stored, 4, memory_limit=seven(X), **limits, callback=lambda it: marks.append(len(stored.read)))
    assert len(undone) == 2 * here
    assert here > 3 or pace == "usual"
    np.testing.assert_allclose(chunks.losses, memory.losses, rtol=1e-9)
    np.testing.assert_allclose(chunks.components, memory.components, atol=1e-8)
    np.testing.assert_allclose(chunks.activations, memory.activations, atol=1e-8)
    assert marks[-1] - marks[1] == 9 * (29 + here)  # one pass over the nine chunks, and one for what is undone


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("asked", [{}, {"sparsity": 0.6}, {"activation_sparsity": 0.5}])
def test_it_needs_fewer_iterations(form, asked, dtype, rng):
    X = planted(rng, n=200, m=80, r=8).X + 0.05 * rng.random((200, 80))
    limits = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 200, **asked}
    plain = pw.ssnmf(form(X.astype(dtype)), 8, accelerate=False, **limits).losses
    faster = pw.ssnmf(form(X.astype(dtype)), 8, **limits).losses
    reached = np.flatnonzero(faster <= plain[100])
    assert reached.size
    assert reached[0] <= 70


def test_known_components_stay_bit_for_bit(X, pace):
    known = X[:2] / np.linalg.norm(X[:2], axis=1, keepdims=True)
    result = pw.ssnmf(X, 4, sparsity=0.5, fixed_components=known, max_iter=30, tol=0, random_state=0)
    np.testing.assert_array_equal(result.components[:2], known)


def test_known_components_that_nothing_uses_do_not_turn_it_off(X, monkeypatch):
    calls = []
    advance = accelerated.AcceleratedFit.advance
    monkeypatch.setattr(accelerated.AcceleratedFit, "advance", lambda *a, **k: calls.append(1) or advance(*a, **k))
    X[:, -1], known = 0, np.eye(20)[-1:]
    pw.ssnmf(X, 4, fixed_components=known, max_iter=10, tol=0, random_state=0)
    assert len(calls) >= 10


@pytest.mark.parametrize("options", [{"solver": "pivot"}, {"faithful": True}, {"kkt_tol": 1e-9}, {"accelerate": False}])
def test_where_it_is_off(X, options, monkeypatch):
    monkeypatch.setattr(accelerated.AcceleratedFit, "__init__", None)
    pw.ssnmf(X, 3, sparsity=0.5, max_iter=3, tol=0, random_state=0, init="random", **options)


@pytest.mark.parametrize("value", ["always", 2, None, [True]])
def test_other_values_are_refused(X, value):
    with pytest.raises(ValueError, match="give 'auto' or False"):
        pw.ssnmf(X, 3, accelerate=value)

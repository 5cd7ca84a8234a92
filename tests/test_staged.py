"""The default start: it does not freeze above the natural sparsity, and it gives levels to components they suit."""

import numpy as np
import pytest
import scipy.sparse as sp
from catalogues import planted
from chunked import Watched, seven

import partwise as pw
from partwise.datasets import swimmer
from partwise.engine.validation import one_sided
from partwise.recipes import staged

SWIMMER = swimmer((20, 11), torso=10, limb=4)
LIMITS = {"tol": 0, "max_iter": 12, "random_state": 0}


@pytest.fixture(name="X")
def planted_samples(rng):
    return planted(rng, n=61, m=20).X


@pytest.fixture
def stages(monkeypatch):
    """The iterations of a start without the constraint, and then those on the way to the sparsity."""
    found = [], []
    automatic = staged.automatic

    def watched(blocks, start, fit):
        def short(factors, blocks, most, enough=lambda now: False):
            stage = found[most == staged.SHORT]
            return fit(factors, blocks, most, lambda now: stage.append(now.n_iter) or enough(now))

        return automatic(blocks, start, short)

    monkeypatch.setattr("partwise.recipes.initial.automatic", watched)
    return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_a_sparsity_near_the_natural_one_is_reached_exactly(seed):
    """From samples alone, none of these fits is exact."""
    assert pw.ssnmf(SWIMMER.X, 17, sparsity=0.9, random_state=seed).relative_error < 1e-6
    assert pw.ssnmf(SWIMMER.X, 17, sparsity=0.9, random_state=seed, init="samples").relative_error > 0.01


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_a_list_goes_to_the_components_that_it_suits_and_keeps_its_order(seed, rng):
    levels = rng.permutation(pw.hoyer_sparsity(SWIMMER.components, axis=1))
    result = pw.ssnmf(SWIMMER.X, 17, sparsity=[*levels], random_state=seed)
    np.testing.assert_allclose(result.sparsity, levels, atol=1e-10)
    assert result.relative_error < 1e-6


@pytest.mark.compiled
@pytest.mark.parametrize("others", [None, (None, 0.4)])
@pytest.mark.parametrize("place", range(4))
def test_the_place_in_a_list_with_open_levels_does_not_matter(place, others):
    """One narrow and three broad components: the narrow level finds the narrow one, wherever it stands."""
    rng, t = np.random.default_rng(1), np.linspace(0, 1, 60)
    parts = np.vstack([np.r_[1, 1, np.zeros(58)], *[np.exp(-((t - c) ** 2) / 0.08) for c in (0.2, 0.5, 0.8)]])
    X = (rng.random((200, 4)) * (rng.random((200, 4)) < 0.6)) @ parts + 0.01 * rng.random((200, 60))
    levels = [others] * 4
    levels[place] = float(pw.hoyer_sparsity(parts[0]))
    result = pw.ssnmf(X, 4, sparsity=levels, random_state=0)
    assert result.relative_error < 0.02
    assert result.sparsity[place] == pytest.approx(levels[place], abs=1e-10)


def test_without_a_sparsity_it_is_the_start_from_samples(X, stages):
    a, b = (pw.ssnmf(X, 4, init=init, **LIMITS) for init in ("auto", "samples"))
    np.testing.assert_array_equal(a.components, b.components)
    assert stages == ([], [])


def test_below_the_natural_sparsity_few_iterations_are_enough(X, stages):
    pw.ssnmf(X, 4, sparsity=0.1, **LIMITS)
    assert stages[0][-1] == 10


@pytest.mark.parametrize("side", ["sparsity", "activation_sparsity"])
def test_above_it_the_unconstrained_fit_goes_on(X, side, stages):
    result = pw.ssnmf(X + 0.5, 4, **{side: 0.6}, **LIMITS)
    assert stages[0][-1] > 10
    found = result.sparsity if side == "sparsity" else result.activation_sparsity
    np.testing.assert_allclose(found, 0.6, atol=1e-10)


def test_the_sparsity_rises_in_steps_only_if_components_have_not_settled(X, stages, monkeypatch):
    pw.ssnmf(X + 0.5, 4, sparsity=0.6, **LIMITS)
    assert staged.SHORT < stages[0][-1] < staged.LONG
    assert stages[1] == []
    monkeypatch.setattr(staged, "LONG", 20)
    pw.ssnmf(X + 0.5, 4, sparsity=0.6, **LIMITS)
    assert stages[0][-1] == 20
    assert stages[1] == [*range(staged.SHORT + 1)] * (staged.STEPS - 1)


def test_the_steps_are_between_the_present_and_the_requested_sparsity():
    parts = np.asfortranarray(np.random.default_rng(0).random((30, 3)))
    sets = one_sided(None, 0.9, 3, "fast")[1]
    found = [staged.levels(sets.relaxed(share))[0] for share in staged.on_the_way(parts, sets)]
    own = pw.hoyer_sparsity(parts, axis=0).mean()
    np.testing.assert_allclose(found, own + (0.9 - own) * np.array([0.25, 0.5, 0.75]))


def test_a_sparsity_that_leaves_little_of_the_components_needs_few_iterations(X, stages):
    pw.ssnmf(X, 4, activation_sparsity=0.95, **LIMITS)
    assert stages[0][-1] == 10


@pytest.fixture
def tiny_excerpt(monkeypatch):
    monkeypatch.setattr(staged, "SAMPLES", 15)
    monkeypatch.setattr(staged, "ENTRIES", 0)


@pytest.mark.parametrize("side", ["sparsity", "activation_sparsity"])
@pytest.mark.parametrize("asked", [0.3, 0.9, [0.3, 0.9, (0.5, 0.6), None]])
def test_an_excerpt_is_enough_for_the_start_of_large_data(X, side, asked, stages, tiny_excerpt):
    """From 15 of 61 samples, a fit starts no worse than from samples, and keeps its sets."""
    result = pw.ssnmf(X, 4, **{side: asked}, max_iter=1, tol=0, random_state=0)
    assert stages
    assert (
        result.losses[0] < pw.ssnmf(X, 4, **{side: asked}, init="samples", max_iter=1, tol=0, random_state=0).losses[0]
    )
    found = result.sparsity if side == "sparsity" else result.activation_sparsity
    if isinstance(asked, list):
        np.testing.assert_allclose(found[:2], asked[:2], atol=1e-10)
        assert 0.5 - 1e-10 <= found[2] <= 0.6 + 1e-10
    else:
        np.testing.assert_allclose(found, asked, atol=1e-10)


@pytest.mark.parametrize("known", [False, True])
def test_chunks_and_sparse_data_start_from_the_same_excerpt(X, known, tiny_excerpt):
    more = {}
    if known:
        more["fixed_activations"] = np.full((61, 4), np.nan)
        more["fixed_activations"][:, 2] = X[:, 0]
    memory = pw.ssnmf(X, 4, sparsity=0.9, **more, **LIMITS)
    for other, limit in ((Watched(X), {"memory_limit": seven(X)}), (sp.csr_array(X), {})):
        result = pw.ssnmf(other, 4, sparsity=0.9, **limit, **more, **LIMITS)
        np.testing.assert_allclose(result.components, memory.components, atol=1e-8)
        np.testing.assert_allclose(result.losses, memory.losses, rtol=1e-8)
    if known:
        np.testing.assert_array_equal(memory.activations[:, 2], X[:, 0])


def test_a_start_in_chunks_takes_few_passes(X, tiny_excerpt):
    """Validation, the excerpt, the activations, and the loss at the start; then one pass for each iteration."""
    passes = []
    for init in ("auto", "samples"):
        rows = Watched(X)
        pw.ssnmf(rows, 4, sparsity=0.9, init=init, memory_limit=seven(X), **LIMITS)
        passes.append(rows.times().max())
    assert passes[0] <= passes[1] + 2


def test_missing_entries_in_chunks_start_from_an_excerpt(X, tiny_excerpt):
    X[::3, ::2] = np.nan
    result = pw.ssnmf(Watched(X), 4, sparsity=0.9, missing="em", memory_limit=seven(X), **LIMITS)
    np.testing.assert_allclose(result.sparsity, 0.9, atol=1e-10)
    assert np.isfinite(result.losses).all()


@pytest.mark.parametrize("sparsity", [0.9, (0.8, None), [0.3, 0.9, (0.5, 0.6), None]])
def test_chunks_start_as_in_memory(X, sparsity, stages):
    memory = pw.ssnmf(X, 4, sparsity=sparsity, **LIMITS)
    assert stages
    chunks = pw.ssnmf(Watched(X), 4, sparsity=sparsity, memory_limit=seven(X), **LIMITS)
    np.testing.assert_allclose(chunks.components, memory.components, atol=1e-8)
    np.testing.assert_allclose(chunks.losses, memory.losses, rtol=1e-8)


def test_known_components_keep_their_place(X, stages):
    known = np.full((4, 20), np.nan)
    known[1] = X[3]
    levels = [0.2, 0.5, 0.8, 0.4]
    result = pw.ssnmf(X, 4, sparsity=levels, fixed_components=known, **LIMITS)
    assert stages
    np.testing.assert_array_equal(result.components[1], X[3])
    np.testing.assert_allclose(result.sparsity[[0, 2, 3]], [0.2, 0.8, 0.4], atol=1e-10)


def test_the_best_assignment_is_found():
    """Components of different sparsity get the levels in their own order."""
    parts = np.zeros((40, 3), order="F")
    for j, size in enumerate((4, 30, 12)):
        parts[:size, j] = 1
    sets = one_sided(None, [0.2, 0.75, 0.5], 3, "fast")
    activations, ordered = staged.assigned([np.eye(3, order="F"), parts], sets, 1)
    np.testing.assert_array_equal(np.count_nonzero(ordered, axis=0), [30, 4, 12])
    np.testing.assert_array_equal(activations, np.eye(3)[:, [1, 0, 2]])


@pytest.mark.parametrize("X", [np.zeros((6, 9)), np.ones((1, 5)), np.eye(3), np.full((5, 4), 1e-60)])
@pytest.mark.parametrize("sparsity", [0.9, [0.2, 0.9]])
def test_odd_data_is_no_problem(X, sparsity):
    result = pw.ssnmf(X, 2, sparsity=sparsity, max_iter=3, tol=0, random_state=0)
    np.testing.assert_allclose(result.sparsity, sparsity, atol=1e-10)


@pytest.mark.parametrize(
    "asked", [{"activation_sparsity": 0.8}, {"sparsity": 0.8}, {"activation_sparsity": [0.3, 0.6, 0.8]}]
)
@pytest.mark.parametrize("n", [40, 1200], ids=["whole", "excerpt"])
def test_the_start_has_the_scale_of_the_data(asked, n):
    X = np.random.default_rng(0).random((n, 3)) ** 4 @ np.random.default_rng(1).random((3, 900)) ** 4
    first = {k: pw.ssnmf(k * X, 3, max_iter=1, tol=0, random_state=0, **asked).losses / k**2 for k in (1e-9, 1, 1e9)}
    np.testing.assert_allclose(first[1e-9], first[1], rtol=1e-6)
    np.testing.assert_allclose(first[1e9], first[1], rtol=1e-6)
    assert first[1][0] < 0.5 * np.sum(X**2)

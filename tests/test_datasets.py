"""Generated data have the true factors; the bundled datasets are the published ones."""

import hashlib
import tracemalloc

import numpy as np
import pytest

from partwise import datasets, hoyer_sparsity

SMALL = {
    "bars": lambda **more: datasets.bars(60, 5, **more),
    "swimmer": lambda **more: datasets.swimmer((12, 9), torso=6, limb=3),
    "planted": lambda **more: datasets.planted(30, 40, 3, noise=0, **more),
    "nine_by_nine": lambda **more: datasets.nine_by_nine(noise=0, **more),
    "brain_volume": lambda **more: datasets.brain_volume(7, (9, 11, 6), parts=4, noise=0, dtype=float, **more),
}
NOISY = {
    "planted": lambda noise, **more: datasets.planted(80, 60, 4, noise=noise, **more),
    "nine_by_nine": lambda noise, **more: datasets.nine_by_nine(noise=noise, **more),
    "brain_volume": lambda noise, **more: datasets.brain_volume(20, (9, 11, 6), parts=4, noise=noise, **more),
}
each = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
each_noisy = pytest.mark.parametrize("make", NOISY.values(), ids=NOISY)


@each
def test_x_is_the_product_of_its_factors(make):
    data = make()
    np.testing.assert_allclose(data.X, data.activations @ data.components, rtol=1e-12, atol=1e-12)
    assert data.X.shape[1] == np.prod(data.shape)
    assert data.X.min() >= 0
    assert data.components.min() >= 0
    assert data.activations.min() >= 0
    assert (data.components.max(axis=1) > 0).all()
    assert np.linalg.matrix_rank(data.components) >= len(data.components) - 3  # bars: 1; swimmer: 3 (limbs share a sum)


@each
def test_same_seed_gives_the_same_data(make, request):
    assert np.array_equal(make(random_state=3).X, make(random_state=3).X)
    if request.node.callspec.id != "swimmer":
        assert not np.array_equal(make(random_state=3).X, make(random_state=4).X)


@each_noisy
def test_noise_has_the_requested_level(make):
    clean, dirty = make(0), make(0.05)
    assert np.array_equal(clean.components, dirty.components)
    inside = 3 * 0.05 * clean.X.std() < clean.X  # away from zero, where nothing is cut off
    scatter = (dirty.X - clean.X)[inside].std() / np.sqrt(np.square(clean.X).mean())
    assert 0.04 < scatter < 0.06
    assert dirty.X.min() >= 0


@pytest.mark.parametrize("sparsity", [0.3, 0.9, [0.5, 0.6, 0.7], (0.75, 0.8)], ids=str)
def test_planted_components_have_the_requested_sparsity(sparsity):
    parts = datasets.planted(parts=3, sparsity=sparsity).components
    found = hoyer_sparsity(parts, axis=1)
    low, high = sparsity if isinstance(sparsity, tuple) else (sparsity, sparsity)
    assert (found >= np.array(low) - 1e-9).all()
    assert (found <= np.array(high) + 1e-9).all()


def test_bars_are_rows_and_columns():
    data = datasets.bars(4000, 6, random_state=1)
    pictures = data.components.reshape(12, 6, 6)
    assert all((pictures[i, i] == 1).all() and (pictures[6 + i, :, i] == 1).all() for i in range(6))
    assert (data.components.sum(axis=1) == 6).all()
    assert abs(data.activations.mean() - 1 / 6) < 0.01
    assert datasets.bars(probability=1).activations.all()


def test_swimmer_components():
    data = datasets.swimmer()
    assert len(np.unique(data.X, axis=0)) == 256
    assert set(np.unique(data.X)) == {0.0, 1.0}
    assert (data.X.sum(axis=1) == 12 + 4 * 6).all()
    assert (data.components[:16].sum(axis=1) == 6).all()
    assert data.components[16].sum() == 12


def test_drawn_swimmers_equal_the_published_ones():
    X, shape = datasets.load_swimmer()
    stored = X.reshape(256, *shape).transpose(2, 1, 0).reshape(220, 256).astype(np.uint8)
    known = "9277d375a76ca36ed05c9c0f6591a21d5d028c3928f10bb6930208953c63e389"
    assert hashlib.sha256(stored.tobytes()).hexdigest() == known


def test_volumes_are_empty_outside_of_the_brain():
    data = datasets.brain_volume(5, (20, 24, 16), parts=6)
    seen = data.X.any(axis=0).reshape(data.shape)
    assert not seen[0, 0].any()
    assert not seen[-1, -1, -1]
    assert abs(seen.mean() - np.pi / 6) < 0.03  # an ellipsoid in its box


def test_both_precisions_are_the_same_volume():
    single, double = (datasets.brain_volume(5, (8, 9, 7), parts=3, dtype=kind).X for kind in (np.float32, float))
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-5)


def test_brain_volume_needs_no_extra_memory():
    tracemalloc.start()
    data = datasets.brain_volume(200, (30, 32, 16), parts=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    own = data.X.nbytes + data.components.nbytes + data.activations.nbytes
    assert peak < own + 12 * data.X.shape[1] * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: datasets.bars(0), "samples=0: give a whole number"),
        (lambda: datasets.bars(size=2.5), "size=2.5"),
        (lambda: datasets.bars(probability=1.5), "probability=1.5"),
        (lambda: datasets.bars(random_state="a"), "random_state='a'"),
        (lambda: datasets.planted(parts=2, sparsity=[0.5]), "sparsity has 1 values"),
        (lambda: datasets.planted(sparsity=1.2), r"outside \[0, 1\]"),
        (lambda: datasets.planted(noise=-1), "noise=-1"),
        (lambda: datasets.planted(noise=float("nan")), "noise=nan"),
        (lambda: datasets.nine_by_nine(samples=-3), "samples=-3"),
        (lambda: datasets.brain_volume(1, (3, 4)), r"shape=\(3, 4\): give 3 ints"),
        (lambda: datasets.brain_volume(1, (3, 4, 0)), "shape=0"),
        (lambda: datasets.brain_volume(1, (3, 4, 5), dtype=int), "float32 or float64"),
        (lambda: datasets.swimmer(7), "shape=7: give 2 ints"),
        (lambda: datasets.swimmer((10, 10)), r"too small for the figure: give at least \(22, 13\)"),
        (lambda: datasets.swimmer(torso=5), "torso=5 is less than 2·limb=12"),
    ],
)
def test_bad_arguments_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_digits_need_no_file():
    X, shape = datasets.load_digits()
    assert (X.shape, shape, X.max()) == ((1797, 64), (8, 8), 16)

"""Plots of components, activations, histories and comparisons."""

import copy
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

pytest.importorskip("matplotlib")

import partwise as pw
from partwise.plotting import activations, compare, convergence, gallery, new_figure, sparsity_histogram


@pytest.fixture(scope="module")
def X():  # noqa: N802
    rng = np.random.default_rng(0)
    return rng.random((15, 3)) @ rng.random((3, 12))


@pytest.fixture(scope="module")
def result(X):
    return pw.ssnmf(X, 4, sparsity=0.3, max_iter=4, tol=0, random_state=0)


@pytest.fixture(scope="module")
def fitted(X):
    model = pw.SparseNMF(4, sparsity=0.3, max_iter=4, tol=0, random_state=0)
    return model.keep(activations=model.fit_transform(X), part_shape=(3, 4))


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


def images(figure):
    return [image for axis in figure.get_axes() for image in axis.get_images()]


@pytest.mark.parametrize("r", [1, 2, 5, 16])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_one_image_per_component(rng, r, columns):
    parts = rng.random((r, 12))
    figure = gallery(parts, (3, 4), title="parts", columns=columns)
    drawn = images(figure)
    assert len(drawn) == r
    for image, part in zip(drawn, parts, strict=True):
        np.testing.assert_array_equal(image.get_array(), part.reshape(3, 4))
        assert image.get_clim() == (0, part.max())
    assert not any(axis.axison for axis in figure.get_axes())
    assert figure.get_suptitle() == "parts"


@pytest.mark.parametrize("value", [0.0, 0.5, 1e-300])
def test_constant_component(value, tmp_path):
    figure = gallery(np.full((2, 6), value), (2, 3))
    for image in images(figure):
        low, high = image.get_clim()
        assert low == 0 < high
    figure.savefig(tmp_path / "parts.png")
    assert (tmp_path / "parts.png").stat().st_size > 0


def test_lists_and_given_figures(rng):
    figure = new_figure(4, 2)
    left, right = figure.subfigures(1, 2)
    parts = rng.random((3, 4))
    assert gallery(parts.tolist(), (2, 2), figure=left) is left
    gallery(parts, (2, 2), figure=right)
    assert len(images(figure)) == 6


# kinds of parts


def bars(axis):
    return [round(bar.get_width(), 12) for bar in axis.patches]


def test_volumes_are_cut_through_their_peak():
    volume = np.zeros((4, 5, 6))
    volume[1, 3, 2], volume[:, :, 1] = 2.0, 1.0
    figure = gallery(volume.reshape(1, -1), (4, 5, 6))
    (image,) = images(figure)
    np.testing.assert_array_equal(image.get_array(), [[0] * 4, [0, 2, 0, 0], [0] * 4, [0] * 4, [0] * 4])  # front on top
    assert figure.axes[0].get_title() == "part 0, z = 2"


def test_three_channels_are_colours(tmp_path):
    parts = np.zeros((2, 4 * 5 * 3))
    parts[0].reshape(4, 5, 3)[1, 2] = 2, 1, 0
    figure = gallery(parts, (4, 5, 3))
    drawn = figure.axes[0].images[0]
    np.testing.assert_array_equal(drawn.get_array()[1, 2], [1, 0.5, 0])
    assert not drawn.get_array()[0].any()
    figure.savefig(tmp_path / "p.png")
    assert gallery(parts, (4, 5, 3), kind="volumes").axes[0].images[0].get_array().ndim == 2
    page = pw.report(parts, shape=(4, 5, 3))
    assert page.count('class="pixels"') == len(parts)
    assert 'width="5" height="4"' in page


def test_a_mask_puts_features_in_their_places(rng):
    mask = np.zeros((3, 4), dtype=int)
    mask[1, 1:3] = mask[2, 0] = 1
    (image,) = images(gallery([[1.0, 2.0, 3.0]], mask=mask))
    assert image.get_array().compressed().tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(image.get_array().mask, mask == 0)


def test_spectra_are_lines_from_zero(rng):
    parts, hertz = rng.random((4, 9)), np.arange(9) * 50
    figure = gallery(parts, x=hertz, x_label="frequency (Hz)", labels=["a", "b", "c", "$x"])
    for axis, part in zip(figure.axes, parts, strict=False):
        np.testing.assert_array_equal(axis.lines[0].get_xydata(), np.column_stack([hertz, part]))
        assert axis.get_ylim() == (0, 1.05 * part.max())
    assert [axis.get_title() for axis in figure.axes[:4]] == ["a", "b", "c", "$x"]
    assert [axis.get_ylabel() for axis in figure.axes[:4]] == ["weight", "", "", "weight"]
    assert [axis.get_xlabel() for axis in figure.axes[:4]] == ["", *["frequency (Hz)"] * 3]
    figure.canvas.draw()


def test_bars_are_the_strongest_features():
    names = ["zero", "one", r"$\frac{", "three"]
    figure = gallery([[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 0.0, 0.0]], feature_names=names, top=2)
    assert [bars(axis) for axis in figure.axes] == [[3.0, 2.0], [4.0]]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["three", r"$\frac{"]
    figure.canvas.draw()  # names are no formulas


def test_model_stores_how_to_draw_its_components(model):
    assert len(images(gallery(model))) == 4
    assert not images(gallery(model, kind="bars"))
    assert not images(gallery(model, (12,)))
    model.feature_names_in_ = np.array([f"gene {i}" for i in range(12)], dtype=object)
    del model.part_shape_
    assert gallery(model).axes[0].get_yticklabels()[0].get_text().startswith("gene ")


@pytest.mark.parametrize(
    ("components", "options", "message"),
    [
        (np.ones((2, 5)), {"shape": (2, 3)}, "components of shape (2, 5) do not fit images of 2 × 3 pixels"),
        (np.ones((2, 5)), {"shape": (1, 2, 4)}, "components of shape (2, 5) do not fit volumes of 1 × 2 × 4 voxels"),
        (np.ones((2, 5)), {"shape": (1, 1, 1, 5)}, "(height, width, 3), (x, y, z), or None for spectra"),
        (np.ones((2, 5)), {"shape": (-1, 5)}, "shape=-1: give a whole number of at least 1"),
        (np.ones(6), {}, "components have shape (6,): give components × features"),
        (np.ones((0, 6)), {}, "components have shape (0, 6): give components × features"),
        ([[1, np.nan]], {}, "components contain nan: they must be finite and nonnegative"),
        ([[1, -2]], {}, "components contain -2: they must be finite and nonnegative"),
        ("parts", {}, "components are of type str: give a Result, a model, or an array"),
        (pw.SparseNMF(), {}, "this SparseNMF is not fitted: call fit first"),
        (np.ones((2, 6)), {"kind": "images"}, "kind='images' needs shape=(height, width)"),
        (np.ones((2, 6)), {"kind": "pies"}, "kind='pies' is not one of"),
        (np.ones((2, 6)), {"mask": np.eye(3)}, "mask has shape (3, 3) and 3 True entries, but images"),
        (np.ones((2, 6)), {"mask": [[2, 1]]}, "mask has values other than 0 and 1"),
        (np.ones((2, 6)), {"feature_names": ["a"]}, "1 feature names for 6 features: give one for each"),
        (np.ones((2, 6)), {"x": [1, 2]}, "x has shape (2,)"),
        (np.ones((2, 6)), {"labels": ["a"]}, "1 labels for 2 parts: give one per part"),
        (np.ones((2, 6)), {"columns": 0}, "columns=0: give a whole number of at least 1"),
        (np.ones((2, 6)), {"kind": "bars", "top": 0}, "top=0: give a whole number of at least 1"),
    ],
)
def test_bad_arguments_are_rejected(components, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        gallery(components, **options)


# fits


def test_convergence_draws_the_losses(result, model):
    axis = convergence(result).axes[0]
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), result.losses)
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), np.arange(result.n_iter + 1))
    assert (axis.get_xlabel(), axis.get_yscale(), axis.get_legend()) == ("iteration", "log", None)
    assert axis.get_ylabel() == "loss  ½‖X − model‖²"
    axis = convergence({"a": result, "$b": model}, against="seconds").axes[0]
    assert axis.get_xlabel() == "time (s)"
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["a", "$b"]
    np.testing.assert_array_equal(axis.lines[2].get_xdata(), model.time_curve_)
    assert len({line.get_color() for line in axis.lines}) == 2


def test_a_mini_batch_fit_has_no_loss_at_its_start(X):
    model = pw.MiniBatchSparseNMF(3, sparsity=0.4, max_iter=3, tol=0, random_state=0).fit(X)
    figure = convergence(model)
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 2, 3]
    figure.canvas.draw()


def test_an_exact_fit_has_no_logarithm(result):
    axis = convergence(replace(result, losses=np.array([1.0, 0.0]), n_iter=1)).axes[0]
    assert axis.get_yscale() == "linear"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([],), {}, "there is no model: give at least one"),
        (([1], ["a", "b"]), {}, "2 labels for 1 models"),
        ((np.eye(3),), {}, "there is no loss history: give a Result or a fitted estimator"),
        ((np.eye(3),), {"against": "hours"}, "against='hours' is not one of"),
    ],
)
def test_objects_without_history_are_rejected(arguments, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        convergence(*arguments, **options)


@pytest.mark.parametrize(
    ("asked", "lines", "bands"), [(None, 0, 0), (0.5, 1, 0), ((0.2, 0.4), 0, 1), ([0.5, (0.1, 0.2), 0.5, None], 1, 1)]
)
def test_histogram_shows_the_requested_sparsity(result, asked, lines, bands):
    axis = sparsity_histogram(result, asked).axes[0]
    assert sum(bar.get_height() for bar in axis.containers[0]) == 4
    assert (len(axis.lines), len(axis.patches) - 102) == (lines, bands)
    assert axis.get_xlabel().startswith("Hoyer sparsity")
    assert bool(axis.get_title()) == (asked is not None)


def test_equal_sparsities_share_one_bar(model):
    axis = sparsity_histogram(model).axes[0]
    assert sorted(bar.get_height() for bar in axis.containers[0])[-2:] == [0, 4]
    assert axis.get_title() == "largest deviation from the requested sparsity: rounding only"
    zero = sparsity_histogram([[0.0, 0.0], [1.0, 0.0]])
    assert sum(bar.get_height() for bar in zero.axes[0].containers[0]) == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_activations_are_a_heat_map(result, model, ordered):
    for held in (result, model, model.activations_.tolist()):
        figure = activations(held, ordered=ordered)
        drawn = figure.axes[0].images[0].get_array()
        expected = np.asarray(held) if isinstance(held, list) else getattr(held, "activations_", result.activations)
        assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, expected.tolist()))
        if ordered:
            strongest = drawn.argmax(axis=1)[drawn.max(axis=1) > 0]
            assert (np.diff(strongest) >= 0).all()
        else:
            np.testing.assert_array_equal(drawn, expected)
        assert [axis.get_ylabel() for axis in figure.axes][1] == "activation"


def test_few_samples_are_named():
    axis = activations([[1, 0], [0, 2], [3, 0]], ordered=True, sample_names=["a", "b", "$c"], labels=["x", "y"]).axes[0]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["$c", "a", "b"]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["x", "y"]


def test_model_plot(model):
    figure = model.plot((3, 4), title="mine")
    assert figure.get_suptitle() == "mine"
    for one, other in zip(images(figure), images(gallery(model, (3, 4))), strict=True):
        np.testing.assert_array_equal(one.get_array(), other.get_array())
    with pytest.raises(NotFittedError):
        clone(model).plot()


def test_unnamed_items_are_numbered_from_0():
    axis = activations([[1, 0], [0, 2]]).axes[0]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "1"]
    assert gallery([[1.0, 2.0]], x=None).axes[0].lines[0].get_xdata().tolist() == [0, 1]
    bars = gallery([[1.0, 2.0]], kind="bars").axes[0]
    assert [text.get_text() for text in bars.get_yticklabels()] == ["feature 1", "feature 0"]
    assert bars.get_title() == "part 0"


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1, 2], {}, "activations have shape (2,): give samples × parts"),
        ([["a"]], {}, "activations are of type list: give a Result, a model, or an array of numbers"),
        ([[-1.0]], {}, "activations contain -1.0: they must be finite and nonnegative"),
        ([[1.0]], {"sample_names": "ab"}, "2 sample names for 1 samples"),
        ([[1.0]], {"labels": ["a", "b"]}, "2 labels for 1 parts"),
    ],
)
def test_bad_activations_are_rejected(values, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        activations(values, **options)


def test_a_model_without_activations(model):
    del model.activations_
    with pytest.raises(ValueError, match=re.escape("use activations(model.transform(X))")):
        activations(model)


# pairs


@pytest.mark.parametrize("r", [2, 4, 6])
def test_matched_components_share_a_column(rng, r):
    a = rng.random((4, 6))
    b = np.vstack([a, rng.random((2, 6))])[rng.permutation(6)[:r]] * 3
    figure = compare(a, b, (2, 3), labels=("$one", "two"))
    drawn = [axis for axis in figure.axes if axis.images]
    pairs = list(zip(drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :], strict=True))
    assert len(pairs) == min(4, r)
    for above, below in pairs:
        label, cosine = below.get_title().split("\n")
        i, j = (int(re.search(r"part (\d+)", text)[1]) for text in (above.get_title(), label))
        np.testing.assert_array_equal(above.images[0].get_array(), a[i].reshape(2, 3))
        np.testing.assert_array_equal(below.images[0].get_array(), b[j].reshape(2, 3))
        wanted = a[i] @ b[j] / np.linalg.norm(a[i]) / np.linalg.norm(b[j])
        assert float(cosine.removeprefix("cosine ")) == pytest.approx(wanted, abs=6e-4)
    cosines = [float(below.get_title().split()[-1]) for _, below in pairs]
    assert cosines == sorted(cosines, reverse=True)
    assert ("without a match" in figure.get_suptitle()) == (r != 4)
    figure.canvas.draw()


def test_models_of_other_features():
    with pytest.raises(ValueError, match=re.escape("components have shapes (2, 2) and (3, 3)")):
        compare(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="give a pair of names"):
        compare(np.eye(2), np.eye(2), labels=("a",))


# no display


DRAW = """
import sys
import numpy as np
from partwise.plotting import gallery
gallery(np.eye(6), (2, 3)).savefig(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""


def draw(path):
    environment = {k: v for k, v in os.environ.items() if k not in ("MPLBACKEND", "DISPLAY", "WAYLAND_DISPLAY")}
    code = [sys.executable, "-c", DRAW, str(path)]
    return subprocess.run(code, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_no_display_is_needed(tmp_path):
    done = draw(tmp_path / "parts.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")

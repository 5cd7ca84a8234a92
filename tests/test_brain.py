"""BrainNMF: maskers, components as a 4-D image, and the same numbers as on arrays."""

import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from partwise.brain import MASKING, BrainNMF
from sklearn.base import clone

import partwise
from partwise.engine.origins import Brain
from partwise.pages import report
from partwise.plotting import gallery

nibabel = pytest.importorskip("nibabel")
maskers = pytest.importorskip("nilearn.maskers")

MNI = np.array([[3.0, 0, 0, -90], [0, 3, 0, -126], [0, 0, 3, -72], [0, 0, 0, 1]])
AFFINE = np.diag([2.0, 2.0, 2.0, 1.0])


def image(values, affine=AFFINE):
    return nibabel.Nifti1Image(np.asarray(values), affine)


@pytest.fixture(name="volumes")
def some_volumes(rng):
    return rng.random((9, 4, 5, 3))


@pytest.fixture(name="inside")
def some_voxels(rng):
    return rng.random((4, 5, 3)) < 0.7


@pytest.fixture(name="model")
def fitted(volumes, inside):
    model = BrainNMF(3, sparsity=0.4, mask=image(inside.astype(np.uint8)), random_state=0, tol=1e-3)
    return model.fit([image(v) for v in volumes])


def test_result_equals_that_on_arrays(model, volumes, inside):
    plain = partwise.SparseNMF(3, sparsity=0.4, random_state=0, tol=1e-3)
    activations = plain.fit_transform(volumes[:, inside])
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-9)
    np.testing.assert_allclose(model.sparsity_, 0.4, atol=1e-10)
    images = [image(v) for v in volumes]
    np.testing.assert_allclose(model.transform(images), activations, atol=1e-7)
    assert model.score(images) == pytest.approx(plain.score(volumes[:, inside]))
    assert isinstance(model.masker_, maskers.NiftiMasker)


def test_components_image_has_values_at_the_mask_voxels(model, inside):
    parts = model.components_img_
    assert parts.shape == (4, 5, 3, 3)
    np.testing.assert_array_equal(parts.affine, AFFINE)
    np.testing.assert_allclose(parts.get_fdata()[inside].T, model.components_)
    assert not parts.get_fdata()[~inside].any()


def test_inverse_transform_returns_images(model, volumes):
    activations = model.transform([image(v) for v in volumes])
    back = model.inverse_transform(activations)
    assert back.shape == (4, 5, 3, 9)
    np.testing.assert_allclose(model.masker_.transform(back), activations @ model.components_, atol=1e-12)


@pytest.mark.parametrize("form", ["list", "4-D", "paths", "one"])
def test_accepted_forms_of_images(model, volumes, form, tmp_path):
    images = [image(v) for v in volumes[:2]]
    for i, one in enumerate(images):
        one.to_filename(tmp_path / f"{i}.nii")
    given = {
        "list": images,
        "4-D": image(np.moveaxis(volumes[:2], 0, -1)),
        "paths": [str(tmp_path / f"{i}.nii") for i in range(2)],
        "one": images[0],
    }[form]
    expected = model.transform(images)[: 1 if form == "one" else 2]
    np.testing.assert_allclose(model.transform(given), expected, atol=1e-9)


def test_parameters_and_clones(model):
    assert set(model.get_params()) == {*partwise.SparseNMF().get_params(), "mask", *MASKING}
    again = clone(model)
    assert (again.n_components, again.sparsity) == (3, 0.4)
    assert again.get_params()["mask"] is not None
    assert again.set_params(sparsity=0.5, mask=None).sparsity == 0.5
    with pytest.raises(TypeError, match="colour"):
        BrainNMF(colour=1)


def test_voxel_model_can_be_saved(model, volumes, inside, tmp_path):
    model.save(tmp_path / "parts.pw")
    again = partwise.load(tmp_path / "parts.pw")
    images = [image(v) for v in volumes]  # volumes[:, inside] has another memory order than the masker's samples
    np.testing.assert_array_equal(again.transform(model.masker_.transform(images)), model.transform(images))
    np.testing.assert_array_equal(again.part_mask_, inside)
    np.testing.assert_array_equal(again.components_img_.get_fdata(), model.components_img_.get_fdata())
    np.testing.assert_array_equal(again.components_img_.affine, AFFINE)
    images[0].to_filename(tmp_path / "x.nii")
    samples = partwise.io.read(tmp_path / "x.nii", mask=again.origin_).X
    np.testing.assert_allclose(again.transform(samples), model.transform(images[:1]), atol=1e-6)


def test_models_of_other_data_have_no_image():
    assert not hasattr(partwise.SparseNMF(2, max_iter=2, tol=0).fit(np.eye(4)), "components_img_")


def test_mask_is_computed_if_not_given(volumes):
    volumes[:, :1] = 0  # a border that nilearn finds to be background
    model = BrainNMF(2, random_state=0, tol=1e-2).fit([image(v) for v in volumes])
    assert 0 < model.n_features_in_ < volumes[0].size


def test_masker_can_be_given(volumes, inside):
    masker = maskers.NiftiMasker(image(inside.astype(np.uint8)), standardize=None, smoothing_fwhm=3)
    model = BrainNMF(2, mask=masker, random_state=0, tol=1e-2).fit([image(v) for v in volumes])
    assert model.masker_.smoothing_fwhm == 3
    assert not hasattr(masker, "mask_img_")  # the user's masker is unchanged


def test_masking_parameters(volumes, inside, tmp_path):
    images, mask = [image(v) for v in volumes], image(inside.astype(np.uint8))
    quick = {"random_state": 0, "tol": 1e-2}
    masker = maskers.NiftiMasker(mask, standardize=None, smoothing_fwhm=3)
    smooth = BrainNMF(2, mask=mask, smoothing_fwhm=3, memory=str(tmp_path), **quick).fit(images)
    np.testing.assert_array_equal(smooth.components_, BrainNMF(2, mask=masker, **quick).fit(images).components_)
    assert any(tmp_path.iterdir())  # the cache
    with pytest.raises(ValueError, match="mask is a NiftiMasker: set smoothing_fwhm there"):
        BrainNMF(2, mask=masker, smoothing_fwhm=3).fit(images)
    for kind in ("zscore_sample", "psc"):
        with pytest.raises(ValueError, match=f"'{kind}' subtracts the mean of each voxel, which makes values negative"):
            BrainNMF(2, mask=mask, standardize=kind).fit(images)
    whole = BrainNMF(2, mask_strategy="whole-brain-template", **quick).fit([image(np.ones((60, 70, 60)), MNI)] * 2)
    assert 100_000 / 27 < whole.n_features_in_ < 2_500_000 / 27  # voxels of 3 mm in a brain


@pytest.mark.filterwarnings("ignore:imgs are being resampled")
def test_target_affine_resamples_images_and_mask(volumes, inside):
    images, mask = [image(v) for v in volumes], image(inside.astype(np.uint8))
    model = BrainNMF(2, mask=mask, target_affine=np.diag([1.5, 1.5, 1.5]), tol=1e-2, random_state=0)
    activations = model.fit_transform(images)
    np.testing.assert_array_equal(model.components_img_.affine[:3, :3], np.diag([1.5, 1.5, 1.5]))
    assert model.components_img_.shape[:3] == model.mask_img_.shape != inside.shape
    np.testing.assert_allclose(model.transform(images[3]), activations[3:4], atol=1e-6)


def test_report_has_the_methods_of_those_of_nilearn(model, tmp_path):
    page = model.generate_report(title="Grey matter")
    page.save_as_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == str(page) == model.report(title="Grey matter")
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert model._repr_html_().count('src="data:image/png') == model.n_components_  # in a notebook


def test_images_of_another_shape_are_rejected(model, volumes):
    other, moved = image(np.ones((4, 5, 4))), image(volumes[0], AFFINE + np.eye(4)[0])
    for images, which in (([image(volumes[0]), other], "image 1 .shape"), ([moved], "image 0 .shape")):
        with pytest.raises(ValueError, match=which):
            model.transform(images)
    with pytest.raises(ValueError, match=r"and the mask .* have different shapes or affines: resample"):
        clone(model).fit([other])
    with pytest.raises(ValueError, match="Negative values"):
        clone(model).fit([image(-v) for v in volumes])


def test_error_without_nilearn(monkeypatch, volumes):
    monkeypatch.setitem(sys.modules, "nilearn.maskers", None)
    with pytest.raises(ImportError, match=r"need nilearn: pip install 'partwise\[brain\]'"):
        BrainNMF(2).fit([image(volumes[0])])


# pictures

TURNED = np.array([[0, -2.0, 0, 80], [0, 0, 3, -110], [4, 0, 0, -70], [0, 0, 0, 1]])  # axes: up, left, forward
SHAPE = (39, 81, 63)  # of TURNED volumes, which contain the MNI brain
PEAK = (-40.0, 49, 6)  # left, front, above the centre


def model_at(peak=PEAK, affine=TURNED, mask=None):
    """A model with one part, which has its largest weight at ``peak`` in mm."""
    voxel = tuple(np.rint(np.linalg.solve(affine, [*peak, 1])[:3]).astype(int))
    volume = np.zeros(SHAPE)
    volume[voxel] = 2
    part = volume.ravel() if mask is None else volume[mask]
    return partwise.SparseNMF(1, max_iter=1, tol=0).fit([part + 0.01]).keep(origin=Brain(affine, SHAPE, mask))


def mni_mask():
    places = np.moveaxis(np.indices(SHAPE), 0, -1) @ TURNED[:3, :3].T + TURNED[:3, 3]
    return (((places - (0, -17, 5)) / (72, 90, 77)) ** 2).sum(axis=-1) < 1


def panels(model):
    (axis,) = gallery(model).axes
    return axis.child_axes


@pytest.mark.parametrize("mask", [None, mni_mask()], ids=["whole", "over the template"])
def test_slices_are_oriented_by_the_affine(mask):
    model = model_at(mask=mask)
    assert gallery(model).axes[0].get_title() == "part 0, (-40, 49, 6) mm"
    drawn = panels(model)
    for panel, across, up, ends in zip(drawn, (0, 1, 0), (2, 2, 1), (["L", "R"], ["P", "A"], ["L", "R"]), strict=True):
        (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
        assert left < PEAK[across] < right
        assert low < PEAK[up] < high
        image = panel.images[-1]
        assert (image.origin, tuple(image.get_extent())) == ("lower", (left, right, low, high))
        pixels = image.get_array()
        row, column = np.unravel_index(np.argmax(pixels), pixels.shape)
        assert pixels[row, column] == pytest.approx(model.components_.max())
        assert left + (column + 0.5) * (right - left) / pixels.shape[1] == pytest.approx(PEAK[across])
        assert low + (row + 0.5) * (high - low) / pixels.shape[0] == pytest.approx(PEAK[up])
        assert [text.get_text() for text in sorted(panel.texts, key=lambda text: text.get_position())] == ends
        assert len(panel.images) == (1 if mask is None else 2)
    assert drawn[0].get_xlim() == (-81, 81)
    assert drawn[1].get_xlim() == (-111.5, 77.5)
    assert drawn[2].get_ylim() == (-111.5, 77.5)


def test_left_is_drawn_on_the_left():
    """The pixels of the page, not only the coordinates of the plot."""
    figure = gallery(model_at(), labels=False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    dark = np.asarray(canvas.buffer_rgba())[..., :3].max(axis=2) < 60
    for panel, x, y in zip(figure.axes[0].child_axes, (0.26, 0.84, 0.26), (0.5, 0.5, 0.84), strict=True):
        x0, y0, x1, y1 = panel.get_window_extent().extents
        row, column = dark.shape[0] - (y0 + y * (y1 - y0)), x0 + x * (x1 - x0)
        assert dark[int(row) - 8 : int(row) + 8, int(column) - 8 : int(column) + 8].any()
        assert not dark[int(row) - 8 : int(row) + 8, int(x0 + x1 - column) - 8 : int(x0 + x1 - column) + 8].any()


def test_template_is_drawn_only_in_its_own_space(monkeypatch):
    moved = TURNED.copy()
    moved[0, 3] += 100
    turn = np.eye(4)
    turn[:2, :2] = [[0.96, -0.28], [0.28, 0.96]]
    inside = mni_mask()
    for affine, peak in ((moved, (60.0, 49, 6)), (turn @ TURNED, (turn @ [*PEAK, 1])[:3])):
        assert [len(panel.images) for panel in panels(model_at(peak, affine, inside))] == [1, 1, 1]
    monkeypatch.setitem(sys.modules, "nilearn.datasets", None)
    assert [len(panel.images) for panel in panels(model_at(mask=inside))] == [1, 1, 1]


def test_orientation_is_claimed_only_if_known(monkeypatch):
    model = model_at()
    page = report(model)
    assert "Coronal, sagittal and axial slices" in page
    assert "<small>(-40, 49, 6) mm</small>" in page
    page = report(model.components_, shape=SHAPE)  # an array has no affine
    assert "The slice at the z index" in page
    assert not any(word in page for word in ("axial", "front", "Coronal"))
    singular = model_at().keep(origin=Brain(np.diag([1.0, 1, 0, 1]), SHAPE))
    assert gallery(singular).axes[0].get_title() == "part 0, z = 53"
    monkeypatch.setitem(sys.modules, "nibabel", None)
    assert gallery(model).axes[0].get_title() == "part 0, z = 53"

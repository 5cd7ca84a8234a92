"""Every format comes back as it went."""

import gzip
import math
from contextlib import nullcontext
from dataclasses import replace

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import tifffile
from filemakers import AFFINE, dense, save_images, save_matrix, save_nifti, some_brains  # noqa: F401  (fixtures)
from hostile_files import png, written
from PIL import Image

from partwise.data import as_data
from partwise.io import Table, check_target, convert, read, write_activations, write_components
from partwise.io.table import LazyRows
from partwise.io.write import DATA

N, M = 7, 5
SAMPLES, FEATURES = tuple(f"s{i}" for i in range(N)), tuple(f"f,{j}" for j in range(M))  # a comma needs quoting


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((N, M)) * (rng.random((N, M)) < 0.6)


@pytest.mark.parametrize("kind", ["dense", "sparse", "on disk"])
@pytest.mark.parametrize("ending", DATA)
def test_what_is_written_is_read(X, tmp_path, ending, kind):
    there = {"dense": X, "sparse": sp.csr_array(X), "on disk": LazyRows(X.shape, X.dtype, lambda rows: X[rows])}[kind]
    convert(Table(there, "made up", "nowhere", SAMPLES, FEATURES), tmp_path / f"x{ending}")
    table = read(tmp_path / f"x{ending}")
    np.testing.assert_array_equal(dense(table.X), X)
    if ending in (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".npz", ".h5ad"):
        assert (table.sample_names, table.feature_names) == (SAMPLES, FEATURES)
    np.testing.assert_array_equal(as_data(table.X).vectors(0, np.arange(N)).T, X)
    turned = read(tmp_path / f"x{ending}", transpose=True)
    np.testing.assert_array_equal(dense(turned.X), X.T)
    assert (turned.sample_names, turned.feature_names) == (table.feature_names, table.sample_names)
    assert [path.name for path in tmp_path.iterdir()] == [f"x{ending}"]  # nothing else is left behind


@pytest.mark.parametrize("kind", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("ending", [".mtx", ".mtx.gz", ".mat"])
def test_matrices_that_scipy_wrote(X, tmp_path, ending, kind):
    save_matrix(tmp_path / f"x{ending}", kind(X))
    for transpose, expected in ((False, X), (True, X.T)):
        np.testing.assert_array_equal(dense(read(tmp_path / f"x{ending}", transpose=transpose).X), expected)


@pytest.mark.parametrize("ending", [".npy", ".zarr", ".h5"])
def test_what_can_stay_on_disk_does(X, tmp_path, ending):
    convert(Table(X, "made up", "nowhere"), tmp_path / f"x{ending}")
    for transpose in (False, True):
        assert read(tmp_path / f"x{ending}", transpose=transpose).lazy


def test_images_in_an_array(tmp_path, rng):
    images = rng.random((4, 3, 2))
    np.save(tmp_path / "x.npy", images)
    np.savez(tmp_path / "x.npz", images=images)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["deep/images"] = images
    for name in ("x.npy", "x.npz", "x.h5:/deep/images"):
        table = read(str(tmp_path / name))
        assert table.part_shape == (3, 2)
        np.testing.assert_array_equal(dense(table.X), images.reshape(4, 6))


@pytest.mark.parametrize(
    ("text", "samples", "features", "first"),
    [
        ("id,a,b\nx,1,2\ny,3,4\n", ("x", "y"), ("a", "b"), 1),
        ("id,a,b\n1,1,2\n2,3,4\n", ("1", "2"), ("a", "b"), 1),
        (",a,b\n1,1,2\n2,3,4\n", ("1", "2"), ("a", "b"), 1),
        ("a,b\nx,1,2\ny,3,4\n", ("x", "y"), ("a", "b"), 1),  # as R writes it
        ("a,b\n1,2\n3,4\n", None, ("a", "b"), 1),
        ("1,2\n3,4\n", None, None, 1),
        ("x,1,2\ny,3,4\n", None, ("x", "1", "2"), None),  # a header, by the rule; and then y is no number
        ("a;b\n1;2\n3;4\n", None, ("a", "b"), 1),
        ("\ufeffa\tb\r\n1\t2\r\n3\t4\r\n", None, ("a", "b"), 1),
        ('"a ""x""","b\n"\n1,2\n', None, ('a "x"', "b\n"), 1),
    ],
)
def test_tables_of_all_sorts(tmp_path, text, samples, features, first):
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    if first is None:
        with pytest.raises(ValueError, match=r"x\.csv"):
            read(tmp_path / "x.csv", row_names=False)
        return
    table = read(tmp_path / "x.csv")
    assert (table.sample_names, table.feature_names) == (samples, features)
    assert table.X[0, 0] == first


@pytest.mark.parametrize("header", ["", "two lines\nof comments", "n " * 5000])
@pytest.mark.parametrize("delimiter", [" ", "   ", "\t"])
@pytest.mark.parametrize("width", [1, 3, 300])
@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_what_savetxt_writes(tmp_path, rng, header, delimiter, width, ending):
    X = rng.random((2, width))
    np.savetxt(tmp_path / f"x{ending}", X, header=header, delimiter=delimiter)
    table = read(tmp_path / f"x{ending}")
    np.testing.assert_array_equal(table.X, X)
    assert table.feature_names is None


def test_other_tables_in_txt(tmp_path):
    for text, features, first in (
        ("a,b\n1,2\n", ("a", "b"), [1, 2]),
        ("1\t2\n", None, [1, 2]),
        ("1;2\n", None, [1, 2]),
        ("# a,b\n1,2\n", ("# a", "b"), [1, 2]),
        ("a name\n1\n", ("a name",), [1]),
    ):
        (tmp_path / "x.txt").write_text(text)
        table = read(tmp_path / "x.txt")
        assert (table.feature_names, table.X[0].tolist()) == (features, first)


def test_row_names_that_are_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("nr,a,b\n1,2,3\n4,5,6\n")
    assert read(tmp_path / "x.csv").shape == (2, 3)
    table = read(tmp_path / "x.csv", row_names=True)
    assert (table.sample_names, table.feature_names) == (("1", "4"), ("a", "b"))


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize(
    ("genes", "names"), [("id0\tA\nid1\tB\n", ("A", "B")), ("id0\tA\nid1\tA\n", ("id0", "id1")), ("A\nB\n", ("A", "B"))]
)
def test_10x(tmp_path, gz, genes, names):
    counts = np.array([[1, 0, 2], [0, 3, 0]])  # genes × cells
    write = (lambda path, data: path.write_bytes(gzip.compress(data))) if gz else type(tmp_path).write_bytes
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sp.coo_array(counts))
    write(tmp_path / f"matrix.mtx{gz}", (tmp_path / "matrix.mtx").read_bytes())
    write(tmp_path / f"barcodes.tsv{gz}", b"c0\nc1\nc2\n")
    write(tmp_path / f"features.tsv{gz}", genes.encode())
    if gz:
        (tmp_path / "matrix.mtx").unlink()
    table = read(tmp_path)
    np.testing.assert_array_equal(dense(table.X), counts.T)
    assert (table.sample_names, table.feature_names) == (("c0", "c1", "c2"), names)


def test_10x_in_hdf5(tmp_path, X):
    genes = sp.csc_array(X.T)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        group = file.create_group("matrix")
        for name in ("data", "indices", "indptr", "shape"):
            group[name] = getattr(genes, name)
        group["barcodes"] = [name.encode() for name in SAMPLES]
        group["features/name"], group["features/id"] = (list(map(str.encode, FEATURES)) for _ in range(2))
    table = read(tmp_path / "x.h5")
    np.testing.assert_array_equal(dense(table.X), X)
    assert (table.sample_names, table.feature_names) == (SAMPLES, FEATURES)


@pytest.mark.parametrize("sparse", [False, True])
def test_matlab_73(tmp_path, X, sparse):
    with h5py.File(tmp_path / "x.mat", "w", userblock_size=512) as file:
        if sparse:
            csc, group = sp.csc_array(X), file.create_group("X")
            group.attrs["MATLAB_sparse"] = N
            group["data"], group["ir"], group["jc"] = csc.data, csc.indices, csc.indptr
        else:
            file["X"] = X.T  # columns one after the other
    with (tmp_path / "x.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    np.testing.assert_array_equal(dense(read(tmp_path / "x.mat").X), X)


@pytest.mark.parametrize("ending", [".png", ".pgm", ".jpg"])
def test_images(tmp_path, rng, ending):
    pixels = rng.integers(0, 256, (12, 4, 3), dtype=np.uint8)
    save_images(tmp_path, pixels, ending)
    for source in (tmp_path, str(tmp_path / f"*{ending}"), [tmp_path / f"i{i}{ending}" for i in range(12)]):
        table = read(source)
        assert (table.shape, table.part_shape) == ((12, 12), (4, 3))
        assert table.sample_names == tuple(f"i{i}{ending}" for i in range(12))  # i2 before i10
        if ending != ".jpg":
            np.testing.assert_array_equal(table.X, pixels.reshape(12, 12) / 255)


RAMP = np.linspace(0, 1, 20).reshape(5, 4)
COLOURS = np.stack([RAMP, RAMP / 2, RAMP / 3], axis=2)


def eight(values):
    return np.round(255 * values).astype(np.uint8)


def sixteen(values):
    return np.round(65535 * values).astype(np.uint16)


def test_images_of_8_and_16_bits_have_one_scale(tmp_path):
    save_images(tmp_path, [eight(RAMP), sixteen(RAMP)])
    np.testing.assert_array_equal(read(tmp_path).X, [eight(RAMP).ravel() / 255, sixteen(RAMP).ravel() / 65535])


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"bigtiff": True}, {"byteorder": ">"}])
@pytest.mark.parametrize(
    "values",
    [
        RAMP,
        1000 * RAMP.astype(np.float32),
        RAMP.astype(np.float16),
        (1e6 * RAMP).astype(np.uint32),
        (1000 * RAMP).astype(np.int16),
    ],
    ids=lambda values: str(values.dtype),
)
def test_tiff_keeps_the_values_of_science(tmp_path, values, options):
    tifffile.imwrite(tmp_path / "x.tif", values, **options)
    np.testing.assert_array_equal(read(tmp_path / "x.tif").X, values.reshape(1, 20))


@pytest.mark.parametrize("values", [sixteen(RAMP), RAMP.astype(np.float32)], ids=["16", "float"])
def test_a_compression_that_only_pillow_knows(tmp_path, values):
    Image.fromarray(values).save(tmp_path / "x.tif", compression="tiff_lzw")
    expected = values / 65535 if values.dtype == np.uint16 else values
    np.testing.assert_array_equal(read(tmp_path / "x.tif").X, expected.reshape(1, 20))


@pytest.mark.parametrize("depth", [eight, sixteen, np.float32])
def test_pages_are_samples(tmp_path, depth):
    pages = depth(np.stack([RAMP, RAMP**2, RAMP**3]))
    tifffile.imwrite(tmp_path / "x.tif", pages, photometric="minisblack")
    tifffile.imwrite(tmp_path / "y.tif", pages[1])
    table = read(tmp_path)
    assert table.sample_names == ("x.tif[0]", "x.tif[1]", "x.tif[2]", "y.tif")
    expected = pages / np.iinfo(pages.dtype).max if pages.dtype.kind == "u" else pages
    np.testing.assert_array_equal(table.X, expected[[0, 1, 2, 1]].reshape(4, 20))


def test_previews_are_not_samples(tmp_path):
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        file.write(sixteen(RAMP))
        file.write(sixteen(RAMP[::2, ::2]), subfiletype=1)
    assert read(tmp_path / "x.tif").shape == (1, 20)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(tmp_path, orientation):
    exif = Image.Exif()
    exif[274] = orientation
    upright = {
        2: np.fliplr,
        3: lambda image: np.rot90(image, 2),
        4: np.flipud,
        5: np.transpose,
        6: lambda image: np.rot90(image, -1),
        7: lambda image: np.rot90(image, 2).T,
        8: np.rot90,
    }.get(orientation, np.asarray)(RAMP)
    for name, depth in (("x.png", eight), ("x.tif", eight), ("y.tif", sixteen), ("x.jpg", eight)):
        Image.fromarray(depth(RAMP)).save(tmp_path / name, exif=exif)
        table = read(tmp_path / name)
        assert table.part_shape == upright.shape
        np.testing.assert_allclose(table.X[0], upright.ravel(), atol=0.1 if name == "x.jpg" else 0.002)


@pytest.mark.parametrize(
    ("name", "depth", "channels"),
    [("x.png", eight, 3), ("x.png", eight, 4), ("x.tif", eight, 3), ("x.tif", sixteen, 3), ("x.tif", sixteen, 4)],
)
def test_colours_become_grey_or_stay(tmp_path, name, depth, channels):
    pixels = depth(np.concatenate([COLOURS, RAMP[:, :, None]], axis=2)[:, :, :channels])
    if depth is eight:
        Image.fromarray(pixels).save(tmp_path / name)
    else:
        tifffile.imwrite(tmp_path / name, pixels, photometric="rgb")
    with pytest.warns(UserWarning, match=r"colours are converted to grey \(colour=True keeps them\)") as caught:
        grey = read(tmp_path)
    assert len(caught) == 1
    assert ("transparency is ignored" in str(caught[0].message)) == (channels == 4)
    assert grey.part_shape == (5, 4)
    np.testing.assert_allclose(grey.X[0], (COLOURS @ [0.299, 0.587, 0.114]).ravel(), atol=0.004)
    with pytest.warns(UserWarning, match="transparency") if channels == 4 else nullcontext():
        table = read(tmp_path, colour=True)
    assert table.part_shape == (5, 4, 3)
    np.testing.assert_array_equal(table.X[0], pixels[:, :, :3].ravel() / np.iinfo(pixels.dtype).max)


def test_a_warning_speaks_for_all_images(tmp_path):
    save_images(tmp_path, [eight(COLOURS), eight(RAMP), eight(COLOURS)])
    with pytest.warns(UserWarning, match="grey") as caught:
        read(tmp_path)
    assert len(caught) == 1
    Image.fromarray(eight(RAMP)).convert("P").save(tmp_path / "i3.png", transparency=b"\0\1")
    with pytest.warns(UserWarning, match="transparency is ignored"):
        table = read(tmp_path, colour=True)
    assert table.shape == (4, 60)
    np.testing.assert_array_equal(table.X[1].reshape(20, 3).T, np.tile(eight(RAMP).ravel() / 255, (3, 1)))


def test_colours_of_16_bits_that_pillow_cuts(tmp_path):
    written(tmp_path / "x.png", png(1, 1, b"\0" + bytes([255, 128] * 3), bits=16, kind=2))
    with pytest.warns(UserWarning, match=r"x.png: colours of 16 bits are read at 8 bits \(TIFF keeps them\)$"):
        assert read(tmp_path / "x.png", colour=True).X.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3)])
def test_parts_as_images(tmp_path, rng, shape):
    parts = rng.random((3, math.prod(shape))) * [[1], [1e-3], [0]]
    table = Table(parts, "images", "nowhere", part_shape=shape)
    write_components(tmp_path / "p_%02d.tif", parts, table)
    write_components(tmp_path / "p%d.png", parts, table)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("p0.png", "p1.png", "p2.png"),
        *("p_00.tif", "p_01.tif", "p_02.tif"),
    ]
    exact = read(str(tmp_path / "*.tif"), colour=len(shape) == 3)
    assert exact.part_shape == shape
    np.testing.assert_array_equal(exact.X, parts.astype(np.float32))
    scaled = read(str(tmp_path / "*.png"), colour=len(shape) == 3).X
    np.testing.assert_allclose(scaled[:2], parts[:2] / parts[:2].max(axis=1, keepdims=True), atol=0.5 / 255 + 1e-9)
    assert not scaled[2].any()


def test_parts_that_are_no_images(tmp_path):
    table = Table(np.ones((2, 20)), "images", "nowhere", part_shape=(4, 5))
    for name in ("p.png", "%d_%d.png", "%s.tif", "%5%d.tif", "%99999d.png"):
        with pytest.raises(ValueError, match=r"the name needs one %d, as in parts_%d.png"):
            write_components(tmp_path / name, table.X, table)
    for shape in (None, (20,), (2, 5, 2)):
        with pytest.raises(ValueError, match="only if the data consists of images"):
            write_components(tmp_path / "p%d.png", table.X, replace(table, part_shape=shape))
    assert not list(tmp_path.iterdir())


def test_white_may_be_zero(tmp_path):
    tifffile.imwrite(tmp_path / "x.tif", sixteen(RAMP), photometric="miniswhite")
    np.testing.assert_allclose(read(tmp_path / "x.tif").X, 1 - sixteen(RAMP).reshape(1, 20) / 65535)


def test_nifti_there_and_back(brains, tmp_path):
    import nibabel

    paths, mask, volumes, inside = brains
    table = read(paths, mask=mask)
    np.testing.assert_array_equal(table.X, volumes[:, inside])
    assert (table.X.dtype, table.sample_names) == (np.float32, ("b0", "b1", "b2"))
    write_components(tmp_path / "parts.nii.gz", table.X[:2], table)
    image = nibabel.load(tmp_path / "parts.nii.gz")
    np.testing.assert_array_equal(image.affine, AFFINE)
    np.testing.assert_array_equal(np.moveaxis(image.get_fdata(), -1, 0), np.where(inside, volumes[:2], 0))
    whole = read(str(tmp_path / "b*.nii.gz"))
    assert (whole.shape, whole.part_shape) == ((3, 40), (4, 5, 2))
    np.testing.assert_array_equal(whole.origin.volumes(whole.X), volumes)
    four = save_nifti(tmp_path / "four.nii", np.moveaxis(volumes, 0, -1))
    np.testing.assert_array_equal(read(four, mask=mask).X, table.X)
    assert read(four).sample_names == ("four[0]", "four[1]", "four[2]")


def test_sound(tmp_path):
    import soundfile

    rate = 8000
    soundfile.write(tmp_path / "x.wav", np.sin(2 * np.pi * 1000 * np.arange(rate) / rate) / 2, rate)
    table = read(tmp_path / "x.wav", window=256, hop=64)
    assert table.shape[1] == len(table.feature_names) == 129
    assert table.feature_names[table.X[20:-20].mean(axis=0).argmax()] == "1000.0 Hz"
    assert table.sample_names[1].endswith(" s")
    assert read(tmp_path / "x.wav").shape[1] == 513


@pytest.mark.parametrize("layer", ["X", "layers/counts"])
@pytest.mark.parametrize("sparse", [False, True])
def test_h5ad_there_and_back(tmp_path, X, sparse, layer):
    import anndata

    adata = anndata.AnnData(sp.csr_matrix(X) if sparse else X, uns={"kept": 1}, layers={"counts": X + 1})
    adata.obs_names, adata.var_names = list(SAMPLES), list(FEATURES)
    adata.write_h5ad(tmp_path / "x.h5ad")
    table = read(f"{tmp_path / 'x.h5ad'}:{layer}")
    np.testing.assert_array_equal(dense(table.X), X + (layer != "X"))
    for name in ("x.h5ad", "y.h5ad"):  # beside what was there, and in another file
        write_components(tmp_path / name, X[:2], table, activations=X[:, :2], about={"n_iter": 3})
        back = anndata.read_h5ad(tmp_path / name)
        np.testing.assert_array_equal(back.varm["NMFs"], X[:2].T)
        np.testing.assert_array_equal(back.obsm["X_nmf"], X[:, :2])
        assert (back.uns["nmf"]["n_iter"], back.uns["kept"]) == (3, 1)
        np.testing.assert_array_equal(dense(back.X), X)


def test_a_large_h5ad_stays_on_disk(tmp_path, X, monkeypatch):
    import anndata

    monkeypatch.setattr("partwise.io.h5ad.LIMIT", 1)
    monkeypatch.setattr("partwise.io.h5ad.as_rows.__defaults__", (None, 1))
    for name, matrix in (("x.h5ad", X), ("y.h5ad", sp.csr_matrix(X))):
        anndata.AnnData(matrix).write_h5ad(tmp_path / name)
        table = read(tmp_path / name)
        assert table.lazy
        np.testing.assert_array_equal(as_data(table.X).vectors(0, np.arange(N)).T, X)


def test_parts_and_activations_as_tables(tmp_path, X):
    table = Table(X, "made up", "nowhere", SAMPLES, FEATURES)
    write_components(tmp_path / "parts.csv", X[:3], table)
    back = read(tmp_path / "parts.csv")
    np.testing.assert_array_equal(back.X, X[:3].T)
    assert (back.sample_names, back.feature_names) == (FEATURES, ("part_0", "part_1", "part_2"))
    write_activations(tmp_path / "activations.tsv.gz", X[:, :2], SAMPLES)
    back = read(tmp_path / "activations.tsv.gz")
    np.testing.assert_array_equal(back.X, X[:, :2])
    assert back.sample_names == SAMPLES
    write_components(tmp_path / "parts.npy", X[:3], table)
    write_components(tmp_path / "parts.h5ad", X[:3], table, activations=X[:, :3])
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npy"), X[:3])


def test_targets_that_cannot_be(tmp_path, X):
    table = Table(X, "made up", "nowhere")
    with pytest.raises(ValueError, match=r"parts.docx has an unsupported extension; supported here are .csv"):
        write_components(tmp_path / "parts.docx", X, table)
    with pytest.raises(ValueError, match="only if the data is NIfTI"):
        write_components(tmp_path / "parts.nii", X, table)
    (tmp_path / "folder.csv").mkdir()
    for name in ("folder.csv", "nowhere/x.csv"):
        with pytest.raises(OSError, match="cannot be written"):
            check_target(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.filterwarnings("ignore:.*encoding metadata", "ignore:.*very old version")
def test_h5ad_from_before_anndata_0_7(tmp_path):
    """Names and columns were compound data then."""
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = np.arange(12.0).reshape(4, 3)
        for place, letter, count in (("obs", "c", 4), ("var", "g", 3)):
            rows = [(f"{letter}{i}".encode(), i) for i in range(count)]
            file[place] = np.array(rows, dtype=[("index", "S10"), ("n", "i4")])
    table = read(tmp_path / "old.h5ad")
    np.testing.assert_array_equal(table.X, np.arange(12.0).reshape(4, 3))
    assert [*table.samples] == ["c0", "c1", "c2", "c3"]
    assert [*table.features] == ["g0", "g1", "g2"]

"""Every format comes back as it went; what is not what its name says is refused in one sentence, with its name."""

import gzip
import subprocess
import sys

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from partwise.data import as_data
from partwise.io import FORMATS, Table, check_target, convert, read, write_loadings, write_parts
from partwise.io.table import Brain, Rows
from partwise.io.write import DATA

N, M = 7, 5
SAMPLES, FEATURES = tuple(f"s{i}" for i in range(N)), tuple(f"f,{j}" for j in range(M))  # a comma needs quoting
AFFINE = np.diag([2.0, 2.0, 3.0, 1.0])


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((N, M)) * (rng.random((N, M)) < 0.6)


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X[: X.shape[0]])


@pytest.mark.parametrize("kind", ["dense", "sparse", "on disk"])
@pytest.mark.parametrize("ending", DATA)
def test_what_is_written_is_read(X, tmp_path, ending, kind):
    there = {"dense": X, "sparse": sp.csr_array(X), "on disk": Rows(X.shape, X.dtype, lambda rows: X[rows])}[kind]
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


def save_images(folder, pixels, ending=".png"):
    from PIL import Image

    for i, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"i{i}{ending}")


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


def test_images_of_16_bits_and_of_colours(tmp_path):
    save_images(tmp_path, [np.full((2, 2), 65535, dtype=np.uint16), np.full((2, 2, 3), 255, dtype=np.uint8)])
    np.testing.assert_allclose(read(tmp_path).X, 1)


def save_nifti(path, values, affine=AFFINE):
    import nibabel

    nibabel.Nifti1Image(np.asarray(values), affine).to_filename(path)
    return path


@pytest.fixture(name="brains")
def some_brains(tmp_path, rng):
    volumes = rng.random((3, 4, 5, 2)).astype(np.float32)
    inside = rng.random((4, 5, 2)) < 0.5
    paths = [save_nifti(tmp_path / f"b{i}.nii.gz", volume) for i, volume in enumerate(volumes)]
    return paths, save_nifti(tmp_path / "mask.nii", inside.astype(np.uint8)), volumes, inside


def test_nifti_there_and_back(brains, tmp_path):
    import nibabel

    paths, mask, volumes, inside = brains
    table = read(paths, mask=mask)
    np.testing.assert_array_equal(table.X, volumes[:, inside])
    assert (table.X.dtype, table.sample_names) == (np.float32, ("b0", "b1", "b2"))
    write_parts(tmp_path / "parts.nii.gz", table.X[:2], table)
    image = nibabel.load(tmp_path / "parts.nii.gz")
    np.testing.assert_array_equal(image.affine, AFFINE)
    np.testing.assert_array_equal(np.moveaxis(image.get_fdata(), -1, 0), np.where(inside, volumes[:2], 0))
    whole = read(str(tmp_path / "b*.nii.gz"))
    assert (whole.shape, whole.part_shape) == ((3, 40), (4, 5, 2))
    np.testing.assert_array_equal(whole.home.volumes(whole.X), volumes)
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
        write_parts(tmp_path / name, X[:2], table, activations=X[:, :2], about={"n_iter": 3})
        back = anndata.read_h5ad(tmp_path / name)
        np.testing.assert_array_equal(back.varm["NMFs"], X[:2].T)
        np.testing.assert_array_equal(back.obsm["X_nmf"], X[:, :2])
        assert (back.uns["nmf"]["n_iter"], back.uns["kept"]) == (3, 1)
        np.testing.assert_array_equal(dense(back.X), X)


def test_a_large_h5ad_stays_on_disk(tmp_path, X, monkeypatch):
    import anndata

    monkeypatch.setattr("partwise.io.cells.LIMIT", 1)
    monkeypatch.setattr("partwise.io.cells.as_rows.__defaults__", (None, 1))
    for name, matrix in (("x.h5ad", X), ("y.h5ad", sp.csr_matrix(X))):
        anndata.AnnData(matrix).write_h5ad(tmp_path / name)
        table = read(tmp_path / name)
        assert table.lazy
        np.testing.assert_array_equal(as_data(table.X).vectors(0, np.arange(N)).T, X)


def test_parts_and_loadings_as_tables(tmp_path, X):
    table = Table(X, "made up", "nowhere", SAMPLES, FEATURES)
    write_parts(tmp_path / "parts.csv", X[:3], table)
    back = read(tmp_path / "parts.csv")
    np.testing.assert_array_equal(back.X, X[:3].T)
    assert (back.sample_names, back.feature_names) == (FEATURES, ("part_1", "part_2", "part_3"))
    write_loadings(tmp_path / "loadings.tsv.gz", X[:, :2], SAMPLES)
    back = read(tmp_path / "loadings.tsv.gz")
    np.testing.assert_array_equal(back.X, X[:, :2])
    assert back.sample_names == SAMPLES
    write_parts(tmp_path / "parts.npy", X[:3], table)
    write_parts(tmp_path / "parts.h5ad", X[:3], table, activations=X[:, :3])
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npy"), X[:3])


def test_targets_that_cannot_be(tmp_path, X):
    table = Table(X, "made up", "nowhere")
    with pytest.raises(ValueError, match=r"parts.docx has an ending that cannot be written; known here are .csv"):
        write_parts(tmp_path / "parts.docx", X, table)
    with pytest.raises(ValueError, match="only where the data was NIfTI"):
        write_parts(tmp_path / "parts.nii", X, table)
    (tmp_path / "folder.csv").mkdir()
    for name in ("folder.csv", "nowhere/x.csv"):
        with pytest.raises(OSError, match="cannot be written"):
            check_target(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


# ---- what is not what its name says


ENDINGS = [ending for form in FORMATS for ending in form.endings if ending != ".zarr"]


@pytest.mark.parametrize("ending", [e for e in ENDINGS if not e.startswith((".csv", ".tsv", ".txt"))])
def test_a_text_by_another_name(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_text("these are not the numbers you are looking for\n" * 9)
    with pytest.raises(ValueError, match=rf"x\{ending}.* (can be read|unpacked|choose from)") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_arrays_by_each_others_names(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    np.savez(tmp_path / "y.npz", X=np.ones((2, 2)))
    for name, other in (("x.npy", "x.npz"), ("y.npz", "y.npy")):
        (tmp_path / name).rename(tmp_path / other)
        with pytest.raises(ValueError, match=rf"{other} is not a .* give it the ending .{name[-3:]}"):
            read(tmp_path / other)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_file(tmp_path, ending):
    (tmp_path / f"x{ending}").touch()
    with pytest.raises(ValueError, match=rf"x\{ending} is empty"):
        read(tmp_path / f"x{ending}")


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv.gz", ".mtx", ".mat", ".h5ad", ".h5"])
def test_a_file_that_is_cut_off(tmp_path, X, ending, share):
    path = tmp_path / f"x{ending}"
    convert(Table(X, "made up", "nowhere"), path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=rf"x\{ending}"):
        dense(read(path).X)


def test_random_bytes(tmp_path, rng):
    for ending in ENDINGS:
        path = tmp_path / f"x{ending}"
        for _ in range(3):
            path.write_bytes(rng.bytes(300))
            with pytest.raises(ValueError, match=rf"x\{ending}"):
                read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,four\n", "line 3, column 'b' is 'four', not a number"),
        ("id,a,b\nx,1,2\ny,3,-4\n", "feature b of sample y is -4"),
        ("a,b\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 cells, and line 2 has 3"),
        ("a,b\n", "a header, and nothing below it"),
        ("a,b,c\n1,2\n", "the header has 3 cells, and line 2 has 2"),
        ("\n\n", "is empty"),
        ("a,b\n0,5;1\n", "'5;1', not a number"),
    ],
)
def test_tables_that_are_none(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.csv")


def test_images_of_two_sizes(tmp_path):
    save_images(tmp_path, [np.ones((2, 3), dtype=np.uint8), np.ones((3, 2), dtype=np.uint8)])
    with pytest.raises(ValueError, match=r"i1.png is 2 × 3 pixels, and i0.png is 3 × 2: all images must have one size"):
        read(tmp_path)


def test_brains_that_do_not_fit(brains, tmp_path):
    paths, mask, volumes, _ = brains
    other = save_nifti(tmp_path / "other.nii", np.ones((4, 5, 3)))
    moved = save_nifti(tmp_path / "moved.nii", volumes[0], AFFINE + np.eye(4)[0])
    empty = save_nifti(tmp_path / "empty.nii", np.zeros((4, 5, 2), dtype=np.uint8))
    five = save_nifti(tmp_path / "five.nii", np.ones((2, 2, 2, 2, 2)))
    for source, given, message in (
        ([*paths, other], mask, r"other.nii has 4 × 5 × 3 voxels, and .*b0.nii.gz has 4 × 5 × 2: resample"),
        (paths, other, r"other.nii has 4 × 5 × 3 voxels"),
        ([*paths, moved], mask, r"moved.nii lies elsewhere than .*b0.nii.gz"),
        (paths, empty, "empty.nii has no voxel inside"),
        (five, None, "give 3-D images"),
        (paths, tmp_path / "nowhere.nii", "nowhere.nii is not a NIfTI image that can be read"),
    ):
        with pytest.raises(ValueError, match=message):
            read(source, mask=given)


def test_several_things_in_one_file(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((2, 2)), b=np.ones((3, 3)))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["g/b"], file["text"] = np.ones((2, 2)), np.ones((3, 3)), "hello"
    scipy.io.savemat(tmp_path / "x.mat", {"a": np.ones((2, 2)), "b": np.ones((3, 3)), "t": "text"})
    for name, inner in (("x.npz", "b"), ("x.h5", "/g/b"), ("x.mat", "b")):
        with pytest.raises(ValueError, match=rf"has 2 \w+s to choose from \(/?a, {inner}\): name one, as in .*{name}:"):
            read(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name} has no \w+ 'c'; it has /?a, {inner}"):
            read(f"{tmp_path / name}:c")
        assert read(f"{tmp_path / name}:{inner}").shape == (3, 3)


def test_what_is_not_there(tmp_path):
    for source, kind, message in (
        (tmp_path / "x.csv", FileNotFoundError, "there is no file .*x.csv"),
        (str(tmp_path / "*.png"), FileNotFoundError, "no file matches"),
        (tmp_path, ValueError, "is a folder without images"),
        ([], ValueError, "there is no file to read"),
    ):
        with pytest.raises(kind, match=message):
            read(source)


def test_what_does_not_go_together(tmp_path, X):
    for name in ("x.csv", "y.csv", "x.npy"):
        convert(Table(X, "made up", "nowhere"), tmp_path / name)
    (tmp_path / "x.xyz").write_text("1")
    for source, given, message in (
        ([tmp_path / "x.csv", tmp_path / "y.csv"], {}, "only images and NIfTI are read from several files"),
        ([tmp_path / "x.csv", tmp_path / "x.npy"], {}, "give files of one kind"),
        (tmp_path / "x.csv", {"mask": "m.nii"}, "mask is for NIfTI, and .*x.csv is table"),
        (tmp_path / "x.xyz", {}, "an ending that is not known; known are .npy"),
    ):
        with pytest.raises(ValueError, match=message):
            read(source, **given)
    with pytest.raises(TypeError, match="read does not take colour"):
        read(tmp_path / "x.csv", colour=1)


def test_sparse_matrices_of_all_formats(tmp_path, X):
    for form in ("csr", "csc", "coo", "dia", "bsr"):
        sp.save_npz(tmp_path / "x.npz", sp.coo_array(X).asformat(form))
        np.testing.assert_array_equal(dense(read(tmp_path / "x.npz").X), X)


def test_a_sparse_matrix_that_leads_out_of_memory(tmp_path, X):
    bad = sp.csr_array(X)
    bad.indices[3] = 10**8
    sp.save_npz(tmp_path / "x.npz", bad)
    with pytest.raises(ValueError, match=r"x.npz holds a damaged sparse matrix"):
        read(tmp_path / "x.npz")


def test_values_that_are_no_data(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2), dtype=complex))
    np.savez(tmp_path / "x.npz", x=np.array([["a", "b"]]))
    np.savez(tmp_path / "y.npz", x=np.ones((0, 3)))
    sp.save_npz(tmp_path / "z.npz", sp.csr_array([[0.0, 1.0], [0.0, -2.0]]))
    for name, message in (
        ("x.npy", "holds complex128, not real numbers"),
        ("x.npz", "not real numbers"),
        ("y.npz", r"shape \(0, 3\): nothing to find parts in"),
        ("z.npz", "feature 2 of sample 2 is -2"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("module", "ending", "extra"),
    [
        ("pandas", ".csv", "tables"),
        ("PIL.Image", ".png", "images"),
        ("nibabel", ".nii", "brain"),
        ("anndata", ".h5ad", "cells"),
        ("h5py", ".h5", "stored"),
        ("soundfile", ".wav", "sound"),
    ],
)
def test_an_extra_that_is_missing(tmp_path, monkeypatch, module, ending, extra):
    (tmp_path / f"x{ending}").write_text("something")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs \w+: pip install 'partwise\[{extra}\]'"):
        read(tmp_path / f"x{ending}")


def test_reading_imports_what_it_needs_only():
    code = "import sys, partwise.io; assert not {'pandas', 'h5py', 'anndata', 'nibabel', 'PIL'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_brain_without_a_mask():
    assert Brain(AFFINE, (2, 3, 4)).volumes(np.ones((5, 24))).shape == (5, 2, 3, 4)

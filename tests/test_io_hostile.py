"""What is not what its name says is refused in one sentence, with its name and, where it helps, the place."""

import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import tifffile
from filemakers import AFFINE, dense, save_images, save_matrix, save_nifti, some_brains  # noqa: F401  (fixtures)
from PIL import Image

import partwise as pw
from partwise.engine.origins import Brain
from partwise.io import FORMATS, Table, convert, read

N, M = 7, 5


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((N, M)) * (rng.random((N, M)) < 0.6)


ENDINGS = [ending for form in FORMATS for ending in form.endings if ending != ".zarr"]


@pytest.mark.parametrize("ending", [e for e in ENDINGS if not e.startswith((".csv", ".tsv", ".txt"))])
def test_a_text_by_another_name(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_text("these are not the numbers you are looking for\n" * 9)
    with pytest.raises(ValueError, match=rf"x\{ending}( cannot be read|.* choose from)") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_arrays_by_each_others_names(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    np.savez(tmp_path / "y.npz", X=np.ones((2, 2)))
    for name, other in (("x.npy", "x.npz"), ("y.npz", "y.npy")):
        (tmp_path / name).rename(tmp_path / other)
        with pytest.raises(ValueError, match=rf"{other} is not a .* rename it to .{name[-3:]}"):
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
    for kind in (np.asarray, sp.csc_array):
        save_matrix(path, kind(X))
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
        with pytest.raises(ValueError, match=rf"x\{ending}"):
            dense(read(path).X)


def test_a_matrix_that_is_cut_off_within_its_last_number(tmp_path):
    for form, values in (("array", "1 2\n1.5\n2.5E"), ("coordinate", "1 2 2\n1 1 1.5\n1 2 2.5E-")):  # SciPy would crash
        (tmp_path / "x.mtx").write_text(f"%%MatrixMarket matrix {form} real general\n{values}")
        with pytest.raises(ValueError, match=r"x\.mtx cannot be read: it is truncated"):
            read(tmp_path / "x.mtx")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.98])
@pytest.mark.parametrize("ending", [".nii", ".nii.gz", ".png", ".wav"])
def test_a_recording_that_is_cut_off(tmp_path, rng, ending, share):
    path = tmp_path / f"i0{ending}"
    if ending == ".png":
        save_images(tmp_path, rng.integers(0, 256, (1, 40, 40), dtype=np.uint8))
    elif ending == ".wav":
        pytest.importorskip("soundfile").write(path, rng.random(1500), 8000)
    else:
        save_nifti(path, rng.random((8, 8, 8)))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    if ending == ".wav" and share > 0.6:  # as much sound as there is
        assert read(path).shape[1] == 513
        return
    with pytest.raises(ValueError, match=rf"i0\{ending}"):
        read(path)


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
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 cells but line 2 has 3"),
        ("a,b\n", "has a header but no rows"),
        ("a,b,c\n1,2\n", "the header has 3 cells but line 2 has 2"),
        ("\n\n", "is empty"),
        ("hello\nworld\n", "has no column of numbers"),
        ("a,b\n0,5;1\n", "'5;1', not a number"),
        ("a;b\n0,5;1\n", "column 'a' is '0,5', not a number: write it with a decimal point"),
        ("a,b\n1,1_000\n", "column 'b' is '1_000', not a number: write it with a decimal point"),
        ("a,b\n5%,1\n7%,2\n", "column 'a' is '5%', not a number: write it with a decimal point"),
    ],
)
def test_tables_that_are_none(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.csv")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_tables_in_other_encodings(tmp_path, encoding):
    (tmp_path / "x.csv").write_text("größe,b\n1,2\n", encoding=encoding)
    with pytest.raises(pw.UnreadableError, match=r"x\.csv cannot be read: .*not in UTF-8: save it as UTF-8$"):
        read(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n3 4 5\n", r"x.txt: the number of columns changed from 2 to 3 at row 2$"),
        ("# a b\n1 2\n3 four\n", "x.txt: could not convert string 'four' to float64 at row 1, column 2$"),
        ("a b\n1 2\n", "x.txt has no column of numbers"),
        ("# nothing\n", "x.txt"),
    ],
)
def test_texts_that_are_no_tables(tmp_path, text, message):
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(pw.UnreadableError, match=message):
        read(tmp_path / "x.txt")


def test_images_of_two_sizes(tmp_path):
    save_images(tmp_path, [np.ones((2, 3), dtype=np.uint8), np.ones((3, 2), dtype=np.uint8)])
    with pytest.raises(
        ValueError, match=r"i1.png has 2 × 3 pixels but i0.png has 3 × 2: all images must have the same"
    ):
        read(tmp_path)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((4, 5, 2), {"planarconfig": "contig"}, "has 2 channels: save them as pages"),
        ((5, 4, 5), {"planarconfig": "separate"}, "has 5 channels: save them as pages"),
        ((3, 4, 5), {"truncate": True}, "has several images in one page"),
        ((16, 16, 16), {"volumetric": True, "tile": (16, 16, 16)}, "has several images in one page"),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_tiff_that_is_no_image(tmp_path, shape, options, message, dtype):
    tifffile.imwrite(tmp_path / "x.tif", np.ones(shape, dtype), photometric="minisblack", **options)
    with pytest.raises(pw.UnreadableError, match=rf"x\.tif {message}"):
        read(tmp_path / "x.tif")


def test_a_palette_of_16_bits(tmp_path):
    colours = np.zeros((3, 2**16), np.uint16)
    tifffile.imwrite(tmp_path / "x.tif", np.ones((4, 5), np.uint16), photometric="palette", colormap=colours)
    with pytest.raises(pw.UnreadableError, match=r"x\.tif has pages of kind PALETTE"):
        read(tmp_path / "x.tif")


def test_images_of_two_kinds(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.ones((2, 3), np.uint8))
    tifffile.imwrite(tmp_path / "b.tif", np.ones((2, 2, 3), np.float32), photometric="minisblack")
    with pytest.raises(pw.UnreadableError, match=r"b.tif\[0\] and a.tif have different kinds of values"):
        read(tmp_path)
    Image.fromarray(np.ones((2, 3, 3), np.uint8)).save(tmp_path / "a.tif", compression="tiff_lzw")
    with pytest.warns(UserWarning, match="grey"):
        read(tmp_path / "a.tif")
    content = (tmp_path / "a.tif").read_bytes()
    assert content.count(struct.pack("<3H", 8, 8, 8)) == 1  # bits per sample
    (tmp_path / "a.tif").write_bytes(content.replace(struct.pack("<3H", 8, 8, 8), struct.pack("<3H", 16, 16, 16)))
    with pytest.raises(pw.UnreadableError, match=r"channels of more than 8 bits in an unsupported compression"):
        read(tmp_path / "a.tif")


def test_brains_that_do_not_fit(brains, tmp_path):
    paths, mask, volumes, _ = brains
    other = save_nifti(tmp_path / "other.nii", np.ones((4, 5, 3)))
    moved = save_nifti(tmp_path / "moved.nii", volumes[0], AFFINE + np.eye(4)[0])
    empty = save_nifti(tmp_path / "empty.nii", np.zeros((4, 5, 2), dtype=np.uint8))
    five = save_nifti(tmp_path / "five.nii", np.ones((2, 2, 2, 2, 2)))
    for source, given, message in (
        ([*paths, other], mask, r"other.nii has 4 × 5 × 3 voxels but .*b0.nii.gz has 4 × 5 × 2: resample"),
        (paths, other, r"other.nii has 4 × 5 × 3 voxels"),
        ([*paths, moved], mask, r"moved.nii has a different affine than .*b0.nii.gz: resample"),
        (paths, empty, "empty.nii is zero everywhere"),
        (five, None, "give 3-D images"),
        (paths, tmp_path / "nowhere.nii", "nowhere.nii cannot be read: No such file"),
    ):
        with pytest.raises(ValueError, match=message):
            read(source, mask=given)


def test_several_things_in_one_file(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((2, 2)), b=np.ones((3, 3)))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["g/b"], file["text"] = np.ones((2, 2)), np.ones((3, 3)), "hello"
    scipy.io.savemat(tmp_path / "x.mat", {"a": np.ones((2, 2)), "b": np.ones((3, 3)), "t": "text"})
    for name, inner in (("x.npz", "b"), ("x.h5", "/g/b"), ("x.mat", "b")):
        with pytest.raises(
            ValueError, match=rf"has 2 \w+s to choose from \(/?a, {inner}\): select one, as in .*{name}:"
        ):
            read(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name} has no \w+ 'c'; it has /?a, {inner}"):
            read(f"{tmp_path / name}:c")
        assert read(f"{tmp_path / name}:{inner}").shape == (3, 3)


def test_what_is_not_there(tmp_path):
    for source, kind, message in (
        (tmp_path / "x.csv", FileNotFoundError, "there is no file .*x.csv"),
        (str(tmp_path / "*.png"), FileNotFoundError, "no file matches"),
        (tmp_path, ValueError, "is a folder without images"),
        ([], ValueError, "source is empty: give at least one file"),
    ):
        with pytest.raises(kind, match=message):
            read(source)


def test_what_does_not_go_together(tmp_path, X):
    for name in ("x.csv", "y.csv", "x.npy"):
        convert(Table(X, "made up", "nowhere"), tmp_path / name)
    (tmp_path / "x.xyz").write_text("1")
    for source, given, message in (
        ([tmp_path / "x.csv", tmp_path / "y.csv"], {}, "only images and NIfTI can be read from several files"),
        ([tmp_path / "x.csv", tmp_path / "x.npy"], {}, "give files of the same format"),
        (tmp_path / "x.csv", {"mask": "m.nii"}, "mask applies only to NIfTI; .*x.csv has the format 'table'"),
        (tmp_path / "x.xyz", {}, "an unknown extension; known extensions are .npy"),
    ):
        with pytest.raises(ValueError, match=message):
            read(source, **given)
    with pytest.raises(TypeError, match="read has no parameter palette"):
        read(tmp_path / "x.csv", palette=1)


def test_sparse_matrices_of_all_formats(tmp_path, X):
    for form in ("csr", "csc", "coo", "dia", "bsr"):
        sp.save_npz(tmp_path / "x.npz", sp.coo_array(X).asformat(form))
        np.testing.assert_array_equal(dense(read(tmp_path / "x.npz").X), X)


def test_a_sparse_matrix_that_leads_out_of_memory(tmp_path, X):
    bad = sp.csr_array(X)
    bad.indices[3] = 10**8
    sp.save_npz(tmp_path / "x.npz", bad)
    with pytest.raises(ValueError, match=r"x.npz cannot be read: its sparse matrix has indices outside 0 to 4"):
        read(tmp_path / "x.npz")


def test_values_that_are_no_data(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2), dtype=complex))
    np.savez(tmp_path / "x.npz", x=np.array([["a", "b"]]))
    np.savez(tmp_path / "y.npz", x=np.ones((0, 3)))
    sp.save_npz(tmp_path / "z.npz", sp.csr_array([[0.0, 1.0], [0.0, -2.0]]))
    for name, message in (
        ("x.npy", "has dtype complex128: real numbers"),
        ("x.npz", "real numbers are needed"),
        ("y.npz", r"shape \(0, 3\), not a nonempty"),
        ("z.npz", "feature 1 of sample 1 is -2"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("module", "ending", "extra"),
    [
        ("nibabel", ".nii", "brain"),
        ("h5py", ".h5ad", "cells"),
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
    heavy = {"pandas", "h5py", "anndata", "nibabel", "PIL", "tifffile"}
    code = f"import sys, partwise.io; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_brain_without_a_mask():
    assert Brain(AFFINE, (2, 3, 4)).volumes(np.ones((5, 24))).shape == (5, 2, 3, 4)

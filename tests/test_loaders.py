"""Loaders of data: PGM images, scans, faces and counts."""

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.loaders import load_newsgroups, load_pbmc, load_smri
from experiments.loaders.faces import CBCL, ORL, digest
from experiments.loaders.fetch import find
from experiments.loaders.pgm import read_pgm

PICTURE = np.arange(12).reshape(3, 4)
WIDE = PICTURE * 5000


@pytest.mark.parametrize(
    ("raw", "picture"),
    [
        (b"P5\n4 3\n255\n" + bytes(range(12)), PICTURE),
        (b"P5 4 3 11 " + bytes(range(12)) + b"\n", PICTURE),
        (b"P5 # one\n# two\n4 # three\n3\n# P2 9 9\n255# four\n" + bytes(range(12)), PICTURE),
        (b"P5\r\n4\t3\n255\n" + bytes(range(12)), PICTURE),
        (b"P5 4 3 65535\n" + WIDE.astype(">u2").tobytes(), WIDE),
        (b"P2 4 3 255\n" + b" ".join(b"%d" % v for v in range(12)), PICTURE),
        (b"P2\n4 3\n55000\n" + b"\n".join(b"%d # v" % v for v in WIDE.ravel()), WIDE),
        (b"P5 1 1 255\n#", np.array([[35]])),
        (b"P5 1 1 255\n\n", np.array([[10]])),
    ],
)
def test_pgm_images_round_trip(raw, picture):
    read = read_pgm(raw)
    assert read.dtype == (np.uint8 if picture.max() < 256 else np.uint16)
    assert read.dtype.isnative
    assert read.flags.writeable
    assert np.array_equal(read, picture)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not a PGM image"),
        (b"<!DOCTYPE html>", "it begins with b'<!DOCTYPE ht'"),
        (b"P6 1 1 255\n000", "not a PGM image"),
        (b"P5", "not a PGM image"),
        (b"P5 4 3", "not a PGM image"),
        (b"P5 -4 3 255\n", "not a PGM image"),
        (b"P5 99999999999999999999 1 255\n0", "not a PGM image"),
        (b"P5 " + b"#" * 10**6, "not a PGM image"),
        (b"P5 0 3 255\n", "none of these may be 0"),
        (b"P5 4 3 0\n" + bytes(12), "none of these may be 0"),
        (b"P5 4 3 65536\n" + bytes(24), "a maximum of 65536"),
        (b"P5 4 3 255\n" + bytes(11), "11 bytes for an image of 12"),
        (b"P5 4 3 256\n" + bytes(12), "12 bytes for an image of 24"),
        (b"P5 4 3 255\n" + bytes(13), "13 bytes for an image of 12"),
        (b"P5 999999999 999999999 255\n" + bytes(5), "5 bytes for an image of"),
        (b"P5 4 3 5\n" + bytes(range(12)), "a grey value of 11, above its maximum of 5"),
        (b"P2 2 1 255\n1", "1 words for an image of 2"),
        (b"P2 2 1 255\n1 -2", "2 words"),
        (b"P2 2 1 255\n1 x", "2 words"),
        (b"P2 2 1 255\n1 " + b"9" * 10**4, "2 words"),
        (b"P2 2 1 255\n1 256", "a grey value of 256"),
    ],
)
def test_a_file_that_is_not_an_image_is_rejected(raw, message):
    with pytest.raises(ValueError, match=message):
        read_pgm(raw, "x.pgm")


def smri(tmp_path, **changed):
    rng = np.random.default_rng(0)
    mask = rng.random((4, 5, 6)) < 0.5
    arrays = {"X": rng.integers(0, 256, (mask.sum(), 7), np.uint8), "mask": mask} | changed
    np.savez(tmp_path / "smri_ixi_gm185.npz", **arrays)
    return arrays


def test_scans_are_samples_by_voxels(tmp_path, monkeypatch):
    stored = smri(tmp_path)
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path))
    for path in (None, tmp_path, tmp_path / "smri_ixi_gm185.npz"):
        X, mask = load_smri(path)
        assert (X.dtype, X.flags.c_contiguous) == (np.float32, True)
        np.testing.assert_array_equal(X, (stored["X"].T / 255).astype(np.float32))
        np.testing.assert_array_equal(mask, stored["mask"])


@pytest.mark.parametrize(
    "changed", [{"mask": np.ones((2, 2, 2), bool)}, {"X": np.zeros((60, 7))}, {"X": np.zeros(60, np.uint8)}]
)
def test_malformed_scans_are_rejected(tmp_path, changed):
    smri(tmp_path, **changed)
    with pytest.raises(ValueError, match="a row for each voxel of the mask"):
        load_smri(tmp_path)


def test_missing_scans_raise_with_advice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(
        FileNotFoundError, match=r"data or .*cannot be downloaded: make it from .*IXI.*set PARTWISE_DATA to its folder"
    ):
        load_smri()
    with pytest.raises(FileNotFoundError, match="cannot be downloaded"):
        load_smri(tmp_path)


COUNTS = {"newsgroups.npz": (load_newsgroups, "topic"), "pbmc_facs.npz": (load_pbmc, "subpop")}


def counts(tmp_path, file, **changed):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.integers(0, 3, (5, 4), np.uint16))
    csr = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez(tmp_path / file, **csr | {COUNTS[file][1]: np.arange(5)} | changed)
    return X


@pytest.mark.parametrize("file", COUNTS)
def test_counts_are_sparse_with_a_label_for_each_sample(tmp_path, monkeypatch, file):
    stored = counts(tmp_path, file)
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path))
    for path in (None, tmp_path, tmp_path / file):
        X, labels = COUNTS[file][0](path)
        assert (X.format, X.dtype) == ("csr", np.float64)
        np.testing.assert_array_equal(X.toarray(), stored.toarray())
        np.testing.assert_array_equal(labels, np.arange(5))


@pytest.mark.parametrize("file", COUNTS)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shape": np.array([4, 4])}, "a label for each row"),
        ({"shape": np.array([5])}, "a label for each row"),
        ({"indptr": np.array([0, 1])}, "no valid CSR matrix"),
        ({"indices": np.array([9])}, "no valid CSR matrix"),
    ],
)
def test_malformed_counts_are_rejected(tmp_path, file, changed, message):
    counts(tmp_path, file, **changed)
    with pytest.raises(ValueError, match=message):
        COUNTS[file][0](tmp_path)


@pytest.mark.parametrize("file", COUNTS)
def test_missing_counts_raise_with_advice(tmp_path, file):
    with pytest.raises(FileNotFoundError, match=rf"{file} is not in .*cannot be downloaded: .*set PARTWISE_DATA"):
        COUNTS[file][0](tmp_path)


@pytest.mark.parametrize("faces", [ORL, CBCL], ids=lambda faces: faces.what)
def test_local_faces_equal_the_published_ones(faces):
    place = find(faces.places[0])
    if place is None:
        pytest.skip(f"{faces.places[0]} is not here")
    pictures = faces.read(place)
    assert digest(pictures[::-1]) == faces.digest
    if faces is ORL:  # in the published order, too: person by person
        known = "2e4844a9f4fa4397058f69d6208047170f2e9d399cda18b55c1e8d28f0a83431"
        assert hashlib.sha256(pictures.tobytes()).hexdigest() == known

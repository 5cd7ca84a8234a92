"""Test files and folders; import the fixtures into the test files that use them."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from partwise.io import Table, convert

AFFINE = np.diag([2.0, 2.0, 3.0, 1.0])


def dense(X):
    """X as a dense array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X[: X.shape[0]])


def save_matrix(path, X):
    """Write X in any single-matrix format, using SciPy for formats that `convert` does not write."""
    if path.suffix == ".mat":
        scipy.io.savemat(path, {"X": X})
    elif ".mtx" in path.suffixes:
        with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
            scipy.io.mmwrite(file, X, symmetry="general")
    else:
        convert(Table(X, "made up", "nowhere"), path)


def save_images(folder, pixels, ending=".png"):
    from PIL import Image

    for i, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"i{i}{ending}")


def save_nifti(path, values, affine=AFFINE):
    import nibabel

    nibabel.Nifti1Image(np.asarray(values), affine).to_filename(path)
    return path


QUICK = ["--max-iter", "15", "--tol", "1e-2", "--seed", "0", "--force", "--quiet"]


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((24, 3)) @ rng.random((3, 16)) + 0.1 * rng.random((24, 16))


@pytest.fixture(name="here")
def a_folder(tmp_path, X, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"s{i}" for i in range(24)], [f"f{j}" for j in range(16)]
    convert(Table(X, "made up", "nowhere", *map(tuple, names)), tmp_path / "x.csv")
    np.save(tmp_path / "x.npy", X)
    return tmp_path


@pytest.fixture(name="brains")
def some_brains(tmp_path, rng):
    volumes = rng.random((3, 4, 5, 2)).astype(np.float32)
    inside = rng.random((4, 5, 2)) < 0.5
    paths = [save_nifti(tmp_path / f"b{i}.nii.gz", volume) for i, volume in enumerate(volumes)]
    return paths, save_nifti(tmp_path / "mask.nii", inside.astype(np.uint8)), volumes, inside

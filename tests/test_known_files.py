"""`partwise fit` can read the components it writes as known components: by rows or columns, matched by name."""

import numpy as np
import pytest
from catalogues import one_at_a_time
from filemakers import save_nifti

import partwise as pw
from partwise.cli import main
from partwise.io import Table, convert

QUICK = ["-r", "4", "--max-iter", "3", "--tol", "1e-2", "--seed", "0", "--quiet"]
FEATURES = tuple("abcdefg")


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((12, 3)) @ rng.random((3, 7)) + 0.1 * rng.random((12, 7))


@pytest.fixture(name="here")
def a_folder(tmp_path, X, monkeypatch):
    """The same data with and without names."""
    monkeypatch.chdir(tmp_path)
    convert(Table(X, "made up", "nowhere", None, FEATURES), tmp_path / "x.csv")
    convert(Table(X, "made up", "nowhere", None, FEATURES), tmp_path / "x.h5ad")
    np.save("x.npy", X)
    return tmp_path


def kept(*arguments, out="again.pw"):
    """The components of a fit with known components."""
    assert main(["fit", *QUICK, *map(str, arguments), "--out", out]) == 0
    return pw.load(out).components_


@one_at_a_time(
    data=["x.csv", "x.npy", "x.h5ad"],
    name=["p.csv", "p.tsv.gz", "p.npy", "p.h5ad"],
    r=[4, 2, 7],  # seven parts of seven features: a square
)
def test_written_components_can_be_read_as_known(here, data, name, r):
    written = kept(data, "-r", r, "--components-out", name, out="first.pw")[:r]
    known = f"{name}:varm/NMFs" if name == "p.h5ad" else name
    np.testing.assert_array_equal(kept(data, "-r", r + 1, "--fixed-components", known)[:r], written)


def test_nifti_components_can_be_read_as_known(here, rng):
    inside = rng.random((3, 4, 2)) < 0.8
    for i in range(5):
        save_nifti(here / f"b{i}.nii", rng.random((3, 4, 2)))
    save_nifti(here / "mask.nii", inside.astype(np.uint8))
    written = kept("b?.nii", "--mask", "mask.nii", "-r", 2, "--components-out", "p.nii.gz", out="first.pw")
    found = kept("b?.nii", "--mask", "mask.nii", "-r", 3, "--fixed-components", "p.nii.gz")
    np.testing.assert_array_equal(found[:2].astype(np.float32), written.astype(np.float32))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("count", [2, 7])
def test_features_are_found_by_name(here, X, columns, count):
    order = np.array([3, 1, 0, 2, 6, 5, 4])
    table = Table(X[:count, order], "made up", "nowhere", None, tuple(FEATURES[j] for j in order))
    convert(table.transposed() if columns else table, here / "known.csv")
    np.testing.assert_array_equal(kept("x.csv", "-r", 7, "--fixed-components", "known.csv")[:count], X[:count])


def test_square_file_without_names_has_one_component_per_row(here, X):
    np.save("known.npy", X[:7])
    np.testing.assert_array_equal(kept("x.csv", "-r", 7, "--fixed-components", "known.npy"), X[:7])


@pytest.mark.parametrize(
    ("names", "shape", "said"),
    [
        ((None, None), (3, 5), "known.csv is 3 × 5: give each component as a row or a column of 7 values"),
        ((None, tuple("uvwxyz!")), (2, 7), "known.csv lacks 7 of the 7 features of x.csv, first 'a'"),
        ((None, (*FEATURES[:6], "z")), (2, 7), "lacks 1 of the 7 features of x.csv, first 'g'"),
        ((FEATURES[::-1], None), (7, 9), "--fixed-components has 9 rows for --components 4"),
        ((FEATURES, FEATURES), (7, 7), "do not show whether rows or columns are components"),
    ],
)
def test_mismatch_is_one_line(here, capsys, names, shape, said):
    convert(Table(np.ones(shape), "made up", "nowhere", *names), here / "known.csv")
    assert main(["fit", "x.csv", "--fixed-components", "known.csv", *QUICK]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (here / "x.pw").exists()


def test_unrelated_names_leave_the_orientation_open(here, capsys):
    convert(Table(np.ones((7, 7)), "made up", "nowhere", tuple("tuvwxyz"), tuple("hijklmn")), here / "known.csv")
    assert main(["fit", "x.npy", "--fixed-components", "known.csv", *QUICK]) == 2
    assert (
        "do not show whether rows or columns are components: use the feature names of x.npy" in capsys.readouterr().err
    )

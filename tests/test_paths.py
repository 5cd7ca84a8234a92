"""Paths on the command line: a missing file is reported in one line, and input is never overwritten."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from filemakers import save_images, save_matrix

import partwise as pw
from partwise.cli import main
from partwise.io import Table, convert, read

QUICK = ["-r", "2", "--max-iter", "3", "--tol", "1e-2", "--force", "--quiet"]
NOBODY = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is locked for root")


@pytest.fixture(name="here")
def a_folder(tmp_path, rng, monkeypatch):
    """Data files of all formats, a model, and folders that are named like files."""
    monkeypatch.chdir(tmp_path)
    X = rng.random((9, 6))
    for name in ("x.csv", "x.npy", "x.h5", "x.zarr", "x.h5ad"):
        convert(Table(X, "made up", "nowhere"), tmp_path / name)
    for folder in ("faces", "cells", "folder.pw", "folder.txt", "folder.csv", "folder.npy"):
        (tmp_path / folder).mkdir()
    save_images(tmp_path / "faces", rng.integers(0, 256, (5, 3, 2), dtype=np.uint8))
    save_matrix(tmp_path / "cells" / "matrix.mtx", sp.csr_array(X.T))
    for name, length in (("barcodes", 9), ("features", 6)):
        (tmp_path / "cells" / f"{name}.tsv").write_text("".join(f"{name}{i}\n" for i in range(length)))
    (tmp_path / "no.txt").write_bytes(b"\xff\xfe")
    pw.SparseNMF(2, max_iter=2, tol=0).fit(X).save("x.pw")
    return tmp_path


def everything():
    """All files with their modification times."""
    return sorted((str(path), path.stat().st_mtime_ns) for path in Path().rglob("*") if path.is_file())


def refused(arguments, capsys, code, *said):
    """Only one line is printed, and no file is written."""
    before = everything()
    assert main(arguments) == code
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("partwise: ")
    assert found.err.count("\n") == 1
    assert "Errno" not in found.err
    for words in said:
        assert words in found.err
    assert everything() == before


MODELS = [["show", "{}"], ["transform", "{}", "x.npy", "--out", "o.csv"], ["convert", "{}", "o.csv"]]
DATA = [
    ["info", "{}"],
    ["select", "{}", "--components", "2"],
    ["fit", "{}", "--force"],  # x.pw exists
    ["transform", "x.pw", "{}", "--out", "o.csv"],
    ["convert", "{}", "o.npy"],
    ["fit", "x.npy", "--fixed-components", "{}", "--force"],
]
TEXTS = [["fit", "x.npy", "--sparsity-file", "{}"]]
TARGETS = [
    ["show", "x.pw", "--png", "{}.png"],
    ["show", "x.pw", "--html", "{}.html"],
    ["demo", "--out", "{}.png"],
    ["fit", "x.npy", "--out", "{}.pw"],
    ["fit", "x.npy", "--checkpoint", "{}.pw"],
    ["select", "x.npy", "--components", "2", "--checkpoint", "{}.json"],
    ["convert", "x.pw", "{}.csv"],
]


@pytest.mark.parametrize(
    ("commands", "name", "said"),
    [
        (MODELS, "nope.pw", "there is no file"),
        (MODELS[:2], "x.pw/y.pw", "there is no file"),
        (MODELS, "folder.pw", "give the path of a file written by partwise"),
        (DATA, "nope.csv", "there is no file nope.csv: check its path"),
        (DATA, "nope*.csv", "no file matches nope*.csv: check its path"),
        (DATA, "folder*", "among several files"),
        (DATA, "x.npy/y.csv", "there is no file"),
        (DATA[:2], "", "there is no file ''"),
        (DATA, "folder.c*", "without images"),
        (DATA, "nope.h5:/X", "there is no file nope.h5"),
        (TEXTS, "nope.txt", "give a text file with one sparsity per line"),
        (TEXTS, "folder.txt", "give a text file with one sparsity per line"),
        (TEXTS, "no.txt", "not a text file (UTF-8)"),
        (TARGETS, "nope/y", "nope"),
        (TARGETS, "x.npy/y", "x.npy"),
    ],
)
def test_missing_file_is_one_line(here, capsys, commands, name, said):
    for command in commands:
        refused([word.format(name) for word in command], capsys, 1, re.split(r"[*:]", name)[0], said)


@NOBODY
@pytest.mark.parametrize(
    ("commands", "name"), [(MODELS, "x.pw"), (DATA, "x.csv"), (DATA, "faces"), (TEXTS, "no.txt"), (DATA, "x.npy")]
)
def test_unreadable_file_is_one_line(here, capsys, commands, name):
    (here / name).chmod(0)
    for command in commands:
        if "x.npy" not in command[:2] or name != "x.npy":
            refused([word.format(name) for word in command], capsys, 1, name, "cannot", "read")
    (here / name).chmod(0o700)


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: pw.load("nope.pw"), FileNotFoundError, "there is no file 'nope.pw': give the path of a file"),
        (lambda: pw.load("folder.pw"), ValueError, "folder.pw is not a regular file: give the path of a file"),
        (lambda: pw.io.read("nope.csv"), FileNotFoundError, "there is no file nope.csv: check its path"),
        (lambda: pw.ssnmf("nope.npy", 2), FileNotFoundError, "X='nope.npy' cannot be read: No such file"),
        (lambda: pw.SparseNMF(2).fit("folder.npy"), IsADirectoryError, "X='folder.npy' cannot be read: Is a directory"),
    ],
)
def test_missing_file_in_python(here, ask, error, said):
    with pytest.raises(error, match=said):
        ask()


def test_a_folder_by_glob_is_the_folder(here):
    np.testing.assert_array_equal(read("face*").X, read("faces").X)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["fit", "faces", "--png", "faces/i0.png"], "faces/i0.png"),
        (["fit", "faces/*.png", "--png", "faces/i1.png"], "faces/i1.png"),
        (["fit", "faces/i0.png", "faces/i1.png", "--png", "faces/i1.png"], "faces/i1.png"),
        (["fit", "x.h5:/X", "--out", "x.h5"], "x.h5"),
        (["convert", "x.h5:/X", "x.h5"], "x.h5"),
        (["convert", "x.h5ad:X", "x.h5ad"], "x.h5ad"),
        (["fit", "x.zarr", "--activations-out", "x.zarr/l.npy"], "x.zarr/l.npy"),
        (["fit", "cells", "--activations-out", "cells/barcodes.tsv"], "cells/barcodes.tsv"),
        (["fit", "x.h5ad", "--transpose", "--components-out", "x.h5ad"], "x.h5ad"),
        (["fit", "x.npy", "--fixed-components", "x.h5ad", "--components-out", "x.h5ad"], "x.h5ad"),
        (["fit", "x.npy", "--fixed-components", "x.h5:/X", "--out", "x.h5"], "x.h5"),
        (["transform", "x.pw", "*.npy", "--out", "x.npy"], "x.npy"),
        (["select", "x.csv", "--components", "2", "--out", "x.csv"], "x.csv"),
        (["select", "faces", "--components", "2", "--png", "faces/i2.png"], "faces/i2.png"),
        (["show", "link.png", "--png", "link.png"], "link.png"),
        (["show", "x.pw", "--html", "link.html"], "link.html"),
        (["convert", "x.pw", "link.csv"], "link.csv"),
    ],
)
def test_input_is_never_overwritten(here, capsys, arguments, name):
    for ending in ("png", "html", "csv"):
        (here / f"link.{ending}").symlink_to("x.pw")
    if "*.npy" in arguments:
        (here / "folder.npy").rmdir()
    refused(arguments, capsys, 2, f"{name} is an input and would be overwritten")


@pytest.mark.parametrize("ending", [".docx", ".csv", ""])
@pytest.mark.parametrize("option", ["--png", "--html"])
def test_show_writes_pictures_and_pages(here, capsys, option, ending):
    refused(["show", "x.pw", option, f"y{ending}"], capsys, 1, "an unsupported extension")


def test_components_can_be_written_into_their_own_h5ad(here):
    assert main(["fit", "x.h5ad:X", "--components-out", "x.h5ad", *QUICK]) == 0
    np.testing.assert_array_equal(read("x.h5ad").X, read("x.npy").X)

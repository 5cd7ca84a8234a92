"""Commands that cannot be carried out: what is wrong is one line, and nothing is left behind."""

import sys

import numpy as np
import pytest
from filemakers import QUICK, a_folder, numbers  # noqa: F401  (fixtures)

import partwise as pw
from partwise.cli import main


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "x.csv", "--sparsity", "1.2"], 2, "--sparsity 1.2 is outside [0, 1]"),
        (["fit", "x.csv", "--sparsity", "0.4:0.2"], 2, "--sparsity 0.4:0.2 has lo > hi: give 0.2:0.4"),
        (
            ["fit", "x.csv", "--nonzeros", "3"],
            2,
            "recipe ssnmf does not accept --nonzeros in the recipe options, only --activation-sweeps",
        ),
        (["fit", "x.csv", "--recipe", "l0"], 2, "recipe l0 needs --nonzeros"),
        (["fit", "x.csv", "--components", "0"], 2, "--components 0"),
        (["fit", "x.csv", "--sparsity-file", "bad.txt"], 2, "bad.txt, line 2: 'much' is not a sparsity"),
        (["fit", "x.csv", "--sparsity-file", "none.txt"], 2, "none.txt contains no sparsity"),
        (
            ["fit", "x.csv", "--fixed-components", "narrow.csv"],
            2,
            "narrow.csv is 1 × 2: give each component as a row or a column of 16",
        ),
        (["fit", "x.csv", "--fixed-components", "tall.npy", "-r", "1"], 2, "--fixed-components has 2 rows"),
        (["fit", "x.csv", "--fixed-activations", "narrow.csv"], 2, "give one column of 24 numbers"),
        (["fit", "x.csv", "--fixed-components", "nowhere.npy"], 1, "there is no file nowhere.npy"),
        (["fit", "x.csv", "--sample-weight", "narrow.csv"], 2, "narrow.csv lacks 24 of the 24 samples of x.csv"),
        (["fit", "x.csv", "--feature-weight", "tall.npy"], 2, "give one weight for each of the 16 features"),
        (["fit", "x.csv", "--weights", "narrow.csv"], 2, "narrow.csv lacks 14 of the 16 features of x.csv"),
        (["fit", "x.csv", "--weights", "tall.npy", "--out", "tall.npy"], 2, "tall.npy is an input"),
        (["fit", "x.csv", "--max-activation", "0"], 1, "--max-activation 0.0: give a number from 1e-9 to 1e9"),
        (["fit", "minus.csv", "--negative", "error"], 1, "or set --negative allow to fit it as it is"),
        (["fit", "x.npy", "--out", "x.npy"], 2, "x.npy is an input and would be overwritten"),
        (["fit", "x.csv", "--activations-out", "./x.csv"], 2, "x.csv is an input"),
        (
            ["fit", "x.csv", "--activations-out", "p.csv", "--components-out", "p.csv"],
            2,
            "two outputs are the same file",
        ),
        (["fit", "x.csv", "--checkpoint", "c.pw", "--out", "c.pw"], 2, "c.pw is the checkpoint"),
        (["transform", "x.pw", "x.csv", "--out", "x.csv"], 2, "x.csv is an input"),
        (["convert", "x.npy", "./x.npy"], 2, "x.npy is an input"),
        (["fit", "x.csv", "--max-iter", "0"], 1, "--max-iter 0"),
        (["fit", "nowhere.csv"], 1, "there is no file nowhere.csv"),
        (["fit", "minus.csv"], 1, "minus.csv: feature b of sample 1 is -1"),
        (["fit", "words.csv"], 1, "line 2, column 'b' is 'two', not a number"),
        (["fit", "x.csv", "--out", "nowhere/x.pw"], 1, "nowhere is not a writable folder"),
        (["fit", "x.csv", "--components-out", "p.xyz"], 1, "p.xyz has an unsupported extension"),
        (["fit", "x.csv", "--components-out", "p.nii"], 1, "only if the data is NIfTI"),
        (["fit", "x.csv", "--mask", "m.nii"], 1, "mask applies only to NIfTI"),
        (["info", "x.csv", "-r", "0"], 2, "--components 0: give a whole number of at least 1"),
        (["info", "x.csv", "--components", "-2"], 2, "--components -2: give a whole number of at least 1"),
        (["info", "x.csv", "--seed", "-1"], 2, "--seed -1: give None, a whole number of at least 0"),
        (["info", "text.npy"], 1, "text.npy cannot be read: it is not a .npy file"),
        (["transform", "x.csv", "x.csv", "--out", "y.csv"], 1, "x.csv"),
        (["transform", "x.pw", "narrow.csv", "--out", "y.csv"], 1, "narrow.csv lacks 14 of the 16 features"),
        (["transform", "tensor.pw", "x.csv", "--out", "y.csv"], 1, "tensor.pw holds a SparseCP, a tensor model"),
        (["convert", "tensor.pw", "y.csv"], 1, "use partwise.load in Python"),
        (["show", "tensor.pw"], 1, "a tensor model"),
        (["convert", "x.csv", "y.docx"], 1, "y.docx has an unsupported extension"),
    ],
)
def test_what_is_wrong_is_one_line(here, capsys, arguments, code, message):
    (here / "bad.txt").write_text("0.5\nmuch\n")
    (here / "none.txt").write_text("# nothing\n")
    (here / "minus.csv").write_text("a,b\n1,2\n3,-1\n")
    (here / "words.csv").write_text("a,b\n1,two\n")
    (here / "narrow.csv").write_text("f1,f0\n1,2\n")
    (here / "text.npy").write_text("hello")
    np.save(here / "tall.npy", np.ones((16, 2)))
    pw.SparseCP(2, max_iter=2, tol=0).fit(np.ones((4, 3, 2))).save("tensor.pw")
    if "x.pw" in arguments:
        assert main(["fit", "x.csv", "-r", "2", *QUICK]) == 0
    before = sorted(path.name for path in here.iterdir())
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("partwise: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "DATA"),
        (["fit", "x.csv", "--sparsity", "much"], "'much' is not a sparsity: give a number from 0 to 1"),
        (["fit", "x.csv", "--sparsity", "1:2:3"], "an interval such as 0.2:0.4"),
        (["fit", "-s", "0.5", "x.csv"], "'x.csv' is not a sparsity: give a number from 0 to 1 such as 0.7"),
        (["fit", "-s", "0.5", "x.csv"], "DATA comes before the options"),
        (["fit", "x.csv", "--recipe", "magic"], "invalid choice: 'magic'"),
        (["fit", "x.csv", "--sparsity", "0.3", "--sparsity-file", "f"], "not allowed with"),
        (["transform", "x.pw", "x.csv"], "--out"),
    ],
)
def test_commands_that_cannot_be_meant(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--debug", "info", "minus.csv"], ["info", "--debug", "minus.csv"]])
def test_debug_shows_where(here, arguments):
    (here / "minus.csv").write_text("a\n-1\n")
    with pytest.raises(ValueError, match="-1"):
        main(arguments)


def test_a_missing_extra_is_found_before_the_fit(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    assert main(["fit", "x.npy", "--components-out", "p.h5ad"]) == 1
    assert capsys.readouterr().err == "partwise: writing p.h5ad needs anndata: pip install 'partwise[cells]'\n"
    assert not (here / "x.pw").exists()


def test_warnings_are_lines(here, capsys):
    assert main(["fit", "x.csv", "-r", "2", "--max-iter", "2", "--tol", "1e-9"]) == 0
    (said,) = [line for line in capsys.readouterr().err.splitlines() if ": iteration " not in line]
    assert said.startswith("partwise: reached --max-iter 2 before converging")

"""Commands lose nothing: an output is refused before the work, or written, where it was asked for or elsewhere."""

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from filemakers import QUICK, a_folder, numbers  # noqa: F401  (fixtures)

import partwise as pw
from partwise.cli import main
from partwise.engine.summary import summary
from partwise.io import read

FIT = ["fit", "x.npy", "-r", "2", *QUICK]
OUTPUTS = {
    "--out": ".pw",
    "--components-out": ".csv",
    "--activations-out": ".npy",
    "--png": ".png",
    "--checkpoint": ".ck",
}


@pytest.fixture
def no_fit(monkeypatch):
    def fit(*args):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr(pw.SparseNMF, "fit_transform", fit)


def refused(capsys, arguments, code, *said):
    """One line is said, and nothing is written."""
    before = sorted(os.listdir())
    assert main(arguments) == code
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert not [words for words in said if words not in err], err
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("option", OUTPUTS)
@pytest.mark.parametrize("kind", ["lost", "loop", "pipe", "device", "folder", "long", "gone"])
def test_what_cannot_be_written_is_refused_before_the_fit(here, no_fit, capsys, option, kind):
    end = OUTPUTS[option]
    name = {"gone": f"gone/x{end}", "long": "x" * 256 + end}.get(kind, f"{kind}{end}")
    os.mkfifo(f"pipe{end}")
    os.mkdir(f"folder{end}")
    for link, to in {"lost": f"nowhere/x{end}", "loop": f"loop{end}", "device": os.devnull}.items():
        os.symlink(to, f"{link}{end}")
    refused(capsys, [*FIT, option, name], 1, f"{name} cannot be written: ")


def test_a_library_that_is_missing_is_known_before_the_fit(here, no_fit, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    refused(capsys, [*FIT, "--components-out", "p.h5ad"], 1, "writing p.h5ad needs anndata: pip install")


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"part_shape": np.array([3, 5])}, "x.npz: part_shape=(3, 5) does not match the 16 features"),
        ({"sample_names": np.array(["s"] * 23 + ["caf\udce9"])}, "x.npz: the name 'caf\\udce9' is not valid Unicode"),
        ({"feature_names": np.array(["f"] * 15 + ["\ud800"])}, "x.npz: the name '\\ud800' is not valid Unicode"),
    ],
)
def test_what_the_model_cannot_keep_is_refused_before_the_fit(here, X, no_fit, capsys, beside, said):
    np.savez("x.npz", X=X, **beside)
    refused(capsys, ["fit", "x.npz", *QUICK], 1, said)


def test_names_are_checked_before_transform(here, X, capsys):
    assert main(FIT) == 0
    np.savez("y.npz", X=X, sample_names=np.array(["s"] * 23 + ["caf\udce9"]))
    refused(capsys, ["transform", "x.pw", "y.npz", "--out", "l.csv"], 1, "y.npz: the name 'caf\\udce9' is not valid")


def test_a_file_name_in_another_encoding(here, capsys):
    shutil.copy("x.npy", b"caf\xe9.npy")
    assert main(["fit", "caf\udce9.npy", *FIT[2:-1]]) == 0
    assert "caf\\udce9.npy: 24 samples" in capsys.readouterr().out
    assert os.path.exists(b"caf\xe9.pw")
    title = ["--title", "caf\udce9"]
    assert main(["show", "caf\udce9.pw", "--html", "plain.html"]) == 0
    assert main(["show", "caf\udce9.pw", "--html", "titled.html", "--png", "p.png", *title]) == 0
    assert [Path(name).read_text(encoding="utf-8").count(r"caf\udce9") for name in ("plain.html", "titled.html")] == [
        4,  # the title twice, the source and the command
        4,
    ]
    assert main(["select", "caf\udce9.npy", "-r", "1", "--png", "s.png", *QUICK[:4]]) == 0


def interrupted_by(monkeypatch, deed):
    """Let something happen between the fit and the writing."""
    fit = pw.SparseNMF.fit_transform

    def fit_then(*args):
        found = fit(*args)
        deed()
        return found

    monkeypatch.setattr(pw.SparseNMF, "fit_transform", fit_then)


def test_a_folder_that_vanishes_loses_nothing(here, monkeypatch, capsys):
    os.mkdir("out")
    interrupted_by(monkeypatch, lambda: shutil.rmtree("out"))
    assert main([*FIT[:-1], "--json", "--out", "out/m.pw", "--activations-out", "out/a.csv", "--png", "p.png"]) == 1
    said = capsys.readouterr()
    files = json.loads(said.out)["files"]
    assert (
        f"cannot write the model to out/m.pw: No such file or directory. It was written to {files['model']}" in said.err
    )
    model = pw.load(files["model"])
    assert Path(files["model"]).parent == here
    np.testing.assert_array_equal(read(files["activations"]).X, model.activations_)
    assert (files["picture"], os.path.exists("p.png")) == ("p.png", True)


def test_a_name_that_is_taken_meanwhile_loses_nothing(here, monkeypatch, capsys):
    os.mkdir("out")
    interrupted_by(monkeypatch, lambda: os.mkdir("out/m.pw"))
    assert main([*FIT, "--out", "out/m.pw"]) == 1
    (rescued,) = Path("out").glob("rescued-*-m.pw")
    assert str(rescued.absolute()) in capsys.readouterr().err
    assert pw.load(rescued).n_components_ == 2


@pytest.mark.parametrize("room", [True, False])
def test_a_full_disk(here, monkeypatch, capsys, tmp_path_factory, room):
    """The folder for temporary files may be on another disk. If nothing has room, that is said."""
    other, replace = tmp_path_factory.mktemp("other"), os.replace

    def full(source, target):
        if not (room and Path(target).parent == other):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(tempfile, "tempdir", str(other))
    interrupted_by(monkeypatch, lambda: monkeypatch.setattr(os, "replace", full))
    assert main(FIT) == 1
    err = capsys.readouterr().err
    assert "cannot write the model to x.pw: No space left on device" in err
    assert ("It was written to" in err) == room == bool(list(other.iterdir()))
    assert sorted(os.listdir()) == ["x.csv", "x.npy"]


def test_an_output_that_fails_does_not_stop_the_others(here, monkeypatch, capsys):
    def no_picture(*args, **options):
        raise RuntimeError("no picture")

    monkeypatch.setattr("partwise.plotting.gallery", no_picture)
    assert main([*FIT[:-1], "--png", "p.png"]) == 1
    said = capsys.readouterr()
    assert "partwise: cannot write the picture to p.png: no picture\n" in said.err
    assert "model:       x.pw" in said.out
    assert "p.png" not in said.out
    assert os.path.exists("x.pw")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["fit", "x.npy"], "x.pw"),
        (["fit", "x.npy", "--out", "m.pw", "--png", "old.png"], "old.png"),
        (["fit", "x.npy", "--out", "m.pw", "--components-out", "old.csv"], "old.csv"),
        (["fit", "x.npy", "--out", "m.pw", "--activations-out", "old.csv"], "old.csv"),
        (["fit", "x.npy", "--out", "m.pw", "--checkpoint", "old.ck"], "old.ck"),
        (["fit", "x.npy", "-s", "0.2", "0.4"], "x-0.4.pw"),
        (["select", "x.npy", "-r", "1", "--out", "old.csv"], "old.csv"),
        (["select", "x.npy", "-r", "1", "--png", "old.png"], "old.png"),
        (["show", "x.pw", "--png", "old.png"], "old.png"),
        (["show", "x.pw", "--html", "old.html"], "old.html"),
        (["transform", "x.pw", "x.npy", "--out", "old.csv"], "old.csv"),
        (["convert", "x.npy", "old.csv"], "old.csv"),
        (["convert", "x.pw", "old.csv"], "old.csv"),
        (["demo", "--out", "old.png", "-r", "2", "-s", "0.2"], "old.png"),
    ],
)
def test_nothing_is_overwritten_without_force(here, capsys, arguments, name):
    assert main([*FIT, "--checkpoint", "old.ck"]) == 0
    for old in ("old.png", "old.csv", "old.html", "x-0.4.pw"):
        Path(old).write_text("old")
    before = Path(name).read_bytes()
    refused(capsys, arguments, 2, f"{name} exists: choose another name, or overwrite it with --force")
    quick = QUICK[:4] if arguments[0] in ("fit", "select") else []
    assert main([*arguments, *quick, "--force"]) == 0
    assert Path(name).read_bytes() != before


def test_a_checkpoint_to_resume_from_may_exist(here):
    assert main([*FIT, "--checkpoint", "c.ck"]) == 0
    once = [word for word in FIT if word != "--force"]
    assert main([*once, "--out", "b.pw", "--resume", "c.ck"]) == 0
    assert main([*once, "--out", "c.pw", "--resume", "c.ck", "--checkpoint", "./c.ck"]) == 0
    for _ in range(2):
        assert main(["select", "x.npy", "-r", "1", *QUICK[:4], "--quiet", "--checkpoint", "s.json"]) == 0


# ---- several fits


@pytest.mark.filterwarnings("ignore:reached max_iter")
def test_several_sparsities_are_several_fits(here, capsys):
    asked = ["fit", "x.csv", "-r", "3", "-s", "0.3", "none", "0.4:0.6", *QUICK[:-1]]
    assert main([*asked, "--out", "m.pw", "--components-out", "p.csv.gz", "--png", "p.png"]) == 0
    names = ("0.3", "none", "0.4-0.6")
    models = [pw.load(f"m-{name}.pw") for name in names]
    alone = [pw.SparseNMF(3, sparsity=s, max_iter=15, tol=1e-2, random_state=0) for s in (0.3, None, (0.4, 0.6))]
    for model, other, name in zip(models, alone, names, strict=True):
        np.testing.assert_array_equal(model.components_, other.fit(read("x.csv").X).components_)
        np.testing.assert_array_equal(read(f"p-{name}.csv.gz").X.T, model.components_)
        assert os.path.exists(f"p-{name}.png")
    lines = capsys.readouterr().out.splitlines()
    for line, model, name in zip(lines[2:5], models, names, strict=True):
        first, *_, error, nonzeros, iterations = line.split()
        assert (first, int(iterations)) == (name, model.n_iter_)
        assert float(error) == pytest.approx(summary(model).relative_error, abs=6e-5)
        assert float(nonzeros) == pytest.approx(np.count_nonzero(model.components_, axis=1).mean(), abs=0.06)
    assert "model:       m-0.4-0.6.pw" in lines
    assert main([*asked, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [fit["files"]["model"] for fit in facts["fits"]] == [f"x-{name}.pw" for name in names]


def test_ctrl_c_ends_the_series(here, monkeypatch):
    interrupted_by(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert main([*FIT, "-s", "0.2", "0.4"]) == 130
    assert [path.name for path in here.glob("*.pw")] == ["x-0.2.pw"]


def test_commas_are_one_sparsity_for_each_component(here):
    assert main(["fit", "x.npy", "-s", "0.3,0.5:,none", *QUICK]) == 0
    model = pw.load("x.pw")
    assert model.n_components_ == 3
    assert model.sparsity_[0] == pytest.approx(0.3)
    assert model.sparsity_[1] >= 0.5 - 1e-9
    assert model.sparsity == [0.3, (0.5, None), None]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-s", "0.4", "0.40"], "--sparsity 0.4 0.4 lists the same value twice: remove one"),
        (["-s", "0.4", "0.6", "--checkpoint", "c"], "a checkpoint belongs to one fit"),
        (["-s", "0.4", "1.6"], "--sparsity 1.6 is outside [0, 1]"),
        (["-s", "0.4,0.6", "-r", "3"], "sparsity has 2 values for --components 3"),
    ],
)
def test_several_sparsities_that_cannot_be_meant(here, no_fit, capsys, arguments, said):
    refused(capsys, ["fit", "x.npy", *arguments], 2, said)


# ---- in the words of the command line


def test_reasons_to_stop_name_options(here, capsys):
    assert main(["fit", "x.npy", "-r", "2", "--max-iter", "2", "--tol", "1e-9"]) == 0
    assert main(["show", "x.pw"]) == 0
    assert main(["fit", "x.npy", "-r", "2", "--force"]) == 0
    said = capsys.readouterr()
    assert said.out.count("--max-iter 2") == 2
    assert "settled to --tol 0.05" in said.out
    assert "=" not in said.out + said.err


def test_missing_values_name_the_option(here, X, capsys):
    X[0, 0] = np.nan
    np.save("y.npy", X)
    refused(capsys, ["fit", "y.npy"], 1, "--missing em")


@pytest.mark.parametrize("command", [["info"], ["fit"], ["select", "-r", "2"]])
def test_a_model_is_not_data(here, capsys, command):
    assert main(FIT) == 0
    said = "x.pw is a model, not data: `partwise show x.pw` describes it"
    refused(capsys, [command[0], "x.pw", *command[1:], *(["--out", "y.pw"] if command[0] == "fit" else [])], 2, said)

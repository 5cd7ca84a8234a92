"""``partwise consensus``: outputs, resuming after kill −9, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import partwise as pw
from partwise.cli import main
from partwise.selection.runs import read_runs


@pytest.fixture(name="here")
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.kron(np.eye(3), np.ones((8, 5))) + 0.2 * rng.random((24, 15))
    pd.DataFrame(X.round(4), [f"s{i}" for i in range(24)], [f"f{j}" for j in range(15)]).to_csv(tmp_path / "x.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ["consensus", "x.csv", "--ranks", "2:4", "--runs", "4", "--seed", "14", "--out", "found.pw"]


def test_first_the_table_then_one_rank(here, capsys):
    assert main([*COMMAND, "--png", "ranks.png"]) == 0
    shown = capsys.readouterr().out
    assert "stability" in shown
    assert "4 of 4" in shown
    before = read_runs("found.pw")[0]
    assert main([*COMMAND, "--at", "3", "--density", "0.4", "--html", "page.html", "--quiet"]) == 0
    after = read_runs("found.pw")[0]
    assert after.facts == before.facts
    assert all((after.components[run] == before.components[run]).all() for run in before.components)
    model = pw.load("found-3.pw")
    assert model.components_.shape == (3, 15)
    assert model.feature_names_in_[0] == "f0"
    assert model.activations_.shape == (24, 3)
    page = (here / "page.html").read_text()
    assert "12 of 12 components are kept" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert main(["show", "found-3.pw", "--html", "report.html"]) == 0
    report = (here / "report.html").read_text()
    assert "partwise consensus x.csv" in report  # no single fit repeats it
    assert "partwise.SparseNMF(" not in report
    assert main(["transform", "found-3.pw", "x.csv", "--out", "usage.csv"]) == 0
    assert pw.load("found.pw").ranks == [2, 3, 4]


def test_raw_counts_of_cells(here, capsys):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.kron(np.eye(3), np.full((20, 10), 6.0)) + 0.3)
    adata = anndata.AnnData(np.hstack([counts, rng.poisson(200, (60, 1))]).astype(np.float32))
    adata.obs_names, adata.var_names = [f"c{i}" for i in range(60)], [*(f"g{j}" for j in range(30)), "MALAT1"]
    adata.write_h5ad("cells.h5ad")
    command = ["consensus", "cells.h5ad", "--ranks", "3", "--runs", "4", "--seed", "1", "--out", "cells.pw"]
    assert main([*command, "--top-genes", "25", "--at", "3", "--missing", "error"]) == 0
    assert "25 over-dispersed genes" in capsys.readouterr().out
    model = pw.load("cells-3.pw")
    ready = pw.cells.consensus(adata, ranks=3, n_runs=2, n_top_genes=25, random_state=0).ready
    assert list(model.feature_names_in_) == list(ready.chosen_genes)
    assert "MALAT1" not in model.feature_names_in_
    adata.X[:, 3] = 0.5
    adata.write_h5ad("cells.h5ad")
    assert main([*command, "--top-genes", "25", "--force"]) == 1
    assert (
        "cells.h5ad: counts contain 0.5, which is not a whole number: give raw counts, for example --layer"
        in capsys.readouterr().err
    )


def test_json_and_options(here, capsys):
    assert (
        main([*COMMAND[:-2], "--json", "--at", "3", "--sparsity", "0.5", "--holdout", "0.3", "--model-out", "m.pw"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [row["rank"] for row in found["rows"]] == [2, 3, 4]
    assert found["rows"][1]["heldout_error"] > 0
    assert found["at"]["runs_kept"] == [4, 4, 4]
    np.testing.assert_allclose(pw.load("m.pw").sparsity_, 0.5, atol=1e-10)
    assert main([*COMMAND[:-2], "--features-per-part", "5", "--at", "3", "--density", "2", "--model-out", "n.pw"]) == 0
    assert (pw.load("n.pw").components_ > 0).sum(axis=1).max() <= 5


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--at", "7"], 2, "--at 7 is not one of --ranks: 2, 3, 4"),
        (["--model-out", "m.pw"], 2, "--model-out needs --at"),
        (["--runs", "1"], 1, "--runs 1: a consensus compares runs"),
        (["--at", "3", "--density", "1e-12"], 1, "--density 1e-12 leaves 0 of 12 components"),
        (["--at", "3", "--density", "0"], 2, "--density 0.0 leaves out all components"),
        (["--at", "3", "--density", "nan"], 2, "--density nan: give a number"),
        (["--sparsity", "0.5", "--features-per-part", "3"], 2, "give one of them"),
        (["--sparsity", "1.2"], 2, "--sparsity 1.2 is outside [0, 1]"),
        (["--at", "3", "--model-out", "found.pw"], 2, "two outputs are the same file (found.pw)"),
        (["--html", "x.csv"], 1, "unsupported extension"),
        (["--out", "x.csv"], 1, "unsupported extension"),
    ],
)
def test_refused_in_one_line(here, capsys, more, code, message):
    assert main([*COMMAND, *more, "--quiet"]) == code
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_another_seed_or_a_foreign_file(here, capsys):
    assert main([*COMMAND, "--quiet"]) == 0
    assert main([*COMMAND, "--seed", "15", "--quiet"]) == 1
    assert "--out 'found.pw' belongs to a consensus with different --seed" in capsys.readouterr().err
    pw.SparseNMF(2, max_iter=3, tol=0).fit(np.eye(4)).save("found.pw")
    assert main([*COMMAND, "--quiet"]) == 2
    assert "found.pw exists: choose another name, or overwrite it with --force" in capsys.readouterr().err
    assert main([*COMMAND, "--quiet", "--force"]) == 0
    assert pw.load("found.pw").ranks == [2, 3, 4]


def test_runs_are_not_overwritten_by_a_model(here, capsys):
    assert main([*COMMAND, "--quiet"]) == 0
    assert main([*COMMAND, "--at", "3", "--model-out", "./found.pw", "--force"]) == 2
    assert "two outputs are the same file" in capsys.readouterr().err
    assert pw.load("found.pw").ranks == [2, 3, 4]


def test_a_foreign_file_is_replaced_by_the_first_run_only(here, capsys):
    model = pw.SparseNMF(2, max_iter=3, tol=0).fit(np.eye(4))
    model.save("found.pw")
    for wrong in (["--runs", "1"], ["--at", "3", "--density", "0"], ["--n-threads", "0"], ["--holdout", "2"]):
        assert main([*COMMAND, *wrong, "--force", "--quiet"]) > 0
        np.testing.assert_array_equal(pw.load("found.pw").components_, model.components_)


def test_a_file_of_runs_is_named_as_such(here, capsys):
    assert main([*COMMAND, "--quiet"]) == 0
    for command in (["show", "found.pw"], ["transform", "found.pw", "x.csv", "--out", "y.csv"], ["info", "found.pw"]):
        assert main(command) > 0
        told = capsys.readouterr().err
        assert "found.pw holds the runs of a consensus: `partwise consensus DATA … --out found.pw --at R`" in told


@pytest.mark.parametrize("text", ["0", "5:3", "2:9:-1", "a:b:c", "1:2:3:4"])
def test_ranks_that_are_none(here, capsys, text):
    with pytest.raises(SystemExit) as stop:
        main(["consensus", "x.csv", "--ranks", text])
    assert stop.value.code == 2
    assert f"'{text}': give a whole number of at least 1, or a range" in capsys.readouterr().err


@pytest.mark.slow
def test_resumes_after_kill_9(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((300, 200)) ** 4)
    command = [
        sys.executable,
        "-m",
        "partwise",
        "consensus",
        "x.npy",
        "--ranks",
        "12:14",
        "--runs",
        "12",
        "--seed",
        "1",
    ]
    command += ["--tol", "0.001", "--n-threads", "1", "--quiet", "--out"]
    process = subprocess.Popen([*command, "killed.pw"], cwd=tmp_path)
    path = tmp_path / "killed.pw"
    while process.poll() is None:
        if path.exists() and len(read_runs(path)[0].components) >= 2:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    kept = read_runs(path)[0].components
    assert 2 <= len(kept) < 36
    subprocess.run([*command, "killed.pw"], cwd=tmp_path, check=True)
    subprocess.run([*command, "whole.pw"], cwd=tmp_path, check=True)
    resumed, whole = pw.load(path), pw.load(tmp_path / "whole.pw")
    for run, components in kept.items():
        np.testing.assert_array_equal(read_runs(path)[0].components[run], components)
    for rank in whole.ranks:
        np.testing.assert_allclose(resumed.spectra[rank], whole.spectra[rank], atol=1e-5)

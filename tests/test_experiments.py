"""The paper's experiments: they run, name their data, and their verdicts can go either way."""

import csv
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import experiments
from experiments import NAMES, __main__, figure1_left, figure2, figure6, loaders
from experiments import appendix as both_sides
from experiments.__main__ import main
from experiments.experiment import VERDICTS, judged, write_csv, write_summary
from experiments.race import DEFAULT, NMFSC, PRINTED, TPC, Method, speedups, time_to, trace
from partwise.engine.result import Result
from partwise.projections.sparsity import l1_norm

ROOT = Path(__file__).parents[1]
RACE = {"data", "method", "sparsity", "seed", "budget", "updates", "seconds", "error"}
COLUMNS = {
    "figure1_left": {"data", "method", "seed", "feature", "sparsity", "negative", "seconds"},
    "figure1_right": {"data", "method", "seed", "part", "asked", "sparsity", "zeros", "relative_error"},
    "figure2": {
        *("data", "method", "sparsity", "size", "problems"),
        *("mean_seconds", "tenth_percentile", "ninetieth_percentile"),
    },
    "figure3": RACE,
    "figure4": RACE,
    "figure5": RACE,
    "figure6": RACE,
    "figure7": {
        *("data", "method", "sparsity", "seed", "budget"),
        *("updates", "part", "achieved", "overlap", "relative_error"),
    },
    "appendix": RACE - {"error"} | {"activation_sparsity", "explained"},
}


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_figures_write_numbers_picture_and_verdict(tmp_path):
    pytest.importorskip("clarabel")
    out = tmp_path / "new" / "results"
    command = [sys.executable, "-m", "experiments", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()[:-1]] == list(NAMES)
    table = (out / "summary.md").read_text(encoding="utf-8").splitlines()[2:]
    assert [line.split(" | ")[0] for line in table] == [f"| {name}" for name in NAMES]
    for name in NAMES:
        assert_left_behind(out, name)


@pytest.mark.compiled
def test_single_figure_writes_the_same(tmp_path, capsys):
    out = tmp_path / "new" / "results"
    assert main(["figure4", "--quick", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("figure4 ")
    assert said.out.rstrip().endswith(f"Written to {out}; summary: {out / 'summary.md'}")
    assert_left_behind(out, "figure4")
    assert len((out / "summary.md").read_text(encoding="utf-8").splitlines()) == 3


def assert_left_behind(out, name):
    rows = read(out / f"{name}.csv")
    assert set(rows[0]) == COLUMNS[name]
    assert all(value not in ("", "nan", "inf") for row in rows for value in row.values())
    assert all("stand-in" in row["data"] or "random" in row["data"] for row in rows)
    (line,) = (out / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert line.split(":")[0] in VERDICTS
    assert line.endswith(f"(data: {rows[0]['data']})")
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    (line,) = [line for line in (out / "summary.md").read_text(encoding="utf-8").splitlines() if f"| {name} | " in line]
    assert line.count(" | ") == 4
    if name in ("figure3", "figure4", "figure5", "figure6"):
        assert_all_start_alike_and_none_rises(rows, name)


def assert_all_start_alike_and_none_rises(rows, name):
    starts = {}
    for row in rows:
        if row["updates"] == "0":
            starts.setdefault((row["data"], row["sparsity"], row["seed"]), set()).add(float(row["error"]))
    assert len(starts) == 4
    for errors in starts.values():
        if name != "figure3":  # TPC's sets are larger, and it moves into them first
            assert max(errors) <= 1.0001 * min(errors)
    for before, after in pairwise(rows):
        if int(after["updates"]) > int(before["updates"]):
            assert float(after["error"]) <= 1.0001 * float(before["error"])


def test_experiments_are_found_by_name():
    for name in NAMES:
        found = experiments.find(name)
        assert found.name == name
        assert "|" not in found.claim + found.title
        assert type(found.full) is type(found.quick)
    with pytest.raises(ValueError, match="'figure8' is not one of the figures figure1_left"):
        experiments.find("figure8")


def test_commands_in_the_docs_exist():
    docs = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert set(re.findall(r"reproduction/(\w+)\.png", docs)) == set(NAMES)
    assert all(f"| {name} |" in docs for name in NAMES)
    claims = (Path(__file__).parent / "test_claims.py").read_text(encoding="utf-8")
    tests = re.findall(r"def (test_\w+)", claims)
    chosen = re.findall(r"test_claims\.py -k (\w+)", docs)
    assert chosen
    assert all(any(word in test for test in tests) for word in chosen)
    files = re.findall(r"tests/\w+\.py|benchmarks/\w+\.py", docs)
    assert all((ROOT / file).is_file() for file in files)
    commands = re.findall(r"make reproduce FIGURES=\"?([\w ]+)", docs)
    assert {name for command in commands for name in command.split()} == set(NAMES)


# Verdicts, on rows made up to hold and not to hold.


def fit(label, sparsity, seed, seconds, end, data="made up"):
    """A fit whose error falls from 10 to ``end`` in four updates that take ``seconds``."""
    case = {"data": data, "method": label, "sparsity": sparsity, "seed": seed, "budget": 1.0}
    return [{**case, "updates": i, "seconds": seconds * i / 4, "error": 10 * (end / 10) ** (i / 4)} for i in range(5)]


def raced(**by_name):
    """All methods at four sparsities and two seeds: (seconds at each sparsity, final error)."""
    methods = {"default": DEFAULT, "printed": PRINTED, "nmfsc": NMFSC, "tpc": TPC}
    return [
        row
        for s in (0.2, 0.4, 0.6, 0.8)
        for seed in (0, 1)
        for name, (seconds, end) in by_name.items()
        for row in fit(methods[name].label, s, seed, seconds(s) * (1 + seed / 10), end)
    ]


def soon(s):
    return 0.01 / (1 + s)


def late(s):
    return 1.0


def timed(hoyer, printed, fast):
    ways = {figure2.HOYER: hoyer, **dict.fromkeys(figure2.PRINTED, printed), figure2.FAST: fast}
    return [
        {"data": "made up", "method": way, "sparsity": s, "size": m, "problems": 40, "mean_seconds": t * m}
        for way, t in ways.items()
        for s in (0.2, 0.8)
        for m in (100, 200, 400)
    ]


def projected(ratio):
    return [
        row
        for pair in figure6.PAIRS.values()
        for s in (0.2, 0.9)
        for seed in (0, 1)
        for method, seconds in zip(pair, (1.0, ratio), strict=True)
        for row in fit(method.label, s, seed, seconds, 1.0)
    ]


def featured(pca_negative, nmf_sparsity, ours):
    found = {
        "PCA": (pca_negative, 0.3),
        "ICA": (pca_negative, 0.3),
        "dictionary learning": (0.4, 0.3),
        "NMF": (0.0 if pca_negative else 0.1, nmf_sparsity),
        figure1_left.OURS: (0.0, ours),
    }
    return [{"method": m, "negative": negative, "sparsity": s} for m, (negative, s) in found.items()]


def asked(inside, fixed):
    return [
        {"asked": "0.2 to 0.4", "sparsity": inside, "zeros": 0.1},
        {"asked": "0.7", "sparsity": fixed, "zeros": 0.6},
    ]


def parted(like, overlap):
    """NMFSC's two seeds share one component; SSNMF has NMFSC's components, or different ones."""
    sets = {0: np.eye(6)[:3], 1: np.eye(6)[2:5]} if like else {0: np.eye(6)[:3], 1: np.eye(6)[:3]}
    return [
        {"method": method.label, "sparsity": 0.5, "seed": seed, "overlap": 0.1 if method is NMFSC else overlap}
        | {"relative_error": 0.1, "image": image.reshape(2, 3)}
        for method in (NMFSC, PRINTED, DEFAULT)
        for seed, parts in sets.items()
        for image in (parts if like or method is NMFSC else np.eye(6)[3:])
    ]


def explained(one, diagonal, full, hoyer):
    methods = (both_sides.ONE, both_sides.DIAGONAL, both_sides.FULL, both_sides.HOYER)
    return [
        {"method": m.label, "sparsity": 0.5, "activation_sparsity": 0.2, "seed": seed, "explained": share}
        for m, share in zip(methods, (one, diagonal, full, hoyer), strict=True)
        for seed in (0, 1)
    ]


MADE_UP = {
    "figure1_left": (featured(0.5, 0.6, 0.7), featured(0.0, 0.2, 0.8)),
    "figure1_right": (asked(0.3, 0.7), asked(0.5, 0.72)),
    "figure2": (timed(3.0, 2.0, 1.0), timed(1.0, 2.0, 3.0)),
    "figure3": (
        raced(default=(soon, 1.0), printed=(soon, 1.0), nmfsc=(soon, 1.005), tpc=(late, 1.005)),
        raced(default=(late, 2.0), printed=(late, 2.0), nmfsc=(late, 1.0), tpc=(soon, 1.0)),
    ),
    "figure4": (
        raced(default=(soon, 1.0), printed=(soon, 1.0), nmfsc=(late, 1.1)),
        raced(default=(late, 1.1), printed=(late, 1.1), nmfsc=(soon, 1.0)),
    ),
    "figure5": (
        raced(default=(soon, 1.0), printed=(soon, 1.0), nmfsc=(late, 1.1)),
        raced(default=(late, 1.1), printed=(late, 1.1), nmfsc=(soon, 1.0)),
    ),
    "figure6": (projected(1.1), projected(2.0)),
    "figure7": (parted(True, 0.1), parted(False, 0.3)),
    "appendix": (explained(0.9, 0.7, 0.8, 0.7), explained(0.6, 0.7, 0.6, 0.8)),
}
PARTLY = {
    "figure1_left": featured(0.5, 0.6, 0.8),
    "figure1_right": asked(0.3, 0.72),
    "figure2": timed(2.0, 3.0, 1.0),
    "figure3": raced(default=(soon, 2.0), printed=(soon, 2.0), nmfsc=(soon, 1.0), tpc=(late, 1.0)),
    "figure4": raced(default=(soon, 1.1), printed=(soon, 1.1), nmfsc=(late, 1.0)),
    "figure5": raced(default=(soon, 1.0), printed=(soon, 1.0), nmfsc=(soon, 1.1)),
    "figure7": parted(True, 0.3),
    "appendix": explained(0.9, 0.8, 0.85, 0.7),
}


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_go_both_ways(name):
    judge = experiments.find(name).verdict
    assert [judge(rows).split(":")[0] for rows in MADE_UP[name]] == ["holds", "does not hold"]
    assert all("\n" not in judge(rows) and "nan" not in judge(rows) for rows in MADE_UP[name])


@pytest.mark.parametrize("name", PARTLY)
def test_verdicts_can_hold_in_part(name):
    assert experiments.find(name).verdict(PARTLY[name]).startswith("holds in part: ")


@pytest.mark.parametrize("m", [2, 9, 100, 1000])
@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_all_projection_methods_agree(rng, m, s):
    b, k = rng.random(m), l1_norm(s, m)
    first, *others = (way(b, k) for way in figure2.WAYS.values())
    for y in others:
        np.testing.assert_allclose(y, first, atol=1e-9)


def test_verdict_of_tests():
    assert [judged(tests, "x") for tests in ([True], [True, False], [False])] == [f"{v}: x" for v in VERDICTS[::-1]]


def test_a_speedup_is_measured_at_an_error_that_both_have():
    rows = raced(printed=(late, 1.0), nmfsc=(late, 2.0))
    ours = [row for row in rows if row["method"] == PRINTED.label and row["seed"] == 0 and row["sparsity"] == 0.2]
    assert time_to(ours, 2.02) == 0.75  # of 10, 5.6, 3.2, 1.8, 1
    assert time_to(ours, 0.5) == np.inf
    assert speedups(rows, PRINTED, NMFSC) == pytest.approx(dict.fromkeys((0.2, 0.4, 0.6, 0.8), 1 / 0.75))
    back = speedups(rows, NMFSC, PRINTED)
    assert back == pytest.approx(dict.fromkeys(back, 0.75))


@pytest.mark.parametrize("n_iter", [1, 2, 57, 12345])
def test_a_trace_keeps_both_ends_and_round_numbers(n_iter):
    result = Result([], np.full(n_iter + 1, 2.0), np.arange(n_iter + 1.0), n_iter, False, "", 0.1)
    kept = [row["updates"] for row in trace(result, {"data": "made up"})]
    assert kept[0] == 0
    assert kept[-1] == n_iter
    assert kept == sorted(set(kept))
    assert {i for i in (1, 3, 10, 30, 100, 300, 1000) if i <= n_iter} <= set(kept)
    assert len(kept) < 110
    assert {row["error"] for row in trace(result, {})} == {2.0}


def test_interrupted_fits_end_the_run(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        return Result([], np.ones(2), np.ones(2), 1, False, "interrupted after iteration 1", 0.1)

    def reproduce(*_, **__):
        Method("it", interrupted).fit(np.ones((2, 2)), 1, 0.5, None)

    monkeypatch.setattr(__main__, "reproduce", reproduce)
    assert main(["--out", str(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "figure1_left was interrupted\n")


def test_csv_and_summary(tmp_path):
    rows = [{"data": "it, and it", "error": 1 / 3, "updates": 4, "image": np.ones(3)}]
    write_csv(rows, tmp_path / "it.csv")
    assert (tmp_path / "it.csv").read_text(encoding="utf-8") == 'data,error,updates\n"it, and it",0.333333,4\n'
    (tmp_path / "figure4.txt").write_text("holds: 12 times faster: yes\n", encoding="utf-8")
    *_, last = write_summary(tmp_path).read_text(encoding="utf-8").splitlines()
    claim = experiments.find("figure4").claim
    assert last == f"| figure4 | {claim} | 12 times faster: yes | holds | `make reproduce FIGURES=figure4` |"


# What goes wrong is one line.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure8"], "'figure8' is not one of the figures figure1_left, figure1_right"),
        (["figure2", "fig3"], "'fig3' is not one of the figures"),
        (["figure2", "--data", "nowhere"], "--data nowhere is not a folder"),
        (["figure2", "--out", "file"], "--out file cannot be created (File exists): choose another folder"),
    ],
)
def test_bad_argument_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(message)


@pytest.mark.parametrize("name", ["figure1_left", "figure1_right", "figure4", "figure5", "figure6", "appendix"])
@pytest.mark.parametrize("named", [True, False])
def test_missing_data_is_skipped(tmp_path, monkeypatch, capsys, name, named):
    def missing():
        raise FileNotFoundError(f"nothing is in {os.environ['PARTWISE_DATA']}: set PARTWISE_DATA to the data's folder")

    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTWISE_DATA", "replaced")
    monkeypatch.setattr(__main__, "NAMES", (name,))
    for loader in loaders.__all__:  # the real loaders would try to download
        monkeypatch.setattr(loaders, loader, missing)
    arguments = ["--out", "results", "--data", str(tmp_path / "empty"), *([name] if named else [])]
    assert main(arguments) == named
    err = capsys.readouterr().err
    where = tmp_path / "empty"
    assert err == f"{name} is skipped: nothing is in {where}: set PARTWISE_DATA to the data's folder\n"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["summary.md"]


def test_missing_extra_is_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    assert main(["--quick", "--out", str(tmp_path), "figure3"]) == 1
    assert "pip install 'partwise[cone]'" in capsys.readouterr().err


def test_terminal_shows_progress(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with __main__.bar("figure4") as tell:
        tell(0.5, "sparsity 0.3 [seed 1]")
    err = capsys.readouterr().err
    assert "figure4" in err
    assert "50%" in err
    assert "[seed 1]" in err

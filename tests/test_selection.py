"""select: held-out entries are hidden from the fits, all models are tested on the same ones, searches resume."""

import csv
import io
import json
import os
import re
import signal
import warnings
from argparse import ArgumentTypeError
from itertools import pairwise

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

import partwise as pw
from partwise.cli import main
from partwise.cli import select as cli_select
from partwise.cli.select import components as counts_of
from partwise.datasets import planted
from partwise.engine.options import FLAGS
from partwise.engine.progress import counting_line
from partwise.plotting import selection as draw
from partwise.runtime import archive
from partwise.selection import Selection, heldout, paths, search

QUICK = {"n_splits": 2, "n_init": 2, "max_iter": 4, "tol": 0.0, "random_state": 0}
SHAPE = (12, 9)


@pytest.fixture(name="X")
def numbers(rng):
    return rng.random((12, 2)) @ rng.random((2, 9)) + 0.05 * rng.random(SHAPE)


@pytest.fixture(name="known")
def where(rng):
    """A mask with missing entries: one whole sample, but no whole feature."""
    mask = rng.random(SHAPE) < 0.7
    mask[3], mask[0] = False, True
    return mask


def kinds(X, known):
    """(X, options, dense X, where it is observed): for every kind of input."""
    all_ = np.ones(SHAPE, dtype=bool)
    zeroed = np.where(X > 0.4, X, 0)
    return {
        "dense": (X, {}, X, all_),
        "fortran float32": (np.asfortranarray(X, np.float32), {}, X, all_),
        "mask": (np.where(known, X, 99), {"observed": known}, X, known),
        "nan": (np.where(known, X, np.nan), {"missing": "em"}, X, known),
        "sparse": (sp.csc_array(zeroed), {}, zeroed, all_),
        "sparse, with a mask": (sp.csr_array(zeroed), {"observed": sp.csr_array(known)}, zeroed, known),
    }


KINDS = ["dense", "fortran float32", "mask", "nan", "sparse", "sparse, with a mask"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kind", KINDS)
def test_held_out_entries_are_observed_and_hidden_from_the_fit(X, known, kind, share):
    given, options, dense, seen = kinds(X, known)[kind]
    observed = heldout.Observed.of(given, options.get("missing") == "em", options.get("observed"))
    assert observed.count == seen.sum()
    split = heldout.hold_out(observed, share, np.random.default_rng(1))
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[split.rows, split.columns] = True
    assert not (hidden & ~seen).any()
    assert hidden.sum() == len(split.rows) <= round(share * seen.sum())
    assert share > 0.1 or hidden.sum() >= round(share * seen.sum()) - 2
    for mode in (0, 1):
        np.testing.assert_array_equal(split.seen.counts(mode), (seen & ~hidden).sum(axis=1 - mode))
        assert ((seen & ~hidden).any(axis=mode) == seen.any(axis=mode)).all()
    np.testing.assert_allclose(split.values, dense[hidden], rtol=1e-6)
    again = heldout.hold_out(observed, share, np.random.default_rng(1))
    np.testing.assert_array_equal(again.rows * 9 + again.columns, split.rows * 9 + split.columns)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_is_that_of_the_hidden_entries(X, known, kind, rng, monkeypatch):
    given, options, dense, _ = kinds(X, known)[kind]
    split = heldout.hold_out(heldout.Observed.of(given, "missing" in options, options.get("observed")), 0.3, rng)
    factors, at = [rng.random((12, 3)), rng.random((9, 3))], (split.rows, split.columns)
    wanted = np.linalg.norm((dense - factors[0] @ factors[1].T)[at]) / np.linalg.norm(dense[at])
    monkeypatch.setattr(heldout, "CHUNK", 5)
    assert split.error(factors) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_and_missing_values_do_not_matter(X, known, kind):
    given, options, _, _ = kinds(X, known)[kind]
    found = pw.select(given, [1, 2], [None, 0.3], **options, **QUICK)
    assert [(row["rank"], row["sparsity"]) for row in found.rows] == [(1, None), (1, 0.3), (2, None), (2, 0.3)]
    assert all(np.isfinite(row["heldout_error"]) and 0 < row["stability"] <= 1 for row in found.rows)
    assert [row["achieved_sparsity"] for row in found.rows[1::2]] == pytest.approx([0.3, 0.3], abs=1e-6)
    if "observed" in options and not sp.issparse(given):
        assert pw.select(np.where(known, given, np.nan), [1, 2], [None, 0.3], **options, **QUICK).rows == found.rows


def test_small_sparse_x_is_made_dense_and_large_is_rejected(X, monkeypatch):
    dense = np.where(X > 0.4, X, 0)
    assert pw.select(sp.csr_array(dense), 2, **QUICK).rows == pw.select(dense, 2, **QUICK).rows
    monkeypatch.setattr(heldout, "DENSE_ENTRIES", 12 * 9 - 1)
    with pytest.raises(ValueError, match=r"sparse, of shape \(12, 9\).*observed= as a sparse mask"):
        pw.select(sp.csr_array(dense), 2, **QUICK)


def test_each_fit_starts_from_the_previous_sparsity(X, monkeypatch):
    calls = []

    def recorded(data, rank, **options):
        calls.append((options["init"], options.get("sparsity"), pw.ssnmf(data, rank, **options)))
        return calls[-1][-1]

    monkeypatch.setitem(paths.RECIPES, "ssnmf", recorded)
    pw.select(X, 2, [0.5, (0.2, 0.6), None, 0.2, (None, 0.4), 0.2], **{**QUICK, "n_splits": 1})
    assert [sparsity for _, sparsity, _ in calls] == [None, (None, 0.4), 0.2, (0.2, 0.6), 0.5] * 2
    for (_, _, before), (start, sparsity, _) in pairwise(calls):
        assert start == "auto" if sparsity is None else start[0] is before.activations


@pytest.mark.parametrize("given", [{}, {"max_iter": 7}, {"tol": 0.01}])
def test_fits_have_the_limits_of_any_other_fit(X, monkeypatch, given):
    asked = []
    monkeypatch.setitem(
        paths.RECIPES, "ssnmf", lambda *args, **options: (asked.append(options), pw.ssnmf(*args, **options))[1]
    )
    pw.select(X, 1, n_splits=1, n_init=1, random_state=0, **given)
    assert {name: asked[0][name] for name in ("max_iter", "tol") if name in asked[0]} == given
    for name in ("max_iter", "tol"):
        assert cli_select.OPTIONS[name] is FLAGS[name]


def test_a_search_leaves_the_warning_filters_alone(X, monkeypatch):
    """They are those of all threads. A fit that cannot reproduce X is compared without a warning."""
    filters, fit = list(warnings.filters), paths.RECIPES["ssnmf"]

    def looking(*args, **options):
        assert list(warnings.filters) == filters
        return fit(*args, **options)

    monkeypatch.setitem(paths.RECIPES, "ssnmf", looking)
    pw.select(X, 1, 0.9, n_splits=2, n_init=1, max_iter=2, random_state=0)
    with pytest.warns(pw.CapacityWarning):
        pw.ssnmf(X, 1, sparsity=0.9, max_iter=2, tol=0)


def test_the_table_keeps_the_best_start_of_each_split(X):
    found = pw.select(X, [3], [None, 0.5], **QUICK)
    assert len(found.fits) == 2 * 2 * 2
    for row in found.rows:
        fits = [fit for fit in found.fits if fit["sparsity"] == row["sparsity"]]
        best = [min((f for f in fits if f["split"] == s), key=lambda f: f["train_error"]) for s in (0, 1)]
        assert row["heldout_error"] == pytest.approx(np.mean([f["heldout_error"] for f in best]))
        assert row["heldout_std"] == pytest.approx(np.std([f["heldout_error"] for f in best], ddof=1))
        assert row["converged"] == 0
    alone = pw.select(X, 2, **{**QUICK, "n_splits": 1, "n_init": 1}).rows[0]
    assert np.isnan([alone["heldout_std"], alone["stability"], alone["stability_std"]]).all()


def test_sparsity_of_the_activations(X):
    found = pw.select(X, 2, [0.4], side="activations", **QUICK)
    assert found.rows[0]["achieved_sparsity"] == pytest.approx(0.4)
    assert found.side == "activations"


def test_known_rank_is_found_and_is_stable():
    X = planted(60, 40, 3, sparsity=0.5, noise=0.1, random_state=0).X
    rows = pw.select(X, range(1, 6), n_splits=2, n_init=2, random_state=0).rows
    assert min(rows, key=lambda row: row["heldout_error"])["rank"] == 3
    assert rows[2]["stability"] > 0.999 > rows[4]["stability"]
    errors = [row["train_error"] for row in rows]
    assert errors == sorted(errors, reverse=True)  # the training error falls with the rank


@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")  # threads share the filters, whichever sets them
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_the_same_table_whatever_the_number_of_workers(X, backend, monkeypatch):
    monkeypatch.setattr(search, "WORKERS", 0)
    with joblib.parallel_config(backend=backend):
        one, two = (pw.select(X, [1, 3], [0.2, 0.4], n_jobs=n_jobs, **QUICK) for n_jobs in (1, 2))
    assert len(one.fits) == len(two.fits) == 16
    for mine, yours in zip(one.rows + one.fits, two.rows + two.fits, strict=True):
        assert mine == pytest.approx(yours, rel=1e-9)  # a process that has just compiled kernels may round otherwise


@pytest.mark.parametrize(("seconds", "jobs"), [(0.01, None), (100, 2)])
def test_workers_are_started_if_they_pay(X, seconds, jobs, monkeypatch):
    asked, now = [], iter([0.0, seconds])
    monkeypatch.setattr(search, "clock", lambda: next(now))
    monkeypatch.setattr(joblib, "Parallel", lambda n, **_: asked.append(n) or (lambda calls: iter(())))
    plan = paths.Plan((None,), "components", 0.1, 1, "auto", 2, None, 0)
    list(search.fit_paths(heldout.Observed.of(X, False, None), plan, [(2, 0), (1, 0)], 2))
    assert asked == [jobs]


def stopping(monkeypatch, after):
    """Interrupt a search after ``after`` paths; return the list of fitted paths."""
    fitted = []

    def fit_path(*arguments):
        if len(fitted) == after:
            raise KeyboardInterrupt
        fitted.append(arguments[2:])
        return paths.fit_path(*arguments)

    monkeypatch.setattr(search, "fit_path", fit_path)
    return fitted


@pytest.mark.parametrize("seed", [0, None])
def test_search_resumes_from_its_checkpoint(X, tmp_path, monkeypatch, seed):
    asked = {"sparsities": [None, (0.2, 0.4)], "checkpoint": tmp_path / "search.pw", **QUICK, "random_state": seed}
    before = stopping(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        pw.select(X, [1, 2], **asked)
    assert len(before) == 3
    rest = stopping(monkeypatch, 9)
    found = pw.select(X, [1, 2], **asked)
    assert len(rest) == 1
    assert not {*rest} & {*before}
    if seed is not None:
        assert found.rows == pw.select(X, [1, 2], **{**asked, "checkpoint": None}).rows
    more = stopping(monkeypatch, 9)
    larger = pw.select(X, [1, 2, 3], **asked)
    assert sorted(more) == [(3, 0), (3, 1)]
    assert larger.rows[:4] == found.rows
    assert pw.select(X, [2], **asked).rows == found.rows[2:]
    assert [path.name for path in tmp_path.iterdir()] == ["search.pw"]


@pytest.mark.parametrize(
    ("change", "what"),
    [({"sparsities": [0.3]}, "sparsities"), ({"random_state": 1}, "random_state"), ({"max_iter": 5}, "max_iter")],
)
def test_a_checkpoint_with_other_settings_is_refused(X, tmp_path, change, what):
    asked = {**QUICK, "checkpoint": tmp_path / "search.pw"}
    pw.select(X, 1, **asked)
    with pytest.raises(ValueError, match=f"a search with different {what}: use another path"):
        pw.select(X, 1, **{**asked, **change})
    with pytest.raises(ValueError, match="a search with different X"):
        pw.select(X + 1e-9, 1, **asked)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe\x00", "short", "changed", "model"])
def test_a_damaged_checkpoint_is_refused_and_stays(X, tmp_path, damage):
    path = tmp_path / "search.pw"
    asked = {**QUICK, "checkpoint": path}
    pw.select(X, 1, **asked)
    whole = path.read_bytes()
    if damage == "model":
        pw.SparseNMF(2, max_iter=1, tol=0).fit(X).save(path)
    elif damage == "short":
        path.write_bytes(whole[:-200])
    else:
        path.write_bytes(whole.replace(b"heldout_error", b"heldout_ERROR") if damage == "changed" else damage)
    left = path.read_bytes()
    with pytest.raises(ValueError, match="is not a search checkpoint"):
        pw.select(X, 1, **asked)
    assert path.read_bytes() == left


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.pop("fits"),
        lambda record: record.update(fits=3),
        lambda record: record["fits"].pop(),
        lambda record: record["fits"][0].pop("converged"),
        lambda record: record["fits"][0].update(level=7),
        lambda record: record["fits"][1].update(train_error="x"),
        lambda record: record.update(split="x"),
        lambda record: record.update(stability=[]),
        lambda record: record.update(stability=[{}]),
    ],
)
def test_a_checkpoint_with_an_invalid_record_is_refused(X, tmp_path, damage):
    """Although its digest is right."""
    asked = {**QUICK, "checkpoint": tmp_path / "search.pw"}
    pw.select(X, 1, **asked)
    header, _ = archive.read(asked["checkpoint"])
    damage(header["paths"][0])
    archive.write(asked["checkpoint"], header, {})
    with pytest.raises(ValueError, match=r"search\.pw' is not a search checkpoint, or is damaged: .* Use another path"):
        pw.select(X, 1, **asked)


def test_unwritable_checkpoint_is_reported_first(X, tmp_path, monkeypatch):
    fitted = stopping(monkeypatch, 9)
    with pytest.raises(ValueError, match="cannot be written"):
        pw.select(X, 1, checkpoint=tmp_path / "nowhere" / "search.pw", **QUICK)
    assert not fitted
    with pytest.raises(ValueError, match="is not a search checkpoint"):
        pw.select(X, 1, checkpoint=tmp_path, **QUICK)


@pytest.mark.parametrize("name", ["pipe", "folder", "x" * 256, "nowhere/s.json"])
def test_a_checkpoint_that_is_no_file_is_refused(X, tmp_path, monkeypatch, name):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    monkeypatch.setitem(paths.RECIPES, "ssnmf", None)  # before the first fit
    with pytest.raises(ValueError, match=rf"checkpoint='.*{name}' (cannot be written: \w+|is not a search checkpoint)"):
        pw.select(X, 1, checkpoint=tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_fit_that_is_interrupted_is_not_compared(X, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return pw.ssnmf(*arguments, **options)

    monkeypatch.setitem(paths.RECIPES, "ssnmf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pw.select(X, 1, checkpoint=tmp_path / "search.pw", **QUICK)
    assert archive.read(tmp_path / "search.pw")[0]["paths"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": []}, "ranks is empty"),
        ({"ranks": [2, 0]}, "ranks=0: give a whole number"),
        ({"ranks": 2.5}, "ranks=2.5"),
        ({"sparsities": []}, "sparsities is empty"),
        ({"sparsities": [1.2]}, r"sparsities=1.2 is outside \[0, 1\]"),
        ({"sparsities": [[0.2, 0.3]]}, "does not fit all ranks"),
        ({"sparsities": ["0.2"]}, "give None, numbers, or intervals"),
        ({"sparsities": [(0.4, 0.2)]}, r"has lo > hi: give \(0.2, 0.4\)"),
        ({"side": "parts"}, "side='parts' is not one of"),
        ({"holdout": 0}, "holdout=0: give a share between 0 and 1"),
        ({"holdout": 1.5}, "holdout=1.5"),
        ({"holdout": 0.001}, "holds out 0 entries of X, none of them above zero"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"n_init": 0}, "n_init=0"),
        ({"init": "nndsvd"}, "init='nndsvd' is not one of"),
        ({"missing": "drop"}, "missing='drop'"),
        ({"observed": np.arange(9) * np.ones((12, 1)) > 0}, r"1 of the features of X \(0\) are missing in all samples"),
        ({"observed": sp.csr_array(np.arange(9) * np.ones((12, 1)) > 0)}, "missing in all samples"),
        ({"observed": np.ones((2, 2))}, r"observed has shape \(2, 2\)"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"checkpoint": 3}, "checkpoint=3: give the path"),
        ({"X": -np.ones((3, 3))}, "negative"),
        ({"X": np.full((3, 3), np.nan)}, "(?i)nan"),
        ({"X": np.zeros((6, 6))}, "none of them above zero"),
        ({"X": np.ones(3)}, "(?i)2-dimensional|two|shape"),
    ],
)
def test_bad_arguments_are_rejected(X, change, message):
    with pytest.raises(ValueError, match=message):
        pw.select(**{"X": X, "ranks": 1, "holdout": 0.3, **QUICK, **change})


def test_a_file_too_large_for_memory_is_refused(X, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    assert pw.select(tmp_path / "x.npy", 2, **QUICK).rows == pw.select(X, 2, **QUICK).rows
    monkeypatch.setattr("partwise.data.LIMIT", 400)
    with pytest.raises(ValueError, match="select needs X in memory"):
        pw.select(tmp_path / "x.npy", 2, **QUICK)


def test_a_table(X):
    found = pw.select(X, [1, 2], [None, 0.3], **QUICK)
    assert isinstance(found, Selection)
    assert found.table["sparsity"].tolist() == [None, 0.3] * 2
    assert found.table["heldout_error"].tolist() == [row["heldout_error"] for row in found.rows]
    lines = repr(found).splitlines()
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1
    assert re.match(r" *1 +none +0\.\d{4}", lines[1])


def test_plot(X, tmp_path):
    found = pw.select(X, [1, 2, 3], [None, 0.3], **QUICK)
    figure = draw(found, title="a title")
    above, below = figure.axes
    assert [axis.get_ylabel()[:8] for axis in (above, below)] == ["held-out", "stabilit"]
    assert len(above.containers) == len(below.containers) == 2
    assert not above.texts  # errors far below 1
    drawn = above.containers[1].lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, [row["heldout_error"] for row in found.rows if row["sparsity"] == 0.3])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["none", "0.3"]
    figure.savefig(tmp_path / "choice.png")
    alone = draw(pw.select(X, range(1, 15), **{**QUICK, "n_init": 1, "n_splits": 1, "max_iter": 1}))
    assert "n_init" in alone.axes[1].texts[0].get_text()
    alone.savefig(tmp_path / "alone.png")
    bad = [{**row, "heldout_error": 1 + row["heldout_error"]} for row in found.rows]
    assert [text.get_text() for text in draw(Selection(bad)).axes[0].texts] == ["predicting zeros"]
    with pytest.raises(ValueError, match="has type list: give the Selection"):
        draw(found.rows)


def test_command(X, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    quick = ["--n-splits", "2", "--n-init", "2", "--max-iter", "4", "--tol", "0", "--seed", "0"]
    asked = ["select", "x.npy", "--components", "1:2", "--sparsity", "none", "0.2:0.4", *quick]
    found = pw.select(X, [1, 2], [None, (0.2, 0.4)], **QUICK)
    assert main([*asked, "--out", "table.csv", "--png", "choice.png", "--checkpoint", "search.pw"]) == 0
    said = capsys.readouterr().out
    assert repr(found) in said
    with open("table.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sparsity"] for row in rows] == ["none", "0.2:0.4"] * 2
    assert [float(row["heldout_error"]) for row in rows] == [row["heldout_error"] for row in found.rows]
    assert (tmp_path / "choice.png").stat().st_size > 5000
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][1]["stability"] == found.rows[1]["stability"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--components", "2", "--sparsity", "1.2"], 2, "outside [0, 1]"),
        (["--components", "2", "--out", "t.xlsx"], 1, "supported here are .csv .tsv"),
        (["--components", "2", "--holdout", "2"], 1, "--holdout 2.0"),
    ],
)
def test_bad_command_is_one_line(X, tmp_path, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    assert main(["select", "x.npy", *arguments]) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_parsing_of_ranks():
    assert (counts_of("5"), counts_of("2:4"), counts_of("10:30:10")) == ([5], [2, 3, 4], [10, 20, 30])
    for text in ("4:2", "0", "1:2:0", "1:2:3:4", "a"):
        with pytest.raises(ArgumentTypeError, match=f"'{text}': give a whole number of at least 1, or a range"):
            counts_of(text)


def test_progress_line():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None, legacy_windows=False)
    with counting_line("select", 5, 2, console) as advance:
        advance()
    assert "3/5" in console.file.getvalue()


def test_log_has_the_time_left():
    console = Console(file=io.StringIO(), width=80)
    with counting_line("select", 4, 0, console) as advance:
        for _ in range(3):
            advance()
    said = [
        line for line in console.file.getvalue().splitlines() if line
    ]  # older versions of rich end with an empty one
    assert said[0] == "select: 1 of 4"
    assert re.fullmatch(r"select: 3 of 4, about 0:00:0\d left", said[-1])


def test_log_of_many_tasks_is_short():
    console = Console(file=io.StringIO(), width=80)
    with counting_line("select", 900, 0, console) as advance:
        for _ in range(900):
            advance()
    said = [line for line in console.file.getvalue().splitlines() if line]
    assert len(said) == 20
    assert "900 of 900" in said[-1]


def test_notebook_shows_the_table(X):
    found = pw.select(X, [1, 2], [None, (0.2, 0.4)], n_splits=1, n_init=1, max_iter=2, random_state=0)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found.rows)
    assert "<th>held-out error</th>" in html
    assert f"<td>{found.rows[0]['heldout_error']:.4f}</td>" in html
    assert "<td>0.2:0.4</td>" in html


@pytest.mark.parametrize(
    ("recipe", "params", "sparsities"),
    [
        ("nmfsc", None, [0.4]),
        ("l0", {"nonzeros": 2}, [None]),
        ("nnsc", {"l1": 0.1}, [None]),
        ("snmf", {"beta": 0.1}, [None]),
        ("grouped", None, [0.4]),
        ("ssnmf", {"solver": "pivot"}, [None, 0.4]),
    ],
)
@pytest.mark.filterwarnings("ignore::partwise.CapacityWarning")
def test_other_recipes(X, recipe, params, sparsities):
    options = {"n_splits": 1, "n_init": 1, "max_iter": 5, "random_state": 0}
    found = pw.select(X, [2, 3], sparsities, recipe=recipe, recipe_params=params, **options)
    assert [row["rank"] for row in found.rows] == [2] * len(sparsities) + [3] * len(sparsities)
    assert all(0 < row["heldout_error"] < 2 for row in found.rows)
    plain = pw.select(X, [2, 3], sparsities if recipe in ("ssnmf", "nmfsc") else [None], **options)
    assert found.rows[0]["train_error"] != plain.rows[0]["train_error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "best"}, "recipe='best'"),
        ({"recipe_params": 3}, "recipe_params=3 is not a dict"),
        ({"recipe_params": {"sparsity": 0.5}}, "does not accept .'sparsity'."),
        ({"recipe": "l0"}, "recipe l0 needs .'nonzeros'."),
        ({"recipe": "nnsc", "recipe_params": {"l1": 0.1}, "sparsities": [0.5]}, "recipe nnsc has no sparsity"),
        ({"recipe": "nsnmf"}, "needs all entries of X"),
    ],
)
def test_invalid_recipes(X, options, message):
    with pytest.raises(ValueError, match=message):
        pw.select(X, [2], n_splits=1, n_init=1, max_iter=2, random_state=0, **options)

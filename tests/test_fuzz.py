"""`fuzz.py` finds what it looks for: planted violations of each law fail, and a short run does not."""

import inspect
import os
import sys
from dataclasses import replace
from itertools import count

import fuzz
import fuzz_files
import numpy as np
import pytest


def crashes(seed, folder):
    os.abort()


def goes_on(seed, folder):
    while True:
        pass


def fills_memory(seed, folder):
    return [str(len(b"x" * 2**29))]


def claims_memory(seed, folder):
    bytearray(2**45)


def succeeds(seed, folder):
    (folder / "made").touch()
    return ["read"]


def tried(case, tmp_path, most=1, **limits):
    worker = fuzz.Worker(**limits)
    return fuzz.run({"planted": f"{__name__}:{case.__name__}"}, range(3), 60, tmp_path, worker, most)


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")


@pytest.mark.parametrize(
    ("case", "limits", "reason"),
    [
        (crashes, {}, "the process ended with exit code"),
        (goes_on, {"patience": 1}, "it took more than 1 seconds"),
        pytest.param(fills_memory, {"resident": 2**29}, "it takes too much memory", marks=[linux, pytest.mark.slow]),
        pytest.param(claims_memory, {}, "MemoryError", marks=linux),
    ],
)
def test_a_case_that_ends_its_process_or_takes_too_much_fails(tmp_path, capsys, case, limits, reason):
    _, ((name, seed, found),) = tried(case, tmp_path, **limits)
    assert (name, seed) == ("planted", 0)
    assert reason in found
    assert reason in (tmp_path / "planted-0" / "failure.txt").read_text()
    assert "python tests/fuzz.py --kind planted --seed 0" in capsys.readouterr().out


def test_cases_run_in_another_process(tmp_path):
    counts, failures = tried(succeeds, tmp_path)
    assert (counts, failures, list(tmp_path.iterdir())) == ({"planted": {"read": 3}}, [], [])


# readers


def raises(error, cause=None):
    def read(path):
        raise error from cause

    return read


@pytest.mark.parametrize(
    ("error", "cause", "reason"),
    [
        (KeyError("x"), None, "x"),
        (ValueError("x.npy\nis broken"), None, "not one sentence"),
        (ValueError("it is broken"), None, "does not name the file"),
        (ValueError(""), None, "no message"),
        (ValueError("x.npy: not enough memory"), MemoryError(), "too much memory"),
    ],
)
def test_a_reader_that_raises_another_error_fails(error, cause, reason):
    from fuzz_files import refused

    with pytest.raises((AssertionError, KeyError), match=reason):
        refused(lambda: raises(error, cause)("x.npy"), "x.npy")


def test_a_table_of_another_shape_fails():
    from fuzz_files import X, look

    from partwise.io import Table

    class Other(Table):
        def blocks(self):
            yield 0, X[:, :2]

    look(Table(X, "made up", "nowhere"))
    with pytest.raises(AssertionError, match="but the table claims 4 × 5"):
        look(Other(X, "made up", "nowhere"))


@pytest.mark.filterwarnings("ignore")
def test_all_files_are_read_before_they_are_damaged(tmp_path):
    from fuzz_files import READERS, TABLES, contents

    from partwise.io import FORMATS

    endings = {ending for form in FORMATS for ending in form.endings}
    left = {".txt", ".tsv.gz", ".txt.gz", ".jpeg", ".tiff"}  # other names of the same
    sources = []
    for makers, read, _ in READERS[:1] + READERS[2:]:
        for make in makers.values():
            source, files = contents(make)
            home = tmp_path / str(len(sources))
            for name, content in files.items():
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                (home / name).write_bytes(content)
            read(home / source)
            sources.append(source.name)
    assert len(TABLES) < len(sources)
    assert {e for e in endings - left if not any(name.endswith(e) for name in sources)} == set()


# fits


def test_all_parameters_are_drawn():
    from fuzz_fits import DRAWN, RECIPES, values_of

    for name, recipe in RECIPES.items():
        assert [p for p in inspect.signature(recipe).parameters if p not in DRAWN and values_of(name, p) is None] == []


def changed(**fields):
    """A fit and the same with other fields."""
    from catalogues import RECIPES

    X = np.arange(12.0).reshape(4, 3)
    result = RECIPES["ssnmf"](X, 2, max_iter=3, tol=0)
    return RECIPES["ssnmf"], X, replace(result, **{k: v(getattr(result, k)) for k, v in fields.items()})


def dense(factors):
    return [factors[0], factors[1] + 0.1]


@pytest.mark.parametrize(
    "fields",
    [
        {"losses": lambda losses: losses[::-1]},
        {"factors": dense},
        {"factors": lambda factors: [np.full_like(factors[0], np.nan), factors[1]]},
        {"relative_error": lambda error: error + 1e-6},
    ],
    ids=["loss", "sparsity", "finite", "error"],
)
def test_a_fit_that_breaks_its_promise_fails(fields):
    from test_descent import assert_lawful

    assert_lawful(*changed())
    with pytest.raises(AssertionError):
        assert_lawful(*changed(**fields))


def test_other_bits_fail():
    from fuzz_fits import assert_resumable, assert_same

    *_, result = changed()
    number = count()
    with pytest.raises(AssertionError):
        assert_same(result, changed(factors=dense)[2])
    with pytest.raises(AssertionError):
        assert_resumable(lambda **asked: changed(factors=dense)[2] if next(number) else result, result, {})


def test_errors_of_a_running_fit_fail():
    from fuzz_fits import outcome

    import partwise as pw

    def broken(iteration):
        raise ValueError("inside")

    with pytest.raises(AssertionError, match="the fit has failed"):
        outcome(lambda: pw.ssnmf(np.eye(3), 2, callback=broken))
    assert outcome(lambda: pw.ssnmf(np.eye(3), 0)) is None
    with pytest.raises(KeyError):
        outcome(lambda: {}["x"])


@pytest.mark.slow
def test_a_short_run_has_no_failures(tmp_path, capsys):
    assert fuzz.main(["--seconds", "5", "--first", "0", "--found", str(tmp_path)]) == 0
    assert "failures: 0" in capsys.readouterr().out


def test_a_tiff_with_endless_pages_is_refused(tmp_path):
    assert fuzz_files.case(2530765487, tmp_path) == ["refused"]

"""The command line, and an import that costs nothing until something is used."""

import os
import re
import subprocess
import sys

import pytest

import partwise

HEAVY = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "rich")


def run(*arguments, **environment):
    wide = {"COLUMNS": "160", "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | wide, capture_output=True, encoding="utf-8", timeout=300
    )


def partwise_command(*arguments):
    return run("-m", "partwise", *map(str, arguments))


def test_help():
    done = partwise_command("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert done.stderr == ""
    assert "--sparsity" in partwise_command("demo", "--help").stdout


def test_version():
    done = partwise_command("--version")
    assert (done.returncode, done.stdout) == (0, f"partwise {partwise.__version__}\n")


@pytest.mark.parametrize(
    "code",
    [
        "import partwise",
        "import partwise; dir(partwise); partwise.__version__",
        "import partwise.cli; partwise.cli.parser().format_help()",
        "import runpy; sys.argv = ['partwise', '--help']\n"
        "try: runpy.run_module('partwise', run_name='__main__')\nexcept SystemExit as e: assert not e.code",
    ],
)
def test_nothing_heavy_is_imported(code):
    done = run("-c", f"import sys\n{code}\nassert not set({HEAVY}) & set(sys.modules), set({HEAVY}) & set(sys.modules)")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_public_name_is_there():
    assert dir(partwise) == sorted(partwise.__all__)
    for name in partwise.__all__:
        assert getattr(partwise, name) is not None
    with pytest.raises(AttributeError, match="module 'partwise' has no attribute 'SparsNMF'"):
        partwise.SparsNMF  # noqa: B018


@pytest.mark.compiled
def test_demo(tmp_path):
    picture = tmp_path / "parts.png"
    done = partwise_command("demo", "--out", picture, "--components", 4, "--sparsity", 0.5, 0.25)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in done.stdout
    rows = re.findall(r"│ +(\S+) +│ +(\S+) ± (\S+) +│ +(\S+) +│ +(\d+) +│", done.stdout)
    assert [float(asked) for asked, *_ in rows] == [0.5, 0.25]
    for asked, achieved, deviation, error, n_iter in rows:
        assert float(achieved) == pytest.approx(float(asked), abs=1e-6)
        assert float(deviation) < 1e-10
        assert 0 < float(error) < 1
        assert int(n_iter) > 0


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sparsity", "1.2"], "sparsity=1.2 is outside [0, 1]"),
        (["--sparsity", "0.5", "-1"], "sparsity=-1.0 is outside [0, 1]"),
        (["--components", "0"], "n_components=0"),
        (["--seed", "-3"], "random_state=-3"),
    ],
)
def test_a_bad_value_is_one_line(tmp_path, arguments, message):
    done = partwise_command("demo", "--out", tmp_path / "parts.png", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.startswith("partwise: ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["nowhere/parts.png", "parts.docx", "folder.png"])
def test_a_picture_that_cannot_be_written(tmp_path, name):
    (tmp_path / "folder.png").mkdir()
    done = partwise_command("demo", "--out", tmp_path / name, "--components", 2, "--sparsity", 0.2)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("partwise: ")
    assert name.removeprefix("parts.") in last


@pytest.mark.compiled
def test_the_picture_is_where_the_demo_says(tmp_path):
    done = partwise_command("demo", "--out", tmp_path / "parts", "--components", 2, "--sparsity", 0.2)
    assert done.returncode == 0
    (picture,) = tmp_path.iterdir()
    assert done.stdout.rstrip().endswith(f"{picture}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["dem"], "invalid choice: 'dem'"), ([], "COMMAND"), (["demo", "--sparsity", "x"], "invalid float value: 'x'")],
)
def test_a_bad_command(arguments, message):
    done = partwise_command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "usage: partwise" in done.stderr
    assert "Traceback" not in done.stderr

"""The command line, and an import that costs nothing until something is used."""

import re
import subprocess
import sys

import pytest

import partwise
from partwise.cli import main

HEAVY = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "rich")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, encoding="utf-8", timeout=300)


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_package_is_a_command(flag):
    done = run("-m", "partwise", flag)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"partwise {partwise.__version__}\n", "")


@pytest.mark.parametrize(("arguments", "word"), [(["--help"], "demo"), (["demo", "--help"], "--sparsity")])
def test_help(arguments, word, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    said = capsys.readouterr()
    assert word in said.out
    assert said.err == ""


def test_no_command_is_answered_with_the_help(capsys):
    assert main([]) == 2
    said = capsys.readouterr()
    assert (said.out, "first steps:" in said.err, "2 malformed option or no command" in said.err) == (
        "",
        True,
        True,
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(capsys, shell):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as stop:
        main(["--print-completion", shell])
    assert not stop.value.code
    script = capsys.readouterr().out
    files = "/f/" if shell == "tcsh" else "_files"
    assert not [word for word in ("transform", "checkpoint-every", "nndsvd", files) if word not in script]


def test_completion_without_shtab(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as stop:
        main(["--print-completion", "bash"])
    assert stop.value.code == 1
    assert capsys.readouterr().err == "partwise: shell completion needs shtab: pip install 'partwise[completion]'\n"


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


def demo(capsys, *arguments):
    """What the demo returns, prints and complains of."""
    code = main(["demo", *map(str, arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    picture = tmp_path / "parts.png"
    code, out, err = demo(capsys, "--out", picture, "--components", 4, "--sparsity", 0.5, 0.25)
    assert code == 0
    assert all(": iteration " in line or "compiling" in line for line in err.splitlines())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in out.replace("\n", "")
    rows = re.findall(r"│ +(\S+) +│ +(\S+) ± (\S+) +│ +(\S+) +│ +(\d+) +│", out)
    assert [float(asked) for asked, *_ in rows] == [0.5, 0.25]
    for asked, achieved, deviation, error, n_iter in rows:
        assert float(achieved) == pytest.approx(float(asked), abs=1e-6)
        assert float(deviation) < 1e-10
        assert 0 < float(error) < 1
        assert int(n_iter) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sparsity", "1.2"], "--sparsity 1.2 is outside [0, 1]"),
        (["--sparsity", "0.5", "-1"], "--sparsity -1.0 is outside [0, 1]"),
        (["--components", "0"], "--components 0"),
        (["--seed", "-3"], "--seed -3"),
    ],
)
def test_a_bad_value_is_one_line(tmp_path, capsys, arguments, message):
    code, _, err = demo(capsys, "--out", tmp_path / "parts.png", *arguments)
    assert code == 1
    (line,) = [line for line in err.splitlines() if ": iteration " not in line]
    assert line.startswith("partwise: ")
    assert message in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["nowhere/parts.png", "parts.docx", "folder.png"])
def test_a_picture_that_cannot_be_written(tmp_path, capsys, name):
    (tmp_path / "folder.png").mkdir()
    code, _, err = demo(capsys, "--out", tmp_path / name, "--components", 2, "--sparsity", 0.2)
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("partwise: ")
    assert name.removeprefix("parts.") in last


def test_the_picture_is_where_the_demo_says(tmp_path, capsys):
    code, out, _ = demo(capsys, "--out", tmp_path / "parts", "--components", 2, "--sparsity", 0.2)
    assert code == 0
    (picture,) = tmp_path.iterdir()
    assert out.replace("\n", "").endswith(str(picture))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["dem"], "invalid choice: 'dem'"), (["demo", "--sparsity", "x"], "invalid float value: 'x'")],
)
def test_a_bad_command(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "usage: partwise" in said

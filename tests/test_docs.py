"""Every code block of the README and the docs runs, page by page, each page in an empty folder.

``python`` blocks of a page share their variables, ``sh`` blocks can run ``partwise``, and ``text`` is not run. Hidden
setup code (for example a file that the reader has) is in a comment ``<!-- python … -->`` or ``<!-- sh … -->``.
"""

import builtins
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import sklearn.exceptions

import partwise

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "index.md"})]  # the site's
BLOCK = re.compile(r"^(?:```|<!-- )(\w*)\n(.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "sh", "text"}


def blocks(page):
    """(language, code) of each block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_has_a_language(page):
    assert {language for language, _ in blocks(page)} <= LANGUAGES
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    hidden = re.findall(r"^<!-- (?:python|sh)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) + 2 * len(hidden) == 2 * len(blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if {"python", "sh"} & {language for language, _ in blocks(page)}],
    ids=lambda page: page.stem,
)
def test_every_block_runs(page, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "partwise"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m partwise "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    script = work / "page.py"
    lines = ["import subprocess", "if __name__ == '__main__':"]  # a cluster's workers import the page again
    for language, code in blocks(page):
        if language == "python":
            lines += [f"    {line}" for line in code.splitlines()]
        elif language == "sh":
            lines.append(f"    subprocess.run(['bash', '-euo', 'pipefail', '-c', {code!r}], check=True)")
    script.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(script)],
        cwd=work,
        env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "MPLBACKEND": "agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def anchors(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted({*PAGES, *ROOT.glob("*.md")}), ids=lambda page: page.stem)
def test_local_links_exist(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), target


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.md)\)", index)) == {page.name for page in PAGES if page.stem != "README"}


def script(name):
    """Import a script of the docs as a module."""
    spec = spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_api_page_is_up_to_date():
    make_api = script("make_api")
    written = make_api.PAGE.read_text(encoding="utf-8")
    assert written == make_api.page(), "run `python docs/make_api.py`"
    assert not [name for name in partwise.__all__ if f"\n| `{name}` | " not in written]
    assert not re.findall(r"^\| `.*` \|\s*\|$", written, re.MULTILINE)


def test_race_picture_has_a_dot_for_every_method_and_dataset():
    make_race = script("make_race")
    page = make_race.PAGE.read_text(encoding="utf-8")
    row = "| 0.5 | other | 0.1 | 2.00 | 0.250 | inf | 1.0 | 0.5 (0.5 – 0.5) | 0 | 1 |"
    assert list(make_race.speedups(f"# Race\n## faces: 9 × 4\n{row}\n")) == [("faces", "0.5", "other", 4.0)]
    for axes, (_, methods) in zip(make_race.draw(page).axes, make_race.PANELS.values(), strict=True):
        assert [len(dots.get_xdata()) for dots in axes.lines[:-1]] == [len(methods)] * page.count("\n## ")


def test_public_modules_need_no_import():
    rooms = ("brain", "cells", "datasets", "io", "plotting", "report", "sound")
    code = f"import partwise; [getattr(partwise, name) for name in {rooms}]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_names_in_the_docs_are_public():
    rooms = {
        name: getattr(partwise, name).__all__ for name in ("brain", "cells", "datasets", "io", "plotting", "sound")
    }
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, inner in re.findall(r"\b(?:pw|partwise)\.(?!json)([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?", text):
            assert name in partwise.__all__, (page.name, name)
            assert not inner or inner in rooms.get(name, inner), (page.name, name, inner)
        for name in re.findall(r"`(\w+(?:Warning|Error))`", text):
            assert hasattr(partwise, name) or hasattr(builtins, name) or hasattr(sklearn.exceptions, name), name

"""The site is built once: no warnings, no broken links, nothing loaded from elsewhere. Examples are short."""

import ast
import re
import shutil
import subprocess
import sys

import pytest
from test_docs import ROOT, script

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
GENERATED = ("gallery", "project", "reference")  # folders that a build adds to docs/


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site. A warning is an error, also in an example."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    shutil.copytree(ROOT / "examples", folder / "examples")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", folder / "docs", folder / "site"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_every_link_of_the_site_works_and_nothing_is_loaded_from_elsewhere(site):
    assert not list(script("check_site").problems(site))


@pytest.mark.slow
def test_every_public_name_has_a_page(site):
    for module, names in script("make_api").names().items():
        for name in names:
            page = (site / "reference" / f"{module}.{name}.html").read_text(encoding="utf-8")
            assert f'id="{module}.{name}"' in page or f'id="module-{module}.{name}"' in page, name


@pytest.mark.slow
def test_docstrings_are_shown_as_meant(site):
    """Initials are no list, a default is no object in memory, code keeps its quotes, constants are no class."""
    for page in sorted((site / "reference").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        wrong = ["upperalpha", "&lt;class", "default=’", "{“", "Built-in immutable sequence", "str(object="]
        assert not [words for words in wrong if words in text], page.name


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_its_picture(site, example):
    section, name = example.parent.name, example.stem
    page = (site / "gallery" / section / f"{name}.html").read_text(encoding="utf-8")
    assert f"sphx_glr_{name}_001.png" in page
    assert f"{section}/{name}.html" in (site / "gallery" / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_navigation_has_every_page_and_hidden_code_is_left_out(site):
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index", "README"}
    navigation = (site / "start.html").read_text(encoding="utf-8") + (site / "index.html").read_text(encoding="utf-8")
    assert not [name for name in pages if f'href="{name}.html"' not in navigation and name != "start"]
    assert "<!-- python" not in "".join(page.read_text(encoding="utf-8") for page in site.glob("*.html"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_begin_with_a_title(example):
    text = example.read_text(encoding="utf-8")
    title, line, *_ = ast.get_docstring(ast.parse(text)).split("\n")
    assert line == "=" * len(title)
    assert len(text.splitlines()) <= 60
    assert text.endswith("plt.show()\n")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<p id='here'>text <a href='other.html#there'>other</a> <a href='#here'>here</a></p>", None),
        ("<a href='https://example.org/page'>a link may lead elsewhere</a>", None),
        ("<a href='absent.html'>gone</a>", "index.html links to absent.html, which does not exist"),
        ("<a href='other.html#gone'>gone</a>", "index.html links to other.html#gone, where there is no such anchor"),
        ("<img src='absent.png'>", "index.html links to absent.png, which does not exist"),
        ("<script src='https://example.org/a.js'></script>", "index.html loads https://example.org/a.js"),
        ("<img src='a.css' srcset='a.css, //example.org/b.png 2x'>", "index.html loads //example.org/b.png"),
    ],
)
def test_a_broken_site_is_noticed(tmp_path, body, problem):
    (tmp_path / "index.html").write_text(body)
    (tmp_path / "other.html").write_text("<p id='there'></p>")
    (tmp_path / "a.css").write_text("@import 'b.css'; p { background: url(b.png) }")
    assert list(script("check_site").problems(tmp_path)) == ([problem] if problem else [])


def test_a_style_from_elsewhere_is_noticed(tmp_path):
    (tmp_path / "a.css").write_text("@import url('https://example.org/font.css');")
    assert list(script("check_site").problems(tmp_path)) == ["a.css loads https://example.org/font.css"]


def test_generated_folders_are_ignored_by_git():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {f"docs/{folder}/" for folder in GENERATED} <= set(ignored)
    assert re.search(r"^SITE := build/", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

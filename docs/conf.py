"""The site: ``make docs`` builds it from these pages, the docstrings and the examples. Nothing is downloaded.

The pages stay plain Markdown. What the site adds is made here from what exists: the navigation from the tables of
README.md, a page per public name (`make_api`), and the project's own pages (changelog, contributing, …) as copies.
"""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import make_api  # noqa: E402

from partwise import __version__  # noqa: E402

project, author, version, release = "Partwise", "The Partwise developers", __version__, __version__
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["gallery/**/*.md5", "gallery/**/*.ipynb"]
default_role = "py:obj"  # `name` in a docstring is a link, if there is a page about that name
smartquotes = False  # {"auto", False} in a docstring is code
highlight_language = "none"  # formulas are indented, too
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!partwise\.).*")]  # links to other libraries would need their sites
suppress_warnings = ["config.cache"]

myst_heading_anchors = 4  # as on a forge
numpydoc_show_class_members = False  # the pages list them
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "Partwise"
html_static_path = ["_static"]
html_css_files = ["partwise.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader prefers
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "race": [], "recipes": []},  # their tables need the room
}
html_sidebars = {"index": [], "project/CHANGELOG": []}

PLAYERS = {".wav": '<audio controls src="{url}"></audio>', ".html": '<iframe src="{url}" title="{name}"></iframe>'}
WRITTEN = HERE / "gallery" / "written"  # copied to the top of the site
html_extra_path = ["gallery/written"]


def written(block: Any, variables: dict[str, Any], options: Any) -> str:
    """Show the sounds and web pages that an example has written, and move its files out of the folder of examples."""
    source, shown = Path(variables["src_file"]), []
    folder = WRITTEN / "files" / source.stem
    for path in sorted(source.parent.iterdir()):
        if path.suffix not in (".py", ".rst") and path.name != "__pycache__":
            target = folder / path.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            path.replace(target)
            shown += sorted(file for file in (target, *target.rglob("*")) if file.suffix in PLAYERS)
    lines = [".. raw:: html", ""]
    for file in shown:
        url = f"../../{file.relative_to(WRITTEN).as_posix()}"
        player = PLAYERS[file.suffix].format(url=url, name=file.name)
        lines.append(f"    <figure>{player}<figcaption><a href='{url}'>{file.name}</a></figcaption></figure>")
    return "\n".join([*lines, ""]) if shown else ""


def example_order(file: str) -> tuple[bool, str]:
    """The examples of a section by name, after the first one to read."""
    return Path(file).name != "faces.py", file


warnings.filterwarnings("error", category=UserWarning)  # in examples; those of Sphinx are errors with -W
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": example_order,
    "subsection_order": ["../examples/models", "../examples/fields", "../examples/data"],
    "thumbnail_size": (560, 252),
    "nested_sections": False,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": (),
    "image_scrapers": ("matplotlib", written),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("partwise",),
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "min_reported_time": 1e6,  # the time depends on the machine
}

PROJECT = ("CONTRIBUTING", "ARCHITECTURE", "RELEASING", "SECURITY", "CODE_OF_CONDUCT", "CHANGELOG")
HEADED = {"api", "CHANGELOG"}  # have their own place in the header of the site


def write(path: Path, text: str) -> None:
    """Write a generated page, unless it is up to date: Sphinx reads changed files again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


PAGE = """\
{title}
{line}

{body}

.. minigallery:: {title}
   :add-heading: In the gallery
"""


def write_reference() -> None:
    """A page for each public name, in the folder reference/."""
    for module, names in make_api.names().items():
        for name in names:
            title = f"{module}.{name}"
            write(
                HERE / "reference" / f"{title}.rst",
                PAGE.format(title=title, line="=" * len(title), body=make_api.directive(title)),
            )


def write_project() -> None:
    """Copies of the Markdown files next to the folder docs/, in the folder project/."""
    for name in PROJECT:
        text = (HERE.parent / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](../")
        write(HERE / "project" / f"{name}.md", text)


def toctree(pages: list[str], caption: str = "") -> str:
    """A table of contents that only the navigation shows."""
    return "\n".join(
        ["\n```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *pages, "```\n"]
    )


def guide(text: str) -> str:
    """README.md, with a table of contents for each of its sections."""
    for section in text.split("\n## "):
        pages = re.findall(r"\]\((\w+)\.md\)", section)
        caption = section.split("\n")[0] if section[0] != "#" else ""
        text += toctree([page for page in pages if page not in HEADED], caption)
    return text


def api(text: str) -> str:
    """api.md, with a link for each name and a table of contents for each module."""
    sections = text.split("\n## ")
    for i, section in enumerate(sections[1:], 1):
        module = section.split("\n")[0]
        sections[i] = re.sub(r"^\| `([\w.]+)` \|", rf"| {{py:obj}}`\1 <{module}.\1>` |", section, flags=re.MULTILINE)
    contents = [toctree([f"{n} <reference/{m}.{n}>" for n in names], m) for m, names in make_api.names().items()]
    return "\n## ".join(sections) + "".join(contents)


def contributing(text: str) -> str:
    """CONTRIBUTING.md, with the project's other pages below it."""
    return text + toctree([name for name in PROJECT[1:] if name not in HEADED])


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Complete a page before it is read, without the code that only the tests run."""
    complete = {"README": guide, "api": api, "project/CONTRIBUTING": contributing}.get(page, str)
    text = re.sub(r"^<!-- (?:python|sh)\n.*?^-->\n", "", complete(source[0]), flags=re.MULTILINE | re.DOTALL)
    source[0] = re.sub(r"\]\(\.\./([A-Z]+\.md)", r"](project/\1", text)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    write_reference()
    write_project()
    WRITTEN.mkdir(parents=True, exist_ok=True)
    app.connect("source-read", read)

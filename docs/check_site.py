"""Checks a built site: ``python docs/check_site.py build/site``.

Every link and picture inside of it must exist, and no page may load a script, style, font or picture from elsewhere.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "audio": "src"}
ELSEWHERE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")  # in a style


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect from a tag."""
        found = dict(attributes)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if found.get(LOADED.get(tag, "")):
            self.loaded.append(found[LOADED[tag]] or "")
        self.loaded += [part.split()[0] for part in (found.get("srcset") or "").split(",") if part.strip()]


@cache
def page(path: Path) -> Page:
    """Read a page, once."""
    return Page(path.read_text(encoding="utf-8"))


def problems(site: Path) -> Iterator[str]:
    """One line for each broken link, and for each thing loaded from elsewhere."""
    for path in sorted(set(site.rglob("*.html")) - set((site / "_static").rglob("*"))):
        name = path.relative_to(site)
        for target in page(path).loaded:
            if urlsplit(target).netloc:
                yield f"{name} loads {target}"
        for target in {*page(path).links, *page(path).loaded}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not linked.is_file():
                yield f"{name} links to {target}, which does not exist"
            elif linked.suffix == ".html" and unquote(parts.fragment) not in page(linked).anchors | {""}:
                yield f"{name} links to {target}, where there is no such anchor"
    for path in sorted(site.rglob("*.css")):
        for target in ELSEWHERE.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads {target}"


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]).resolve())) or 0)

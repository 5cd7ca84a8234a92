"""The frame of all pages: one file that loads nothing, whose security policy allows its own style and script alone."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from importlib.resources import files

from ..runtime.untrusted import visible
from ..version import __version__


def quoted(text: str) -> str:
    """Text from a file for HTML, control characters as escapes."""
    return html.escape(visible(text))


def framed(heading: str, body: str, scripts: Sequence[str], blocks: Mapping[str, str] | None = None) -> str:
    """The complete page around ``body``.

    ``scripts`` are files that make one script, ``blocks`` the data for it: the text of elements by their id.
    """
    style, *pieces = ((files(__package__) / name).read_text(encoding="utf-8") for name in ("page.css", *scripts))
    code = "\n".join(pieces)
    policy = f"default-src 'none'; img-src data:; style-src '{hashed(style)}'; script-src '{hashed(code)}'"
    held = "".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in (blocks or {}).items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri 'none'; form-action 'none'">
<title>{heading}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
<footer>Made by Partwise {__version__}. One file; it loads nothing from the network.</footer>
</main>
{held}<script>{code}</script>
</body>
</html>
"""


def hashed(text: str) -> str:
    """The hash by which a security policy allows a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

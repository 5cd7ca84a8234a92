"""The minimum versions in pyproject.toml, as constraints for pip; ``make least`` installs them.

python tests/least.py
"""

import re
import tomllib
from pathlib import Path


def least():
    """``name==x`` for each ``name>=x`` or ``name==x``, without extras."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    for text in declared:
        if not text.startswith("partwise["):  # extras of our own, whose requirements are declared there
            name, version = re.fullmatch(r"([\w-]+)(?:\[\w+\])?[>=]=([\d.]+)", text).groups()
            yield f"{name}=={version}"


if __name__ == "__main__":
    print(*least(), sep="\n")

"""The command that repeats a result, for reports."""

from __future__ import annotations

import argparse
import shlex


def repeating(options: argparse.Namespace) -> dict[str, str]:
    """The command line, as a shell needs it."""
    return {"command": shlex.join(["partwise", *options.arguments])}

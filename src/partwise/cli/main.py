"""``partwise COMMAND``: finds the command, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..version import __version__
from . import demo, reproduce

COMMANDS = (demo, reproduce)  # each adds its parser by ``add``, and names what runs by ``set_defaults(run=…)``


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``partwise`` with ``arguments`` (by default the process's own); the exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ImportError, OSError, ValueError) as error:
        if options.debug:
            raise
        print(f"partwise: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("partwise: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The options; nothing heavy is imported for them, so that ``--help`` answers at once."""
    top = argparse.ArgumentParser(
        prog="partwise",
        description="Sparse nonnegative matrix factorization: you say how sparse each part must be, and partwise "
        "finds the parts.",
        epilog="Example: partwise demo --sparsity 0.4 0.6 0.8 --out parts.png",
    )
    top.add_argument("--version", action="version", version=f"partwise {__version__}")
    top.add_argument("--debug", action="store_true", help="show where an error comes from (a traceback)")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return top

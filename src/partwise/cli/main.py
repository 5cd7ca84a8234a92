"""``partwise COMMAND``: finds the command, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..version import __version__
from . import convert, demo, fit, info, select, show, transform
from .common import UsageError

# each adds its parser by ``add``, and names what runs by ``set_defaults(run=…)``
COMMANDS = (info, select, fit, show, transform, convert, demo)

EPILOG = """\
a first half hour:
  partwise demo                                             see it work
  partwise info faces/                                      what is there, and how sparse is it by itself?
  partwise select faces/ --ranks 10:40:10 --png rank.png    how many parts does the data support?
  partwise fit faces/ -r 25 -s 0.7 --png parts.png          find 25 parts of sparsity 0.7, and draw them
  partwise show faces.pw --html report.html                 a page with every part, its samples and the fit
  partwise transform faces.pw more-faces/ --out more.csv    how much of each part is in new images

`partwise COMMAND --help` has all options, with examples. Exit codes: 0 done, 1 the data or a file is not right,
2 the command is not right, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``partwise`` with ``arguments`` (by default the process's own); the exit code."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(), logged(getattr(options, "quiet", False)):
            if not options.debug:
                warnings.showwarning = said  # type: ignore[assignment]
                warnings.filterwarnings(
                    "ignore" if getattr(options, "quiet", False) else "always", category=UserWarning
                )
            code = int(options.run(options))
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, ValueError, MemoryError) as error:
        if options.debug:
            raise
        print(f"partwise: {in_a_sentence(error)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("partwise: interrupted", file=sys.stderr)
        return 130


@contextmanager
def logged(quiet: bool) -> Iterator[None]:
    """Show what the package logs: where standard error is no terminal, why a command waits for the compiler."""
    log, handler = logging.getLogger("partwise"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("partwise: %(message)s"))
    before = log.level
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def in_a_sentence(error: Exception) -> str:
    """What is wrong, in one line; what the system says of a file without its numbers."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be read or written: {error.strerror}; give another path"
    return " ".join(str(error).split()) or type(error).__name__


def said(message: Warning | str, *rest: object) -> None:
    """A warning in one line, without the source that gave it."""
    print(f"partwise: {' '.join(str(message).split())}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """The options; nothing heavy is imported for them, so that ``--help`` answers at once."""
    top = argparse.ArgumentParser(
        prog="partwise",
        description="Sparse nonnegative matrix factorization: you say how sparse each part must be, and partwise "
        "finds the parts.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"partwise {__version__}")
    top.add_argument("--debug", action="store_true", help="show where an error comes from (a traceback)")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return top

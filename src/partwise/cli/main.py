"""``partwise COMMAND``: runs a command; an error becomes one line and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from ..runtime.untrusted import visible
from ..version import __version__
from . import consensus, convert, demo, explore, fit, info, select, separate, show, transform
from .common import FORMATS, UsageError
from .wording import with_flags

# each module has SUMMARY, USAGE, EXAMPLES, add_options(parser) and run(options)
COMMANDS = (info, select, explore, consensus, fit, separate, show, transform, convert, demo)

EPILOG = """\
first steps:
  partwise demo                                             check the installation
  partwise info faces/                                      describe the data, suggest a sparsity
  partwise select faces/ -r 10:40:10 --png choice.png       how many components do the data support?
  partwise explore faces/ -r 25 --html explore.html         see the components at many sparsities
  partwise consensus faces/ -r 10:40:10 --runs 50 --out found.pw   which components recur over many runs?
  partwise fit faces/ -r 25 -s 0.7 --png components.png     find 25 components of sparsity 0.7 and draw them
  partwise show faces.pw --html report.html                 components, their samples and the fit on one page
  partwise transform faces.pw more-faces/ --out more.csv    activations of new images

Run `partwise COMMAND --help` for the options of a command, with examples.

Existing files are overwritten with --force only. If fit, transform, select, explore or consensus
cannot write a result to its file (disk full, …), they write it elsewhere, and the message says where.

exit codes: 0 success, 1 error in data, a file or a value, 2 malformed option or no command, 130 interrupted

shell completion (pip install 'partwise[completion]'):
  bash: echo 'eval "$(partwise --print-completion bash)"' >> ~/.bashrc
  zsh:  partwise --print-completion zsh > "${fpath[1]}/_partwise"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``partwise`` with ``arguments`` (default: ``sys.argv``) and return the exit code."""
    top, arguments = parser(), sys.argv[1:] if arguments is None else arguments
    if not arguments:
        top.print_help(sys.stderr)
        return 2
    options = top.parse_args(arguments, argparse.Namespace(arguments=[*arguments]))
    try:
        with warnings.catch_warnings(), logged(options.quiet), memory_for_files(options):
            if not options.debug:
                warnings.showwarning = lambda warning, *_: print_error(warning, options)
                warnings.filterwarnings("ignore" if options.quiet else "always", category=UserWarning)
            code = int(options.run(options))
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader of a pipe has stopped reading, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, ValueError, MemoryError) as error:
        if options.debug:
            raise
        print_error(error, options)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("partwise: interrupted", file=sys.stderr)
        return 130


@contextmanager
def memory_for_files(options: argparse.Namespace) -> Iterator[None]:
    """Limit the memory that files may take to ``--max-bytes``."""
    from ..engine.validation import as_bytes
    from ..runtime.untrusted import limited

    with limited(as_bytes(getattr(options, "max_bytes", None), "max_bytes")):
        yield


@contextmanager
def logged(quiet: bool) -> Iterator[None]:
    """Show log messages of the package on standard error."""
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


def print_error(error: Exception | str, options: argparse.Namespace) -> None:
    """Print an error or a warning as one line, in the terms of the command line."""
    line = " ".join(with_flags(str(error), vars(options)).split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename:
        line = f"cannot read or write {error.filename}: {error.strerror}"
    print(f"partwise: {visible(line)}", file=sys.stderr)


class PrintCompletion(argparse.Action):
    """Print a completion script made by shtab, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *values: Any) -> None:
        try:
            import shtab
        except ImportError:
            parser.exit(1, "partwise: shell completion needs shtab: pip install 'partwise[completion]'\n")
        commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        for action in chain.from_iterable(command._actions for command in commands.choices.values()):
            if action.metavar in ("DATA", "FILE", "MODEL", "NIFTI", "OUT"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, values[1]))
        parser.exit()


def add_debug(one: argparse.ArgumentParser, default: Any) -> None:
    """Add ``--debug``, which may be before or after the name of the command."""
    one.add_argument("--debug", action="store_true", default=default, help="show the traceback of an error")


def parser() -> argparse.ArgumentParser:
    """The command-line parser. It imports nothing heavy, so that ``--help`` is fast."""
    top = argparse.ArgumentParser(
        prog="partwise",
        description="Sparse nonnegative matrix factorization with a sparsity of your choice for each component.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("-V", "--version", action="version", version=f"partwise {__version__}")
    add_debug(top, False)
    top.add_argument(
        "--print-completion",
        choices=("bash", "zsh", "tcsh"),
        action=PrintCompletion,
        help="print a script for shell completion (needs shtab)",
    )
    top.set_defaults(quiet=False)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        one = commands.add_parser(
            name,
            help=command.SUMMARY,
            usage=f"partwise {name} {command.USAGE}",
            description=f"{command.SUMMARY}.",
            epilog=f"examples:\n{command.EXAMPLES}\n{FORMATS if 'DATA' in command.USAGE else ''}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(one)
        add_debug(one, argparse.SUPPRESS)  # the value of ``partwise --debug COMMAND`` is kept
        one.set_defaults(run=command.run)
    return top

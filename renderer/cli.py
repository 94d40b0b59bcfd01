"""The command line `rayfold`: the commands, their errors and exit codes.

Each command's options and work live in its own package, which is imported when the command runs, so that `--help`
answers at once. `--help` lists the exit codes.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from renderer import __version__
from renderer.errors import DiskFullError, KernelError, UnavailableError, UserError, is_disk_full
from renderer.paths import ASSETS, ensure_cache
from renderer.plain import printable
from renderer.system import process, trust
from renderer.system.files import read_toml
from renderer.system.progress import Progress


class Command(NamedTuple):
    """A command: what `--help` says, and the module whose functions declare its options and run it."""

    help: str
    example: str
    module: str
    declare: str = "add_arguments"
    run: str = "command"


COMMANDS = {name: Command(**row) for name, row in read_toml(ASSETS / "tables" / "commands.toml").items()}


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one sentence, and declares its options when it is first used.

    So `rayfold --help` imports no command.
    """

    def __init__(self, declare: Callable[[argparse.ArgumentParser], object] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._declare = declare

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Declares the options, then parses them; a command itself refuses an option that it does not know."""
        if self._declare:
            declare, self._declare = self._declare, None
            declare(self)
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and not self._subparsers:
            near = get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, 1)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{f'; is {near[0]} meant?' if near else ''}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Ends the program with one sentence and exit code 2."""
        self.exit(2, f"rayfold: {printable(message)} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command and its options."""
    parser = Parser(
        prog="rayfold",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # a path is not broken across lines
        description="Rayfold: ray tracing, fractals and GPGPU passes, live in one window and headless.\n"
        f"Guides: {ASSETS / 'guides'} (window.md, api.md, ...)",
        epilog="exit codes: 0 done, 1 the answer is no, 2 usage, 3 undecided or partial, 4 this\nmachine cannot, "
        "or a signal killed the run, 5 bad input file, 70 an internal error,\n130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"rayfold {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        commands.add_parser(
            name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + ".",
            epilog=f"example: {command.example}",
            declare=partial(_call, command.module, command.declare),  # of Parser, when the command is used
        )
    return parser


def _call(module: str, name: str, argument: object) -> int | None:
    """Calls a function that a row of COMMANDS names; one that runs a command returns the exit code."""
    code: int | None = getattr(import_module(module), name)(argument)
    return code


def run_process() -> NoReturn:
    """Runs the process's own command line, and ends the process."""
    # A script that imports the program may neither go on in a child process nor find lines of progress on its stderr.
    process.Supervision.allowed = Progress.writes_lines = True
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # else it is ignored, as in a script's background
        signal.signal(signal.SIGINT, lambda *_: os._exit(process.INTERRUPTED))  # after main(), which has its own
    process.limit_blas_spin()  # before the first import of NumPy
    process.end_process(main())


def main(argv: list[str] | None = None) -> int:
    """Runs the command line `argv` (default: the process's own); returns the exit code."""
    with process.safe_streams() as (stdout, stderr), process.stop_signals():
        code = _run(argv)
        stdout.flush()
        if stdout.error and not isinstance(stdout.error, BrokenPipeError):  # a reader that had enough is no error
            print(f"rayfold: the output cannot be written: {stdout.error}", file=stderr)
            code = code or DiskFullError.exit_code
    return code


def _run(argv: list[str] | None) -> int:
    """Parses the arguments and runs the command; returns its exit code, or the exit code of its error."""
    try:
        args = build_parser().parse_args(argv)
        ensure_cache()
        trust.apply(args)
        command = COMMANDS[args.command]
        return _call(command.module, command.run, args) or 0
    except (UserError, KernelError) as error:
        print(f"rayfold: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("rayfold: interrupted", file=sys.stderr)
        return process.INTERRUPTED
    except MemoryError:
        print("rayfold: not enough memory", file=sys.stderr)
        return UnavailableError.exit_code
    except Exception as error:  # the command's boundary: a sentence and a log in place of a traceback
        if is_disk_full(error):
            print("rayfold: the disk is full; files that were complete are kept", file=sys.stderr)
            return DiskFullError.exit_code
        words = " ".join(["rayfold", *(sys.argv[1:] if argv is None else argv)])
        print(f"rayfold: {process.log_internal_error(error, process.shorten(words))}", file=sys.stderr)
        return process.INTERNAL_ERROR

"""The command line `rayfold`: the commands, their errors and exit codes.

Each command's options and work live in its own package, which is imported when the command runs, so that `--help`
answers at once. The exit codes are those of `--help`.
"""

import argparse
import errno
import os
import sys
from typing import NoReturn

from renderer import __version__
from renderer.errors import KernelError, UserError
from renderer.paths import ensure_cache

EXAMPLES = {
    "demo": "rayfold demo",
    "view": "rayfold view cornell fern bunny.obj",
    "serve": "rayfold serve cornell --port 8377",
    "export": "rayfold export cornell -o cornell.png --size 512x512 --samples 64",
    "run": "rayfold run product --in a=a.npy --in b=b.npy -o c.npy",
    "sum": "rayfold sum big.npy --mode exact",
    "solve": "rayfold solve band.npz rhs.npy -o x.npy",
    "bench": "rayfold bench run mirrors -o today.jsonl",
    "doctor": "rayfold doctor",
}


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one sentence, and declares its options when it is first used.

    So `rayfold --help` imports no command.
    """

    def __init__(self, *words, declare=None, **named):
        super().__init__(*words, **named)
        self._declare = declare

    def parse_known_args(self, args=None, namespace=None):
        if self._declare:
            declare, self._declare = self._declare, None
            declare(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Ends the program with one sentence and exit code 2."""
        self.exit(2, f"rayfold: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command and its options."""
    parser = Parser(
        prog="rayfold",
        description="Rayfold: ray tracing, fractals and GPGPU passes, live in one window and headless.",
        epilog="exit codes: 0 done, 1 the answer is no, 2 usage, 3 undecided or partial, 4 this machine cannot, "
        "5 bad input file, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"rayfold {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (text, declare) in COMMANDS.items():
        commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"example: {EXAMPLES[name]}",
            declare=declare,
        )
    return parser


def _demo(command) -> None:
    command.add_argument("-o", "--output", default="demo.png", metavar="OUT", help="default: demo.png")
    command.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    command.add_argument("--json", action="store_true", help="print exactly one JSON object")


def _view(command) -> None:
    from renderer.window.app.command import add_view_arguments  # imports no library

    add_view_arguments(command)


def _serve(command) -> None:
    from renderer.window.app.command import add_serve_arguments

    add_serve_arguments(command)


def _export(command) -> None:
    from renderer.export.command import add_arguments  # imports no library

    add_arguments(command)


def _run(command) -> None:
    from renderer.cdollar.runtime.command import add_arguments  # imports no library

    add_arguments(command)


def _sum(command) -> None:
    from renderer.numerics.sums.command import add_arguments

    add_arguments(command)


def _solve(command) -> None:
    from renderer.numerics.band_lu.command import add_arguments

    add_arguments(command)


def _bench(command) -> None:
    from renderer.bench import add_arguments  # its sub-commands; imports nothing heavy

    add_arguments(command)


def _doctor(command) -> None:
    command.add_argument("--json", action="store_true", help="print exactly one JSON object")


COMMANDS = {
    "demo": ("draw the demo picture: four kinds of panels side by side", _demo),
    "view": ("open the window with live panels", _view),
    "serve": ("show the window in a browser, for machines without a screen", _serve),
    "export": ("render a picture, a video or frames to files, without a window", _export),
    "run": ("evaluate a C$ program", _run),
    "sum": ("add up huge arrays, fast or exactly", _sum),
    "solve": ("solve banded systems by P L U on CPU and GPUs", _solve),
    "bench": ("measure frame rates and tell regressions", _bench),
    "doctor": ("say what this machine can do and what brings what is missing", _doctor),
}


def dispatch(args: argparse.Namespace) -> int:
    """Runs the parsed command; returns its exit code."""
    if args.command == "demo":
        options = ["--device", args.device, *(["--json"] if args.json else [])]
        return dispatch(build_parser().parse_args(["export", "demo", "-o", args.output, *options]))
    if args.command == "view":
        from renderer.window.app.command import view as command
    elif args.command == "serve":
        from renderer.window.app.command import serve as command
    elif args.command == "export":
        from renderer.export.command import export as command
    elif args.command == "run":
        from renderer.cdollar.runtime.command import run as command
    elif args.command == "sum":
        from renderer.numerics.sums.command import command
    elif args.command == "solve":
        from renderer.numerics.band_lu.command import command
    elif args.command == "bench":
        from renderer.bench import command
    else:
        from renderer.doctor import doctor as command
    return command(args)


def main(argv: list[str] | None = None) -> int:
    """Runs the command line `argv` (default: the process's own); returns the exit code."""
    try:
        args = build_parser().parse_args(argv)
        ensure_cache()
        return dispatch(args)
    except (UserError, KernelError) as error:
        print(f"rayfold: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("rayfold: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our stdout went away; keep Python from complaining about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("rayfold: the disk is full; files that were complete are kept", file=sys.stderr)
        return 3

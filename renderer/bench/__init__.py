"""The command `rayfold bench`: its actions and their command-line options.

It times scenes (frames/s) and kernels, checks each result before timing it, and compares commits by A/B experiments.
`cases` defines what can be measured (its docstring says how to add a case), `measure` times one case, `run` lists and
times many, and `machine` describes the machine and the commit. `ab` runs the A/B experiment of cases or of any command;
`experiment` is its file, `verdict` its statistics, `conclusions` what follows from them, and `find` bisects. `records`
reads and writes record files (JSON lines with every raw time), `report` plots them.
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from renderer.errors import UserError
from renderer.paths import ROOT
from renderer.plain import Json
from renderer.system import arguments, trust
from renderer.system.arguments import duration, fraction, positive, seed, size
from renderer.system.files import resolve

MAX_PAIRS = 1000  # the exact test counts 2^pairs sign patterns in float64, whose largest number is 2^1024


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold bench ACTION`; returns the exit code."""
    _complete(args)
    function: Callable[[argparse.Namespace], int] = resolve_name(f"renderer.bench.{ACTIONS[args.action].function}")
    return function(args)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the actions of `rayfold bench` and their options to its parser."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, action in ACTIONS.items():
        description = f"{action.help[0].upper()}{action.help[1:]}."
        subparser = actions.add_parser(name, help=action.help, description=description)
        for names, settings in action.options:
            subparser.add_argument(*names, **settings)
        if FILES in action.options:
            trust.add_arguments(subparser, ("files", "output", "badge"))


Option = tuple[tuple[str, ...], Json]  # the arguments of one call of add_argument()


class Action(NamedTuple):
    """An action of `bench`: MODULE:FUNCTION in this package, one line of help, and its options.

    The module is imported when the action runs, so that --help imports neither devices nor matplotlib.
    """

    function: str
    help: str
    options: tuple[Option, ...]


def _option(*names: str, **settings: object) -> Option:
    return names, settings


def _pairs(text: str) -> int:
    if positive(text) > MAX_PAIRS:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to {MAX_PAIRS}")
    return positive(text)


def _complete(args: argparse.Namespace) -> None:
    """Completes --repo and --by; UserError for a repository without cases, unless --command names what is timed."""
    program = getattr(args, "program", None)
    scripts = [] if program else [name for name in getattr(args, "cases", ()) if re.search(r"\.py(::|$)", name)]
    for script in scripts:
        line = f'--command "python {script}" times it, --command "pytest {script}" its tests that call benchmark(...)'
        raise UserError(f"bench {args.action} {script}: is no case; {line}, by this program's plugin of pytest")
    if "repo" in args and args.repo is None:
        here = resolve(Path.cwd())
        repository = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), ROOT)
        if not program and repository != ROOT and not getattr(args, "cases", None) and not getattr(args, "case", None):
            action = "ab --base REF" if args.action in ("list", "run") else args.action
            known = f'bench {action} --command "python work.py" times its command'
            known += f", --repo {repository} takes its cases, --repo {ROOT} this program's"
            raise UserError(f"bench {args.action}: {repository} is another repository: {known}")
        args.repo = here if program else ROOT
    if "repo" in args and not program and not any((args.repo / name).is_dir() for name in ("scenes", "tests/fps")):
        raise UserError(
            f"--repo {args.repo}: has neither scenes/ nor tests/fps/; --command times any repository's command"
        )
    if not program and getattr(args, "by", "time") == "instructions":
        raise UserError("--by instructions: wants --command; of cases the time or the memory decides")
    if getattr(args, "by", "time") == "memory":
        args.by = "peak memory"  # the quantity's name in records: QUANTITIES in experiment.py
    if program and getattr(args, "cases", None):
        raise UserError("--command is timed as a whole; cases are not named beside it")


def fault(text: str) -> list[str]:
    """Parses --inject: returns the options of `bench sample` that slow its runs down or corrupt its result.

    With them the harness tests whether it detects a fault. ArgumentTypeError for other words.
    """
    if text == "pixel":
        return ["--spoil"]
    try:
        name, _, amount = text.partition("=")
        if name == "slowdown":
            return ["--slowdown", str(fraction(amount))]
    except argparse.ArgumentTypeError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} must be slowdown=8% or pixel")


def parameter(text: str) -> tuple[str, list[str]]:
    """Parses --parameter NAME=A,B,...; ArgumentTypeError for other words."""
    name, equals, values = text.partition("=")
    if not (name.isidentifier() and equals and values):
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=A,B,..., such as size=10,100")
    return name, values.split(",")


CASES = _option("cases", nargs="*", metavar="CASE", help="a case, or the leading parts of names; none means all")
FORCE = _option("--force", action="store_true", help=arguments.FORCE)
JSON = _option("--json", action="store_true", help="print exactly one JSON object")
OUTPUT = _option("-o", "--output", type=Path, metavar="F.jsonl", help="append records; ab and aa resume from it")
FILES = _option("files", nargs="+", type=Path, metavar="F.jsonl", help="record files, or folders of them")
MEASURING = (
    _option("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto"),
    _option("--size", type=size, metavar="WxH", help="of scenes (default: the size that each scene names)"),
    _option("--repo", type=lambda text: resolve(Path(text)), metavar="FOLDER",
            help="repository with scenes/ and tests/fps/ (default: this checkout; with --command: any, here)"),
)  # fmt: skip
LIMITS = (
    _option("--alpha", type=fraction, default=0.01, help="probability of a false alarm in a whole run (default 0.01)"),
    _option("--min-effect", type=fraction, default=0.02, metavar="SIZE", help="smallest effect reported (default 2%%)"),
    _option("--fail-on-undecided", action="store_true", help="exit code 1 for UNDECIDED too"),
)
EXPERIMENT = (
    CASES, *MEASURING, OUTPUT, *LIMITS, JSON,
    _option("--pairs", type=_pairs, default=10, help="pairs of processes for each case, at first (default 10)"),
    _option("--max-pairs", type=_pairs, default=40, help="of each of two stages, while undecided (default 40)"),
    _option("--seconds", type=duration, default=0.3, help="timed in each process (default 0.3)"),
    _option("--seed", type=seed, default=0, help="of the random orders of pairs"),
)  # fmt: skip
BY = _option("--by", choices=("time", "instructions", "memory"), default="time",
             help="what decides; instructions and memory alone need few processes and no idle machine (default time)",
)  # fmt: skip
COMMAND = (
    _option("--command", dest="program", metavar="LINE",
            help="time this command, as whole processes in worktrees of both commits; needs no case and no import"),
    _option("--setup", metavar="LINE", help="with --command: run once in each worktree first, untimed"),
    _option("--warmup", type=int, default=1, metavar="N", help="with --command: untimed runs at first (default 1)"),
    _option("--clock", choices=("wall", "cpu"), default="wall",
            help="with --command: wall time, or the processor's, which other programs disturb less (default wall)"),
    _option("--parameter", type=parameter, action="append", default=[], metavar="NAME=A,B,...",
            help="with --command: a case for each value, which stands for {NAME} in the command; may be repeated"),
    _option("--counts", choices=("auto", "none", "perf", "cachegrind"), default="auto",
            help="with --command: what counts instructions (default: perf_event_open, else valgrind if not too slow)"),
)  # fmt: skip
AB = (
    *EXPERIMENT, *COMMAND, BY,
    _option("--base", required=True, metavar="REF", help="commit, branch or tag to compare with"),
    _option("--head", metavar="REF", help="what is compared (default: the working tree as it is)"),
    _option("--inject", type=fault, default=[], metavar="FAULT",
            help="self-test: slowdown=8%% or pixel, in the head's processes"),
)  # fmt: skip
FIND = (
    *EXPERIMENT[1:], *COMMAND, BY,
    _option("--base", required=True, metavar="REF", help="a commit that is fast enough"),
    _option("--head", default="HEAD", metavar="REF", help="a commit that is slower (default: HEAD)"),
    _option("--case", metavar="CASE", help="the one case; with --command, a case that the command reports"),
)  # fmt: skip
RUN = (
    CASES, *MEASURING, OUTPUT, JSON,
    _option("--seconds", type=duration, default=1.0, help="timed, at least, for each case (default 1)"),
)  # fmt: skip
SAMPLE = (  # an older commit's `bench ab` passes these options, so they keep their names
    *MEASURING,
    _option("--case", required=True, help="the case to time"),
    _option("--seconds", type=duration, default=0.3, help="timed in all (default 0.3)"),
    _option("--turns", action="store_true", help="time one batch for each line on stdin: its seconds"),
    _option("--slowdown", type=float, default=0.0, help="self-test: the fraction by which runs are made slower"),
    _option("--spoil", action="store_true", help="self-test: corrupt the result"),
    _option("--picture", type=Path, metavar="F.npy", help="save the checked picture"),
    FORCE,
)
ACTIONS = {
    "list": Action("run:list_cases", "print the name of every case", (CASES, *MEASURING, JSON)),
    "run": Action("run:run_cases", "time cases, print a table, append records with -o", RUN),
    "ab": Action("ab:ab", "compare the working tree with --base REF: SLOWER, FASTER, SAME, UNDECIDED or INVALID", AB),
    "find": Action("find:find", "the commit between --base and --head that made a case slower, by bisection", FIND),
    "aa": Action("ab:aa", "compare the working tree with itself: the harness's own false-alarm rate on this machine",
                 (*EXPERIMENT, *COMMAND, BY)),
    "reanalyze": Action("ab:reanalyze", "the verdicts of a file of ab or aa again, with other limits",
                        (_option("file", type=Path, metavar="AB.jsonl", help="what ab or aa wrote"), *LIMITS, JSON)),
    "history": Action("report:history", "rates by commit from record files; never a verdict", (FILES, JSON)),
    "report": Action("report:report", "verdicts and plots of record files as one HTML page, or verdicts as text", (
        FILES,
        _option("-o", "--output", type=Path, metavar="report.html", help="the page, or the file of --text"),
        _option("--text", action="store_true", help="the verdicts as Markdown for a pull request"),
        _option("--badge", type=Path, metavar="F.svg", help="write a badge: SVG, or .json for shields.io's endpoint"),
        FORCE,
    )),
    "sample": Action("run:sample", "what ab runs in each fresh process", SAMPLE),
}  # fmt: skip

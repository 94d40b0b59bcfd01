"""Frame rates and kernel rates: results are checked, then timed; commits are compared in pairs of fresh processes.

`cases` defines what can be measured (its docstring says how to add a case), `measure` times one, `machine` describes
the machine and the commit; `ab` runs the A/B experiment, `experiment` is its file, `verdict` its statistics; `report`
plots records. Records are JSON lines with every raw time.
"""

import argparse
import json
import math
import sys
from pathlib import Path

from renderer.paths import ROOT

ACTIONS = {
    "list": "name every case",
    "run": "time cases, print a table, append records with -o",
    "ab": "compare the working tree with --base REF: SLOWER, FASTER, SAME, UNDECIDED or INVALID",
    "aa": "compare the working tree with itself: the harness's own false-alarm rate on this machine",
    "reanalyze": "the verdicts of a file of ab or aa again, with other limits",
    "history": "rates by commit from record files; never a verdict",
    "report": "plots of record files as one HTML page",
    "sample": "what ab runs in each fresh process",
}
MEASURING = ("run", "ab", "aa", "list", "sample")
MAX_PAIRS = 1000


def add_arguments(parser) -> None:
    """The arguments of `rayfold bench`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, words in ACTIONS.items():
        action = actions.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
        if name in MEASURING:
            _add_measuring(action, name)
        if name not in ("report", "sample"):
            action.add_argument("--json", action="store_true", help="print exactly one JSON object")
        _ADD.get(name, lambda action: None)(action)


def _add_measuring(action, name: str) -> None:
    if name != "sample":
        action.add_argument("cases", nargs="*", metavar="CASE", help="a name or its first part; none means all")
    action.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    action.add_argument("--size", type=_size, metavar="WxH", help="of scenes (default: what each scene says)")
    action.add_argument(
        "--repo", type=_folder, default=ROOT, help="repository with scenes/ and tests/fps/ (default: this one)"
    )
    if name in ("ab", "aa", "run"):
        action.add_argument("-o", "--output", metavar="F.jsonl", help="records; ab and aa resume from it")


def _add_run(action) -> None:
    action.add_argument("--seconds", type=_positive, default=1.0, help="timed, at least, for each case (default 1)")


def _add_experiment(action) -> None:
    action.add_argument("--pairs", type=_pairs, default=10, help="of processes for each case, at first (default 10)")
    action.add_argument("--max-pairs", type=_pairs, default=40, help="while undecided (default 40)")
    _add_limits(action)
    action.add_argument("--seconds", type=_positive, default=0.3, help="timed in each process (default 0.3)")
    action.add_argument("--seed", type=int, default=0, help="of the random orders of pairs")


def _add_limits(action) -> None:
    action.add_argument(
        "--alpha", type=_fraction, default=0.01, help="false alarms allowed in a whole run (default 0.01)"
    )
    action.add_argument("--min-effect", type=_percent, default=0.02, metavar="P%%", help="that matters (default 2%%)")
    action.add_argument("--fail-on-undecided", action="store_true", help="exit code 1 for UNDECIDED too")


def _add_ab(action) -> None:
    action.add_argument("--base", required=True, metavar="REF", help="commit, branch or tag to compare with")
    action.add_argument("--head", metavar="REF", help="what is compared (default: the working tree as it is)")
    _add_experiment(action)
    action.add_argument("--inject", metavar="FAULT", help="self-test: slowdown=8%% or pixel, in the head's processes")


def _add_sample(action) -> None:
    action.add_argument("--case", required=True)
    action.add_argument("--seconds", type=_positive, default=0.3)
    action.add_argument("--slowdown", type=float, default=0.0)
    action.add_argument("--spoil", action="store_true")
    action.add_argument("--picture", type=Path)
    action.add_argument("--turns", action="store_true")


def _add_files(action) -> None:
    action.add_argument("files", nargs="+", metavar="F.jsonl", help="record files, or folders of them")


def _add_report(action) -> None:
    _add_files(action)
    action.add_argument("-o", "--output", required=True, metavar="report.html")


def _add_reanalyze(action) -> None:
    action.add_argument("file", metavar="AB.jsonl")
    _add_limits(action)


_ADD = {
    "run": _add_run,
    "ab": _add_ab,
    "aa": _add_experiment,
    "sample": _add_sample,
    "report": _add_report,
    "history": _add_files,
    "reanalyze": _add_reanalyze,
}


def _number(text: str, low: float, high: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low < value < high:
        raise argparse.ArgumentTypeError(f"{text!r} must be {what}")
    return value


def _percent(text: str) -> float:
    scale = 100 if text.endswith("%") else 1
    return _number(text.removesuffix("%"), 0, 10 * scale, "a fraction such as 2% or 0.02") / scale


def _fraction(text: str) -> float:
    return _number(text, 0, 1, "between 0 and 1")


def _positive(text: str) -> float:
    return _number(text, 0, 1e6, "a number of seconds above 0")


def _pairs(text: str) -> int:
    if not (text.isdigit() and 1 <= int(text) <= MAX_PAIRS):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to {MAX_PAIRS}")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.lower().partition("x")
    if not (cross and all(side.isdigit() and 1 <= int(side) <= 1 << 14 for side in (width, height))):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; it must be WIDTHxHEIGHT, each 1 to {1 << 14}")
    return int(width), int(height)


def _folder(text: str) -> Path:
    path = Path(text).resolve()
    if not ((path / "scenes").is_dir() or (path / "tests" / "fps").is_dir()):
        raise argparse.ArgumentTypeError(f"{text!r} has neither scenes/ nor tests/fps/")
    return path


def command(args) -> int:
    """`rayfold bench`; returns the exit code."""
    if args.action in ("list", "run", "sample"):
        return {"list": list_cases, "run": run_cases, "sample": sample}[args.action](args)
    if args.action in ("ab", "aa", "reanalyze"):
        from renderer.bench import ab

        return getattr(ab, args.action)(args)
    from renderer.bench import report  # matplotlib takes a while to import

    return getattr(report, args.action)(args)


def list_cases(args) -> int:
    """Names on stdout, one a line; exit code 3 when a source of cases cannot be opened here."""
    from renderer.bench.cases import find
    from renderer.gpu import open_context

    failures = FailureReport()
    cases = list(find(args.cases, open_context(args.device), args.repo, args.size, failures))
    if args.json:
        print(json.dumps({"cases": [{"name": case.name, "unit": case.unit} for case in cases]}))
    else:
        for case in cases:
            print(case.name)
    return failures.exit_code


class FailureReport:
    """Reports cases that could not be timed on stderr at once, lets the others continue, and keeps the exit code."""

    def __init__(self):
        self.exit_code = 0

    def __call__(self, name: str, error: Exception) -> None:
        """Reports that the case or source `name` failed with `error`."""
        from renderer.errors import UnavailableError, UserError

        if isinstance(error, UnavailableError):
            words, code = f"cannot run here: {error}", 3
        elif isinstance(error, UserError):
            words, code = str(error), 1
        else:  # a crash of one case must not cost the records of the others
            words, code = (
                f"crashed: {type(error).__name__}: {str(error).strip() or 'no message'}{_source_line(error)}",
                1,
            )
        self.exit_code = 1 if 1 in (code, self.exit_code) else code
        print(f"rayfold: {name}: {words}", file=sys.stderr)


def _source_line(error: Exception) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""


def run_cases(args) -> int:
    """Times the cases and prints a table; -o appends the records behind a header line.

    Exit code 1 when a result was wrong or a case crashed, 3 when some case cannot run on this machine, 4 when none can.
    """
    from renderer.bench.cases import find, tables
    from renderer.bench.machine import commit_info, host, machine_state
    from renderer.bench.measure import TimingOptions, measure
    from renderer.errors import UnavailableError
    from renderer.gpu import open_context

    header = {"schema": "bench/1", "host": host(), **commit_info(args.repo)}
    file = Records(args.output, header) if args.output else None
    records: list[dict] = []
    failures = FailureReport()
    for case in find(args.cases, open_context(args.device), args.repo, args.size, failures):
        try:
            answer = measure(case, TimingOptions(args.seconds))
        except Exception as error:  # noqa: BLE001  (FailureReport prints it)
            failures(case.name, error)
            continue
        if file:
            file.add(answer)
        if not args.json:
            _print_row(answer, first=not records)
        records.append(answer)
    if file:
        file.add({"machine": {"after": machine_state()}})
    if args.json:
        print(json.dumps({"records": records, **header}))
    else:
        for text in tables(records):
            print(f"\n{text}")
    return UnavailableError.exit_code if failures.exit_code == 3 and not records else failures.exit_code


def _print_row(answer: dict, first: bool) -> None:
    if first:
        print(f"{'case':38s} {'median ms':>10s} {'rate':>12s} {'unit':12s} {'peer':>7s}  device")
    peer = f"{answer['peer']['ratio']:.2f}x" if "peer" in answer else ""
    numbers = f"{answer['median_ms']:10.3f} {answer['rate']:12.4g} {answer['unit']:12s} {peer:>7s}"
    print(f"{answer['case']:38s} {numbers}  {answer['device']}", flush=True)


class Records:
    """A record file: a header line for this run, then a line for each record, appended."""

    def __init__(self, path: str, header: dict):
        from renderer.bench.experiment import terminate_last_line
        from renderer.errors import UserError

        try:
            self._file = open(Path(path), "a", encoding="utf-8")
        except OSError as error:
            raise UserError(f"-o {path}: cannot be written: {error.strerror}") from error
        terminate_last_line(Path(path))
        self.add(header)

    def add(self, row: dict) -> None:
        """Appends a row."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def sample(args) -> int:
    """One fresh process of an experiment: one case, one JSON line."""
    from renderer.bench.cases import find
    from renderer.bench.machine import machine_state
    from renderer.bench.measure import QUICK, TimingOptions, measure
    from renderer.gpu import open_context

    before = machine_state(gpu=False)
    case = next(case for case in find([args.case], open_context(args.device), args.repo, args.size))
    options = TimingOptions(args.seconds, QUICK.min_runs, QUICK.warmup_seconds)
    batches = _batches if args.turns else None
    answer = measure(case, options, args.slowdown, args.spoil, args.picture, batches)
    print(json.dumps(answer | {"machine": {"before": before, "after": machine_state()}}), flush=True)
    return 0


def _batches(seconds_of_a_run: float):
    """Reports that this process is ready, then yields the seconds of a batch for each line on stdin, until it ends."""
    print(json.dumps({"ready": seconds_of_a_run}), flush=True)
    for line in sys.stdin:
        yield float(line)
        print("done", flush=True)

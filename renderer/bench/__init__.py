"""Frame rates and kernel rates: checked first, then timed, then judged only in pairs of fresh processes.

`cases` says what can be measured (its docstring is how to add a case), `measure` times one, `compare` runs the A/B
experiment, `verdict` is its statistics, `report` draws records. Records are JSON lines with every raw time.
"""

import json
import sys
from pathlib import Path

ACTIONS = {
    "list": "name every case",
    "run": "time cases, print a table, append records with -o",
    "ab": "compare the working tree with --base REF: SLOWER, FASTER, SAME, UNDECIDED or INVALID",
    "aa": "compare the working tree with itself: the harness's own false-alarm rate on this machine",
    "compare": "judge a file of `ab` again",
    "history": "medians by commit from record files; never a verdict",
    "report": "plots of record files as one HTML page",
    "sample": "what ab runs in each fresh process",
}


def add_arguments(parser) -> None:
    """The arguments of `main.py bench`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, told in ACTIONS.items():
        action = actions.add_parser(name, help=told, description=told)
        many = name in ("run", "ab", "aa", "list")
        if many:
            action.add_argument("cases", nargs="*", metavar="CASE", help="a name or its first part; none means all")
        if name in ("run", "ab", "aa", "list", "sample"):
            action.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
        if name in ("run", "ab", "aa", "compare", "list", "sample", "history"):
            action.add_argument("--json", action="store_true", help="print exactly one JSON object")
        if name in ("ab", "aa", "run"):
            action.add_argument("-o", "--output", metavar="F.jsonl", help="records; ab and aa resume from it")
        _ADD.get(name, lambda action: None)(action)


def _add_run(action) -> None:
    action.add_argument("--seconds", type=float, default=1.0, help="timed, at least, for each case (default 1)")


def _add_experiment(action) -> None:
    action.add_argument("--pairs", type=int, default=10, help="of processes for each case, at first (default 10)")
    action.add_argument("--max-pairs", type=int, default=40, help="while undecided (default 40)")
    action.add_argument(
        "--alpha", type=float, default=0.01, help="false alarms allowed in the whole run (default 0.01)"
    )
    action.add_argument("--min-effect", type=_percent, default=0.02, metavar="P%%", help="that matters (default 2%%)")
    action.add_argument("--seconds", type=float, default=0.3, help="timed in each process (default 0.3)")
    action.add_argument("--seed", type=int, default=0, help="of the coins that order each pair")
    action.add_argument("--strict", action="store_true", help="exit code 1 for UNDECIDED too")


def _add_ab(action) -> None:
    action.add_argument("--base", required=True, metavar="REF", help="commit, branch or tag to compare with")
    _add_experiment(action)
    action.add_argument("--inject", metavar="FAULT", help="self-test: slowdown=8%% or pixel, in the head's processes")


def _add_sample(action) -> None:
    action.add_argument("--case", required=True)
    action.add_argument("--seconds", type=float, default=0.3)
    action.add_argument("--slowdown", type=float, default=0.0)
    action.add_argument("--spoil", action="store_true")


def _add_files(action) -> None:
    action.add_argument("files", nargs="+", metavar="F.jsonl")


def _add_report(action) -> None:
    _add_files(action)
    action.add_argument("-o", "--output", required=True, metavar="report.html")


def _add_compare(action) -> None:
    action.add_argument("file", metavar="AB.jsonl")
    action.add_argument("--alpha", type=float, default=0.01)
    action.add_argument("--min-effect", type=_percent, default=0.02, metavar="P%%")
    action.add_argument("--strict", action="store_true")


_ADD = {
    "run": _add_run,
    "ab": _add_ab,
    "aa": _add_experiment,
    "sample": _add_sample,
    "report": _add_report,
    "history": _add_files,
    "compare": _add_compare,
}


def _percent(text: str) -> float:
    value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 10:
        raise ValueError(text)
    return value


def command(args) -> int:
    """`main.py bench`; returns the exit code."""
    if args.action == "list":
        return list_cases(args)
    if args.action == "run":
        return run_cases(args)
    if args.action == "sample":
        return sample(args)
    if args.action in ("ab", "aa", "compare"):
        from renderer.bench import compare

        return getattr(compare, args.action)(args)
    from renderer.bench import report  # matplotlib takes a while to import

    return getattr(report, args.action)(args)


def list_cases(args) -> int:
    """Names on stdout, one a line."""
    from renderer.bench.cases import find
    from renderer.gpu import open_gpu

    cases = find(args.cases, open_gpu(args.device))
    if args.json:
        print(json.dumps({"cases": [{"name": case.name, "unit": case.unit} for case in cases]}))
    else:
        for case in cases:
            print(case.name)
    return 0


def run_cases(args) -> int:
    """Times the cases and prints a table; -o appends the records behind a header line."""
    from renderer.bench.cases import find
    from renderer.bench.measure import measure
    from renderer.gpu import open_gpu

    file = Records(args.output) if args.output else None
    records = []
    for case in find(args.cases, open_gpu(args.device)):
        if not args.json and not records:
            print(f"{'case':38s} {'median ms':>10s} {'rate':>12s} {'unit':12s} {'peer':>7s}  device")
        answer = measure(case, args.seconds)
        records.append(answer)
        if file:
            file.add(answer)
        if not args.json:
            peer = f"{answer['peer']['ratio']:.2f}x" if "peer" in answer else ""
            rate = f"{answer['rate']:12.4g}"
            print(
                f"{case.name:38s} {answer['median_ms']:10.3f} {rate} {case.unit:12s} {peer:>7s}  {answer['device']}",
                flush=True,
            )
    if args.json:
        print(json.dumps({"records": records, **_header()}))
    return 0


class Records:
    """A record file: a header line for this run, then a line for each record, appended."""

    def __init__(self, path: str):
        from renderer import UserError

        try:
            self._file = open(Path(path), "a", encoding="utf-8")
        except OSError as error:
            raise UserError(f"-o {path}: cannot be written: {error.strerror}") from error
        self.add(_header())

    def add(self, row: dict) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def _header() -> dict:
    from renderer.bench.measure import commit, host

    return {"schema": "bench/1", "host": host(), **commit()}


def sample(args) -> int:
    """One fresh process of an experiment: one case, one JSON line."""
    from renderer.bench.cases import find
    from renderer.bench.measure import measure
    from renderer.gpu import open_gpu

    (case,) = [case for case in find([args.case], open_gpu(args.device)) if case.name == args.case]
    json.dump(measure(case, args.seconds, args.slowdown, args.spoil), sys.stdout)
    return 0

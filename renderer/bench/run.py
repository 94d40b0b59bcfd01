"""The actions `bench list`, `bench run` and `bench sample`.

`list` prints the names of cases. `run` times cases one after another in this process. `sample` times one case for an
experiment: `bench ab` and `bench aa` start it in fresh processes.
"""

import argparse
import json
import sys
from collections.abc import Iterator

from renderer.bench.cases import find, tables
from renderer.bench.machine import commit_info, host, machine_state
from renderer.bench.measure import QUICK, TimingOptions, measure
from renderer.bench.records import SCHEMA, RecordFile
from renderer.errors import IncompleteError, KernelError, UnavailableError, UserError
from renderer.gpu import open_context
from renderer.plain import Json
from renderer.system.outputs import own_outputs
from renderer.system.process import INTERNAL_ERROR, log_internal_error

SEVERITY = (0, 3, 4, 2, 5, 1, INTERNAL_ERROR)  # exit codes, mildest first: the worst of all cases is returned


def list_cases(args: argparse.Namespace) -> int:
    """Prints the names of cases, one a line; returns exit code 3 if this machine cannot open a source of cases."""
    failures = FailureReport()
    cases = list(find(args.cases, open_context(args.device), args.repo, args.size, failures))
    if args.json:
        print(json.dumps({"cases": [{"name": case.name, "unit": case.unit} for case in cases]}))
    else:
        for case in cases:
            print(case.name)
    return failures.exit_code


class FailureReport:
    """Prints each case that could not be timed on stderr, so that the others continue, and keeps the exit code."""

    def __init__(self) -> None:
        self.exit_code = 0

    def __call__(self, name: str, error: Exception) -> None:
        """Reports that the case or source `name` failed with `error`."""
        if isinstance(error, UnavailableError):
            code, message = IncompleteError.exit_code, f"{name}: cannot run here: {error}"
        elif isinstance(error, (UserError, KernelError)):
            code, message = error.exit_code, f"{name}: {error}"
        else:  # a crash of one case must not cost the records of the others
            code, message = INTERNAL_ERROR, log_internal_error(error, name)
        self.exit_code = max(code, self.exit_code, key=SEVERITY.index)
        print(f"rayfold: {message}", file=sys.stderr)


def run_cases(args: argparse.Namespace) -> int:
    """Times the cases and prints a table; with -o, appends a header line and the records to a file.

    Returns the exit code: 1 if a result was wrong, 70 if a case crashed, 3 if some cases cannot run on this machine, 4
    if none can.
    """
    header = {"schema": SCHEMA, "host": host(), **commit_info(args.repo)}
    file = RecordFile(args.output)
    file.add(header)
    records: list[Json] = []
    failures = FailureReport()
    for case in find(args.cases, open_context(args.device), args.repo, args.size, failures):
        try:
            record = measure(case, TimingOptions(args.seconds))
        except Exception as error:  # noqa: BLE001  (FailureReport prints it)
            failures(case.name, error)
            continue
        file.add(record)
        if not args.json:
            _print_row(record, first=not records)
        records.append(record)
    file.add({"machine": {"after": machine_state()}})
    if args.json:
        print(json.dumps({"records": records, **header}))
    else:
        for text in tables(records):
            print(f"\n{text}")
    return UnavailableError.exit_code if failures.exit_code == 3 and not records else failures.exit_code


def _print_row(record: Json, first: bool) -> None:
    if first:
        print(f"{'case':38s} {'median ms':>10s} {'rate':>12s} {'unit':12s} {'peer':>7s}  device")
    peer = f"{record['peer']['ratio']:.2f}x" if "peer" in record else ""
    numbers = f"{record['median_ms']:10.3f} {record['rate']:12.4g} {record['unit']:12s} {peer:>7s}"
    print(f"{record['case']:38s} {numbers}  {record['device']}", flush=True)


def sample(args: argparse.Namespace) -> int:
    """Times one case for an experiment and prints one JSON line: the record, and the machine before and after."""
    before = machine_state(gpu=False)
    case = next(find([args.case], open_context(args.device), args.repo, args.size))
    options = TimingOptions(args.seconds, QUICK.min_runs, QUICK.warmup_seconds)
    with own_outputs(args.picture, force=args.force):
        record = measure(case, options, args.slowdown, args.spoil, args.picture, _batches if args.turns else None)
    print(json.dumps(record | {"machine": {"before": before, "after": machine_state()}}), flush=True)
    return 0


def _batches(seconds_of_a_run: float) -> Iterator[float]:
    """Yields the seconds of each batch to time, one for each line on stdin until its end.

    Prints {"ready": seconds of a run} first, and "done" after each batch, for the experiment that started this process.
    """
    print(json.dumps({"ready": seconds_of_a_run}), flush=True)
    for line in sys.stdin:
        yield float(line)
        print("done", flush=True)

"""The actions `bench report` and `bench history`: record files as an HTML page, and rates by commit as a table.

Reads and checks the JSON lines that `bench run`, `ab` and `aa` wrote; report_page.py lays out the page.
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from renderer.bench.conclusions import as_text, badge
from renderer.bench.experiment import Experiment, is_header, read_experiments
from renderer.bench.records import are_positive_integers, is_count, is_name, is_rate
from renderer.bench.report_figures import grouped
from renderer.bench.report_page import report_page
from renderer.errors import InputError, UserError
from renderer.plain import Json
from renderer.system.files import read_json_lines
from renderer.system.outputs import own_outputs, write_text
from renderer.system.trust import named_file

NUMBERS = ("rate", "median_ms", "work")
TEXTS = ("case", "unit", "device", "commit")


def read_files(paths: list[Path]) -> tuple[list[Json], list[Experiment]]:
    """Reads the records of `bench run`, each with its commit, and the experiments of `bench ab` and `bench aa`.

    `paths` are record files, or folders searched for *.jsonl files. InputError for a file of `paths` that has neither
    records nor an experiment, and for a folder without *.jsonl files; other files of a folder may hold neither.
    """
    records: list[Json] = []
    experiments: list[Experiment] = []
    for path in paths:
        files = sorted(path.glob("**/*.jsonl")) if os.path.isdir(path) else [path]
        if not files:
            raise InputError(f"{path}: a folder without .jsonl files")
        for file in files:
            if file != path:  # a file of a folder may be a link that leads out of the folder
                named_file(str(file.relative_to(path)), path, (".jsonl",), f"{path}: a file")
            rows = read_json_lines(file)
            found = list(_records(rows))
            records += found
            if any(is_header(row) for row in rows):
                experiments += read_experiments(file)
            elif not found and file == path:
                raise InputError(f"{path}: holds no records of bench run")
    return records, experiments


def _records(rows: list[Json]) -> Iterator[Json]:
    """Yields the valid records of a file; a record has the commit of the header above it."""
    commit = ""
    for row in rows:
        if "schema" in row:
            commit = str(row.get("commit", ""))
            if row.get("dirty"):
                commit = commit[:12] + "+changes"
        elif "arm" not in row:  # rows with an arm belong to an experiment
            record = {"device": "", "commit": commit, **row}
            if _is_record(record):
                yield record


def _is_record(row: Json) -> bool:
    """True if a row has the keys that tables and plots need, with values of the right types."""
    times = [row[key] for key in ("wall_ns", "device_ns") if row.get(key) is not None]
    peer = row.get("peer", {"ratio": 1.0})
    return (
        all(is_rate(row.get(key)) for key in NUMBERS)
        and all(is_name(row.get(key)) for key in TEXTS)
        and all(map(are_positive_integers, times))
        and isinstance(peer, dict)
        and is_rate(peer.get("ratio"))
        and is_name(peer.get("name", ""))
        and _has_counts(row)
    )


def _has_counts(row: Json) -> bool:
    """True if a record's ray counts by depth, where it has them, are lists of counts."""
    lists = [row.get("active rays", []), row.get("empty stencil words", [])]
    return all(isinstance(counts, list) and all(map(is_count, counts)) for counts in lists)


def history(args: argparse.Namespace) -> int:
    """Runs `bench history F...`: prints each case's rates in the order of the files, and their change in percent.

    It gives no verdict: rates taken at different times are not comparable enough.
    """
    records, _ = read_files(args.files)
    if not records:
        raise InputError(f"{args.files[0]}: holds no records of bench run")
    if args.json:
        keys = ("case", "commit", "rate", "unit", "median_ms", "device")
        print(json.dumps({"records": [{key: row.get(key) for key in keys} for row in records]}))
        return 0
    for (case, device, unit), rows in sorted(grouped(records, "case", "device", "unit").items()):
        before = None
        for row in rows:
            change = f"{100 * (row['rate'] / before - 1):+7.1f}%" if before else " " * 8
            before = row["rate"]
            print(f"{case:38s} {row['commit'][:20]:20s} {before:12.4g} {unit:12s} {change}  {device}")
    return 0


def report(args: argparse.Namespace) -> int:
    """Runs `bench report F... -o report.html`: writes the page and prints its path; --text prints or writes text.

    --badge writes a badge, too, or alone.
    """
    records, experiments = read_files(args.files)
    if (args.text or args.badge) and not experiments:
        raise InputError(f"{args.files[0]}: holds no experiment of bench ab, so there is no verdict")
    if args.output is None and not args.text and not args.badge:
        raise UserError("bench report: wants -o report.html, --text or --badge F.svg")
    with own_outputs(args.badge, args.output, force=args.force):
        if args.badge:
            # A seal, a comment at the end, shows that this program wrote the file; JSON has no comments.
            is_json = args.badge.suffix == ".json"
            write_text(args.badge, badge(experiments, is_json), is_sealed=not is_json)
        if args.output is not None:
            text = as_text(experiments) if args.text else report_page(records, experiments)
            write_text(args.output, text, is_sealed=True)
    if args.text and args.output is None:
        print(as_text(experiments), end="")
    elif args.output is not None and not args.text:
        print(args.output)
    return 0

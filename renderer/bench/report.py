"""Record files as one HTML page (report_page.py), and rates by commit as a table."""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from renderer.bench.experiment import Experiment, is_header, read_experiment
from renderer.bench.records import are_positive_integers, is_count, is_name, is_rate
from renderer.bench.report_figures import grouped
from renderer.bench.report_page import report_page
from renderer.errors import InputError
from renderer.files import read_json_lines
from renderer.pages.page import write_page

NUMBERS = ("rate", "median_ms", "work")
TEXTS = ("case", "unit", "device", "commit")


def read_files(paths: list[Path]) -> tuple[list[dict], list[Experiment]]:
    """The records of `bench run`, each with its commit, and the experiments of `bench ab` and `aa`.

    `paths` are files or folders of them. InputError for a file that holds neither.
    """
    records: list[dict] = []
    experiments: list[Experiment] = []
    for path in paths:
        files = sorted(path.glob("**/*.jsonl")) if os.path.isdir(path) else [path]
        if not files:
            raise InputError(f"{path}: a folder without .jsonl files")
        for file in files:
            rows = read_json_lines(file)
            found = list(_records(rows))
            records += found
            if any(is_header(row) for row in rows):
                experiments.append(read_experiment(file))
            elif not found and file == path:
                raise InputError(f"{path}: holds no records of bench run")
    return records, experiments


def _records(rows: list[dict]) -> Iterator[dict]:
    commit = ""
    for row in rows:
        if "schema" in row:
            commit = str(row.get("commit", ""))
            if row.get("dirty"):
                commit = commit[:12] + "+changes"
        elif "arm" not in row:
            record = {"device": "", "commit": commit, **row}
            if _is_record(record):
                yield record


def _is_record(row: dict) -> bool:
    """Whether a row has what tables and plots need, in the right types."""
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


def _has_counts(row: dict) -> bool:
    """Whether what a record has of rays by depth are counts."""
    lists = [row.get("active rays", []), row.get("empty stencil words", [])]
    return all(isinstance(counts, list) and all(map(is_count, counts)) for counts in lists)


def history(args: argparse.Namespace) -> int:
    """`bench history F...`: the rate of every case in the order of the files, and its change; never a verdict."""
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
    """`bench report F... -o report.html`."""
    records, experiments = read_files(args.files)
    write_page(args.output, report_page(records, experiments))
    print(args.output)
    return 0

"""The file of an A/B experiment (ab.py): one JSON line for each timed process, so that a killed run can resume.

The first line is the header. Then follow a line for each process ("case", "arm", "stage", "pair", "attempt", and its
record, its counts, or the reason why there is none), a line for each comparison of pictures, and a last line with the
verdicts. Another header begins another experiment (a step of `bench find`), or continues one with other limits.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from renderer.bench.machine import machine_fault
from renderer.bench.records import MAX_NAME, SCHEMA, RecordFile, are_positive_integers, is_count, is_name
from renderer.bench.verdict import outliers
from renderer.errors import InputError, UserError
from renderer.plain import Json, printable
from renderer.records import dataclass, field
from renderer.system.files import read_json_lines

ARMS = ("base", "head")
STAGES = ("screen", "confirm", "count")
QUANTITIES = ("instructions", "cycles", "cache misses", "peak memory", "device memory")  # keys of a process's "counts"
LIMITS = ("pairs", "max_pairs")  # settings that may change when an experiment is resumed
CLOCKS = {"wall": ("wall_ns",), "device": ("wall_ns", "device_ns"), "cpu": ("wall_ns", "cpu_ns")}  # clock -> times
SAME_HOST = ("cpu", "cores", "os")  # keys of the header's "host" that must agree for an experiment to resume


@dataclass
class Experiment:
    """An experiment's header and the rows so far, with queries by case; add() also appends to `file`."""

    header: Json
    rows: list[Json] = field(default_factory=list)
    file: RecordFile = field(default_factory=lambda: RecordFile(None))
    answer: Json = field(default_factory=dict)  # the last verdicts that the file holds, unchecked
    found: str = ""  # what `bench find` found, if this is its head

    def add(self, row: Json) -> None:
        """Appends a row to `rows` and to the file."""
        self.rows.append(row)
        self.file.add(row)

    def processes(self, case: str, stage: str | None = None) -> list[Json]:
        """Returns the rows of a case's processes, of one of the STAGES or of all."""
        return [r for r in self.rows if r["case"] == case and "arm" in r and stage in (None, r["stage"])]

    def names(self) -> list[str]:
        """Returns the cases in the order in which they were first measured."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    def pairs(self, case: str, stage: str) -> dict[int, dict[str, Json]]:
        """Returns the complete pairs of a stage: pair number -> arm -> row.

        A pair is complete if one attempt has times or counts of both arms and the machine was not throttled meanwhile.
        """
        attempts: dict[tuple[int, int], dict[str, Json]] = {}  # (pair, attempt) -> arm -> row
        for row in self.processes(case, stage):
            attempts.setdefault((row["pair"], row["attempt"]), {})[row["arm"]] = row
        return {
            pair: arms
            for (pair, _), arms in attempts.items()
            if len(arms) == 2
            and all(row.keys() & {"wall_ns", "counts"} and not throttle_reason(row) for row in arms.values())
        }

    def differences(self, case: str, stage: str) -> np.ndarray:
        """Returns log(head's time / base's time) of each complete pair, shape (pairs,)."""
        return np.array([log_ratio(arms["base"], arms["head"]) for arms in self.pairs(case, stage).values()])

    @property
    def by(self) -> str:
        """The quantity that decides the verdict: "time" or one of the QUANTITIES."""
        by = self.header.get("settings", {}).get("by")
        return by if by in QUANTITIES else "time"

    def outliers(self, case: str) -> int:
        """Returns the number of pairs whose time ratio is an outlier among all ratios of the first stage."""
        return outliers(self.differences(case, "screen"))

    def count_differences(self, case: str, quantity: str) -> np.ndarray:
        """Returns log(head's count / base's) of each pair that has it, of the stage "count", else of "screen"."""
        for stage in ("count", "screen"):
            pairs = [
                [arms[arm].get("counts", {}).get(quantity) for arm in ARMS] for arms in self.pairs(case, stage).values()
            ]
            if counts := [pair for pair in pairs if all(pair)]:
                return np.diff(np.log(counts))[:, 0]
        return np.zeros(0)

    def digests(self, case: str) -> set[str]:
        """Returns the distinct digests of the case's results in all processes of both arms."""
        return {row["digest"] for row in self.processes(case) if "digest" in row}

    def skipped(self, case: str) -> str:
        """Returns the reason why the base cannot run the case, or an empty text if it can."""
        for row in self.processes(case):
            if row["arm"] == "base" and ("missing" in row or "cannot" in row):
                return "the base has no such case" if "missing" in row else f"cannot run here: {row['cannot']}"
        return ""

    def crash(self, case: str) -> Json | None:
        """Returns the row of the case's first process that crashed, or None."""
        return next((row for row in self.processes(case) if "crash" in row), None)

    def picture(self, case: str) -> Json | None:
        """Returns the row that compares the case's pictures, or None; there is one only if their digests differ."""
        return next((row for row in self.rows if row["case"] == case and "equal" in row), None)

    def invalid(self, case: str) -> str:
        """Returns the reason why the case gets the verdict INVALID, or an empty text if it can be judged."""
        crashed, compared = self.crash(case), self.picture(case)
        if crashed:
            return f"{crashed['arm']} crashed: {crashed['crash']}"
        if compared:
            return "" if compared["equal"] else compared["message"]
        return "the results differ" if len(self.digests(case)) > 1 else ""

    def counter_increases(self, case: str) -> dict[str, list[int]]:
        """Returns the counters of one run whose smallest head exceeds the largest base: name -> [base, head]."""
        seen: dict[str, dict[str, list[int]]] = {arm: {} for arm in ARMS}
        for row in self.processes(case):
            for name, count in row.get("counters", {}).items():
                seen[row["arm"]].setdefault(name, []).append(count)
        base, head = seen["base"], seen["head"]
        return {k: [max(base[k]), min(head[k])] for k in base if k in head and min(head[k]) > max(base[k])}


def case_of_command(line: str) -> str:
    """The name of the case that times a command: its line, without the folder of a program with an absolute path."""
    return printable(re.sub(r"^/\S*/(?=\S)", "", line), MAX_NAME)


def shown_label(quantity: str, label: str) -> str:
    """The label in words: memory is LARGER, not SLOWER."""
    words = {"SLOWER": "LARGER", "FASTER": "SMALLER"} if quantity.endswith("memory") else {}
    return words.get(label, label)


def throttle_reason(row: Json) -> str:
    """Returns the reason why the times of a process cannot be trusted, or an empty text if they can."""
    machine = row.get("machine", {})
    return machine_fault(machine.get("before", {}), machine.get("after", {}))


def log_ratio(base: Json, head: Json) -> float:
    """The median over the batches of log(median time of the head's batch / median time of the base's).

    Uses the device's clock where both arms find it reliable, or the processor's where it was asked for, else the wall.
    """
    key = f"{base['clock']}_ns" if base["clock"] == head["clock"] else "wall_ns"
    medians = [[np.log(np.median(batch)) for batch in batches(row, key)] for row in (base, head)]
    if len(medians[0]) != len(medians[1]):
        return float(np.log(np.median(head[key]) / np.median(base[key])))
    return float(np.median(np.subtract(medians[1], medians[0])))


def batches(row: Json, key: str) -> list[np.ndarray]:
    """Splits a process's times in ns by batch; all are one batch if the row lacks valid numbers of runs ("turns")."""
    counts = row.get("turns", [])
    if not are_positive_integers(counts) or sum(counts) != len(row[key]):
        return [np.array(row[key])]
    return np.split(np.array(row[key]), np.cumsum(counts)[:-1])


def open_experiment(path: Path | None, header: Json) -> Experiment:
    """Resumes the experiment of a file, or begins a new one in an empty or missing file; None keeps no file.

    The steps of `bench find` are experiments of one file. The limits may differ from the limits at first.
    UserError for a file that holds an experiment with other commits, settings or machine than `header`.
    """
    file = RecordFile(path)  # first: nobody else may add rows from here on
    known = read_experiments(path) if path and os.path.exists(path) and path.stat().st_size else []
    for other in known:
        refs, settings = _identity(other.header)
        may_differ = header["settings"]["action"] == "find"  # its steps compare different commits
        if refs != header["refs"] and not may_differ or settings != _identity(header)[1]:
            key = "settings" if may_differ or refs == header["refs"] else "refs"
            raise UserError(f"-o {path}: holds another experiment: its {key} differ; name another file")
        for key in SAME_HOST:
            if dict(other.header.get("host") or {}).get(key) != header["host"][key]:
                raise UserError(f"-o {path}: was begun on another machine: its {key} differs; name another file")
    # Rows belong to the last header above them, so the file gets `header` unless that is its last one.
    last = known[-1].header if known else {}
    if any(last.get(key) != header[key] for key in ("refs", "settings")):
        file.add(header)
    same = [experiment for experiment in known if experiment.header["refs"] == header["refs"]]
    experiment = same[0] if same else Experiment(header)
    experiment.header, experiment.file = header, file
    return experiment


def _identity(header: Json) -> tuple[Json, Json]:
    """The commits and the settings by which an experiment is known again: all of its header but LIMITS."""
    return header["refs"], {key: value for key, value in header.get("settings", {}).items() if key not in LIMITS}


def read_experiment(path: Path) -> Experiment:
    """Reads the last experiment of a file, without malformed rows; InputError if no line is a header."""
    return read_experiments(path)[-1]


def read_experiments(path: Path) -> list[Experiment]:
    """Reads the experiments of a file, without malformed rows; InputError if no line is a header."""
    rows = read_json_lines(path)
    first = next(filter(is_header, rows), None)
    if first is None:
        raise InputError(f"{path}: is no file of bench ab: no line has schema {SCHEMA} and refs")
    experiments: dict[str, Experiment] = {}  # by _identity(), in the order of their last headers
    for row in [first, *rows]:  # rows above the first header belong to its experiment, too
        if is_header(row):
            key = json.dumps(_identity(row), sort_keys=True)
            last = experiments[key] = experiments.pop(key, Experiment(row))
            last.header = row
        elif _is_valid(row):
            last.rows.append(row)
        if isinstance(row.get("verdict"), dict):
            last.answer = row["verdict"]
        for experiment in experiments.values():
            if is_name(row.get("found")) and experiment.header["refs"].get("head") == row.get("head"):
                experiment.found = row["found"]
    return [*experiments.values()]


def is_header(row: Json) -> bool:
    """True if a row is the header of an experiment."""
    refs, settings = row.get("refs"), row.get("settings", {})
    has_refs = isinstance(refs, dict) and all(is_name(refs.get(arm, "")) for arm in ARMS)
    return row.get("schema") == SCHEMA and has_refs and isinstance(settings, dict)


def _is_machine(value: object) -> bool:
    """True if a value holds the states of the machine before and after a process in the form of machine_fault()."""
    states = [value.get(key, {}) for key in ("before", "after")] if isinstance(value, dict) else [None]
    return all(
        isinstance(state, dict)
        and is_count(state.get("cpu_throttles", 0))
        and isinstance(state.get("gpus", []), list)
        and all(isinstance(gpu, dict) and is_count(gpu.get("throttled")) for gpu in state.get("gpus", []))
        for state in states
    )


# Optional keys of a row, and the check of each key's value.
FACTS: dict[str, Callable[[Any], bool]] = {
    "digest": lambda value: value is None or is_name(value),
    "crash": lambda value: isinstance(value, str),
    "machine": _is_machine,
    "counters": lambda value: isinstance(value, dict) and all(map(is_count, value.values())),
    "counts": lambda value: isinstance(value, dict) and are_positive_integers(list(value.values())),
}


def _is_valid(row: Json) -> bool:
    """True if a row is a comparison of pictures or a process, with the keys and types that verdicts need."""
    if not is_name(row.get("case")):
        return False
    if "equal" in row:
        return type(row["equal"]) is bool and isinstance(row.get("message", "" if row["equal"] else None), str)
    if not all(is_valid(row[key]) for key, is_valid in FACTS.items() if key in row):
        return False
    integers = all(is_count(row.get(key)) for key in ("pair", "attempt"))
    if not (integers and row.get("arm") in ARMS and row.get("stage") in STAGES):
        return False
    # a process that crashed or lacks the case has no times, and one that was only counted needs none
    if row.keys() & {"crash", "missing"} or row["stage"] == "count" and "counts" in row and "wall_ns" not in row:
        return True
    times = CLOCKS.get(str(row.get("clock")), ())
    return bool(times) and all(row.get(key) and are_positive_integers(row[key]) for key in times)

"""The file of an experiment: JSON lines of every process, appended as they end, so that a killed run resumes from it.

First line: header. Then a line for each process ("case", "arm", "stage", "pair", "attempt", and its record or why
there is none), a line for each comparison of pictures, and a last line with the verdicts.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from renderer.bench.machine import machine_fault
from renderer.bench.records import SCHEMA, RecordFile, are_positive_integers, is_count, is_name
from renderer.errors import InputError, UserError
from renderer.files import read_json_lines

ARMS = ("base", "head")
SAME_HOST = ("cpu", "cores", "os")


@dataclass
class Experiment:
    """The header and the rows so far; new rows are appended to `file`."""

    header: dict
    rows: list[dict] = field(default_factory=list)
    file: RecordFile = field(default_factory=lambda: RecordFile(None))

    def add(self, row: dict) -> None:
        """Keeps a row, here and in the file."""
        self.rows.append(row)
        self.file.add(row)

    def of(self, case: str, stage: str | None = None) -> list[dict]:
        """The rows of a case's processes."""
        return [r for r in self.rows if r["case"] == case and "arm" in r and stage in (None, r["stage"])]

    def names(self) -> list[str]:
        """The cases, in the order in which they were first measured."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    def pairs(self, case: str, stage: str) -> dict[int, dict[str, dict]]:
        """The complete pairs of a stage, by number: both arms of one attempt, with no throttling meanwhile."""
        attempts: dict[tuple, dict[str, dict]] = {}
        for row in self.of(case, stage):
            attempts.setdefault((row["pair"], row["attempt"]), {})[row["arm"]] = row
        return {
            pair: arms
            for (pair, _), arms in attempts.items()
            if len(arms) == 2 and all("wall_ns" in row and not throttle_reason(row) for row in arms.values())
        }

    def differences(self, case: str, stage: str) -> np.ndarray:
        """The log ratio of time, head over base, of every complete pair."""
        return np.array([log_ratio(**arms) for arms in self.pairs(case, stage).values()])

    def digests(self, case: str) -> set:
        """The digests of the case's results, over all processes of both arms."""
        return {row["digest"] for row in self.of(case) if "digest" in row}

    def skipped(self, case: str) -> str:
        """Why the case has no base to compare with; empty where it has one."""
        for row in self.of(case):
            if row["arm"] == "base" and ("missing" in row or "cannot" in row):
                return "the base has no such case" if "missing" in row else f"cannot run here: {row['cannot']}"
        return ""

    def crash(self, case: str) -> dict | None:
        """The first row of a process that crashed."""
        return next((row for row in self.of(case) if "crash" in row), None)

    def picture(self, case: str) -> dict | None:
        """The row that compares the case's pictures, where their digests differ."""
        return next((row for row in self.rows if row["case"] == case and "equal" in row), None)

    def invalid(self, case: str) -> str:
        """Why no verdict can be given; empty where one can."""
        crashed, compared = self.crash(case), self.picture(case)
        if crashed:
            return f"{crashed['arm']} crashed: {crashed['crash']}"
        if compared:
            return "" if compared["equal"] else compared["message"]
        return "the results differ" if len(self.digests(case)) > 1 else ""

    def counter_increases(self, case: str) -> dict[str, list[int]]:
        """Counters of one run that are larger in every head than in any base: name -> [base, head]."""
        seen: dict[str, dict[str, list[int]]] = {arm: {} for arm in ARMS}
        for row in self.of(case):
            for name, count in row.get("counters", {}).items():
                seen[row["arm"]].setdefault(name, []).append(count)
        base, head = seen["base"], seen["head"]
        return {k: [max(base[k]), min(head[k])] for k in base if k in head and min(head[k]) > max(base[k])}


def throttle_reason(row: dict) -> str:
    """Why the times of a process cannot be trusted; empty where they can."""
    machine = row.get("machine", {})
    return machine_fault(machine.get("before", {}), machine.get("after", {}))


def log_ratio(base: dict, head: dict) -> float:
    """The median over the batches of log(median time of the head's batch / median time of the base's).

    Uses the device's clock where both arms find it reliable, else the wall clock.
    """
    key = "device_ns" if base["clock"] == head["clock"] == "device" else "wall_ns"
    medians = [[np.log(np.median(batch)) for batch in batches(row, key)] for row in (base, head)]
    if len(medians[0]) != len(medians[1]):
        return float(np.log(np.median(head[key]) / np.median(base[key])))
    return float(np.median(np.subtract(medians[1], medians[0])))


def batches(row: dict, key: str) -> list[np.ndarray]:
    """The times of each batch of a process; one batch where the row does not say how many runs each had."""
    counts = row.get("turns", [])
    if not are_positive_integers(counts) or sum(counts) != len(row[key]):
        return [np.array(row[key])]
    return np.split(np.array(row[key]), np.cumsum(counts)[:-1])


def open_experiment(path: Path | None, header: dict) -> Experiment:
    """The experiment of a file, resumed where the file holds the same one, else begun."""
    if path and os.path.exists(path) and path.stat().st_size:
        found = read_experiment(path)
        for key in ("refs", "settings"):
            if found.header.get(key) != header[key]:
                raise UserError(f"-o {path}: holds another experiment: its {key} differ; name another file")
        for key in SAME_HOST:
            if dict(found.header.get("host") or {}).get(key) != header["host"][key]:
                raise UserError(f"-o {path}: was begun on another machine: its {key} differs; name another file")
        found.file = RecordFile(path)
        return found
    experiment = Experiment(header, file=RecordFile(path))
    experiment.file.add(header)
    return experiment


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file; InputError where it holds none."""
    rows = read_json_lines(path)
    headers = [row for row in rows if is_header(row)]
    if not headers:
        raise InputError(f"{path}: is no file of bench ab: no line has schema {SCHEMA} and refs")
    return Experiment(headers[-1], [row for row in rows if not is_header(row) and _is_valid(row)])


def is_header(row: dict) -> bool:
    """Whether a line is the header of an experiment."""
    refs, settings = row.get("refs"), row.get("settings", {})
    known = isinstance(refs, dict) and all(is_name(refs.get(arm, "")) for arm in ARMS)
    return row.get("schema") == SCHEMA and known and isinstance(settings, dict)


def _is_machine(value: Any) -> bool:
    """Whether this is the state of a machine before and after, as machine_fault() needs it."""
    states = [value.get(key, {}) for key in ("before", "after")] if isinstance(value, dict) else [None]
    return all(
        isinstance(state, dict)
        and is_count(state.get("cpu_throttles", 0))
        and isinstance(state.get("gpus", []), list)
        and all(isinstance(gpu, dict) and is_count(gpu.get("throttled")) for gpu in state.get("gpus", []))
        for state in states
    )


# What a row may hold beside its times, and how it must look to be used.
FACTS: dict[str, Callable[[Any], bool]] = {
    "digest": lambda value: value is None or is_name(value),
    "crash": lambda value: isinstance(value, str),
    "machine": _is_machine,
    "counters": lambda value: isinstance(value, dict) and all(map(is_count, value.values())),
}


def _is_valid(row: dict) -> bool:
    """Whether a line compares pictures, or describes a process by all that verdicts need, in the right types."""
    if not is_name(row.get("case")):
        return False
    if "equal" in row:
        return type(row["equal"]) is bool and isinstance(row.get("message", "" if row["equal"] else None), str)
    if not all(is_valid(row[key]) for key, is_valid in FACTS.items() if key in row):
        return False
    integers = all(is_count(row.get(key)) for key in ("pair", "attempt"))
    if not (integers and row.get("arm") in ARMS and row.get("stage") in ("screen", "confirm")):
        return False
    if "crash" in row or "missing" in row:
        return True
    clocks = {"wall": ("wall_ns",), "device": ("wall_ns", "device_ns")}.get(str(row.get("clock")), ())
    return bool(clocks) and all(row.get(key) and are_positive_integers(row[key]) for key in clocks)

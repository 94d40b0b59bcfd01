"""The file of an experiment: JSON lines of every process, appended as they end, so that a killed run resumes from it.

First line: header. Then a line for each process ("case", "arm", "stage", "pair", "attempt", and its record or why
there is none), a line for each comparison of pictures, and a last line with the verdicts.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from renderer.bench.machine import machine_fault
from renderer.errors import InputError, UserError

MAX_FILE_BYTES = 1 << 30
ARMS = ("base", "head")
SAME_HOST = ("cpu", "cores", "os")


@dataclass
class Experiment:
    """Header and rows so far; `path` is None for an experiment that is not kept."""

    path: Path | None
    header: dict
    rows: list[dict] = field(default_factory=list)

    def add(self, row: dict) -> None:
        """Keeps a row, here and in the file."""
        self.rows.append(row)
        self.write(row)

    def write(self, row: dict) -> None:
        """Appends a row to the file."""
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def of(self, case: str, stage: str | None = None) -> list[dict]:
        """The processes of a case."""
        return [r for r in self.rows if r["case"] == case and "arm" in r and stage in (None, r["stage"])]

    def names(self) -> list[str]:
        """The cases, in the order in which they were first measured."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    def pairs(self, case: str, stage: str) -> dict[int, dict[str, dict]]:
        """The whole pairs of a stage, by number: both arms of one attempt, timed on a fit machine."""
        attempts: dict[tuple, dict[str, dict]] = {}
        for row in self.of(case, stage):
            attempts.setdefault((row["pair"], row["attempt"]), {})[row["arm"]] = row
        return {
            pair: arms
            for (pair, _), arms in attempts.items()
            if len(arms) == 2 and all("wall_ns" in row and not throttle_reason(row) for row in arms.values())
        }

    def differences(self, case: str, stage: str) -> np.ndarray:
        """The log ratio of time, head over base, of every whole pair."""
        whole = self.pairs(case, stage).values()
        return np.array([log_ratio(arms["base"], arms["head"]) for arms in whole])

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
        """The first row of an arm that crashed."""
        return next((row for row in self.of(case) if "crash" in row), None)

    def picture(self, case: str) -> dict | None:
        """The row that compares the case's pictures, where their digests differ."""
        return next((row for row in self.rows if row["case"] == case and "equal" in row), None)

    def invalid(self, case: str) -> str:
        """Why no verdict can be given; empty where one can."""
        crashed = self.crash(case)
        if crashed:
            return f"{crashed['arm']} crashed: {crashed['crash']}"
        compared = self.picture(case)
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
    """The median over the rounds of log(median of the head's turn / median of the base's).

    Uses the device's clock where both arms find it reliable, else the wall clock.
    """
    key = "device_ns" if base["clock"] == head["clock"] == "device" else "wall_ns"
    medians = [[np.log(np.median(turn)) for turn in turns(row, key)] for row in (base, head)]
    if len(medians[0]) != len(medians[1]):
        return float(np.log(np.median(head[key]) / np.median(base[key])))
    return float(np.median(np.subtract(medians[1], medians[0])))


def turns(row: dict, key: str) -> list[np.ndarray]:
    """The times of each turn of a process; of all runs where the row does not say how they were cut."""
    counts: list = row["turns"] if isinstance(row.get("turns"), list) else []
    if not all(type(count) is int and count > 0 for count in counts) or sum(counts) != len(row[key]):
        return [np.array(row[key])]
    return np.split(np.array(row[key]), np.cumsum(counts)[:-1])


def open_experiment(path: Path | None, header: dict) -> Experiment:
    """The experiment of a file, resumed where the file holds the same one, else begun."""
    if path and path.exists() and path.stat().st_size:
        found = read_experiment(path)
        for key in ("refs", "settings"):
            if found.header.get(key) != header[key]:
                raise UserError(f"-o {path}: holds another experiment: its {key} differ; name another file")
        for key in SAME_HOST:
            if found.header.get("host", {}).get(key) != header["host"][key]:
                raise UserError(f"-o {path}: was begun on another machine: its {key} differs; name another file")
        terminate_last_line(path)
        return found
    experiment = Experiment(path, header)
    try:
        experiment.write(header)
    except OSError as error:
        raise UserError(f"-o {path}: cannot be written: {error.strerror}") from error
    return experiment


def terminate_last_line(path: Path) -> None:
    """Ends a last line that a killed run left incomplete, so that the next line stays separate."""
    with open(path, "rb+") as file:
        if file.seek(0, 2) and file.seek(-1, 2) is not None and file.read(1) != b"\n":
            file.write(b"\n")


def read_lines(path: Path) -> list[dict]:
    """The JSON objects of a file of lines; a line that a killed run left incomplete is skipped."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, which no record file is")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file; InputError where it holds none."""
    experiment = Experiment(path, {})
    for row in read_lines(path):
        if row.get("schema") == "bench/1" and "refs" in row:
            experiment.header = row
        elif isinstance(row.get("case"), str) and ("equal" in row or _is_process(row)):
            experiment.rows.append(row)
    if not experiment.header:
        raise InputError(f"{path}: is no file of bench ab: no line has schema bench/1 and refs")
    return experiment


def _is_process(row: dict) -> bool:
    """Whether a line has what the judgement reads of it, of the right kinds."""
    whole = all(type(row.get(key)) is int for key in ("pair", "attempt"))
    if not (whole and row.get("arm") in ARMS and row.get("stage") in ("screen", "confirm")):
        return False
    if "crash" in row or "missing" in row:
        return True
    return row.get("clock") in ("wall", "device") and all(
        isinstance(row.get(key), list) and row[key] and all(type(ns) is int and ns > 0 for ns in row[key])
        for key in (["wall_ns", "device_ns"] if row["clock"] == "device" else ["wall_ns"])
    )

"""Costs of a process beside its time: instructions, cycles, cache misses, memory; and the verdict of each.

Other programs on the machine change a process's time, but hardly its instructions, so that a few processes show 1 %.
Commands are counted by perf_event_open(2) where the system lets them, else by valgrind. Python's seed of hashes alone
moves a program's instructions by 4 %: both arms of a pair get the same seed, and every pair another one.

Of valgrind's tools, cachegrind without its caches counts the same instructions as lackey, and takes a third of the
processor time of callgrind, which leaves out 6 % of a C program that calls a shared library in a loop. If its
translation does not follow jumps (--vex-guest-chase=no), it takes 12 % less time for Python, for whose start the
translation alone takes 0.9 s.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from renderer.bench.experiment import QUANTITIES, Experiment
from renderer.bench.launcher import open_event
from renderer.bench.records import are_positive_integers, is_count, is_name
from renderer.bench.verdict import DecisionRule, Verdict, judge
from renderer.errors import UnavailableError, UserError
from renderer.host import end_process_group
from renderer.paths import temporary_directory
from renderer.plain import Json
from renderer.system.files import read_json_lines

TIMEOUT = 300  # seconds, for one process
EVENTS = ("instructions", "cycles", "cache misses")
CACHEGRIND = ("--tool=cachegrind", "--vex-guest-chase=no", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
LAUNCHER = Path(__file__).with_name("launcher.py")
# ns of processor time up to which a command is counted by valgrind beside its time: 16 runs of 2 to 8 s.
AFFORDABLE = 2e8
FIRST_PAIRS = 8  # the fewest whose signed-rank interval has 99 % confidence
LOOKS = ((1, 0.8), (2, 0.2))  # counts are judged after these multiples of the first pairs, each by its part of alpha
Measure = Callable[[str, list[str], int], None]  # measure(stage, cases, n): until each case has n pairs of the stage
FINER = 4  # counts are judged at --min-effect / FINER: by default 0.5 %


class Counter(NamedTuple):
    """The way to count instructions: events of the processor, a tool of valgrind, or none, with the reason."""

    events: tuple[str, ...] = ()
    tool: str = ""
    reason: str = ""

    @property
    def works(self) -> bool:
        """True if instructions are counted."""
        return bool(self.events or self.tool)

    @property
    def name(self) -> str:
        """The name for people: what counts, or the reason why nothing does."""
        return f"valgrind --tool={self.tool}" if self.tool else self.reason or "perf_event_open"


NO_COUNTER = Counter()


def measure_nothing(stage: str, names: list[str], pairs: int) -> None:
    """The Measure of an experiment that is over: its verdicts follow from the pairs in its file."""


def find_counter(choice: str) -> Counter:
    """The counter that --counts names, or with `auto` the first that works; UnavailableError for one that does not."""
    if choice == "none":
        return Counter(reason="--counts none")
    events, refusal = [], ""
    for event in EVENTS:
        try:
            os.close(open_event(event))
            events.append(event)
        except OSError as error:
            refusal = refusal or (error.strerror or str(error))
    if "instructions" in events and choice in ("auto", "perf"):
        return Counter(tuple(events))
    reason = f"the system counts no instructions ({refusal})"
    if choice != "perf":
        if shutil.which("valgrind"):
            return Counter(tool="cachegrind")
        reason = f"valgrind is not installed, and {reason}" if choice == "auto" else "valgrind is not installed"
    if choice == "auto":
        return Counter(reason=reason)
    raise UnavailableError(f"bench: --counts {choice}: {reason}")


def launch(
    words: list[str],
    folder: Path,
    hash_seed: int = 0,
    counter: Counter = NO_COUNTER,
    case: str = "",
    seconds: float = 0,
) -> Json:
    """Runs a command in a folder; what launcher.py wrote, and "cases", which the command reported itself, by name.

    UserError if it fails. `case` is the only one that the command is to report, and `seconds` are for its runs.
    """
    with temporary_directory("launch") as scratch, tempfile.TemporaryFile("w+", errors="replace") as errors:
        report, cases = Path(scratch, "report.json"), Path(scratch, "cases.jsonl")
        variables = {"PYTHONHASHSEED": hash_seed, "RAYFOLD_BENCH": cases, "RAYFOLD_BENCH_CASE": case}
        variables |= {"RAYFOLD_BENCH_SECONDS": seconds}
        line = [sys.executable, "-I", "-S", str(LAUNCHER), str(report), ",".join(counter.events)]
        if counter.tool:
            line += ["valgrind", *CACHEGRIND, "--trace-children=yes", f"--log-file={scratch}/%p.log"]  # one a process
        # start_new_session: end_process_group() below ends what the command has started, too
        process = subprocess.Popen(
            [*line, *words], cwd=folder, env=os.environ | {name: str(value) for name, value in variables.items()},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise UserError(f"{words[0]} took longer than {TIMEOUT} s") from None
        finally:
            if process.returncode is None:
                end_process_group(process)
                process.wait()
        errors.seek(0)
        took: Json = json.loads(report.read_text()) if report.exists() else {"code": process.returncode}
        if "error" in took:
            raise UserError(f"{words[0]} cannot be started: {took['error']}")
        if took["code"]:
            message = last_message(errors.read(), "it printed nothing on stderr")
            raise UserError(f"{words[0]} ended with exit code {took['code']}: {message}")
        if counter.tool:
            logs = [path.read_text(errors="replace") for path in Path(scratch).glob("*.log")]
            found = re.findall(r"I +refs: +([\d,]+)", "\n".join(logs))
            took["instructions"] = sum(int(number.replace(",", "")) for number in found)
        rows = read_json_lines(cases) if cases.exists() else []
        return took | {"cases": {row["case"]: row for row in rows if _is_reported(row)}}


def _is_reported(row: Json) -> bool:
    """True if a row has a case, times of runs in ns, and perhaps counters."""
    times, counters = (row.get("wall_ns"), row.get("cpu_ns", [1])), row.get("counters", {})
    has_times = all(value and are_positive_integers(value) for value in times)
    return (
        is_name(row.get("case")) and has_times and isinstance(counters, dict) and all(map(is_count, counters.values()))
    )


def last_message(stderr: str, fallback: str) -> str:
    """The last line of a program's stderr without the prefix of this program, or `fallback`."""
    lines = stderr.strip().splitlines()
    return lines[-1].removeprefix("rayfold: ") if lines else fallback


def count(words: list[str], folder: Path, hash_seed: int, counter: Counter, case: str) -> dict[str, int] | None:
    """The counts of one process by quantity, as far as they are known; None if it does not report the case."""
    took = launch(words, folder, hash_seed, counter, case)
    if counter.tool:
        del took["peak memory"]  # valgrind's own
    known = {quantity: took[quantity] for quantity in QUANTITIES if took.get(quantity)}
    return None if case and case not in took["cases"] else known


def judge_counts(
    experiment: Experiment, names: list[str], rule: DecisionRule, measure: Measure, decisive: str = "instructions"
) -> dict[str, dict[str, Verdict]]:
    """The verdict of each quantity that both arms have, by case and quantity.

    The exact signed-rank test of verdict.py on log(head / base), after FIRST_PAIRS pairs (one more for each doubling
    of the cases), and again after twice as many where the `decisive` quantity is undecided. Each quantity has at most
    rule.alpha false alarms in a whole run. Counts are judged at rule.min_effect / FINER, memory at rule.min_effect.
    """
    first = FIRST_PAIRS + (max(1, len(names)) - 1).bit_length()  # Holm's correction halves alpha at each doubling
    verdicts: dict[str, dict[str, Verdict]] = {name: {} for name in names}
    for multiple, alpha_part in LOOKS:
        left = [n for n in names if decisive not in verdicts[n] or verdicts[n][decisive].label == "UNDECIDED"]
        measure("count", left, multiple * first)
        for quantity in QUANTITIES:
            is_memory = quantity.endswith("memory")
            values = {name: experiment.count_differences(name, quantity)[: multiple * first] for name in names}
            effect = rule.min_effect if is_memory else rule.min_effect / FINER
            midpoint = rule.midpoint if quantity == decisive else 0.0
            alpha = alpha_part * rule.alpha / 2  # half for SLOWER, half for FASTER
            for name, verdict in judge(values, alpha, effect, midpoint).items():
                if quantity not in verdicts[name] or verdicts[name][quantity].label == "UNDECIDED":
                    verdicts[name][quantity] = verdict
    return verdicts

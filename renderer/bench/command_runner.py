"""CommandRunner: measures the pairs of an experiment on a command, which is timed or counted as a whole process."""

import itertools
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from renderer.bench import counting
from renderer.bench.counting import NO_COUNTER, Counter, launch
from renderer.bench.experiment import ARMS, case_of_command
from renderer.bench.machine import machine_state
from renderer.bench.records import MAX_NAME
from renderer.bench.runner import ROUNDS, ExperimentOptions, Runner
from renderer.errors import UnavailableError, UserError
from renderer.plain import Json, printable

SHELL_SIGN = re.compile(r"\d*[|&;<>]")  # the beginning of a word that a shell does not pass on


class CommandRunner(Runner):
    """Measures whole processes of a command in both trees, which need no bench program and no case.

    A command may report its own cases: it appends a line of JSON for each to the file that RAYFOLD_BENCH names, with
    "case", the times of its runs "wall_ns" and perhaps "cpu_ns", and "counters". Each is then a case of the experiment,
    and of a process that is started with its name in RAYFOLD_BENCH_CASE.
    """

    preparing = "the command runs"

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: Json):
        # By case: the words of the command, and the name by which it reports the case, "" if it is timed as a whole.
        self._commands: dict[str, tuple[list[str], str]] = {}
        super().__init__(options, trees, refs)

    def _list_cases(self) -> list[str]:
        """Runs --setup and the warm-ups; returns the cases that the command reports, or the command, by parameters."""
        options, slowest, counts_whole = self._options, 0, self._options.by == "instructions"
        self._counter = counting.find_counter(options.counts)
        if counts_whole and not self._counter.works:
            raise UnavailableError(f"bench: --by instructions: {self._counter.reason}")
        for arm in ARMS if options.setup else ():
            launch(split_command(str(options.setup), "--setup"), self._trees[arm])
        for line in expand_parameters(str(options.program), options.parameter):
            words = split_command(line, "--command")
            name_interpreter(words[0])
            reported, cpu_ns = self._warm_up(words)
            slowest = max(slowest, cpu_ns)
            more = f" ({line})" if options.parameter else ""
            # a case for each that the command reports; the whole command if it reports none, or for --by instructions
            cases = {printable(case + more, MAX_NAME): (words, case) for case in reported if not counts_whole}
            if cases:
                self._counter = Counter(reason="the command reports its cases; --by instructions counts it as a whole")
            cases = cases or {printable(line, MAX_NAME) if more else case_of_command(line): (words, "")}
            if twice := self._commands.keys() & cases.keys():
                raise UserError(f"--command: two cases would be named {min(twice)!r}")
            self._commands |= cases
        if self._counter.tool and options.counts == "auto" and options.by == "time" and slowest > counting.AFFORDABLE:
            text = f"the command takes {slowest / 1e9:.2g} s of the processor, 10 to 50 times as long under"
            text += f" {self._counter.name}, in 16 processes; --by instructions counts it all the same"
            self._counter = Counter(reason=text)
        if unknown := [case for case in options.cases if case not in self._commands]:
            raise UserError(f"--case {unknown[0]}: the command reports {', '.join(self._commands)}")
        return options.cases or list(self._commands)

    def _warm_up(self, words: list[str]) -> tuple[Json, int]:
        """Runs the command untimed in both trees; returns the cases of the head and the slowest run's cpu_ns.

        UserError if it fails in both. The failure of one arm alone is reported by the measured processes.
        """
        reported, slowest, failures = Json(), 0, dict[str, UserError]()
        for arm in reversed(ARMS):
            # The head runs once at least, to report its cases; the base too if the head fails.
            least = 1 if arm == "head" or failures else 0
            for _ in range(max(self._options.warmup, least)):
                try:
                    took = launch(words, self._trees[arm])
                    slowest = max(slowest, took["cpu_ns"])
                    reported = took["cases"] if arm == "head" else reported
                except UserError as error:
                    failures[arm] = error
        if len(failures) == len(ARMS):
            raise UserError(f"--command: fails in both commits: {failures['head']}")
        return reported, slowest

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random, stage: str) -> dict[str, Json]:
        """Times or counts the command in both trees; records by arm."""
        words, case = self._commands[name]
        if stage == "count":
            return self._counts(arms, words, case, hash_seed)
        clock, seconds = self._options.clock, self._options.seconds
        rows: dict[str, Json] = {arm: {"clock": clock, "wall_ns": [], "cpu_ns": [], "turns": []} for arm in arms}
        began, before, rounds = time.monotonic(), machine_state(gpu=False), 0
        while rounds == 0 or rounds < ROUNDS and time.monotonic() - began < seconds * len(arms):
            for arm in rng.sample(arms, len(arms)):
                try:
                    took = launch(words, self._trees[arm], hash_seed, case=case, seconds=seconds)
                except UserError as error:
                    return rows | {arm: {"crash": str(error)}}
                if case and case not in took["cases"]:
                    return rows | {arm: not_reported(arm)}
                times = took["cases"][case] if case else {key: [took[key]] for key in ("wall_ns", "cpu_ns")}
                if clock == "cpu" and "cpu_ns" not in times:
                    raise UserError(f"--clock cpu: {name} is reported without cpu_ns")
                row = rows[arm]
                for key in ("wall_ns", "cpu_ns"):
                    row[key] += times.get(key, [])
                row["turns"].append(len(times["wall_ns"]))  # the number of runs in this round
                row["counters"] = times.get("counters", {})
                row["counts"] = {"peak memory": took["peak memory"]} if took["peak memory"] else {}
            rounds += 1
        facts = {"machine": {"before": before, "after": machine_state(gpu=False)}}
        return {arm: row | facts for arm, row in rows.items()}

    def _counts(self, arms: list[str], words: list[str], case: str, hash_seed: int) -> dict[str, Json]:
        """Counts one process of each arm, at once under valgrind, to which the other arm is no disturbance."""
        counter = NO_COUNTER if self._options.by == "peak memory" else self._counter

        def counts(arm: str) -> Json:
            try:
                found = counting.count(words, self._trees[arm], hash_seed, counter, case)
                return not_reported(arm) if found is None else {"counts": found}
            except UserError as error:
                return {"crash": str(error)}

        with ThreadPoolExecutor(len(arms) if counter.tool else 1) as pool:
            return dict(zip(arms, pool.map(counts, arms), strict=True))


def not_reported(arm: str) -> Json:
    """The row of a process that does not report its case: the base may lack it, the head has reported it before."""
    return {"missing": True} if arm == "base" else {"crash": "the command no longer reports the case"}


def expand_parameters(line: str, parameters: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """The command line with each combination of the parameters' values in place of {NAME}."""
    for name, _values in parameters:
        if f"{{{name}}}" not in line:
            raise UserError(f"--parameter {name}: the command has no {{{name}}}")
    for values in itertools.product(*[values for _name, values in parameters]):
        varied = line
        for (name, _values), value in zip(parameters, values, strict=True):
            varied = varied.replace(f"{{{name}}}", value)
        yield varied


def split_command(text: str, option: str) -> list[str]:
    """The words of a command line as a POSIX shell splits them; UserError for unclosed quotes or no word."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r}: {error}") from None
    if not words:
        raise UserError(f"{option}: must name a program")
    if signs := [word for word in shlex.split(text, posix=False) if SHELL_SIGN.match(word)]:
        how = f"\"sh -c '...'\" gives one, and quotes pass {signs[0]} on"
        raise UserError(f"{option} {text!r}: runs without the shell that {signs[0]} needs; {how}")
    return words


@cache
def name_interpreter(word: str) -> None:
    """Prints once which Python a command's first word starts, if that is a script, such as pyenv's."""
    found = shutil.which(word) if Path(word).name.startswith("python") else None
    if found and Path(found).read_bytes()[:2] == b"#!":
        answer = subprocess.run([found, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        text = f"{found} is a script, which is timed and counted too"
        print(f"rayfold: --command: {text}; it starts {answer.stdout.strip() or 'another one'}", file=sys.stderr)

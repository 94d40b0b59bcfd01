"""The actions `bench ab`, `bench aa` and `bench reanalyze`: A/B experiments on the speed of two source trees.

An experiment has two arms: "base", a commit checked out as a git worktree, and "head", usually the working tree. Each
pair times a case in two fresh processes, one an arm, in random order; the pairs give a verdict for each case
(verdict.py). Each arm runs its tree's `bench sample` and `bench list` with the same interpreter and drivers. The
options and JSON keys of these two actions never change, so that commits far apart can be compared.
"""

import argparse
import itertools
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

import numpy as np

from renderer.bench import MAX_PAIRS, counting
from renderer.bench.counting import NO_COUNTER, TIMEOUT, Counter, judge_counts, last_message, launch
from renderer.bench.experiment import ARMS, Experiment, open_experiment, read_experiment, shown_label, throttle_reason
from renderer.bench.machine import commit_info, git, host, machine_state
from renderer.bench.measure import WrongResult
from renderer.bench.records import MAX_NAME, SCHEMA
from renderer.bench.verdict import DecisionRule, Verdict, decide, minimum_detectable_effect, slower_rate
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.host import is_running
from renderer.images.metrics import psnr
from renderer.paths import A_CHECKOUT, PACKAGE, temporary_directory
from renderer.plain import Json, printable
from renderer.system.process import INTERNAL_ERROR
from renderer.system.progress import Progress

ATTEMPTS = 3  # at one pair, which is repeated if the machine was throttled
# Author of a temporary commit, to which no branch refers.
IDENTITY = ("-c", "user.name=rayfold", "-c", "user.email=rayfold@localhost")
ROUNDS = 6  # rounds of a pair of processes: in each round both time one batch
PIXEL_TOLERANCE = 1  # largest difference, of 255, of a displayed pixel between pictures that count as equal


@dataclass(frozen=True)
class ExperimentOptions:
    """Options of `bench ab` and `bench aa`, named as on the command line; `rule` holds pairs, alpha and min-effect."""

    action: str
    cases: list[str]
    repo: Path
    device: str
    size: tuple[int, int] | None
    seconds: float
    seed: int
    output: Path | None
    json: bool
    fail_on_undecided: bool
    rule: DecisionRule
    inject: Sequence[str] = ()  # not every action has this option and the next ones
    program: str | None = None  # --command, or None for cases
    setup: str | None = None
    warmup: int = 1
    clock: str = "wall"
    parameter: Sequence[tuple[str, list[str]]] = ()
    counts: str = "auto"
    by: str = "time"

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "ExperimentOptions":
        """Returns the options of a parsed command line."""
        rule = DecisionRule(args.pairs, max(args.pairs, args.max_pairs), args.alpha, args.min_effect)
        values = vars(args) | {"rule": rule}
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})


def ab(args: argparse.Namespace) -> int:
    """Runs `bench ab --base REF`: compares the working tree, or --head REF, with a commit; returns the exit code.

    With --command the head is a worktree too: of --head, else of the last commit with the changes of tracked files.
    """
    options, head_ref, dirty = ExperimentOptions.from_arguments(args), args.head, False
    if args.program and not head_ref:
        dirty = bool(git("status", "--porcelain", "--untracked-files=no", tree=args.repo))
        head_ref = git(*IDENTITY, "stash", "create", tree=args.repo) if dirty else "HEAD"
    with ExitStack() as stack:
        base, base_sha = stack.enter_context(worktree(args.repo, args.base, "base"))
        head, refs = args.repo, _head(args.repo)
        if head_ref:
            head, head_sha = stack.enter_context(worktree(args.repo, head_ref, "head"))
            refs = {"head": head_sha, "dirty": dirty}
        return open_runner(options, {"base": base, "head": head}, {"base": base_sha, **refs}).run()


def open_runner(options: ExperimentOptions, trees: dict[str, Path], refs: Json) -> "Runner":
    """Opens the experiment of --command, or of cases, on the trees of both arms."""
    return (CommandRunner if options.program else Runner)(options, trees, refs)


def aa(args: argparse.Namespace) -> int:
    """Runs `bench aa`: compares the working tree with itself, which measures the harness's false alarms."""
    refs = _head(args.repo)
    trees = {"base": args.repo, "head": args.repo}
    return Runner(ExperimentOptions.from_arguments(args), trees, {"base": refs["head"], **refs}).run()


def reanalyze(args: argparse.Namespace) -> int:
    """Runs `bench reanalyze AB.jsonl`: computes a file's verdicts again with this command's --alpha and --min-effect.

    InputError for a file whose header lacks the numbers of pairs.
    """
    experiment = read_experiment(args.file)
    settings = experiment.header.get("settings", {})
    counts = [settings.get(key) for key in ("pairs", "max_pairs")]
    if not all(type(count) is int and 1 <= count <= MAX_PAIRS for count in counts):
        raise InputError(f"{args.file}: its header does not say how many pairs there were to be")
    rule = DecisionRule(counts[0], counts[1], args.alpha, args.min_effect)
    verdicts = compute_verdicts(experiment, experiment.names(), rule, lambda stage, names, pairs: None)
    return print_verdicts(experiment, verdicts, rule, args.json, args.fail_on_undecided)


def compute_verdicts(
    experiment: Experiment, names: list[str], rule: DecisionRule, measure: counting.Measure
) -> dict[str, Verdict]:
    """Returns the verdict of each case that the base has too; INVALID where a process crashed or the pictures differ.

    It is of the time, or of the quantity that the experiment's --by names. measure(stage, names, pairs) measures
    processes until `experiment` has `pairs` pairs of each named case.
    """

    def measure_pairs(stage: str, names: list[str], pairs: int) -> dict[str, np.ndarray]:
        measure(stage, names, pairs)
        ratios = {name: experiment.differences(name, stage)[:pairs] for name in names if not experiment.invalid(name)}
        return {name: values for name, values in ratios.items() if len(values)}

    if experiment.by == "time":
        verdicts = decide(names, measure_pairs, rule)
    else:
        counted = judge_counts(experiment, names, rule, measure, experiment.by)
        verdicts = {name: judged[experiment.by] for name, judged in counted.items() if experiment.by in judged}
    for name in names:
        reason = experiment.invalid(name)
        if reason or name not in verdicts:
            verdicts[name] = Verdict("INVALID", 0.0, 0.0, 0.0, 1.0, 1.0, 0, reason or "no complete pair was measured")
    return {name: verdicts[name] for name in names if not experiment.skipped(name)}


def print_verdicts(
    experiment: Experiment,
    verdicts: dict[str, Verdict],
    rule: DecisionRule,
    as_json: bool,
    fail_on_undecided: bool,
    extra: Json | None = None,
) -> int:
    """Prints the verdicts, with the further keys `extra`, and appends them to the file; returns the exit code.

    1: a case is slower, by its instructions where its time is undecided, a counter increased, the head's picture
    differs, the head's check fails, the base crashes, or a command fails in one arm. 70: the head's case crashes. 3: a
    case is undecided (1 with `fail_on_undecided`). 0: otherwise.
    """
    increases = {name: experiment.counter_increases(name) for name in verdicts}
    skipped = {name: experiment.skipped(name) for name in experiment.names()}
    answer = {
        "verdicts": {name: verdict.label for name, verdict in verdicts.items()},
        "percent": {name: round(verdict.percent, 3) for name, verdict in verdicts.items()},
        "interval": {name: _interval(verdict) for name, verdict in verdicts.items()},
        "pairs": {name: verdict.pairs for name, verdict in verdicts.items()},
        "by": experiment.by,
        "counts": count_facts(experiment, list(verdicts), rule),
        "outliers": {name: experiment.outliers(name) for name in verdicts},
        "reasons": {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason},
        "counter_increases": {name: counters for name, counters in increases.items() if counters},
        "skipped": {name: reason for name, reason in skipped.items() if reason},
        "refs": experiment.header["refs"],
        **({"counter": experiment.header["counter"]} if "counter" in experiment.header else {}),
        **(extra or {}),
    }
    experiment.file.add({"verdict": answer})
    if as_json:
        print(json.dumps(answer))
    else:
        _print(answer, verdicts)
    return _exit_code(experiment, answer, fail_on_undecided)


def _exit_code(experiment: Experiment, answer: Json, fail_on_undecided: bool) -> int:
    """1 if the head is slower or wrong, INTERNAL_ERROR if it crashed, 3 if a case is undecided, 0 otherwise.

    Counters that increased also give 1, and so do undecided cases with `fail_on_undecided`. The instructions decide
    that a case is slower where its time does not.
    An INVALID case gives 1, since CI must not pass what was not judged; but INTERNAL_ERROR if the head's case crashed.
    A command is not this program, so that its failure is never an internal error.
    """
    labels = set(answer["verdicts"].values())
    for name, label in answer["verdicts"].items():
        if label == "UNDECIDED":
            labels.add(answer["counts"].get(name, {}).get("instructions", {}).get("verdict", label))
    invalid = [name for name, label in answer["verdicts"].items() if label == "INVALID"]
    crashes = [row for name in invalid if (row := experiment.crash(name))]
    differs = any(experiment.invalid(name) and not experiment.crash(name) for name in invalid)
    is_command = "program" in experiment.header.get("settings", {})
    wrong = any(is_command or row["arm"] == "base" or "wrong" in row for row in crashes)
    if "SLOWER" in labels or answer["counter_increases"] or differs or wrong:
        return 1
    if crashes:
        return INTERNAL_ERROR
    if labels & {"UNDECIDED", "INVALID"} or not labels:
        return 1 if fail_on_undecided else 3
    return 0


def count_facts(experiment: Experiment, names: list[str], rule: DecisionRule) -> Json:
    """The verdicts of counts that were measured, as JSON: case -> quantity -> verdict, percent, interval, pairs."""
    counted = judge_counts(experiment, names, rule, lambda stage, names, pairs: None)
    return {
        name: {
            quantity: {"verdict": v.label, "percent": round(v.percent, 3), "interval": _interval(v), "pairs": v.pairs}
            for quantity, v in quantities.items()
        }
        for name, quantities in counted.items()
    }


def _interval(verdict: Verdict) -> list[float | None]:
    """The bounds of the verdict's interval in percent of the base's time; None for an infinite bound."""
    return [round(100 * np.expm1(x), 3) if np.isfinite(x) else None for x in (verdict.low, verdict.high)]


def _print(answer: Json, verdicts: dict[str, Verdict]) -> None:
    refs = answer["refs"]
    dirty = " with uncommitted changes" if refs.get("dirty") else ""
    print(f"base {refs.get('base', '')[:12]}, head {refs.get('head', '')[:12]}{dirty}")
    for name, verdict in verdicts.items():
        text = f"{verdict.percent:+6.2f}% of the {answer['by']} ({_bounds(answer['interval'][name])})"
        text = "" if verdict.label == "INVALID" else f"{text}, {verdict.pairs} pairs"
        print(f"{verdict.label:10s} {name:38s} {'; '.join(filter(None, (text, verdict.reason)))}")
        for quantity, judged in answer["counts"][name].items():
            if quantity != answer["by"]:
                change = f"{judged['percent']:+6.2f}% of the {quantity} ({_bounds(judged['interval'])})"
                print(f"  {shown_label(quantity, judged['verdict']):10s} {change}, {judged['pairs']} pairs")
        if answer["outliers"][name]:
            print(f"           {answer['outliers'][name]} pairs are outliers: other work on the machine disturbed them")
        for counter, (base, head) in answer["counter_increases"].get(name, {}).items():
            print(f"           {counter} of one run rose from {base} to {head}")
    for name, reason in answer["skipped"].items():
        print(f"skipped    {name:38s} {reason}")
    if not any("instructions" in judged for judged in answer["counts"].values()) and answer.get("counter"):
        print(f"no instructions were counted: {answer['counter']}")
    if "UNDECIDED" in answer["verdicts"].values():
        print("undecided: take more pairs by --max-pairs (the same -o keeps these), or measure on an idle machine")
    if "false_positive_rate" in answer:
        print(f"false alarms of these pairs under random order: {100 * answer['false_positive_rate']:.2f}%")
        for name, effect in answer["detectable_percent"].items():
            detected = "no slowdown up to +50%" if effect is None else f"+{effect:g}%"
            print(f"detected with 80% power: {name:38s} {detected}")


def shown_interval(verdict: Verdict) -> str:
    """The bounds of the verdict's interval in percent of the base's time, in words."""
    return _bounds(_interval(verdict)).replace("%", " %")


def _bounds(interval: list[float | None]) -> str:
    return " to ".join("unbounded" if x is None else f"{x:+.2f}%" for x in interval)


class Runner:
    """Measures the pairs of one experiment.

    `trees` maps each arm to its folder. `refs` holds the commits of the arms and is written to the file's header.
    """

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: Json):
        self._options, self._trees, self._refs, self._counter = options, trees, refs, NO_COUNTER
        self._names = self._list_cases()
        size, rule = options.size, options.rule
        settings = {
            "action": options.action, "device": options.device, "seconds": options.seconds,
            "size": list(size) if size else None, "seed": options.seed, "pairs": rule.pairs,
            "max_pairs": rule.max_pairs, "inject": list(options.inject),
        }  # fmt: skip
        if options.program:
            keys = ("program", "setup", "warmup", "clock", "counts", "parameter")
            settings |= {key: json.loads(json.dumps(getattr(options, key))) for key in keys}
        settings |= {"by": options.by} if options.by != "time" else {}
        header = {"schema": SCHEMA, "refs": refs, "settings": settings, "host": host()}
        header |= {"counter": self._counter.name} if options.program else {}
        self._experiment = open_experiment(options.output, header)
        # The file may hold further cases, of a run that asked for more: they get no verdict.
        self._experiment.rows = [row for row in self._experiment.rows if row["case"] in self._names]

    def run(self) -> int:
        """Measures until every case is decided or has --max-pairs pairs; prints the verdicts, returns the exit code."""
        options, verdicts = self._options, self.verdicts()
        extra: Json = self._limits()
        extra |= self._harness_errors() if options.action == "aa" else {}
        return print_verdicts(self._experiment, verdicts, options.rule, options.json, options.fail_on_undecided, extra)

    def verdicts(self) -> dict[str, Verdict]:
        """Measures until every case is decided or has --max-pairs pairs; returns the verdicts by case."""
        experiment, rule = self._experiment, self._options.rule
        verdicts = compute_verdicts(experiment, self._names, rule, self._measure)
        if experiment.by == "time" and self._counter.works:
            judge_counts(experiment, list(verdicts), rule, self._measure)
        if self._options.action == "find":
            experiment.file.add({"verdict": self._limits() | {"midpoint": rule.midpoint}})  # for bench report
        return verdicts

    def _limits(self) -> Json:
        return {"alpha": self._options.rule.alpha, "min_effect": self._options.rule.min_effect}

    def _harness_errors(self) -> Json:
        """Estimates the false alarm rate and each case's smallest detectable effect on this machine from A/A pairs."""
        ratios = {name: self._experiment.differences(name, "screen") for name in self._names}
        ratios = {name: values for name, values in ratios.items() if len(values) and not self._experiment.invalid(name)}
        effects = {name: minimum_detectable_effect(values, self._options.rule) for name, values in ratios.items()}
        return {
            "false_positive_rate": slower_rate(ratios, self._options.rule, simulations=200) if ratios else 0.0,
            "detectable_percent": {name: None if x is None else 100 * x for name, x in effects.items()},
        }

    def _list_cases(self) -> list[str]:
        """Returns the names of the head's cases, listed by a fresh process; raises that process's error."""
        answer = self._process("head", ["list", *self._options.cases, "--json"])
        if answer.returncode and not answer.stdout.strip():
            if answer.returncode == INTERNAL_ERROR or answer.returncode < 0:
                raise RuntimeError(last_message(answer.stderr, f"bench list ended by signal {-answer.returncode}"))
            kinds = {InputError.exit_code: InputError, UnavailableError.exit_code: UnavailableError}
            raise kinds.get(answer.returncode, UserError)(last_message(answer.stderr, "bench list failed"))
        return [case["name"] for case in json.loads(answer.stdout)["cases"]]

    def _command(self, arm: str, arguments: list[str], hash_seed: int = 0) -> tuple[list[str], Json]:
        """Returns the command line of `bench` for an arm's tree, and the keyword arguments for subprocess.

        Runs the bench program in that tree, or this one if the tree has none.
        """
        tree, size = self._trees[arm], self._options.size
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        if (tree / "renderer" / "bench").is_dir():
            command = [sys.executable, str(tree / "main.py"), "bench", *arguments]
        else:  # the tree has no harness: this program, which need not be installed, measures it
            command = [sys.executable, "-P", "-m", "renderer", "bench", *arguments, "--repo", str(tree)]
            path = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        command += ["--device", self._options.device]
        command += ["--size", "x".join(map(str, size))] if size else []
        return command, {"cwd": tree, "env": environment, "text": True, "errors": "replace"}

    def _process(self, arm: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs `bench` in an arm's tree to its end; return code 124 if it took longer than TIMEOUT."""
        command, options = self._command(arm, arguments)
        try:
            return subprocess.run(command, timeout=TIMEOUT, capture_output=True, stdin=subprocess.DEVNULL, **options)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"took longer than {TIMEOUT} s")

    def _measure(self, stage: str, names: list[str], pairs: int) -> None:
        """Measures the pairs that the file lacks, up to `pairs` of each case, in a shuffled order of cases.

        UserError if the working tree changed meanwhile.
        """
        with Progress(pairs * len(names), f"{len(names)} cases, {pairs} pairs, {stage}") as progress:
            for pair in range(pairs):
                shuffled = list(names)
                random.Random(f"{self._options.seed}/{stage}/{pair}").shuffle(shuffled)
                for name in shuffled:
                    self._pair(stage, name, pair)
                    progress.advance()
        if self._options.action == "ab" and self._trees["head"] == self._options.repo:
            if {"base": self._refs["base"], **_head(self._options.repo)} != self._refs:
                raise UserError("bench ab: the working tree changed while it was timed; start again")

    def _pair(self, stage: str, name: str, pair: int) -> None:
        """Times both arms of a pair, unless the file has that pair, the base lacks the case, or the case is invalid.

        Repeats a pair during which the machine was throttled; UnavailableError after ATTEMPTS such attempts.
        """
        experiment = self._experiment
        for _ in range(ATTEMPTS):
            if experiment.skipped(name) or experiment.invalid(name) or pair in experiment.pairs(name, stage):
                return
            attempt = sum(row["pair"] == pair for row in experiment.processes(name, stage))
            rng = random.Random(f"{self._options.seed}/{stage}/{pair}/{name}/{attempt}")
            arms, hash_seed = list(ARMS), rng.randrange(1 << 32)  # both arms hash texts alike; each attempt differs
            rng.shuffle(arms)
            samples = self._samples(arms, name, hash_seed, rng, stage)
            for position, arm in enumerate(arms):
                row = {"case": name, "arm": arm, "stage": stage, "pair": pair, "attempt": attempt, "position": position}
                experiment.add(row | samples[arm])
            if len(experiment.digests(name)) > 1 and not experiment.picture(name):
                experiment.add({"case": name, **self._compare_pictures(name)})
        # The last two processes are both arms of the last attempt. A pair still missing was throttled each time.
        reasons = [reason for row in experiment.processes(name, stage)[-2:] if (reason := throttle_reason(row))]
        if reasons and pair not in experiment.pairs(name, stage):
            raise UnavailableError(f"bench: {name}: {reasons[0]}, {ATTEMPTS} times; no verdict is given")

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random, stage: str) -> dict[str, Json]:
        """Runs a fresh process for each arm, alike in every stage; returns each arm's record, or why it has none.

        Both processes warm up. Then, in each round, they time one batch each, one after the other in random order, so
        that a disturbance longer than a batch affects both arms.
        """
        total = self._options.seconds
        samples = {}
        with ExitStack() as stack:
            for arm in arms:
                command, options = self._command(arm, self._sample_arguments(arm, name, "--turns"), hash_seed)
                samples[arm] = stack.enter_context(BenchProcess(command, options))
            ready = [seconds for sample in samples.values() if (seconds := sample.ready()) is not None]
            if len(ready) == len(samples):
                rounds = max(1, min(ROUNDS, int(total / max(*ready, 1e-9))))
                for _ in range(rounds):
                    order = list(arms)
                    rng.shuffle(order)
                    for arm in order:
                        samples[arm].run_batch(total / rounds)
            return {arm: sample.row(arm) for arm, sample in samples.items()}

    def _sample_arguments(self, arm: str, name: str, *options: str) -> list[str]:
        faults = self._options.inject if arm == "head" else []
        return ["sample", "--case", name, "--seconds", str(self._options.seconds), *options, *faults]

    def _compare_pictures(self, name: str) -> Json:
        """Draws the case in both arms, whose digests differ, and compares the pictures by visually_equal()."""
        with temporary_directory("pictures") as folder:
            pictures = []
            for arm in ARMS:
                path = Path(folder, f"{arm}.npy")
                self._process(arm, self._sample_arguments(arm, name, "--picture", str(path)))
                try:
                    pictures.append(np.load(path, allow_pickle=False))
                except (OSError, ValueError):
                    return {"equal": False, "message": "the results differ"}
        return visually_equal(*pictures)


class CommandRunner(Runner):
    """Measures whole processes of a command in both trees, which need no bench program and no case.

    A command may report its own cases: it appends a line of JSON for each to the file that RAYFOLD_BENCH names, with
    "case", the times of its runs "wall_ns" and perhaps "cpu_ns", and "counters". Each is then a case of the experiment,
    and of a process that is started with its name in RAYFOLD_BENCH_CASE.
    """

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: Json):
        self._commands: dict[str, tuple[list[str], str]] = {}  # case -> words, and the name that the command reports
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
            words, reported = split_command(line, "--command"), Json()
            failures: dict[str, UserError] = {}
            for arm in reversed(ARMS):  # the head always, and the base if the head fails
                for _ in range(max(options.warmup, arm == "head" or bool(failures))):
                    try:
                        took = launch(words, self._trees[arm])
                        slowest = max(slowest, took["cpu_ns"])
                        reported = took["cases"] if arm == "head" else reported
                    except UserError as error:
                        failures[arm] = error  # of one arm: measured processes report it
            if len(failures) == len(ARMS):
                raise UserError(f"--command: fails in both commits: {failures['head']}")
            more = f" ({line})" if options.parameter else ""
            cases = {printable(case + more, MAX_NAME): (words, case) for case in reported if not counts_whole}
            if cases:
                self._counter = Counter(reason="the command reports its cases; --by instructions counts it as a whole")
            cases = cases or {printable(line, MAX_NAME): (words, "")}
            if self._commands.keys() & cases.keys():
                raise UserError(f"--command: two cases would be named {next(iter(cases))!r}")
            self._commands |= cases
        if self._counter.tool and options.counts == "auto" and options.by == "time" and slowest > counting.AFFORDABLE:
            text = f"under {self._counter.name} the command takes minutes; --by instructions counts it all the same"
            self._counter = Counter(reason=text)
        if unknown := [case for case in options.cases if case not in self._commands]:
            raise UserError(f"--case {unknown[0]}: the command reports {', '.join(self._commands)}")
        return options.cases or list(self._commands)

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
                row["turns"].append(len(times["wall_ns"]))
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
    return words


class BenchProcess:
    """A fresh process of `bench sample --turns`, which times batches on demand.

    A timer kills a process that runs longer than TIMEOUT. Leaving the context kills a process that still runs
    and closes its streams.
    """

    def __init__(self, command: list[str], options: Json):
        self._stderr = tempfile.TemporaryFile("w+", errors="replace")
        self._began = time.time()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, **options
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input: IO[str] = self._process.stdin
        self._output: IO[str] = self._process.stdout
        self._watchdog = threading.Timer(TIMEOUT, self._process.kill)
        self._watchdog.start()
        self._startup_ms: float | None = None

    def __enter__(self) -> "BenchProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        for stream in (self._input, self._output, self._stderr):
            with suppress(BrokenPipeError):  # the process ended before it read all of its input
                stream.close()

    def ready(self) -> float | None:
        """Waits until the case is checked and warm; returns the seconds of a run, or None if the process ended."""
        try:
            seconds = float(json.loads(self._output.readline())["ready"])
        except (ValueError, KeyError, TypeError):
            return None
        self._startup_ms = round(1e3 * (time.time() - self._began), 1)
        return seconds

    def run_batch(self, seconds: float) -> None:
        """Lets the process time runs for `seconds`; returns when the batch or the process has ended."""
        with suppress(BrokenPipeError):
            self._input.write(f"{seconds}\n")
            self._input.flush()
            self._output.readline()

    def row(self, arm: str) -> Json:
        """Waits for the end of the process; returns its record, or a row with the reason why there is none."""
        output, _ = self._process.communicate()
        self._stderr.seek(0)
        errors = self._stderr.read()
        message = last_message(errors, "it printed nothing")
        code = self._process.returncode
        row = {"began": self._began, "startup_ms": self._startup_ms}
        if code == UserError.exit_code and arm == "base" and "no case" in message:
            return row | {"missing": True}
        if code == UnavailableError.exit_code:
            return row | {"crash": f"it cannot run here: {message}", "cannot": message}
        if code == WrongResult.exit_code and "Traceback" not in errors:  # old commits also exit with 1 when they crash
            return row | {"crash": f"exit code {code}: {message}", "wrong": True}
        if code:
            return row | {"crash": f"exit code {code}: {message}"}
        try:
            record = json.loads(output)
        except ValueError:
            return row | {"crash": "printed no record"}
        return row | {key: value for key, value in record.items() if key not in ("case", "arm", "stage", "pair")}


def visually_equal(base: np.ndarray, head: np.ndarray) -> Json:
    """Compares two linear pictures (height, width, channels) as displayed; returns {"equal": bool, "message": str}.

    They are equal if no channel of a displayed pixel differs by more than PIXEL_TOLERANCE. White on the display is the
    larger of 1 and the base's 99th percentile.
    """
    if base.shape != head.shape:
        return {"equal": False, "message": f"the pictures differ: {base.shape} and {head.shape}"}
    white = max(1.0, float(np.percentile(base, 99)))
    shown = [linear_to_srgb(np.clip(picture / white, 0, 1)).astype("i2") for picture in (base, head)]
    errors = np.abs(shown[0] - shown[1]).reshape(*base.shape[:-1], -1).max(axis=-1)
    quality = float(psnr(shown[0], shown[1]))
    count, worst = int((errors > PIXEL_TOLERANCE).sum()), int(errors.max())
    text = f"{count} pixels by more than {PIXEL_TOLERANCE} of 255, the worst by {worst}, {quality:.1f} dB"
    return {"equal": count == 0, "message": f"the pictures differ: {text}"}


def _head(tree: Path) -> Json:
    facts = commit_info(tree)
    return {"head": facts.pop("commit"), **facts}


def commit_hash(tree: Path, ref: str) -> str:
    """The hash of a commit of the repository `tree`; UserError for an unknown one."""
    try:
        return git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", tree=tree)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"bench ab: {ref}: git knows no such commit in {tree}") from error


@contextmanager
def worktree(tree: Path, ref: str, arm: str) -> Iterator[tuple[Path, str]]:
    """Checks out the commit `ref` as a git worktree in the repository's .bench/; yields its folder and commit hash.

    Removes the worktree at the end, and at the start those that killed runs left behind. UserError for an unknown
    commit, and of an installed program, which has none; UnavailableError if git cannot add the worktree.
    """
    if tree == PACKAGE:
        raise UserError(f"bench ab: compares commits, which takes {A_CHECKOUT}; or time any command by --command LINE")
    sha = commit_hash(tree, ref)
    for folder in (tree / ".bench").glob("*-*"):
        owner = folder.name.rpartition("-")[2]
        if owner.isdigit() and not is_running(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
    path = tree / ".bench" / f"{arm}-{sha[:12]}-{os.getpid()}"
    try:
        git("worktree", "prune", tree=tree)
        git("worktree", "add", "--detach", "--force", str(path), sha, tree=tree)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"bench ab: git cannot lay out {sha[:12]}: {error.stderr.strip()}") from error
    try:
        yield path, sha
    finally:
        shutil.rmtree(path, ignore_errors=True)
        git("worktree", "prune", tree=tree)

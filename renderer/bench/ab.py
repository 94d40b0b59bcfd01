"""The actions `bench ab`, `bench aa` and `bench reanalyze`: A/B experiments on the speed of two source trees.

An experiment has two arms: "base", a commit checked out as a git worktree, and "head", usually the working tree. Each
pair times a case in two fresh processes, one an arm, in random order; the pairs give a verdict for each case
(verdict.py). Each arm runs its tree's `bench sample` and `bench list` with the same interpreter and drivers. The
options and JSON keys of these two actions never change, so that commits far apart can be compared.
"""

import argparse
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

import numpy as np

from renderer.bench import MAX_PAIRS
from renderer.bench.experiment import ARMS, Experiment, open_experiment, read_experiment, throttle_reason
from renderer.bench.machine import commit_info, git, host, machine_state
from renderer.bench.measure import WrongResult
from renderer.bench.records import MAX_NAME, SCHEMA
from renderer.bench.verdict import DecisionRule, Verdict, decide, minimum_detectable_effect, slower_rate
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.host import children_seconds, is_running
from renderer.images.metrics import psnr
from renderer.paths import A_CHECKOUT, PACKAGE, temporary_directory
from renderer.plain import Json, printable
from renderer.system.process import INTERNAL_ERROR
from renderer.system.progress import Progress

SAMPLE_TIMEOUT = 300  # seconds, for one process
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
    return print_verdicts(experiment, verdicts, args.json, args.fail_on_undecided)


def compute_verdicts(
    experiment: Experiment, names: list[str], rule: DecisionRule, measure: Callable[[str, list[str], int], None]
) -> dict[str, Verdict]:
    """Returns the verdict of each case that the base has too; INVALID where a process crashed or the pictures differ.

    measure(stage, names, pairs) times processes until `experiment` has `pairs` pairs of each named case.
    """

    def measure_pairs(stage: str, names: list[str], pairs: int) -> dict[str, np.ndarray]:
        measure(stage, names, pairs)
        ratios = {name: experiment.differences(name, stage)[:pairs] for name in names if not experiment.invalid(name)}
        return {name: values for name, values in ratios.items() if len(values)}

    verdicts = decide(names, measure_pairs, rule)
    for name in names:
        reason = experiment.invalid(name)
        if reason or name not in verdicts:
            verdicts[name] = Verdict("INVALID", 0.0, 0.0, 0.0, 1.0, 1.0, 0, reason or "no complete pair was measured")
    return {name: verdicts[name] for name in names if not experiment.skipped(name)}


def print_verdicts(
    experiment: Experiment,
    verdicts: dict[str, Verdict],
    as_json: bool,
    fail_on_undecided: bool,
    extra: Json | None = None,
) -> int:
    """Prints the verdicts, with the further keys `extra`, and appends them to the file; returns the exit code.

    1: a case is slower, a counter increased, the head's picture differs, or the head's check fails. 70: the head
    crashes. 3: a case is undecided, or only the base is invalid (1 with `fail_on_undecided`). 0: otherwise.
    """
    increases = {name: experiment.counter_increases(name) for name in verdicts}
    skipped = {name: experiment.skipped(name) for name in experiment.names()}
    answer = {
        "verdicts": {name: verdict.label for name, verdict in verdicts.items()},
        "percent": {name: round(verdict.percent, 3) for name, verdict in verdicts.items()},
        "interval": {name: _interval(verdict) for name, verdict in verdicts.items()},
        "pairs": {name: verdict.pairs for name, verdict in verdicts.items()},
        "reasons": {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason},
        "counter_increases": {name: counters for name, counters in increases.items() if counters},
        "skipped": {name: reason for name, reason in skipped.items() if reason},
        "refs": experiment.header["refs"],
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

    Counters that increased also give 1, and so do undecided cases with `fail_on_undecided`.
    An INVALID case has one of four outcomes. The results differ: 1. The head ended with a wrong result: 1. The head
    crashed otherwise: INTERNAL_ERROR. The base crashed: undecided, since the head is not judged.
    """
    labels = set(answer["verdicts"].values())
    invalid = [name for name, label in answer["verdicts"].items() if label == "INVALID"]
    crashes = [row for name in invalid if (row := experiment.crash(name))]
    differs = any(experiment.invalid(name) and not experiment.crash(name) for name in invalid)
    wrong = any(row["arm"] == "head" and "wrong" in row for row in crashes)
    if "SLOWER" in labels or answer["counter_increases"] or differs or wrong:
        return 1
    if any(row["arm"] == "head" for row in crashes):
        return INTERNAL_ERROR
    if labels & {"UNDECIDED", "INVALID"} or not labels:
        return 1 if fail_on_undecided else 3
    return 0


def _interval(verdict: Verdict) -> list[float | None]:
    """The bounds of the verdict's interval in percent of the base's time; None for an infinite bound."""
    return [round(100 * np.expm1(x), 3) if np.isfinite(x) else None for x in (verdict.low, verdict.high)]


def _print(answer: Json, verdicts: dict[str, Verdict]) -> None:
    refs = answer["refs"]
    dirty = " with uncommitted changes" if refs.get("dirty") else ""
    print(f"base {refs.get('base', '')[:12]}, head {refs.get('head', '')[:12]}{dirty}")
    for name, verdict in verdicts.items():
        low, high = ("unbounded" if x is None else f"{x:+.2f}%" for x in answer["interval"][name])
        text = verdict.reason or f"{verdict.percent:+6.2f}% of the time ({low} to {high}), {verdict.pairs} pairs"
        print(f"{verdict.label:10s} {name:38s} {text}")
        for counter, (base, head) in answer["counter_increases"].get(name, {}).items():
            print(f"           {counter} of one run rose from {base} to {head}")
    for name, reason in answer["skipped"].items():
        print(f"skipped    {name:38s} {reason}")
    if "false_positive_rate" in answer:
        print(f"false alarms of these pairs under random order: {100 * answer['false_positive_rate']:.2f}%")
        for name, effect in answer["detectable_percent"].items():
            detected = "no slowdown up to +50%" if effect is None else f"+{effect:g}%"
            print(f"detected with 80% power: {name:38s} {detected}")


class Runner:
    """Measures the pairs of one experiment.

    `trees` maps each arm to its folder. `refs` holds the commits of the arms and is written to the file's header.
    """

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: Json):
        self._options, self._trees, self._refs = options, trees, refs
        self._names = self._list_cases()
        size, rule = options.size, options.rule
        settings = {
            "action": options.action, "device": options.device, "seconds": options.seconds,
            "size": list(size) if size else None, "seed": options.seed, "pairs": rule.pairs,
            "max_pairs": rule.max_pairs, "inject": list(options.inject),
        }  # fmt: skip
        if options.program:
            settings |= {key: getattr(options, key) for key in ("program", "setup", "warmup", "clock")}
        header = {"schema": SCHEMA, "refs": refs, "settings": settings, "host": host()}
        self._experiment = open_experiment(options.output, header)
        # The file may hold further cases, of a run that asked for more: they get no verdict.
        self._experiment.rows = [row for row in self._experiment.rows if row["case"] in self._names]

    def run(self) -> int:
        """Measures until every case is decided or has --max-pairs pairs; prints the verdicts, returns the exit code."""
        options, verdicts = self._options, self.verdicts()
        extra: Json = {"alpha": options.rule.alpha, "min_effect": options.rule.min_effect}
        extra |= self._harness_errors() if options.action == "aa" else {}
        return print_verdicts(self._experiment, verdicts, options.json, options.fail_on_undecided, extra)

    def verdicts(self) -> dict[str, Verdict]:
        """Measures until every case is decided or has --max-pairs pairs; returns the verdicts by case."""
        return compute_verdicts(self._experiment, self._names, self._options.rule, self._measure)

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
                raise RuntimeError(_last_message(answer.stderr, f"bench list ended by signal {-answer.returncode}"))
            kinds = {InputError.exit_code: InputError, UnavailableError.exit_code: UnavailableError}
            raise kinds.get(answer.returncode, UserError)(_last_message(answer.stderr, "bench list failed"))
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
        """Runs `bench` in an arm's tree to its end; return code 124 if it took longer than SAMPLE_TIMEOUT."""
        command, options = self._command(arm, arguments)
        try:
            return subprocess.run(
                command, timeout=SAMPLE_TIMEOUT, capture_output=True, stdin=subprocess.DEVNULL, **options
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"took longer than {SAMPLE_TIMEOUT} s")

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
            samples = self._samples(arms, name, hash_seed, rng)
            for position, arm in enumerate(arms):
                row = {"case": name, "arm": arm, "stage": stage, "pair": pair, "attempt": attempt, "position": position}
                experiment.add(row | samples[arm])
            if len(experiment.digests(name)) > 1 and not experiment.picture(name):
                experiment.add({"case": name, **self._compare_pictures(name)})
        # The last two processes are both arms of the last attempt. A pair still missing was throttled each time.
        reasons = [reason for row in experiment.processes(name, stage)[-2:] if (reason := throttle_reason(row))]
        if reasons and pair not in experiment.pairs(name, stage):
            raise UnavailableError(f"bench: {name}: {reasons[0]}, {ATTEMPTS} times; no verdict is given")

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random) -> dict[str, Json]:
        """Runs a fresh process for each arm; returns each arm's record, or a row with the reason why it has none.

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
    """Times whole processes of a command in both trees, which need no bench program and no case."""

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: Json):
        assert options.program is not None
        self._arguments = split_command(options.program, "--command")
        super().__init__(options, trees, refs)
        for arm in ARMS:
            if options.setup:
                self._timed(arm, split_command(options.setup, "--setup"), 0)
            for _ in range(options.warmup):
                with suppress(UserError):  # timed runs report it
                    self._timed(arm, self._arguments, 0)

    def _list_cases(self) -> list[str]:
        return [printable(str(self._options.program), MAX_NAME)]

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random) -> dict[str, Json]:
        """Runs the command in both trees, in rounds of random order, for about --seconds; records by arm."""
        rows: dict[str, Json] = {arm: {"clock": self._options.clock, "wall_ns": [], "cpu_ns": []} for arm in arms}
        began, before, rounds = time.monotonic(), machine_state(gpu=False), 0
        while rounds == 0 or rounds < ROUNDS and time.monotonic() - began < self._options.seconds * len(arms):
            for arm in rng.sample(arms, len(arms)):
                try:
                    times = self._timed(arm, self._arguments, hash_seed)
                except UserError as error:
                    return rows | {arm: {"crash": str(error)}}
                for key, nanoseconds in times.items():
                    rows[arm][key].append(nanoseconds)
            rounds += 1
        facts = {"turns": [1] * rounds, "machine": {"before": before, "after": machine_state(gpu=False)}}
        return {arm: row | facts for arm, row in rows.items()}

    def _timed(self, arm: str, command: list[str], hash_seed: int) -> dict[str, int]:
        """Runs a command in an arm's tree; its wall and processor time in ns. UserError if it fails."""
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        before, began = children_seconds(), time.perf_counter_ns()
        try:
            answer = subprocess.run(
                command, cwd=self._trees[arm], env=environment, timeout=SAMPLE_TIMEOUT, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UserError(f"{command[0]} took longer than {SAMPLE_TIMEOUT} s") from None
        except OSError as error:
            raise UserError(f"{command[0]} cannot be started: {error.strerror}") from None
        wall, seconds = time.perf_counter_ns() - began, children_seconds() - before
        if answer.returncode:
            message = _last_message(answer.stderr, "it printed nothing on stderr")
            raise UserError(f"{command[0]} ended with exit code {answer.returncode}: {message}")
        return {"wall_ns": wall, "cpu_ns": max(1, round(1e9 * seconds))}


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

    A timer kills a process that runs longer than SAMPLE_TIMEOUT. Leaving the context kills a process that still runs
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
        self._watchdog = threading.Timer(SAMPLE_TIMEOUT, self._process.kill)
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
        message = _last_message(errors, "it printed nothing")
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


def _last_message(stderr: str, default: str) -> str:
    return (stderr.strip().splitlines() or [default])[-1].removeprefix("rayfold: ")


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
        raise UserError(f"bench ab: compares commits, which takes {A_CHECKOUT}")
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

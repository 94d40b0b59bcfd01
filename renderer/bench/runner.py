"""Runner: measures the pairs of an experiment on cases, each in a process of both trees' `bench sample`."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import numpy as np

from renderer.bench.answer import compute_verdicts, print_verdicts
from renderer.bench.counting import NO_COUNTER, TIMEOUT, judge_counts, last_message
from renderer.bench.experiment import ARMS, open_experiment, throttle_reason
from renderer.bench.machine import commit_info, host
from renderer.bench.measure import WrongResult
from renderer.bench.records import SCHEMA
from renderer.bench.verdict import DecisionRule, Verdict, minimum_detectable_effect, slower_rate
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.images.metrics import psnr
from renderer.paths import PACKAGE, temporary_directory
from renderer.plain import Json
from renderer.records import dataclass, fields
from renderer.system.process import INTERNAL_ERROR
from renderer.system.progress import PREPARING, Progress

ATTEMPTS = 3  # at one pair, which is repeated if the machine was throttled
ROUNDS = 6  # rounds of a pair of processes: in each round both time one batch
STAGE_PAIRS = {"screen": "pairs", "confirm": "fresh pairs that confirm", "count": "counted pairs"}
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


class Runner:
    """Measures the pairs of one experiment.

    `trees` maps each arm to its folder. `refs` holds the commits of the arms and is written to the file's header.
    """

    preparing = PREPARING  # what happens before the first pair

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
            # -P: Python does not import a folder `renderer` of the tree, in which the process runs
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
        title = f"{'1 case' if len(names) == 1 else f'{len(names)} cases'}, {pairs} {STAGE_PAIRS[stage]}"
        if stage == "count" and self._counter.tool:
            ready = "; the time's verdict is ready, --counts none skips this" if self._options.by == "time" else ""
            title += f" by valgrind ({self._counter.tool}), slowly{ready}"
        with Progress(pairs * len(names), title) as progress:
            progress.preparing = self.preparing
            for pair in range(pairs):
                shuffled = list(names)
                random.Random(f"{self._options.seed}/{stage}/{pair}").shuffle(shuffled)
                for name in shuffled:
                    self._pair(stage, name, pair)
                    progress.advance()
        if self._options.action == "ab" and self._trees["head"] == self._options.repo:
            if {"base": self._refs["base"], **head_of(self._options.repo)} != self._refs:
                raise UserError("bench ab: the working tree changed while it was timed; start again")

    def _pair(self, stage: str, name: str, pair: int) -> None:
        """Times both arms of a pair, unless the file has that pair, the base lacks the case, or the case is invalid.

        Repeats a pair during which the machine was throttled; UnavailableError after ATTEMPTS such attempts.
        """
        experiment = self._experiment
        for _ in range(ATTEMPTS):
            if experiment.skipped(name) or experiment.invalid(name) or pair in experiment.pairs(name, stage):
                return
            attempt = sum(row["pair"] == pair for row in experiment.processes(name, stage))  # counts rows: 0, 2, 4
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
        if code == UserError.exit_code and arm == "base" and "no case" in message:  # the error of cases.find()
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
    # bytes as 16-bit integers, whose differences do not wrap
    shown = [linear_to_srgb(np.clip(picture / white, 0, 1)).astype("i2") for picture in (base, head)]
    errors = np.abs(shown[0] - shown[1]).reshape(*base.shape[:-1], -1).max(axis=-1)
    quality = float(psnr(shown[0], shown[1]))
    count, worst = int((errors > PIXEL_TOLERANCE).sum()), int(errors.max())
    text = f"{count} pixels by more than {PIXEL_TOLERANCE} of 255, the worst by {worst}, {quality:.1f} dB"
    return {"equal": count == 0, "message": f"the pictures differ: {text}"}


def head_of(tree: Path) -> Json:
    """The commit of a tree as the entry "head" of an experiment's refs, beside the other facts of commit_info()."""
    facts = commit_info(tree)
    return {"head": facts.pop("commit"), **facts}

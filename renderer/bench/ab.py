"""The A/B experiment: two trees timed in pairs of fresh processes in random order, and a verdict for each case.

The base is a git worktree, so each arm runs its own code with the same interpreter and drivers. The arms communicate
by `bench sample` and `bench list`, whose options and JSON keys never change, so that commits far apart can be compared.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

import numpy as np

from renderer.bench import MAX_PAIRS
from renderer.bench.experiment import ARMS, Experiment, open_experiment, read_experiment, throttle_reason
from renderer.bench.machine import commit_info, git, host
from renderer.bench.measure import WrongResult
from renderer.bench.records import SCHEMA
from renderer.bench.verdict import DecisionRule, Verdict, decide, minimum_detectable_effect, slower_rate
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.host import is_running
from renderer.images.metrics import psnr
from renderer.paths import PACKAGE, temporary_directory
from renderer.process import INTERNAL_ERROR
from renderer.progress import Progress

SAMPLE_TIMEOUT = 300
ATTEMPTS = 3
ROUNDS = 6  # of timed batches: in each, both processes of a pair take one
PIXEL_TOLERANCE = 1  # of 255: the largest difference of a displayed pixel between pictures that count as equal


@dataclass(frozen=True)
class ExperimentOptions:
    """What `bench ab` and `bench aa` were asked for: fields are named as the options; `rule` collects the limits."""

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
    inject: list[str]
    rule: DecisionRule

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "ExperimentOptions":
        """The options of a command line."""
        rule = DecisionRule(args.pairs, max(args.pairs, args.max_pairs), args.alpha, args.min_effect)
        values = {"inject": [], **vars(args), "rule": rule}
        return cls(**{f.name: values[f.name] for f in fields(cls)})


def ab(args: argparse.Namespace) -> int:
    """`bench ab --base REF`: the working tree, or --head REF, against a commit."""
    with ExitStack() as stack:
        base, base_sha = stack.enter_context(worktree(args.repo, args.base, "base"))
        head, refs = args.repo, _head(args.repo)
        if args.head:
            head, head_sha = stack.enter_context(worktree(args.repo, args.head, "head"))
            refs = {"head": head_sha, "dirty": False}
        options = ExperimentOptions.from_arguments(args)
        return Runner(options, {"base": base, "head": head}, {"base": base_sha, **refs}).run()


def aa(args: argparse.Namespace) -> int:
    """`bench aa`: the working tree against itself."""
    refs = _head(args.repo)
    trees = {"base": args.repo, "head": args.repo}
    return Runner(ExperimentOptions.from_arguments(args), trees, {"base": refs["head"], **refs}).run()


def reanalyze(args: argparse.Namespace) -> int:
    """`bench reanalyze AB.jsonl`: the verdicts of a file again, with other limits where these are given."""
    experiment = read_experiment(args.file)
    settings = experiment.header.get("settings", {})
    counts = [settings.get(key) for key in ("pairs", "max_pairs")]
    if not all(type(count) is int and 1 <= count <= MAX_PAIRS for count in counts):
        raise InputError(f"{args.file}: its header does not say how many pairs there were to be")
    rule = DecisionRule(counts[0], counts[1], args.alpha, args.min_effect)
    verdicts = compute_verdicts(experiment, experiment.names(), rule, lambda stage, names, pairs: None)
    return print_verdicts(experiment, verdicts, args.json, args.fail_on_undecided)


def compute_verdicts(experiment: Experiment, names: list[str], rule: DecisionRule, measure) -> dict[str, Verdict]:
    """The verdict of each case; INVALID where a process crashed or the pictures differ.

    measure(stage, names, pairs) adds the pairs that the experiment lacks.
    """

    def measure_pairs(stage: str, names: list[str], pairs: int) -> dict[str, np.ndarray]:
        measure(stage, names, pairs)
        d = {name: experiment.differences(name, stage)[:pairs] for name in names if not experiment.invalid(name)}
        return {name: values for name, values in d.items() if len(values)}

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
    more: dict | None = None,
) -> int:
    """Prints the verdicts and returns the exit code.

    1: a case is slower, a counter rose, or the head draws another picture or finds its result wrong; 70: the head
    crashes; 3: undecided, or no head to blame; 0: everything is the same or faster.
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
        **(more or {}),
    }
    experiment.file.add({"verdict": answer})
    if as_json:
        print(json.dumps(answer))
    else:
        _print(answer, verdicts)
    return _exit_code(experiment, answer, fail_on_undecided)


def _exit_code(experiment: Experiment, answer: dict, fail_on_undecided: bool) -> int:
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
    return [round(100 * np.expm1(x), 3) if np.isfinite(x) else None for x in (verdict.low, verdict.high)]


def _print(answer: dict, verdicts: dict[str, Verdict]) -> None:
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
    """Measures the pairs of one experiment: `trees` and `refs` are the folders and commits of its arms."""

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: dict):
        self._options, self._trees, self._refs = options, trees, refs
        self._names = self._list_cases()
        size, rule = options.size, options.rule
        settings = {
            "action": options.action, "device": options.device, "seconds": options.seconds,
            "size": list(size) if size else None, "seed": options.seed, "pairs": rule.pairs,
            "max_pairs": rule.max_pairs, "inject": options.inject,
        }  # fmt: skip
        header = {"schema": SCHEMA, "refs": refs, "settings": settings, "host": host()}
        self._experiment = open_experiment(options.output, header)
        self._experiment.rows = [row for row in self._experiment.rows if row["case"] in self._names]

    def run(self) -> int:
        """Measures until every case is decided or has --max-pairs pairs; prints verdicts, returns the exit code."""
        options = self._options
        verdicts = compute_verdicts(self._experiment, self._names, options.rule, self._measure)
        more = self._harness_errors() if options.action == "aa" else None
        return print_verdicts(self._experiment, verdicts, options.json, options.fail_on_undecided, more)

    def _harness_errors(self) -> dict:
        """What A/A pairs say about the harness here: its false alarm rate and the smallest effect it detects."""
        d = {name: self._experiment.differences(name, "screen") for name in self._names}
        d = {name: values for name, values in d.items() if len(values) and not self._experiment.invalid(name)}
        effects = {name: minimum_detectable_effect(values, self._options.rule) for name, values in d.items()}
        return {
            "false_positive_rate": slower_rate(d, self._options.rule, simulations=200) if d else 0.0,
            "detectable_percent": {name: None if x is None else 100 * x for name, x in effects.items()},
        }

    def _list_cases(self) -> list[str]:
        """The cases of the head, as a fresh process lists them."""
        answer = self._process("head", ["list", *self._options.cases, "--json"])
        if answer.returncode and not answer.stdout.strip():
            if answer.returncode == INTERNAL_ERROR or answer.returncode < 0:
                raise RuntimeError(_last_message(answer.stderr, f"bench list ended by signal {-answer.returncode}"))
            kinds = {InputError.exit_code: InputError, UnavailableError.exit_code: UnavailableError}
            raise kinds.get(answer.returncode, UserError)(_last_message(answer.stderr, "bench list failed"))
        return [case["name"] for case in json.loads(answer.stdout)["cases"]]

    def _command(self, arm: str, arguments: list[str], hash_seed: int = 0) -> tuple[list[str], dict]:
        """`bench` in an arm's tree, by the tree's own harness where it has one: the command, and how to start it."""
        tree, size = self._trees[arm], self._options.size
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        if (tree / "renderer" / "bench").is_dir():
            command = [sys.executable, str(tree / "main.py"), "bench", *arguments]
        else:  # this program, which need not be installed, measures a tree that has no harness
            command = [sys.executable, "-P", "-m", "renderer", "bench", *arguments, "--repo", str(tree)]
            path = [str(PACKAGE.parent), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        command += ["--device", self._options.device]
        command += ["--size", "x".join(map(str, size))] if size else []
        return command, {"cwd": tree, "env": environment, "text": True, "errors": "replace"}

    def _process(self, arm: str, arguments: list[str]) -> subprocess.CompletedProcess:
        command, options = self._command(arm, arguments)
        try:
            return subprocess.run(
                command, timeout=SAMPLE_TIMEOUT, capture_output=True, stdin=subprocess.DEVNULL, **options
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"took longer than {SAMPLE_TIMEOUT} s")

    def _measure(self, stage: str, names: list[str], pairs: int) -> None:
        """Measures what the file lacks of the first `pairs` pairs of each case, in a shuffled order of cases."""
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
        """Both arms of a pair back to back, unless the file has it or the case can no longer be decided.

        Repeats a pair during which the machine was throttled; UnavailableError after ATTEMPTS such pairs.
        """
        experiment = self._experiment
        for _ in range(ATTEMPTS):
            if experiment.skipped(name) or experiment.invalid(name) or pair in experiment.pairs(name, stage):
                return
            attempt = sum(row["pair"] == pair for row in experiment.of(name, stage))
            rng = random.Random(f"{self._options.seed}/{stage}/{pair}/{name}/{attempt}")
            arms, hash_seed = list(ARMS), rng.randrange(1 << 32)
            rng.shuffle(arms)
            samples = self._samples(arms, name, hash_seed, rng)
            for position, arm in enumerate(arms):
                row = {"case": name, "arm": arm, "stage": stage, "pair": pair, "attempt": attempt, "position": position}
                experiment.add(row | samples[arm])
            if len(experiment.digests(name)) > 1 and not experiment.picture(name):
                experiment.add({"case": name, **self._compare_pictures(name)})
        reasons = [reason for row in experiment.of(name, stage)[-2:] if (reason := throttle_reason(row))]
        if reasons and pair not in experiment.pairs(name, stage):
            raise UnavailableError(f"bench: {name}: {reasons[0]}, {ATTEMPTS} times; no verdict is given")

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random) -> dict[str, dict]:
        """Runs two fresh processes; returns the record of each arm, or why there is none.

        Both get ready, then time batches in rounds, in random order within a round: a disturbance longer than a batch
        affects both arms.
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

    def _sample_arguments(self, arm: str, name: str, *more: str) -> list[str]:
        faults = self._options.inject if arm == "head" else []
        return ["sample", "--case", name, "--seconds", str(self._options.seconds), *more, *faults]

    def _compare_pictures(self, name: str) -> dict:
        """Whether the arms' pictures, whose bits differ, look equal."""
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
    """A fresh process of `bench sample --turns`, which times batches on demand; a watchdog ends one that hangs.

    A context: at its end the process is killed, where it still runs, and its streams are closed.
    """

    def __init__(self, command: list[str], options: dict):
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
            with suppress(BrokenPipeError):  # of text that a process which had ended did not read
                stream.close()

    def ready(self) -> float | None:
        """Waits until the case is checked and warm; the seconds of a run, None when the process ended instead."""
        try:
            seconds = float(json.loads(self._output.readline())["ready"])
        except (ValueError, KeyError, TypeError):
            return None
        self._startup_ms = round(1e3 * (time.time() - self._began), 1)
        return seconds

    def run_batch(self, seconds: float) -> None:
        """Makes the process time runs for some seconds; returns when it has done so, or has ended."""
        with suppress(BrokenPipeError):
            self._input.write(f"{seconds}\n")
            self._input.flush()
            self._output.readline()

    def row(self, arm: str) -> dict:
        """Waits for the end of the process; its record, or why there is none."""
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
        if code == WrongResult.exit_code and "Traceback" not in errors:  # which commits before exit code 70 print
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


def visually_equal(base: np.ndarray, head: np.ndarray) -> dict:
    """Whether two linear pictures (height, width, n), as displayed, differ by at most PIXEL_TOLERANCE anywhere."""
    if base.shape != head.shape:
        return {"equal": False, "message": f"the pictures differ: {base.shape} and {head.shape}"}
    white = max(1.0, float(np.percentile(base, 99)))
    shown = [linear_to_srgb(np.clip(picture / white, 0, 1)).astype("i2") for picture in (base, head)]
    off = np.abs(shown[0] - shown[1]).reshape(*base.shape[:-1], -1).max(axis=-1)
    quality = float(psnr(shown[0], shown[1]))
    count, worst = int((off > PIXEL_TOLERANCE).sum()), int(off.max())
    text = f"{count} pixels by more than {PIXEL_TOLERANCE} of 255, the worst by {worst}, {quality:.1f} dB"
    return {"equal": count == 0, "message": f"the pictures differ: {text}"}


def _head(tree: Path) -> dict:
    facts = commit_info(tree)
    return {"head": facts.pop("commit"), **facts}


@contextmanager
def worktree(tree: Path, ref: str, arm: str) -> Iterator[tuple[Path, str]]:
    """The folder and the commit of a detached git worktree of `ref`, in .bench/ of the repository, removed at the end.

    Removes those, too, that killed runs have left there.
    """
    try:
        sha = git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", tree=tree)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"bench ab: {ref}: git knows no such commit in {tree}") from error
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

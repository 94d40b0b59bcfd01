"""The A/B experiment: two trees timed in pairs of fresh processes in random order, and a verdict for each case.

The base is a git worktree, so each arm runs its own code with the same interpreter and drivers. The arms speak by
`bench sample` and `bench list`, whose words and JSON keys stay as they are, so that commits far apart can be compared.
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
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from renderer.bench.experiment import ARMS, Experiment, open_experiment, read_experiment, throttle_reason
from renderer.bench.machine import commit_info, git, host
from renderer.bench.verdict import DecisionRule, Verdict, decide, minimum_detectable_effect, slower_rate
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.images.metrics import psnr
from renderer.paths import PACKAGE
from renderer.progress import Progress

SAMPLE_TIMEOUT = 300
ATTEMPTS = 3
ROUNDS = 6  # of timed batches: in each, both processes of a pair take one
PIXEL_TOLERANCE = 1  # of 255: the largest difference of a displayed pixel between pictures that count as equal


@dataclass(frozen=True)
class ExperimentOptions:
    """What `bench ab` and `bench aa` were asked for; the fields are their options."""

    action: str
    cases: tuple[str, ...]
    repo: Path
    device: str
    size: tuple[int, int] | None
    seconds: float
    seed: int
    rule: DecisionRule
    output: Path | None
    json: bool
    fail_on_undecided: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> "ExperimentOptions":
        """The options of a command line."""
        rule = DecisionRule(args.pairs, max(args.pairs, args.max_pairs), args.alpha, args.min_effect)
        output = Path(args.output) if args.output else None
        measured = (args.device, args.size, args.seconds, args.seed, rule)
        return cls(args.action, tuple(args.cases), args.repo, *measured, output, args.json, args.fail_on_undecided)


def ab(args: argparse.Namespace) -> int:
    """`bench ab --base REF`: the working tree, or --head REF, against a commit."""
    options, faults, tree = ExperimentOptions.of(args), _fault_arguments(args.inject), args.repo
    with Worktree(tree, args.base, "base") as base:
        if args.head:
            with Worktree(tree, args.head, "head") as head:
                refs = {"base": base.sha, "head": head.sha, "dirty": False}
                return Runner(options, {"base": base.path, "head": head.path}, refs, faults).run()
        return Runner(options, {"base": base.path, "head": tree}, {"base": base.sha, **_head(tree)}, faults).run()


def aa(args: argparse.Namespace) -> int:
    """`bench aa`: the working tree against itself."""
    options, head = ExperimentOptions.of(args), _head(args.repo)
    return Runner(options, {"base": args.repo, "head": args.repo}, {"base": head["head"], **head}, []).run()


def reanalyze(args: argparse.Namespace) -> int:
    """`bench reanalyze AB.jsonl`: the verdicts of a file again, with other limits where these are given."""
    experiment = read_experiment(Path(args.file))
    settings = experiment.header.get("settings", {})
    counts = [settings.get(key) for key in ("pairs", "max_pairs")]
    if not all(type(count) is int and 1 <= count <= 1000 for count in counts):
        raise InputError(f"{args.file}: its header does not say how many pairs there were to be")
    experiment.path = None
    rule = DecisionRule(counts[0], counts[1], args.alpha, args.min_effect)
    verdicts = compute_verdicts(experiment, experiment.names(), rule, lambda stage, names, pairs: None)
    verdicts = compute_verdicts(experiment, experiment.names(), rule, lambda stage, names, pairs: None)
    return print_verdicts(experiment, verdicts, args.json, args.fail_on_undecided)


def compute_verdicts(experiment: Experiment, names: list[str], rule: DecisionRule, measure) -> dict[str, Verdict]:
    """The verdict of each case; INVALID where an arm crashed or the pictures differ.

    measure(stage, names, pairs) adds the pairs that the experiment lacks.
    """

    def measure_pairs(stage: str, names: list[str], pairs: int):
        measure(stage, names, pairs)
        d = {name: experiment.differences(name, stage)[:pairs] for name in names if not experiment.invalid(name)}
        return {name: values for name, values in d.items() if len(values)}

    verdicts = decide(names, measure_pairs, rule)
    for name in names:
        reason = experiment.invalid(name)
        if reason or name not in verdicts:
            verdicts[name] = Verdict("INVALID", 0.0, 0.0, 0.0, 1.0, 1.0, 0, reason or "no whole pair was measured")
    return {name: verdicts[name] for name in names if not experiment.skipped(name)}


def print_verdicts(
    experiment: Experiment,
    verdicts: dict[str, Verdict],
    as_json: bool,
    fail_on_undecided: bool,
    more: dict | None = None,
) -> int:
    """Prints the verdicts and returns the exit code.

    1: a case is slower, a counter rose, or the head draws another picture or crashes; 3: undecided, or no head to
    blame; 0: everything is the same or faster.
    """
    increases = {name: experiment.counter_increases(name) for name in verdicts}
    answer = {
        "verdicts": {name: verdict.label for name, verdict in verdicts.items()},
        "percent": {name: round(verdict.percent, 3) for name, verdict in verdicts.items()},
        "interval": {name: _interval(verdict) for name, verdict in verdicts.items()},
        "pairs": {name: verdict.pairs for name, verdict in verdicts.items()},
        "reasons": {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason},
        "counter_increases": {name: counters for name, counters in increases.items() if counters},
        "skipped": {name: why for name in experiment.names() if (why := experiment.skipped(name))},
        "refs": experiment.header["refs"],
        **(more or {}),
    }
    experiment.write({"verdict": answer})
    if as_json:
        print(json.dumps(answer))
    else:
        _print(answer, verdicts)
    return _exit_code(experiment, answer, fail_on_undecided)


def _exit_code(experiment: Experiment, answer: dict, strict: bool) -> int:
    words = set(answer["verdicts"].values())
    invalid = [name for name, word in answer["verdicts"].items() if word == "INVALID"]
    blamed = [name for name in invalid if (experiment.crash(name) or {"arm": "head"})["arm"] == "head"]
    if "SLOWER" in words or answer["counter_increases"] or blamed:
        return 1
    if words & {"UNDECIDED", "INVALID"} or not words:
        return 1 if strict else 3
    return 0


def _interval(verdict: Verdict) -> list[float | None]:
    return [round(100 * np.expm1(x), 3) if np.isfinite(x) else None for x in (verdict.low, verdict.high)]


def _print(answer: dict, verdicts: dict[str, Verdict]) -> None:
    refs = answer["refs"]
    dirty = " with uncommitted changes" if refs.get("dirty") else ""
    print(f"base {refs['base'][:12]}, head {refs['head'][:12]}{dirty}")
    for name, verdict in verdicts.items():
        low, high = ("unbounded" if x is None else f"{x:+.2f}%" for x in answer["interval"][name])
        words = verdict.reason or f"{verdict.percent:+6.2f}% of the time ({low} to {high}), {verdict.pairs} pairs"
        print(f"{verdict.label:10s} {name:38s} {words}")
        for counter, (base, head) in answer["counter_increases"].get(name, {}).items():
            print(f"           {counter} of one run rose from {base} to {head}")
    for name, why in answer["skipped"].items():
        print(f"skipped    {name:38s} {why}")
    if "false_alarm_rate" in answer:
        print(f"false alarms of these pairs under random order: {100 * answer['false_alarm_rate']:.2f}%")
        for name, least in answer["detectable_percent"].items():
            seen = "no slowdown up to +50%" if least is None else f"+{least:g}%"
            print(f"detected with 80% power: {name:38s} {seen}")


class Runner:
    """Measures the pairs of one experiment."""

    def __init__(self, options: ExperimentOptions, trees: dict[str, Path], refs: dict, faults: list[str]):
        self._options, self._trees, self._refs, self._faults = options, trees, refs, faults
        self._names: list[str] = []
        self._experiment = Experiment(None, {})

    def run(self) -> int:
        """Pairs of processes until every case is decided or --max-pairs are done; prints, returns the exit code."""
        options, rule = self._options, self._options.rule
        self._names = self._list_cases()
        settings = {
            "action": options.action, "device": options.device, "seconds": options.seconds, "size": options.size,
            "seed": options.seed, "pairs": rule.pairs, "max_pairs": rule.max_pairs, "inject": self._faults,
        }  # fmt: skip
        settings = json.loads(json.dumps(settings))
        header = {"schema": "bench/1", "refs": self._refs, "settings": settings, "host": host()}
        self._experiment = open_experiment(options.output, header)
        self._experiment.rows = [row for row in self._experiment.rows if row["case"] in self._names]
        verdicts = compute_verdicts(self._experiment, self._names, rule, self._measure)
        more = self._harness_errors() if options.action == "aa" else None
        return print_verdicts(self._experiment, verdicts, options.json, options.fail_on_undecided, more)

    def _harness_errors(self) -> dict:
        """What A/A pairs say about the harness here: its false alarm rate and the smallest effect it detects."""
        d = {name: self._experiment.differences(name, "screen") for name in self._names}
        d = {name: values for name, values in d.items() if len(values) and not self._experiment.invalid(name)}
        least = {name: minimum_detectable_effect(values, self._options.rule) for name, values in d.items()}
        return {
            "false_alarm_rate": slower_rate(d, self._options.rule, simulations=200) if d else 0.0,
            "detectable_percent": {name: None if x is None else 100 * x for name, x in least.items()},
        }

    def _list_cases(self) -> list[str]:
        """The cases of the head, as a fresh process lists them."""
        answer = self._process("head", ["list", *self._options.cases, "--json"])
        if answer.returncode and not answer.stdout.strip():
            text = (answer.stderr.strip().splitlines() or ["bench list failed"])[-1].removeprefix("rayfold: ")
            kinds = {InputError.exit_code: InputError, UnavailableError.exit_code: UnavailableError}
            raise kinds.get(answer.returncode, UserError)(text)
        return [case["name"] for case in json.loads(answer.stdout)["cases"]]

    def _command(self, arm: str, words: list[str], hash_seed: int = 0) -> tuple[list[str], dict]:
        """`bench` in an arm's tree, by the tree's own harness where it has one: the command, and how to start it."""
        tree, size = self._trees[arm], self._options.size
        own = (tree / "renderer" / "bench").is_dir()
        program = [str(tree / "main.py")] if own else ["-P", "-m", "renderer"]
        command = [sys.executable, *program, "bench", *words]
        command += ["--device", self._options.device] + ([] if own else ["--repo", str(tree)])
        command += ["--size", "x".join(map(str, size))] if size else []
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        if not own:  # this program measures a tree that has none; it need not be installed
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(PACKAGE.parent), *filter(None, [environment.get("PYTHONPATH")])]
            )
        return command, {"cwd": tree, "env": environment, "text": True, "errors": "replace"}

    def _process(self, arm: str, words: list[str]) -> subprocess.CompletedProcess:
        command, options = self._command(arm, words)
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
            now = _head(self._options.repo)
            if any(now.get(key) != self._refs.get(key) for key in ("head", "dirty", "diff_digest")):
                raise UserError("bench ab: the working tree changed while it was timed; start again")

    def _pair(self, stage: str, name: str, pair: int) -> None:
        """Both arms of a pair back to back, unless the file has it or the case can no longer be decided.

        A pair on an unfit machine is repeated; UnavailableError when it stays unfit.
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
        reasons = [throttle_reason(row) for row in experiment.of(name, stage)[-2:] if "machine" in row]
        if any(reasons) and pair not in experiment.pairs(name, stage):
            raise UnavailableError(
                f"bench: {name}: {next(filter(None, reasons))}, {ATTEMPTS} times; no verdict is given"
            )

    def _samples(self, arms: list[str], name: str, hash_seed: int, rng: random.Random) -> dict[str, dict]:
        """Two fresh processes, the arms' records or why there is none.

        Both get ready, then time batches in rounds, in random order within a round: a disturbance longer than a batch
        affects both arms.
        """
        samples = {arm: BenchProcess(*self._command(arm, self._words(arm, name, "--turns"), hash_seed)) for arm in arms}
        try:
            ready = [seconds for sample in samples.values() if (seconds := sample.ready()) is not None]
            if len(ready) == len(samples):
                rounds = max(1, min(ROUNDS, int(self._options.seconds / max(*ready, 1e-9))))
                for _ in range(rounds):
                    order = list(arms)
                    rng.shuffle(order)
                    for arm in order:
                        samples[arm].run_batch(self._options.seconds / rounds)
            return {arm: sample.row(arm) for arm, sample in samples.items()}
        finally:
            for sample in samples.values():
                sample.end()

    def _words(self, arm: str, name: str, *more: str) -> list[str]:
        words = ["sample", "--case", name, "--seconds", str(self._options.seconds), *more]
        return words + (self._faults if arm == "head" else [])

    def _compare_pictures(self, name: str) -> dict:
        """Whether the arms' pictures, which differ in some bit, look equal."""
        with tempfile.TemporaryDirectory() as folder:
            pictures = []
            for arm in ARMS:
                path = Path(folder, f"{arm}.npy")
                self._process(arm, self._words(arm, name, "--picture", str(path)))
                try:
                    pictures.append(np.load(path, allow_pickle=False))
                except (OSError, ValueError):
                    return {"equal": False, "message": "the results differ"}
        return visually_equal(*pictures)


class BenchProcess:
    """A fresh process of `bench sample --turns`, which times batches on demand; a watchdog ends one that hangs."""

    def __init__(self, command: list[str], options: dict):
        self._words = tempfile.TemporaryFile("w+", errors="replace")
        self._began = time.time()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, **options
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input: IO[str] = self._process.stdin
        self._output: IO[str] = self._process.stdout
        self._watchdog = threading.Timer(SAMPLE_TIMEOUT, self._process.kill)
        self._watchdog.start()
        self._startup_ms: float | None = None

    def ready(self) -> float | None:
        """Waits until the case is checked and warm; the seconds of a run, None when the process ended instead."""
        try:
            seconds = float(json.loads(self._output.readline())["ready"])
        except (ValueError, KeyError, TypeError):
            return None
        self._startup_ms = round(1e3 * (time.time() - self._began), 1)
        return seconds

    def run_batch(self, seconds: float) -> None:
        """Has the process time runs for some seconds; returns when it has done so, or has ended."""
        try:
            self._input.write(f"{seconds}\n")
            self._input.flush()
        except BrokenPipeError:
            return
        self._output.readline()

    def row(self, arm: str) -> dict:
        """Ends the process: its record, or why there is none."""
        output, _ = self._process.communicate()
        self._words.seek(0)
        last = (self._words.read().strip().splitlines() or ["it printed nothing"])[-1].removeprefix("rayfold: ")
        code = self._process.returncode
        row = {"began": self._began, "startup_ms": self._startup_ms}
        if code == UserError.exit_code and arm == "base" and "no case" in last:
            return row | {"missing": True}
        if code == UnavailableError.exit_code:
            return row | {"crash": f"it cannot run here: {last}", "cannot": last}
        if code:
            return row | {"crash": f"exit code {code}: {last}"}
        try:
            record = json.loads(output)
        except ValueError:
            return row | {"crash": "printed no record"}
        return row | {key: value for key, value in record.items() if key not in ("case", "arm", "stage", "pair")}

    def end(self) -> None:
        """Kills the process, where it still runs, and closes its streams."""
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        for stream in (self._input, self._output, self._words):
            try:
                stream.close()
            except BrokenPipeError:  # what was written to a process that had ended
                pass


def visually_equal(base: np.ndarray, head: np.ndarray) -> dict:
    """Whether two linear pictures (height, width, n), as displayed, differ by at most PIXEL_TOLERANCE anywhere."""
    if base.shape != head.shape:
        return {"equal": False, "message": f"the pictures differ: {base.shape} and {head.shape}"}
    white = max(1.0, float(np.percentile(base, 99)))
    shown = [linear_to_srgb(np.clip(picture / white, 0, 1)).astype("i2") for picture in (base, head)]
    off = np.abs(shown[0] - shown[1]).reshape(*base.shape[:-1], -1).max(axis=-1)
    quality = float(psnr(shown[0], shown[1]))
    count, worst = int((off > PIXEL_TOLERANCE).sum()), int(off.max())
    words = f"{count} pixels by more than {PIXEL_TOLERANCE} of 255, the worst by {worst}, {quality:.1f} dB"
    return {"equal": bool((off <= PIXEL_TOLERANCE).all()), "message": f"the pictures differ: {words}"}


def _head(tree: Path) -> dict:
    facts = commit_info(tree)
    return {"head": facts.pop("commit"), **facts}


def _fault_arguments(inject: str | None) -> list[str]:
    """Arguments for the head's processes that make them slower or wrong: how the harness tests itself."""
    if inject is None:
        return []
    if inject == "pixel":
        return ["--spoil"]
    name, _, amount = inject.partition("=")
    try:
        slowdown = float(amount.rstrip("%")) / 100
        if name == "slowdown" and 0 < slowdown < 10:
            return ["--slowdown", str(slowdown)]
    except ValueError:
        pass
    raise UserError(f"--inject {inject}: must be slowdown=8% or pixel")


class Worktree:
    """A detached git worktree of a ref, in .bench/ of the repository, removed at the end and after a kill."""

    def __init__(self, tree: Path, ref: str, arm: str):
        self._tree = tree
        try:
            self.sha = git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", tree=tree)
        except (OSError, subprocess.CalledProcessError) as error:
            raise UserError(f"bench ab: {ref}: git knows no such commit in {tree}") from error
        self.path = tree / ".bench" / f"{arm}-{self.sha[:12]}-{os.getpid()}"

    def __enter__(self) -> "Worktree":
        for folder in (self._tree / ".bench").glob("*-*"):
            owner = folder.name.rpartition("-")[2]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
                shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        try:
            git("worktree", "prune", tree=self._tree)
            git("worktree", "add", "--detach", "--force", str(self.path), self.sha, tree=self._tree)
        except subprocess.CalledProcessError as error:
            raise UnavailableError(f"bench ab: git cannot lay out {self.sha[:12]}: {error.stderr.strip()}") from error
        return self

    def __exit__(self, *error) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        git("worktree", "prune", tree=self._tree)

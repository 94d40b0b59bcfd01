"""The A/B experiment: two trees, fresh processes in pairs, the order inside each pair by coin, a word for each case.

The file is JSON lines: a header, a line for each process, a last line with the verdicts. A run that was killed resumes
from it. The base is a git worktree, so both arms run their own code with the same interpreter and drivers.
"""

import json
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from renderer import BadInput, UserError
from renderer.bench.cases import ROOT
from renderer.bench.measure import commit, git, host
from renderer.bench.verdict import Verdict, false_alarm_rate, judge

SAMPLE_TIMEOUT = 120


@dataclass
class Experiment:
    """The file of one experiment: its header and the sample of every process so far."""

    path: Path | None
    header: dict
    samples: list[dict]

    def add(self, row: dict) -> None:
        self.samples.append(row)
        self.write(row)

    def write(self, row: dict) -> None:
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def has(self, case: str, arm: str, pair: int) -> bool:
        return any((s["case"], s["arm"], s["pair"]) == (case, arm, pair) for s in self.samples)


def ab(args) -> int:
    """`bench ab --base REF`: the working tree against a commit."""
    try:
        base = git("rev-parse", "--verify", f"{args.base}^{{commit}}")
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"bench ab --base {args.base}: git knows no such commit here") from error
    faults = _faults(args.inject)
    with Worktree(base) as tree:
        return _experiment(args, {"base": tree, "head": ROOT}, {"base": base, **_head()}, faults)


def aa(args) -> int:
    """`bench aa`: the working tree against itself."""
    head = _head()
    return _experiment(args, {"base": ROOT, "head": ROOT}, {"base": head["head"], **head}, [])


def _head() -> dict:
    facts = commit()
    return {"head": facts["commit"], "dirty": facts["dirty"]}


def _faults(inject: str | None) -> list[str]:
    if inject is None:
        return []
    if inject == "pixel":
        return ["--spoil"]
    name, _, amount = inject.partition("=")
    try:
        return {"slowdown": ["--slowdown", str(float(amount.rstrip("%")) / 100)]}[name]
    except (KeyError, ValueError) as error:
        raise UserError(f"--inject {inject}: must be slowdown=8% or pixel") from error


class Worktree:
    """A detached git worktree of a commit, in .bench/ beside the repository's files, removed at the end."""

    def __init__(self, sha: str):
        self.sha, self.path = sha, ROOT / ".bench" / sha[:12]

    def __enter__(self) -> Path:
        self._remove()
        git("worktree", "add", "--detach", "--force", str(self.path), self.sha)
        return self.path

    def __exit__(self, *error) -> None:
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        git("worktree", "prune")


def _experiment(args, trees: dict, refs: dict, faults: list[str]) -> int:
    """Pairs of processes until every case is decided or --max-pairs are done; prints and returns the exit code."""
    names = _names(args, trees["head"])
    experiment = _opened(args, refs, names)
    looks = _looks(args.pairs, args.max_pairs)
    verdicts: dict[str, Verdict] = {}
    for until in looks:
        open_cases = [name for name in names if name not in verdicts or verdicts[name].word == "UNDECIDED"]
        _sample_pairs(args, experiment, trees, open_cases, until, faults)
        verdicts = _judged(experiment, names, args.alpha / len(looks), args.min_effect)
        if all(verdict.word != "UNDECIDED" for verdict in verdicts.values()):
            break
    verdicts = _confirmed(args, experiment, trees, verdicts, faults)
    rate = None
    if args.action == "aa":
        rate = false_alarm_rate(_differences(experiment, names), args.alpha, args.min_effect, draws=500)
    return _told(args, experiment, verdicts, rate)


def _names(args, tree: Path) -> list[str]:
    """The cases of the working tree, as a fresh process lists them."""
    answer = _process(tree, ["list", *args.cases, "--device", args.device, "--json"])
    if answer.returncode:
        text = answer.stderr.strip().removeprefix("rayfold: ")
        raise (BadInput if answer.returncode == 5 else UserError)(text or "bench list failed")
    return [case["name"] for case in json.loads(answer.stdout)["cases"]]


def _process(tree: Path, words: list[str]) -> subprocess.CompletedProcess:
    command = [sys.executable, str(tree / "main.py"), "bench", *words]
    try:
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=SAMPLE_TIMEOUT)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"took longer than {SAMPLE_TIMEOUT} s")


def _opened(args, refs: dict, names: list[str]) -> Experiment:
    """The experiment of -o, resumed where the file holds the same one, else begun."""
    settings = {"seconds": args.seconds, "device": args.device, "seed": args.seed, "action": args.action}
    header = {"schema": "bench/1", "refs": refs, "settings": settings, "host": host()}
    path = Path(args.output) if args.output else None
    experiment = Experiment(path, header, [])
    if path and path.exists() and path.stat().st_size:
        found, samples = read_experiment(path)
        if found.get("refs") != refs or found.get("settings") != settings:
            raise UserError(f"-o {path}: holds another experiment (refs or settings differ); name another file")
        experiment.samples = [sample for sample in samples if sample["case"] in names]
        if not path.read_bytes().endswith(b"\n"):  # a kill tore the last line: keep the next one apart from it
            with open(path, "a", encoding="utf-8") as file:
                file.write("\n")
        return experiment
    try:
        experiment.write(header)
    except OSError as error:
        raise UserError(f"-o {path}: cannot be written: {error.strerror}") from error
    return experiment


def read_experiment(path: Path) -> tuple[dict, list[dict]]:
    """The header and samples of a file; a line that a killed run left half written is passed over."""
    header: dict = {}
    samples = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("schema") == "bench/1":
            header = row
        elif isinstance(row, dict) and {"case", "arm", "pair"} <= row.keys():
            samples.append(row)
    if not header:
        raise BadInput(f"{path}: is no record file: no line says schema bench/1")
    return header, samples


def _looks(pairs: int, most: int) -> list[int]:
    """10, 20, 40: the numbers of pairs after which the cases are judged."""
    looks = [max(1, pairs)]
    while looks[-1] * 2 <= most:
        looks.append(looks[-1] * 2)
    return looks


def _sample_pairs(args, experiment: Experiment, trees, names, until: int, faults, offset: int = 0) -> None:
    """Runs what is missing of the pairs offset..until of the cases: cases shuffled, order inside a pair by coin."""
    for pair in range(offset, until):
        coins = random.Random(f"{args.seed}/{pair}")
        shuffled = list(names)
        coins.shuffle(shuffled)
        for name in shuffled:
            arms = ["base", "head"] if coins.random() < 0.5 else ["head", "base"]
            for position, arm in enumerate(arms):
                if not experiment.has(name, arm, pair):
                    more = faults if arm == "head" else []
                    experiment.add(_sample(args, trees[arm], name, arm, pair, position, more))
        _show_progress(pair + 1, until)


def _show_progress(done: int, until: int) -> None:
    if sys.stderr.isatty():
        print(f"\rpair {done} of {until}", end="" if done < until else "\n", file=sys.stderr, flush=True)


def _sample(args, tree: Path, name: str, arm: str, pair: int, position: int, faults: list[str]) -> dict:
    """One fresh process: its record, or why there is none."""
    began = time.time()
    words = ["sample", "--case", name, "--device", args.device, "--seconds", str(args.seconds), *faults]
    answer = _process(tree, words)
    row = {"case": name, "arm": arm, "pair": pair, "position": position, "began": began}
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or ["no words"])[-1]
        return row | {"crash": f"exit code {answer.returncode}: {last}"}
    try:
        record = json.loads(answer.stdout)
    except ValueError:
        return row | {"crash": "printed no record"}
    return row | {key: value for key, value in record.items() if key != "case"}


def _differences(experiment: Experiment, names: list[str]) -> dict[str, np.ndarray]:
    """log(median head / median base) of every whole pair, by case."""
    answer = {}
    for name in names:
        medians: dict[int, dict[str, float]] = {}
        for row in experiment.samples:
            if row["case"] == name and "wall_ns" in row:
                times = row["device_ns"] if row["clock"] == "device" else row["wall_ns"]
                medians.setdefault(row["pair"], {})[row["arm"]] = float(np.median(times))
        whole = [pair for pair in medians.values() if len(pair) == 2]
        answer[name] = np.array([np.log(pair["head"] / pair["base"]) for pair in whole])
    return answer


def _judged(experiment: Experiment, names: list[str], alpha: float, effect: float) -> dict[str, Verdict]:
    """The verdicts; INVALID where an arm crashed or the pictures differ."""
    verdicts = judge(_differences(experiment, names), alpha, effect)
    for name in names:
        reason = _invalid(experiment, name)
        if reason or name not in verdicts:
            verdicts[name] = Verdict("INVALID", 0.0, 0.0, 0.0, 1.0, 1.0, 0, reason or "no whole pair")
    return {name: verdicts[name] for name in names}


def _invalid(experiment: Experiment, name: str) -> str:
    """Why the case cannot be judged; empty where it can."""
    rows = [row for row in experiment.samples if row["case"] == name]
    for row in rows:
        if "crash" in row:
            return f"{row['arm']} crashed: {row['crash']}"
    digests = {arm: {row["digest"] for row in rows if row["arm"] == arm} for arm in ("base", "head")}
    for arm, found in digests.items():
        if len(found) > 1:
            return f"the results of {arm} do not repeat"
    if digests["base"] != digests["head"]:
        return "the pictures differ"
    return ""


def _confirmed(args, experiment: Experiment, trees, verdicts: dict[str, Verdict], faults) -> dict[str, Verdict]:
    """SLOWER only when fresh pairs say so again; otherwise UNDECIDED."""
    slower = [name for name, verdict in verdicts.items() if verdict.word == "SLOWER"]
    if not slower:
        return verdicts
    offset = 1 << 20
    _sample_pairs(args, experiment, trees, slower, offset + args.pairs, faults, offset)
    fresh = Experiment(None, {}, [row for row in experiment.samples if row["pair"] >= offset])
    again = _judged(fresh, slower, args.alpha, args.min_effect)
    for name in slower:
        if again[name].word != "SLOWER":
            reason = "slower at first, not in fresh pairs"
            verdicts[name] = Verdict(**{**vars(verdicts[name]), "word": "UNDECIDED", "reason": reason})
    return verdicts


def risen(experiment: Experiment, name: str) -> dict[str, list[int]]:
    """Counters of one run that are larger in the head than in the base: name -> [base, head]."""
    counters = {}
    for row in experiment.samples:
        if row["case"] == name and "counters" in row:
            counters.setdefault(row["arm"], row["counters"])
    base, head = counters.get("base", {}), counters.get("head", {})
    return {key: [base[key], head[key]] for key in base if head.get(key, 0) > base[key]}


def _told(args, experiment: Experiment, verdicts: dict[str, Verdict], rate: float | None) -> int:
    """Prints the verdicts and returns the exit code: 1 slower or risen, 3 undecided or invalid, else 0."""
    more = {name: risen(experiment, name) for name in verdicts}
    answer = {
        "verdicts": {name: verdict.word for name, verdict in verdicts.items()},
        "percent": {name: round(verdict.percent, 3) for name, verdict in verdicts.items()},
        "pairs": {name: verdict.pairs for name, verdict in verdicts.items()},
        "reasons": {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason},
        "counters_risen": {name: counters for name, counters in more.items() if counters},
        "refs": experiment.header["refs"],
    }
    if rate is not None:
        answer["false_alarm_rate"] = rate
    experiment.write({"verdict": answer})
    if args.json:
        print(json.dumps(answer))
    else:
        _print(answer, verdicts)
    words = set(answer["verdicts"].values())
    if "SLOWER" in words or answer["counters_risen"] or (args.strict and words & {"UNDECIDED", "INVALID"}):
        return 1
    return 3 if words & {"UNDECIDED", "INVALID"} else 0


def _print(answer: dict, verdicts: dict[str, Verdict]) -> None:
    refs = answer["refs"]
    dirty = " with uncommitted changes" if refs.get("dirty") else ""
    print(f"base {refs['base'][:12]}, head {refs['head'][:12]}{dirty}")
    for name, verdict in verdicts.items():
        interval = f"{verdict.percent:+6.2f}% ({_percents(verdict.low)} to {_percents(verdict.high)})"
        told = verdict.reason or f"{interval}, {verdict.pairs} pairs"
        print(f"{verdict.word:10s} {name:38s} {told}")
        for counter, (base, head) in answer["counters_risen"].get(name, {}).items():
            print(f"           {counter} of one run rose from {base} to {head}")
    if "false_alarm_rate" in answer:
        print(f"false alarms of these pairs under random orders: {100 * answer['false_alarm_rate']:.2f}%")


def _percents(log_ratio: float) -> str:
    return f"{100 * np.expm1(log_ratio):+.2f}%" if np.isfinite(log_ratio) else "unbounded"


def compare(args) -> int:
    """`bench compare AB.jsonl`: judges a file again, with other limits where these are given."""
    header, samples = read_experiment(Path(args.file))
    names = list(dict.fromkeys(row["case"] for row in samples))
    experiment = Experiment(None, header, [row for row in samples if row["pair"] < 1 << 20])
    return _told(args, experiment, _judged(experiment, names, args.alpha, args.min_effect), None)

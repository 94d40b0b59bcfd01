"""Slowdowns planted in three foreign projects, quiet and beside other work: how many `bench ab` sees, in what time.

    python tests/bench/planted.py [--percents 1,3,5,10] [--repeats 1] [--aa 100] [--by instructions]
    python tests/bench/planted.py --samples FOLDER --by time-cpu --jobs 7 -o runs.jsonl [--stop-after 100]
    python tests/bench/planted.py --table runs.jsonl

A bench, not a test and not a case. It prints Markdown: the share of SLOWER for each planted slowdown, the median of
seconds and of processor seconds, and the false alarms (SLOWER or FASTER) of runs whose head differs in nothing that
runs. The projects: a Python script, a package with a suite as asv's sample project has one, and a C program. --samples
names a checkout of asv's sample project itself (airspeed-velocity/asv_samples), whose suite is then run.
"loaded" runs one busy loop on each core meanwhile. --jobs runs so many experiments at once, each on cores of its own.
Without a C compiler, the programs that --programs FOLDER holds, named by their sizes, are committed.
"""

import argparse
import io
import json
import multiprocessing
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from renderer.cli import main as main_of_rayfold  # noqa: E402  (once for all runs)

PYTHON = f"{sys.executable} -S"
SCRIPT = """words = {}
for k in range(SIZE):
    word = str(k * 7919 % 1009)
    words[word] = words.get(word, 0) + len(word)
print(sum(words.values()))
"""
SUITE = '''class TimeSuite:
    """As in asv's sample project: loops over a dict that setup() fills."""

    def setup(self):
        self.d = {x: None for x in range(500)}

    def time_keys(self):
        for key in self.d.keys():
            pass

    def time_range(self):
        d = self.d
        for key in range(500):
            d[key]


class MemSuite:
    def mem_list(self):
        return [0] * 256
'''
RUN = """import sys
sys.path.insert(0, "benchmarks")
from benchmarks import TimeSuite
suite = TimeSuite()
suite.setup()
for _ in range(SIZE):
    suite.time_keys()
    suite.time_range()
"""
C = """#include <stdio.h>
int main(void) {
    unsigned x = 1;
    for (unsigned k = 0; k < SIZEu; k++) x = x * 1664525u + k;
    printf("%u\\n", x);
}
"""
SAMPLES_RUN = """import sys
sys.path.insert(0, ".")
from benchmarks.benchmarks import TimeSuite
suite = TimeSuite()
suite.setup()
for _ in range(SIZE):
    suite.time_add_arr()
"""
PROJECTS = {  # files, of which the first has SIZE; size; options of bench ab
    "python": ({"work.py": SCRIPT}, 100_000, ["--command", f"{PYTHON} work.py"]),
    "asv": ({"run.py": RUN, "benchmarks/benchmarks.py": SUITE}, 1000, ["--command", f"{PYTHON} run.py"]),
    "c": ({"main.c": C}, 2_000_000, ["--setup", "cc -O1 -o program main.c", "--command", "./program"]),
}
TIMED = {"python": 2, "asv": 3, "c": 10}  # sizes of runs that are timed, in place of counted, as multiples


def commit(tree: Path, name: str, percent: int, args: argparse.Namespace) -> None:
    """Writes the project, slower by `percent`, and commits it."""
    files, size, _ = PROJECTS[name]
    size = size * (TIMED[name] if args.by.startswith("time") else 1) * (100 + percent) // 100
    if name == "asv" and args.samples:
        samples = Path(args.samples).glob("*/*.py")
        files = {"run.py": SAMPLES_RUN} | {str(path.relative_to(args.samples)): path.read_text() for path in samples}
    for path, text in files.items():
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text.replace("SIZE", str(size)) if path == next(iter(files)) else text)
    if name == "c" and args.programs:
        shutil.copy(Path(args.programs, str(size)), tree / "program")
    (tree / "NOTE").write_text(f"{time.time_ns()}")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for words in (["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=tree, check=True)


def judge(load: str, name: str, percent: int, seed: int, args: argparse.Namespace) -> dict[str, object]:
    """The verdict of a fresh repository whose head is slower by `percent`; seconds, and processor seconds."""
    options = PROJECTS[name][2]
    options = options[2:] if name == "c" and args.programs else options
    quantity, _, clock = args.by.partition("-")
    by = ["--by", quantity, *(["--clock", clock] if clock else [])]
    by += ["--counts", "none"] if quantity == "time" else []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        commit(Path(folder), name, 0, args)
        commit(Path(folder), name, percent, args)
        words = ["bench", "ab", "--repo", folder, "--base", "HEAD~1", "--json", "--seed", str(seed), *options, *by]
        words += shlex.split(args.aa_options) if percent == 0 else []
        began, used, out = time.monotonic(), sum(os.times()[:4]), io.StringIO()
        with redirect_stdout(out):
            code = main_of_rayfold(words)
        took = time.monotonic() - began, sum(os.times()[:4]) - used
    try:
        label = next(iter(json.loads(out.getvalue())["verdicts"].values()))
    except ValueError:
        label = f"exit code {code}"
    row = {"project": name, "load": load, "by": args.by, "percent": percent, "verdict": label}
    return row | {"wall": took[0], "cpu": took[1]}


def work(number: int, queue: "multiprocessing.SimpleQueue[tuple | None]", done: "multiprocessing.SimpleQueue") -> None:
    """Judges what the queue holds, on the cores of worker `number`."""
    args = None
    while (task := queue.get()) is not None:
        args = task[-1]
        cores = sorted(args.cores)
        if args.jobs > 1:
            share = max(1, len(cores) // args.jobs)
            os.sched_setaffinity(0, cores[number * share :][:share])
        done.put(judge(*task) if time.monotonic() < args.until else None)


def tasks(args: argparse.Namespace, load: str) -> Iterator[tuple[str, str, int, int, argparse.Namespace]]:
    """The experiments of a load: all projects and slowdowns, with runs without a slowdown among them."""
    planted = [int(percent) for percent in args.percents.split(",") if percent]
    each = -(-args.aa // args.repeats) if args.repeats else args.aa
    for run in range(max(args.repeats, 1 if args.aa else 0)):
        for name in args.projects.split(","):
            for percent in planted if run < args.repeats else []:
                yield load, name, percent, args.seed + run, args
            for blank in range(run * each, min(args.aa, (run + 1) * each)):
                yield load, name, 0, args.seed + blank, args


def judge_all(args: argparse.Namespace, load: str) -> Iterator[dict[str, object]]:
    """The rows of all experiments of a load, as they end."""
    args.until = time.monotonic() + args.stop_after
    with ExitStack() as stack:
        for core in args.cores if load == "loaded" else ():
            busy = subprocess.Popen(
                [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"]
            )
            stack.callback(busy.kill)
        queue, done = multiprocessing.SimpleQueue(), multiprocessing.SimpleQueue()
        workers = [multiprocessing.Process(target=work, args=(k, queue, done), daemon=True) for k in range(args.jobs)]
        for worker in workers:
            worker.start()
            stack.callback(worker.terminate)
        todo = list(tasks(args, load))
        sent = 0
        for _ in range(args.jobs):
            queue.put(todo[sent] if sent < len(todo) else None)
            sent += 1
        for _ in todo:
            row = done.get()
            queue.put(todo[sent] if sent < len(todo) else None)
            sent += 1
            if row:
                yield row


def table(rows: list[dict]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| project | machine | by | planted | runs | seen | seconds | processor seconds | verdicts |",
        "|---" * 9 + "|",
    ]
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["project"], row["load"], row["by"], row["percent"]), []).append(row)
    for (name, load, by, percent), members in sorted(groups.items()):
        labels = [row["verdict"] for row in members]
        seen = sum(label == "SLOWER" if percent else label in ("SLOWER", "FASTER") for label in labels)
        counted = ", ".join(f"{labels.count(label)} {label}" for label in sorted(set(labels)))
        wall, cpu = (statistics.median(row[key] for row in members) for key in ("wall", "cpu"))
        kind = f"{percent} %" if percent else "none (false alarms)"
        row = f"| {name} | {load} | {by} | {kind} | {len(members)} | {100 * seen / len(members):.0f} %"
        lines.append(f"{row} | {wall:.0f} | {cpu:.1f} | {counted} |")
    return "\n".join(lines)


def main() -> None:
    """Prints a row for each project, load and planted slowdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--percents", default="1,3,5,10")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--aa", type=int, default=0, help="runs without a slowdown")
    parser.add_argument("--aa-options", default="", help="further options of bench ab for these")
    parser.add_argument("--by", default="instructions", help="instructions, memory, time, or time-cpu")
    parser.add_argument("--projects", default=",".join(PROJECTS))
    parser.add_argument("--loads", default="quiet,loaded")
    parser.add_argument("--samples", help="a checkout of asv's sample project")
    parser.add_argument("--programs", help="a folder of C programs that were compiled elsewhere")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop-after", type=float, default=1e9, help="seconds after which no experiment begins")
    parser.add_argument("-o", "--output", help="append a line of JSON for each run")
    parser.add_argument("--table", nargs="+", help="print the table of such files")
    args = parser.parse_args()
    rows = [json.loads(line) for path in args.table or () for line in Path(path).read_text().splitlines()]
    args.cores = os.sched_getaffinity(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the busy loops
    try:
        for load in () if args.table else args.loads.split(","):
            for row in judge_all(args, load):
                rows.append(row)
                if args.output:
                    with open(args.output, "a") as file:
                        print(json.dumps(row), file=file)
    finally:
        print(table(rows))


if __name__ == "__main__":
    main()

"""Slowdowns planted in three foreign projects, quiet and beside other work: how many `bench ab` sees, in what time.

    python tests/fps/planted.py [--percents 1,3,5,10] [--repeats 1] [--aa 100] [--by instructions] [--projects c,python]

A bench, not a test and not a case. It prints Markdown: the share of SLOWER for each planted slowdown, the median of
seconds and of processor seconds, and the false alarms (SLOWER or FASTER) of runs whose head differs in nothing that
runs. The projects: a Python script, a package with a suite as asv's sample project has one, and a C program. "loaded"
runs one busy loop on each core meanwhile.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
PROJECTS = {  # files, of which the first has SIZE; size; options of bench ab
    "python": ({"work.py": SCRIPT}, 100_000, ["--command", f"{PYTHON} work.py"]),
    "asv": ({"run.py": RUN, "benchmarks/benchmarks.py": SUITE}, 1000, ["--command", f"{PYTHON} run.py"]),
    "c": ({"main.c": C}, 2_000_000, ["--setup", "cc -O1 -o program main.c", "--command", "./program"]),
}


def commit(tree: Path, name: str, size: int, note: str = "") -> None:
    """Writes the project at a size and commits it."""
    files = PROJECTS[name][0]
    for number, (path, text) in enumerate(files.items()):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text.replace("SIZE", str(size)) if number == 0 else text)
    (tree / "NOTE").write_text(note)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=tree, check=True)


def judge(name: str, percent: int, by: list[str]) -> tuple[str, float, float]:
    """The verdict of a fresh repository whose head is slower by `percent`; seconds, and processor seconds."""
    size, options = PROJECTS[name][1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        commit(Path(folder), name, size)
        commit(Path(folder), name, size * (100 + percent) // 100, "head")
        command = [sys.executable, str(ROOT / "main.py"), "bench", "ab", "--repo", folder, "--base", "HEAD~1", "--json"]
        began, used = time.monotonic(), sum(os.times()[2:4])
        answer = subprocess.run([*command, *options, *by], capture_output=True, text=True)
        took = time.monotonic() - began, sum(os.times()[2:4]) - used
        return next(iter(json.loads(answer.stdout)["verdicts"].values())), *took


def main() -> None:
    """Prints a row for each project, load and planted slowdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--percents", default="1,3,5,10")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--aa", type=int, default=0, help="runs without a slowdown")
    parser.add_argument("--by", default="instructions", help="instructions, memory, time, or time-cpu")
    parser.add_argument("--projects", default=",".join(PROJECTS))
    parser.add_argument("--loads", default="quiet,loaded")
    args = parser.parse_args()
    quantity, _, clock = args.by.partition("-")
    by = [
        "--by",
        quantity,
        *(["--clock", clock] if clock else []),
        *(["--counts", "none"] if quantity == "time" else []),
    ]
    planted = [int(percent) for percent in args.percents.split(",") if percent]
    print(
        "| project | machine | by | planted | runs | seen | seconds | processor seconds | verdicts |\n"
        + "|---" * 9
        + "|"
    )
    for load in args.loads.split(","):
        with ExitStack() as stack:
            for _ in range(len(os.sched_getaffinity(0)) if load == "loaded" else 0):
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                stack.callback(busy.kill)
            for name in args.projects.split(","):
                for percent, runs in [*((percent, args.repeats) for percent in planted), (0, args.aa)]:
                    if not runs:
                        continue
                    labels, wall, cpu = zip(*(judge(name, percent, by) for _ in range(runs)), strict=True)
                    seen = sum(label == "SLOWER" if percent else label in ("SLOWER", "FASTER") for label in labels)
                    counted = ", ".join(f"{labels.count(label)} {label}" for label in sorted(set(labels)))
                    kind = f"{percent} %" if percent else "none (false alarms)"
                    times = f"{statistics.median(wall):.0f} | {statistics.median(cpu):.1f}"
                    row = f"| {name} | {load} | {args.by} | {kind} | {runs} | {100 * seen / runs:.0f} % | {times}"
                    print(f"{row} | {counted} |", flush=True)


if __name__ == "__main__":
    main()

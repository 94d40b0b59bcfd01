"""What the tests of the bench share: its command, repositories, a stopwatch as a device."""

import subprocess
import sys
import time

import pytest

from renderer.bench.cases import Case
from renderer.bench.machine import commit_info, git
from renderer.bench.measure import TimingOptions
from renderer.gpu.properties import Counters
from renderer.paths import ROOT
from tests.children import run_here

BUSY = ROOT / "tests/fps/results/aa_busy.jsonl"


def bench(*arguments, code=0, timeout=300):
    """`rayfold bench ARGUMENTS`; what measures has a process of its own, mistakes and reports have not."""
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, arguments)]
    if code in (2, 5) or arguments[0] in ("history", "list", "reanalyze", "report"):
        answer = run_here("bench", *arguments)
    else:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert code in (None, answer.returncode), answer
    assert "Traceback" not in answer.stderr
    return answer


class Stopwatch:
    """A device whose clock is not trusted, as software GL's."""

    name, driver, has_reliable_timer = "stopwatch", "1", False

    def __init__(self):
        self.counters = Counters()

    def finish(self):
        pass

    def time_seconds(self, work):
        work()
        return 0.0


SOME = TimingOptions(0.05, 10, 0.01)


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def case_of(seconds=0.002, name="x", check=lambda: b"ok", **more):
    device = Stopwatch()

    def run():
        device.counters.launches += 3
        spin(seconds)

    return Case(name, "runs/s", 1.0, run, check, device, **more)


def repository(folder, **files):
    """A git repository with files."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git("init", "-q", tree=folder)
    commit_all(folder)
    return folder


def commit_all(folder):
    git("add", "-A", tree=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "x", tree=folder)


def in_git():
    return commit_info()["commit"] != "unknown"


needs_git = pytest.mark.skipif(not in_git(), reason="an A/B run needs the git history, which this copy has not")


METRONOME = (ROOT / "tests/fps/metronome.py").read_text()

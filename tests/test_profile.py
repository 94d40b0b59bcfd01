"""`--profile`: a moment counts for the innermost stage, stages sum to the wall time, other threads are left out."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from renderer.cli import main
from renderer.system import profile
from renderer.system.profile import STAGES, Profile, measured, profiled, stage


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return 2 * self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(profile, "time", clock)
    monkeypatch.setattr(profile, "process_age", lambda: 0.5)
    monkeypatch.setattr(profile, "peak_memory", lambda: int(clock.now * 2**20))
    return clock


def test_each_moment_counts_for_the_innermost_stage(clock, rng):
    """Against a count of ticks by the top of a list, over random nestings."""
    names = list(STAGES)[1:-1]
    with profiled() as measuring:
        expected, stack, contexts = Counter(starting=0.5), ["other"], []
        for _ in range(400):
            if contexts and rng.random() < 0.45:
                contexts.pop().__exit__(None, None, None)
                stack.pop()
            else:
                stack.append(names[rng.integers(len(names))])
                contexts.append(stage(stack[-1]))
                contexts[-1].__enter__()
            ticks = float(rng.integers(1, 8))
            clock.now += ticks
            expected[stack[-1]] += ticks
        rows = {row["stage"]: row for row in measuring.rows()}
        for context in reversed(contexts):
            context.__exit__(None, None, None)
    total = rows.pop("total")
    assert {name: row["seconds"] for name, row in rows.items()} == dict(expected)
    assert total["seconds"] == clock.now - 100 + 0.5
    assert total["cpu_seconds"] == 2 * clock.now and total["peak_mib"] == clock.now


def test_an_error_ends_its_stage(clock):
    with profiled() as measuring:
        with pytest.raises(ValueError), stage("reading"):
            clock.now += 1
            raise ValueError
        clock.now += 2
        assert [(row["stage"], row["seconds"]) for row in measuring.rows()][1:3] == [("reading", 1), ("other", 2)]


def test_other_threads_and_commands_without_the_option_note_nothing(clock):
    assert measured() == {}
    with stage("reading"):
        clock.now += 1
    with profiled() as measuring:

        def work():
            with stage("reading"):
                clock.now += 1

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert [row["stage"] for row in measuring.rows()] == ["starting", "other", "total"]
    assert measured() == {}


def test_the_stages_of_an_export_sum_to_its_wall_time(tmp_path):
    """Of a child process: from its start, as this process sees it, to the line that it prints."""
    command = [sys.executable, "-m", "renderer", "export", "cornell", "-o", str(tmp_path / "a.png"), "--dry-run"]
    start = time.monotonic()
    child = subprocess.Popen([*command, "--json", "--profile"], stdout=subprocess.PIPE, text=True)
    line = child.stdout.readline()
    wall = time.monotonic() - start
    child.communicate()
    *rows, total = json.loads(line)["profile"]
    assert sum(row["seconds"] for row in rows) == pytest.approx(total["seconds"], abs=1e-3)
    assert {"starting", "importing", "reading"} <= {row["stage"] for row in rows}
    assert total["seconds"] <= wall + 0.02  # the system counts a process's start in hundredths of a second
    assert total["seconds"] >= 0.5 * wall  # what is left out is the start of the process until it has a clock


def test_the_table_goes_to_stderr_and_the_picture_is_the_same(tmp_path, capsys):
    words = ["--size", "16x16", "--samples", "1", "--device", "cpu", "--json"]
    answers = []
    for extra in ([], ["--profile"]):
        assert main(["export", "cornell", "-o", str(tmp_path / "a.png"), *words, *extra]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["digest"] == answers[1]["digest"] and "profile" not in answers[0]
    seconds = {row["stage"]: row["seconds"] for row in answers[1]["profile"]}
    assert min(seconds[name] for name in ("rendering", "building", "compiling", "writing")) > 0
    assert main(["export", "cornell", "-o", str(tmp_path / "a.png"), *words[:-1], "--profile"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 and all(name in err for name in seconds)


def test_a_profile_begins_with_the_process():
    assert 0 < Profile().costs["starting"].seconds

"""Rules by which tasks of a farm are copied, with attempts that no worker runs."""

import time
from concurrent.futures import Future

import pytest

from renderer.system import farm_tasks


def test_a_late_task_is_copied_once_and_keeps_its_duration(monkeypatch):
    """The median of the durations decides what is late, so a copy must not shorten the duration of the original."""
    pytest.importorskip("distributed")
    schedule, started = farm_tasks._Schedule(None, None, ["a"]), []
    monkeypatch.setattr(schedule, "_start", lambda task, worker: started.append((task, worker)))
    schedule._waiting.clear()
    schedule._durations.append(1.0)
    original = Future()
    schedule._attempts[original] = farm_tasks._Attempt(0, "slow", time.monotonic() - 100)
    for _ in range(2):
        schedule.assign(["slow", "idle"])
    assert started == [(0, "idle")]
    original.set_result((7,))
    assert list(schedule.answers()) == [(0, 7)] and schedule._durations[-1] >= 100

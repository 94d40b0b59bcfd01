"""Waiting for compute devices, on a thread of its own, and for compilers, so that the window stays responsive."""

import time
from collections.abc import Callable
from typing import Any

from renderer.gpu.compilation import Task

Clock = Callable[[], float]  # seconds


def finish_time(device: Any, now: Clock) -> float:
    """Blocks until the device has finished; returns the timestamp."""
    device.finish()
    return now()


def responds(device: Any) -> bool:
    """Whether a device still works after an error."""
    try:
        device.finish()
    except Exception:  # each driver raises exceptions of its own for a lost device
        return False
    return True


class SuspendableWork:
    """Work of the window's thread that is suspended where it waits for a compiler.

    `wake` is called, on another thread, when it can go on.
    """

    def __init__(self, wake: Callable[[], None]):
        self._wake = wake
        self._task: Task | None = None
        self.resumed_at = 0.0  # time.perf_counter()

    def start(self, work: Callable[[], None]) -> None:
        """Does the work, after cancelling what waits; poll() does the rest of it. Raises what the work raises."""
        self.cancel()
        self._continue(Task(work, self._wake))

    def poll(self) -> None:
        """Goes on, if it need not wait any more."""
        if self.is_ready:
            assert self._task is not None
            self.resumed_at = time.perf_counter()
            self._continue(self._task)

    def _continue(self, task: Task) -> None:
        self._task = None
        if not task.resume():
            self._task = task

    def cancel(self) -> None:
        """Ends the work where it waits."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    @property
    def is_waiting(self) -> bool:
        """Whether there is more to do."""
        return self._task is not None

    @property
    def is_ready(self) -> bool:
        """Whether poll() would go on."""
        return self._task is not None and self._task.ready

    def text(self) -> str:
        """What it waits for and for how long, or the empty text."""
        task = self._task
        return f"compiling {task.compiles}, {time.perf_counter() - task.waits_since:.0f} s" if task else ""

"""Waiting without blocking the window: for compilers by suspended work.

Panels and AppState run work that may compile as SuspendableWork.
"""

import time
from collections.abc import Callable

from renderer.gpu.compilation import Task
from renderer.gpu.device import Device

Clock = Callable[[], float]  # seconds


def responds(device: Device) -> bool:
    """True if a device still works after an error."""
    try:
        device.finish()
    except Exception:  # each driver raises different exceptions for a lost device
        return False
    return True


class SuspendableWork:
    """Work of the window's thread that is suspended while it waits for a compiler.

    `wake` is called, on another thread, when the work can be resumed.
    """

    def __init__(self, wake: Callable[[], None]):
        self._wake = wake
        self._task: Task | None = None
        self.resumed_at = 0.0  # time.perf_counter()
        # Ended waits for compilers, in seconds and their number: of the present picture, or of its last view.
        self.waited, self.waits = 0.0, 0

    def start(self, work: Callable[[], None]) -> None:
        """Cancels suspended work, then runs `work`; if it suspends, poll() resumes it. Raises the errors of `work`."""
        self.cancel()
        self._continue(Task(work, self._wake))

    def poll(self) -> None:
        """Resumes the work if its compiler has finished."""
        if self.is_ready:
            assert self._task is not None
            self.waited, self.waits, self.resumed_at = self.seconds, self.waits + 1, time.perf_counter()
            self._continue(self._task)

    def _continue(self, task: Task) -> None:
        """Runs the task until it ends or suspends again."""
        self._task = None
        if not task.resume():
            self._task = task

    def cancel(self) -> None:
        """Ends suspended work."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    @property
    def is_waiting(self) -> bool:
        """True while the work is suspended."""
        return self._task is not None

    @property
    def is_ready(self) -> bool:
        """True if poll() would resume the work."""
        return self._task is not None and self._task.ready

    @property
    def seconds(self) -> float:
        """Seconds of `waited`, with the present wait: programs that compile side by side count once."""
        since = max(self._task.waits_since, self.resumed_at) if self._task else 0.0
        return self.waited + (time.perf_counter() - since if self._task else 0.0)

    def text(self) -> str:
        """`seconds`, and the number and name of the program that is compiled; the empty text if it does not wait."""
        task, number = self._task, f", program {self.waits + 1}" if self.waits else ""
        return f"compiling, {self.seconds:.0f} s{number}: {task.compiles}" if task else ""

"""Work that is suspended while a compiler runs, so that the window stays responsive; and a test of a device.

Panels and AppState run whatever may compile kernels as SuspendableWork; a Task of gpu/compilation.py suspends it. The
main loop calls poll(), which resumes it. responds() says whether a device still works after an error.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from renderer.gpu.compilation import Task
from renderer.gpu.device import Device

Clock = Callable[[], float]  # seconds


def responds(device: Device) -> bool:
    """True if a device still works after an error."""
    with suppress(Exception):  # each driver raises different exceptions for a lost device
        device.finish()
        return True
    return False


class SuspendableWork:
    """Work of the window's thread that is suspended while it waits for a compiler.

    `wake` is called, on another thread, when the work can be resumed.
    """

    def __init__(self, wake: Callable[[], None]):
        self._wake = wake
        self._task: Task | None = None
        self.resumed_at = 0.0  # when the last wait ended, on time.perf_counter()'s clock
        # Seconds and number of the waits for compilers that have ended. A new picture or view sets both to 0.
        self.waited, self.waits = 0.0, 0

    def start(self, work: Callable[[], None]) -> None:
        """Cancels suspended work, then runs `work`; if it suspends, poll() resumes it. Raises the errors of `work`."""
        self.cancel()
        self._continue(Task(work, self._wake))

    def poll(self) -> None:
        """Resumes the work if its compiler has finished."""
        if self.is_ready:
            assert self._task is not None
            # `seconds` still includes the wait that ends here
            self.waited, self.waits, self.resumed_at = self.seconds, self.waits + 1, time.perf_counter()
            self._continue(self._task)

    def _continue(self, task: Task) -> None:
        """Runs the task until it ends or suspends again."""
        self._task = None
        if not task.resume():  # it waits for a compiler again
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
        """Seconds of all waits, the present one included."""
        if self._task is None:
            return self.waited
        # A program that began to compile during an earlier wait counts from the end of that wait
        return self.waited + time.perf_counter() - max(self._task.waits_since, self.resumed_at)

    def text(self) -> str:
        """`seconds`, and the number and name of the program that is compiled; the empty text if it does not wait."""
        task, number = self._task, f", program {self.waits + 1}" if self.waits else ""
        return f"compiling, {self.seconds:.0f} s{number}: {task.compiles}" if task else ""

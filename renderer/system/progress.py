"""Shows progress on stderr once work takes two seconds.

It is a bar in a terminal; else, for commands only, a line every ten seconds. Both tell the time left. A script's own
function gets the steps instead; until the first step ends, lines on stderr say that kernels may compile.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from renderer.errors import UserError

OnProgress = Callable[[int, int], object]  # called with the steps done and all steps; False cancels
QUIET_SECONDS = 2.0  # time before the first line: short work shows no progress
PREPARING = "kernels may compile first (`rayfold warm` compiles ahead)"
PROGRESS_OFTEN = "RAYFOLD_PROGRESS_OFTEN"  # the environment variable by which the window follows its exports
LINE_SECONDS = 0.5 if PROGRESS_OFTEN in os.environ else 10.0  # between lines in a pipe or file


def checked_progress(value: OnProgress | None) -> OnProgress | None:
    """The value, a function or None; UserError for others."""
    if value is not None and not callable(value):
        raise UserError(f"progress is {value!r}; it must be a function of the steps done and all steps")
    return value


def is_cancelled(answer: object) -> bool:
    """True if a script's callback asks to stop, by an answer such as False, 0 or NumPy's False; None goes on."""
    return answer is not None and not answer


class Progress:
    """A context manager that shows a bar named `title`, of `total` steps (0: not known), after QUIET_SECONDS.

    `writes_lines` is set by the command line, for its process: scripts that import the program keep their stderr,
    unless it is a terminal. A script's function `report` is called in place of the bar, with the steps done and all
    steps; where it returns False, `cancel` is called.
    """

    writes_lines = False

    def __init__(
        self, total: int, title: str, report: OnProgress | None = None, cancel: Callable[[], None] | None = None
    ) -> None:
        self._total, self.title, self.report, self._cancel = total, title, report, cancel
        self.done, self.preparing = 0, PREPARING
        self.parts, self._part = 1, 0  # parts of a step, such as a sample's tiles, which advance() counts; those done
        self._start = time.monotonic()
        self._next = self._start + QUIET_SECONDS  # when to write the next line
        self._bar: Any = None  # of rich, once it is shown
        # A script's function gets no call before the first step ends: until then lines say what is going on.
        self._watched, self.writes_lines = report is None and sys.stderr.isatty(), bool(report) or self.writes_lines
        self._ended, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> Self:
        if self._watched or self.writes_lines:
            threading.Thread(target=self._show_while_waiting, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        with self._lock:
            if self._bar:
                self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        """Adds `steps` to the steps done, or to the parts of one, and updates the bar."""
        whole, self._part = divmod(self._part + steps, self.parts)
        self.done += whole
        if self.report is None:
            self._show()
        else:
            self._ended.set()  # no further line: the function gets the steps from now on
            if is_cancelled(self.report(self.done, self._total)) and self._cancel:
                self._cancel()

    def _show_while_waiting(self) -> None:
        """Shows also the time in which no step ends: before the first one, kernels may compile for long."""
        while not self._ended.wait(max(self._next - time.monotonic(), 0.05)) and not self._bar:
            self._show()

    def _show(self) -> None:
        done = self.done + round(self._part / self.parts, 3) if self._part else self.done
        with self._lock:
            seconds = time.monotonic() - self._start
            if self._ended.is_set() or self._start + seconds < self._next:
                return
            if self._watched:
                self._update_bar(done)
            elif self.writes_lines:
                self._next = self._start + seconds + LINE_SECONDS
                left = f", about {seconds * (self._total - done) / done:.0f} s left" if done and self._total else ""
                steps = f"{done} of {self._total} in " if self._total else f"{done} in " if done else ""
                text = f"{steps}{seconds:.0f} s{left if done else f'; {self.preparing}'}"
                print(f"rayfold: {self.title}: {text}", file=sys.stderr)

    def _update_bar(self, done: float) -> None:
        if self._bar is None:
            from rich.console import Console  # slow to import, and most work is short or unwatched
            from rich.progress import MofNCompleteColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = *Bar.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=self._total or None)
            self._bar.start()
        title = self.title if done else f"{self.title}: {self.preparing}"
        self._bar.update(self._task, completed=done, description=title)

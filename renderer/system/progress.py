"""Progress on stderr: a bar with the remaining time if it is a terminal, else of commands a line every ten seconds."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Self

from renderer.errors import UserError

OnProgress = Callable[[int, int], object]  # called with the steps done and all steps; False cancels
QUIET_SECONDS = 2.0
OFTEN = "RAYFOLD_PROGRESS_OFTEN"  # the environment variable by which the window follows its exports
LINE_SECONDS = 0.5 if OFTEN in os.environ else 10.0  # between lines in a pipe or file


def checked_progress(value: OnProgress | None) -> OnProgress | None:
    """The value, a function or None; UserError for others."""
    if value is not None and not callable(value):
        raise UserError(f"progress is {value!r}; it must be a function of the steps done and all steps")
    return value


def is_cancelled(answer: object) -> bool:
    """True if a script's callback asks to stop, by an answer such as False, 0 or NumPy's False; None goes on."""
    return answer is not None and not answer


class Progress:
    """A context manager that shows a bar named `title`, of `total` steps, after QUIET_SECONDS.

    `writes_lines` is set by the command line, for its process: scripts that import the program keep their stderr.
    """

    writes_lines = False

    def __init__(self, total: int, title: str):
        self._total, self.title = total, title
        self.done = 0
        self.parts, self._part = 1, 0  # of a step: a sample that is drawn in parts advances once for each
        self._start = self._line = time.monotonic()
        self._bar: Any = None
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        """Adds `steps` to the steps done, or to the parts of one, and updates the bar."""
        whole, self._part = divmod(self._part + steps, self.parts)
        self.done += whole
        done = self.done + round(self._part / self.parts, 3) if self._part else self.done
        if not self._watched:
            if self.writes_lines and time.monotonic() - self._line > LINE_SECONDS:
                self._line = time.monotonic()
                seconds = self._line - self._start
                print(f"rayfold: {self.title}: {done} of {self._total} in {seconds:.0f} s", file=sys.stderr)
            return
        if self._bar is None and time.monotonic() - self._start > QUIET_SECONDS:
            from rich.console import Console  # slow to import, and most work is short or unwatched
            from rich.progress import MofNCompleteColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = *Bar.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=self._total)
            self._bar.start()
        if self._bar:
            self._bar.update(self._task, completed=done, description=self.title)

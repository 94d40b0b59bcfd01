"""Progress with the time left, on stderr, for work of more than two seconds and only where a person watches."""

import sys
import time
from typing import Any

QUIET_SECONDS = 2.0


class Progress:
    """A context that shows `total` steps of `title` once the work has taken two seconds."""

    def __init__(self, total: int, title: str):
        self._total, self._title = total, title
        self._done = 0
        self._start = time.monotonic()
        self._bar: Any = None
        self._watched = sys.stderr.isatty()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._bar:
            self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        """Counts steps that are done."""
        self._done += steps
        if not self._watched:
            return
        if self._bar is None and time.monotonic() - self._start > QUIET_SECONDS:
            from rich.console import Console  # slow to import, and most work is short or unwatched
            from rich.progress import MofNCompleteColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = *Bar.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._title, total=self._total)
            self._bar.start()
        if self._bar:
            self._bar.update(self._task, completed=self._done)

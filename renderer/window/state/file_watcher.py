"""A file watcher that compares modification times: from time to time, or when the system reports a change."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path

from renderer.window.state.folder_events import FolderEvents

POLL_SECONDS = 0.25
REPORTED_SECONDS = 15.0  # the same where changes are reported: a folder of another machine reports none
LIST_SECONDS = 5.0  # between two listings of a folder, which cost more than a look at its files


class FileWatcher:
    """Compares modification time and size of files between polls."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._polled_at = 0.0
        self._listed: dict[Path, tuple[float, set[Path]]] = {}
        self._subject: Hashable = None  # for which files were named last
        self._events: FolderEvents | None = None

    def listen(self, wake: Callable[[], None]) -> None:
        """Lets the system report changes, where it can: wake() is called after one, on another thread."""
        with suppress(OSError):
            self._events = FolderEvents(wake)

    @property
    def is_notified(self) -> bool:
        """Whether changes of all files are reported and none was, so that nothing is to be looked for."""
        events = self._events
        return events is not None and not events.changed and events.covers({path.parent for path in self._stamps})

    def close(self) -> None:
        """Listens no more."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def files_below(self, folder: Path, now: float) -> set[Path]:
        """The files in a folder and its folders, as they were at most LIST_SECONDS ago."""
        if folder not in self._listed or now - self._listed[folder][0] >= LIST_SECONDS:
            self._listed[folder] = now, set(folder.rglob("*.*"))
        return self._listed[folder][1]

    def is_due(self, now: float, subject: Hashable = None) -> bool:
        """Whether to poll: now and then, and once a change was reported or another subject names the files."""
        passed = now - self._polled_at
        if passed < POLL_SECONDS:
            return False
        is_new, self._subject = subject != self._subject, subject
        is_reported = self._events is not None and self._events.take()
        return is_new or is_reported or not self.is_notified or passed >= REPORTED_SECONDS

    def poll(self, paths: set[Path], now: float) -> set[Path]:
        """Those of `paths` that were saved since the last poll; a path not polled before counts from now on.

        Returns nothing within POLL_SECONDS of the last poll.
        """
        if now - self._polled_at < POLL_SECONDS:
            return set()
        self._polled_at = now
        if self._events is not None:
            self._events.watch({path.parent for path in paths})
        before, self._stamps = self._stamps, {path: stamp(path) for path in paths}
        return {path for path, stamp in self._stamps.items() if stamp and path in before and stamp != before[path]}

    def accept(self, path: Path) -> None:
        """Takes a file as it is now for seen: the window has written it."""
        self._stamps[path] = stamp(path)


def stamp(path: Path) -> tuple[int, int] | None:
    """Modification time and size of a file; None without one."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return None

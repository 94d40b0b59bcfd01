"""Finds files that other programs saved, by comparing file stamps: after a report of the system, or from time to time.

open_files.reload_changed_files() polls it once a frame or less.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path

from renderer.system.files import file_stamp
from renderer.window.state.folder_events import FolderEvents

POLL_SECONDS = 0.25  # between two polls if the system does not report changes
REPORTED_SECONDS = 15.0  # between two polls if it does: network folders report none
LIST_SECONDS = 5.0  # between two listings of a folder, which take longer than the stamps of its files


class FileWatcher:
    """Compares modification time and size of files between polls."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._polled_at = 0.0
        self._listed: dict[Path, tuple[float, set[Path]]] = {}
        self._subject: Hashable = None  # the subject of the last is_due()
        self._events: FolderEvents | None = None

    def listen(self, wake: Callable[[], None]) -> None:
        """Asks the system to report changes, if it can: wake() is called on another thread after a change."""
        with suppress(OSError):
            self._events = FolderEvents(wake)

    @property
    def is_notified(self) -> bool:
        """True if the system reports changes of all files, and has reported none since the last poll."""
        events = self._events
        return events is not None and not events.changed and events.covers({path.parent for path in self._stamps})

    def close(self) -> None:
        """Ends the reports."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def files_below(self, folder: Path, now: float) -> set[Path]:
        """The files in a folder and its folders, as they were at most LIST_SECONDS ago."""
        if folder not in self._listed or now - self._listed[folder][0] >= LIST_SECONDS:
            self._listed[folder] = now, set(folder.rglob("*.*"))
        return self._listed[folder][1]

    def is_due(self, now: float, subject: Hashable = None) -> bool:
        """True if poll() should run: after a report, after some time, or if `subject` changed.

        The paths of the next poll() depend on `subject`.
        """
        passed = now - self._polled_at
        if passed < POLL_SECONDS:
            return False
        is_new, self._subject = subject != self._subject, subject
        is_reported = self._events is not None and self._events.take()
        return is_new or is_reported or not self.is_notified or passed >= REPORTED_SECONDS

    def poll(self, paths: set[Path], now: float) -> set[Path]:
        """The files that were saved since the last poll that had them; none within POLL_SECONDS of the last poll."""
        if now - self._polled_at < POLL_SECONDS:
            return set()
        self._polled_at = now
        if self._events is not None:
            self._events.watch({path.parent for path in paths})
        before, self._stamps = self._stamps, {path: file_stamp(path) for path in paths}
        return {path for path, stamp in self._stamps.items() if stamp and path in before and stamp != before[path]}

    def accept(self, path: Path) -> None:
        """Ignores the changes of a file so far: the window has written it."""
        self._stamps[path] = file_stamp(path)

"""Finds files that other programs saved, by comparing file stamps: after a report of the system, or from time to time.

open_files.reload_changed_files() polls it once a frame or less. FolderEvents reports changes by inotify(7), so that an
idle window need not look for edited files; other systems have other calls, and there, and in folders of other
machines, FileWatcher looks from time to time.

The package watchfiles (tried with 1.3) would make this module 25 code lines shorter. Its thread wakes after each step,
4.0 times a second at 0.25 s, where this one wakes after a change alone; it takes 60 to 90 ms to import, 3.9 MB with
anyio and idna, and a new thread for each change of the set of folders.
"""

import ctypes
import os
import select
import sys
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path

from renderer.host import NONBLOCKING
from renderer.system.files import file_stamp

POLL_SECONDS = 0.25  # between two polls if the system does not report changes
REPORTED_SECONDS = 15.0  # between two polls if it does: network folders report none
LIST_SECONDS = 5.0  # between two listings of a folder, which take longer than the stamps of its files
# Events of inotify(7), by their names in sys/inotify.h.
IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x8, 0x80, 0x100, 0x200
MASK = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE
PAUSE_SECONDS = 0.25  # between two reports: a file that is written in several steps is one change
READ_BYTES = 1 << 16  # bytes of events that are read, and dropped, at a time
MAX_FOLDERS = 1000  # folders that are watched at a time


class FolderEvents:
    """Calls `wake` on another thread after a change in the folders of the last watch()."""

    def __init__(self, wake: Callable[[], None]):
        """Raises OSError where there is no inotify, or where the user has too many of its instances."""
        if not sys.platform.startswith("linux"):
            raise OSError("inotify is Linux's")
        self._libc, self._wake = ctypes.CDLL(None, use_errno=True), wake
        # Reads of the events do not block, and child processes do not inherit the descriptor.
        self._events = self._libc.inotify_init1(NONBLOCKING)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._end, self._ender = os.pipe()  # a byte in this pipe ends the wait of the thread
        self._watched: dict[Path, int] = {}  # inotify's number of each watched folder
        self.changed = threading.Event()  # set after a change until take()
        self._closed = threading.Event()  # set by close()
        self._thread = threading.Thread(target=self._listen, name="folders", daemon=True)
        self._thread.start()

    def watch(self, folders: set[Path]) -> None:
        """Watches these folders and no others. A folder that does not exist is not watched."""
        for folder in self._watched.keys() - folders:
            self._libc.inotify_rm_watch(self._events, self._watched.pop(folder))
        for folder in list(folders - self._watched.keys())[: MAX_FOLDERS - len(self._watched)]:
            number = self._libc.inotify_add_watch(self._events, os.fsencode(folder), MASK)
            if number >= 0:
                self._watched[folder] = number

    def covers(self, folders: set[Path]) -> bool:
        """True if all of these folders are watched."""
        return folders <= self._watched.keys()

    def take(self) -> bool:
        """True if there was a change since the last call."""
        changed = self.changed.is_set()
        self.changed.clear()
        return changed

    def _listen(self) -> None:
        """The thread: waits for events, reads all of them after PAUSE_SECONDS, and reports one change."""
        while not self._closed.is_set():
            ready, _, _ = select.select([self._events, self._end], [], [])
            if self._events in ready:
                self._closed.wait(PAUSE_SECONDS)
                with suppress(BlockingIOError):
                    while len(os.read(self._events, READ_BYTES)) > READ_BYTES // 2:  # a shorter read empties the queue
                        pass
                self.changed.set()
                self._wake()

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        os.write(self._ender, b".")
        self._thread.join()
        for handle in (self._events, self._end, self._ender):
            os.close(handle)


class FileWatcher:
    """Compares modification time and size of files between polls."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}  # stamp of each file at the last poll; None: no file
        self._folders: set[Path] = set()  # kept because the main loop asks is_notified in each turn
        self._polled_at = 0.0  # time of the last poll, in seconds of the caller's clock
        self._listed: dict[Path, tuple[float, set[Path]]] = {}  # by folder: time of its listing, and its files
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
        return events is not None and not events.changed.is_set() and events.covers(self._folders)

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
        """The files of `paths` that were saved since the last poll; none within POLL_SECONDS of the last poll.

        A file that the last poll did not ask for counts as unchanged.
        """
        if now - self._polled_at < POLL_SECONDS:
            return set()
        self._polled_at, self._folders = now, {path.parent for path in paths}
        if self._events is not None:
            self._events.watch(self._folders)
        before, self._stamps = self._stamps, {path: file_stamp(path) for path in paths}
        return {path for path, stamp in self._stamps.items() if stamp and path in before and stamp != before[path]}

    def accept(self, path: Path) -> None:
        """Ignores the changes of a file so far: the window has written it."""
        self._stamps[path] = file_stamp(path)
        self._folders.add(path.parent)  # if it is new, is_notified is False, so that a poll() soon watches it

"""Reports changes in folders by inotify(7), so that an idle window need not look for edited files. Linux only.

Other systems have other calls; there, and in folders of other machines, FileWatcher looks from time to time.

The package watchfiles (tried with 1.3) would make this module 25 code lines shorter. Its thread wakes after each step,
4.0 times a second at 0.25 s, where this one wakes after a change alone; it takes 60 to 90 ms to import, 3.9 MB with
anyio and idna, and a new thread for each change of the set of folders.
"""

import contextlib
import ctypes
import os
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from renderer.host import NEVER_WAITS

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x8, 0x80, 0x100, 0x200
MASK = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE
PAUSE_SECONDS = 0.25  # between two reports: a file that is written in several steps is one change
READ_BYTES = 1 << 16
MAX_FOLDERS = 1000  # watched at a time


class FolderEvents:
    """Calls `wake` on another thread after a change in the folders of the last watch()."""

    def __init__(self, wake: Callable[[], None]):
        """Raises OSError where there is no inotify, or where the user has too many of its instances."""
        if not sys.platform.startswith("linux"):
            raise OSError("inotify is Linux's")
        self._libc, self._wake = ctypes.CDLL(None, use_errno=True), wake
        self._events = self._libc.inotify_init1(NEVER_WAITS)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._end, self._ender = os.pipe()
        self._watched: dict[Path, int] = {}
        self._changed = threading.Event()
        self._closed = threading.Event()
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

    @property
    def changed(self) -> bool:
        """True if there was a change since the last take()."""
        return self._changed.is_set()

    def take(self) -> bool:
        """True if there was a change since the last call."""
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    def _listen(self) -> None:
        while not self._closed.is_set():
            ready, _, _ = select.select([self._events, self._end], [], [])
            if self._events in ready:
                self._closed.wait(PAUSE_SECONDS)
                with contextlib.suppress(BlockingIOError):
                    while len(os.read(self._events, READ_BYTES)) > READ_BYTES // 2:
                        pass
                self._changed.set()
                self._wake()

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        os.write(self._ender, b".")
        self._thread.join()
        for handle in (self._events, self._end, self._ender):
            os.close(handle)

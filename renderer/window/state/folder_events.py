"""What the system says of changed folders, so that an idle window need not look: inotify(7), on Linux.

Other systems have other calls; there, and in folders of other machines, the window looks from time to time.
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
PAUSE_SECONDS = 0.25  # between two reports: a file that is written in pieces is one change
READ_BYTES = 1 << 16
MAX_FOLDERS = 1000  # that are watched


class FolderEvents:
    """Calls `wake`, on a thread of its own, after something changed in the folders that watch() was given."""

    def __init__(self, wake: Callable[[], None]):
        """OSError where the system has no such events, or no more of them for this user."""
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
        """Watches these folders and no others; one that is not there is seen once its parent is watched."""
        for folder in self._watched.keys() - folders:
            self._libc.inotify_rm_watch(self._events, self._watched.pop(folder))
        for folder in list(folders - self._watched.keys())[: MAX_FOLDERS - len(self._watched)]:
            number = self._libc.inotify_add_watch(self._events, os.fsencode(folder), MASK)
            if number >= 0:
                self._watched[folder] = number

    def covers(self, folders: set[Path]) -> bool:
        """Whether changes in all of these folders are reported."""
        return folders <= self._watched.keys()

    @property
    def changed(self) -> bool:
        """Whether something changed since the last take()."""
        return self._changed.is_set()

    def take(self) -> bool:
        """Whether something changed since the last call."""
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

"""A file watcher that polls modification times."""

from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.25
LIST_SECONDS = 5.0  # between two listings of a folder, which cost more than a look at its files


class FileWatcher:
    """Compares modification time and size of files between polls."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._polled_at = 0.0
        self._listed: dict[Path, tuple[float, set[Path]]] = {}

    def files_below(self, folder: Path, now: float) -> set[Path]:
        """The files in a folder and its folders, as they were at most LIST_SECONDS ago."""
        if folder not in self._listed or now - self._listed[folder][0] >= LIST_SECONDS:
            self._listed[folder] = now, set(folder.rglob("*.*"))
        return self._listed[folder][1]

    def is_due(self, now: float) -> bool:
        """Whether POLL_SECONDS have passed since the last poll."""
        return now - self._polled_at >= POLL_SECONDS

    def poll(self, paths: set[Path], now: float) -> set[Path]:
        """Those of `paths` that were saved since the last poll; a path not polled before counts from now on.

        Returns nothing unless a poll is due.
        """
        if not self.is_due(now):
            return set()
        self._polled_at = now
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

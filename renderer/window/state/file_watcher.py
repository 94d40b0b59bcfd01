"""A file watcher that polls modification times."""

from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.25


class FileWatcher:
    """Compares modification time and size of files between polls."""

    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._polled_at = 0.0

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


def stamp(path: Path) -> tuple[int, int] | None:
    """Modification time and size of a file; None without one."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return None
